// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Where an argument lies: the grammar of arguments in notes of SystemTap's kind, on x86.
//!
//! An argument is `SIZE@OPERAND`, and the operand what the assembler was given: a register, a constant, or memory by
//! distance, symbol, base, index and scale. A negative size is that of a number with a sign, an `f` behind it means floating
//! point, which may be in the lowest bytes of a vector register.

use dtrace_uapi::process::{Arg, FLOAT, NO_REGISTER, NUMBER, VECTOR};

/// What is known of a file's symbols: the address of one, as the file numbers its memory; `None` where there is no or more than one.
pub type Symbols<'s> = &'s dyn Fn(&str) -> Option<u64>;

/// An argument at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// As the kernel wants it.
    pub arg: Arg,
    /// Its value is an address as the file numbers its memory, not as the process does.
    pub is_of_file: bool,
}

/// The names of the general registers by 1, 2, 4 and 8 bytes, in the processor's order.
const NAMES: [[&str; 4]; 8] = [
    ["al", "ax", "eax", "rax"],
    ["cl", "cx", "ecx", "rcx"],
    ["dl", "dx", "edx", "rdx"],
    ["bl", "bx", "ebx", "rbx"],
    ["spl", "sp", "esp", "rsp"],
    ["bpl", "bp", "ebp", "rbp"],
    ["sil", "si", "esi", "rsi"],
    ["dil", "di", "edi", "rdi"],
];
/// Those that are the second byte of a register, the first four in order.
const HIGH: [&str; 4] = ["ah", "ch", "dh", "bh"];

/// The arguments of a note, each if it can be read.
pub fn arguments(text: &str, symbols: Symbols<'_>) -> Vec<Option<Operand>> {
    words(text).map(|word| argument(word, symbols)).collect()
}

/// Parts between white space that is not in parentheses.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0u32;
    let parts = text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c.is_ascii_whitespace()
    });
    parts.filter(|word| !word.is_empty())
}

fn argument(word: &str, symbols: Symbols<'_>) -> Option<Operand> {
    let (text, operand) = word.split_once('@').unwrap_or(("8", word));
    let digits = text.strip_suffix('f').unwrap_or(text);
    let is_float = digits.len() < text.len();
    let size = digits.parse::<i8>().ok()?;
    if is_float && size.unsigned_abs() < 4 {
        return None;
    }
    let blank = Arg {
        base: NO_REGISTER,
        index: NO_REGISTER,
        size: size.unsigned_abs(),
        is_signed: u8::from(size < 0 && !is_float),
        form: if is_float { FLOAT } else { NUMBER },
        ..Arg::default()
    };
    if !matches!(blank.size, 1 | 2 | 4 | 8) {
        return None;
    }
    let of_process = |arg| Operand {
        arg,
        is_of_file: false,
    };
    if let Some(name) = operand.strip_prefix('%') {
        if let Some(n) = vector(name) {
            let base = VECTOR + n;
            return Some(of_process(Arg { base, ..blank }));
        }
        let (base, is_high) = register(name)?;
        return Some(of_process(Arg {
            base,
            is_high: u8::from(is_high),
            ..blank
        }));
    }
    if let Some(constant) = operand.strip_prefix('$') {
        let value = number(constant)?;
        return Some(of_process(Arg { value, ..blank }));
    }
    memory(operand, blank, symbols)
}

/// `DISTANCE(BASE,INDEX,SCALE)`, of which much may be missing.
fn memory(operand: &str, blank: Arg, symbols: Symbols<'_>) -> Option<Operand> {
    let (distance, inside) = match operand.split_once('(') {
        Some((distance, rest)) => (distance, Some(rest.strip_suffix(')')?)),
        None => (operand, None),
    };
    let (value, has_symbol) = sum(distance.trim(), symbols)?;
    let mut arg = Arg {
        value,
        is_loaded: 1,
        ..blank
    };
    let mut parts = inside.unwrap_or_default().split(',').map(str::trim);
    let mut is_next = false;
    match parts.next().unwrap_or_default() {
        "" => {}
        // The symbol is an address, not a distance; without one nobody can tell.
        "%rip" | "%eip" => is_next = true,
        base => arg.base = address_register(base)?,
    }
    match parts.next() {
        None | Some("") => {}
        Some(index) => arg.index = address_register(index)?,
    }
    arg.shift = match parts.next() {
        None | Some("" | "1") => 0,
        Some("2") => 1,
        Some("4") => 2,
        Some("8") => 3,
        Some(_) => return None,
    };
    let is_nowhere = distance.is_empty() && arg.base == NO_REGISTER && arg.index == NO_REGISTER;
    if parts.next().is_some() || is_next && !has_symbol || is_nowhere {
        return None;
    }
    Some(Operand {
        arg,
        is_of_file: has_symbol,
    })
}

/// A sum of numbers and of at most one symbol; whether there is one.
fn sum(text: &str, symbols: Symbols<'_>) -> Option<(u64, bool)> {
    let (mut total, mut has_symbol) = (0u64, false);
    let mut rest = text;
    while !rest.is_empty() {
        let is_negative = rest.starts_with('-');
        let term = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        // A name may hold neither sign.
        let end = term.find(['+', '-']).unwrap_or(term.len());
        let (word, behind) = term.split_at(end);
        let value = match number(word) {
            Some(value) => value,
            None if has_symbol || is_negative => return None,
            None => {
                has_symbol = true;
                symbols(word)?
            }
        };
        total = match is_negative {
            true => total.wrapping_sub(value),
            false => total.wrapping_add(value),
        };
        rest = behind;
    }
    Some((total, has_symbol))
}

fn number(text: &str) -> Option<u64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok()?,
        None => digits
            .bytes()
            .all(|c| c.is_ascii_digit())
            .then(|| digits.parse().ok())??,
    };
    Some(if is_negative {
        value.wrapping_neg()
    } else {
        value
    })
}

fn address_register(text: &str) -> Option<u8> {
    let (register, is_high) = register(text.strip_prefix('%')?)?;
    (!is_high).then_some(register)
}

/// A vector register's number; of the wider ones the lowest bytes are the same.
fn vector(name: &str) -> Option<u8> {
    let name = name.strip_prefix(['x', 'y', 'z'])?.strip_prefix("mm")?;
    let n = name.parse().ok()?;
    (n < 16).then_some(n)
}

/// A register's number, and whether its second byte is meant.
fn register(name: &str) -> Option<(u8, bool)> {
    let at = |n: usize| u8::try_from(n).ok();
    if let Some(n) = NAMES.iter().position(|names| names.contains(&name)) {
        return Some((at(n)?, false));
    }
    if let Some(n) = HIGH.iter().position(|high| *high == name) {
        return Some((at(n)?, true));
    }
    let digits = name
        .strip_prefix('r')?
        .trim_end_matches(['b', 'w', 'd', 'l']);
    let n: u8 = digits.parse().ok()?;
    (8..16).contains(&n).then_some((n, false))
}
