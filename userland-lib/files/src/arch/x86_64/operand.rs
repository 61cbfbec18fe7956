// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Locations of arguments: the grammar of arguments in SystemTap notes, on x86.
//!
//! An argument is `SIZE@OPERAND`. The operand is what the assembler was given: a register, a
//! constant, or memory by displacement, symbol, base, index and scale. A negative size is that of a
//! signed number. An `f` after the size means floating point, which may be in the lowest bytes of a
//! vector register.

use dtrace_uapi::process::{Arg, FLOAT, NO_REGISTER, NUMBER, VECTOR};

/// Looks up a symbol of a file. Returns its address in the file's address space; `None` if the file
/// has no such symbol or several.
pub type Symbols<'s> = &'s dyn Fn(&str) -> Option<u64>;

/// An argument at a probe site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The argument, in the form that the kernel expects.
    pub arg: Arg,
    /// Whether its value is an address in the file's address space rather than in the process's.
    pub is_of_file: bool,
}

/// The names of the general registers with 1, 2, 4 and 8 bytes, in the processor's order.
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
/// The names of the second bytes of the first four registers, in order.
const HIGH: [&str; 4] = ["ah", "ch", "dh", "bh"];

/// Parses the arguments of a note. An argument that cannot be parsed is `None`.
pub fn arguments(text: &str, symbols: Symbols<'_>) -> Vec<Option<Operand>> {
    words(text).map(|word| argument(word, symbols)).collect()
}

/// Splits at white space that is not in parentheses.
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

/// Parses `DISPLACEMENT(BASE,INDEX,SCALE)`. Most parts are optional.
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
        // The symbol is an address, not a displacement. Without a symbol the address cannot be
        // determined, because it depends on the instruction's length.
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

/// Parses a sum of numbers and at most one symbol. Also returns whether there is a symbol.
fn sum(text: &str, symbols: Symbols<'_>) -> Option<(u64, bool)> {
    let (mut total, mut has_symbol) = (0u64, false);
    let mut rest = text;
    while !rest.is_empty() {
        let is_negative = rest.starts_with('-');
        let term = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        // A name contains neither sign.
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

/// Returns the number of a vector register. The wider ones share the lowest bytes.
fn vector(name: &str) -> Option<u8> {
    let name = name.strip_prefix(['x', 'y', 'z'])?.strip_prefix("mm")?;
    let n = name.parse().ok()?;
    (n < 16).then_some(n)
}

/// Returns the number of a register, and whether the name means its second byte.
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
