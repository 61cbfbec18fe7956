// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! DIF as a language: [`assemble`] reads it, and an [`Object`]'s `Display` writes it.
//!
//! A line holds an instruction, a declaration or nothing, after a label or none; `;` begins a
//! comment.
//!
//! ```text
//!     .type   string                 ; the result; without it an integer of 8 bytes
//!     .scalar local 0x500 int 8      ; a variable: scope, number, type
//!     .array  global 0x503 bytes 24
//!     setx 5, %r1                    ; integers go to the table of integers
//!     sets "abc\n", %r2              ; strings to the table of strings
//!     ldgs pid, %r3                  ; built-in variables by name, others by number
//!     call strlen, %r4
//!     cmp  %r1, %r3
//!     be   out
//!     ldx  [%r1], %r2
//!     stx  %r2, [%r1]
//!     pushtr string, %r0, %r1
//! out: ret %r1
//! ```
//!
//! Mnemonics are those of `dtrace -S` ([`crate::disasm`]), whose listing is for people and is not
//! read. A type is `int SIZE`, `string`, `bytes SIZE`, or `type KIND CKIND FLAGS PAD SIZE` in
//! numbers. What cannot be derived from the instructions is given: `.int VALUE` adds an integer,
//! `.string "…"` appends these bytes to the string table, in which an entry ends with `\0`;
//! `setx #1, %r1` names an integer by its index, `sets #4, %r1` a string by its offset;
//! `.variable KIND …` is a variable of any kind, and `.word 0x…` an instruction that no line
//! describes.
//!
//! Invariant: what `Display` writes for an object whose string table begins with NUL is assembled
//! to the same object, whether the object is valid or not.

extern crate std;

use crate::dif::{Instr, Op};
use crate::disasm::{mnemonic, operands, Listing, Operands};
use crate::subr::Subr;
use crate::types::{
    DifType, DifVar, DIFV_KIND_ARRAY, DIFV_KIND_SCALAR, DIFV_SCOPE_GLOBAL, DIFV_SCOPE_LOCAL,
    DIFV_SCOPE_THREAD, DIF_TF_BYREF, DIF_TYPE_CTF, DIF_TYPE_STRING,
};
use crate::var::Var;
use core::fmt::{self, Display, Formatter, Write as _};
use std::borrow::ToOwned as _;
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString as _};
use std::vec;
use std::vec::Vec;

/// A DIF object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The instructions.
    pub text: Vec<Instr>,
    /// The integer table.
    pub ints: Vec<u64>,
    /// The string table: strings that end with NUL, of which the first is empty.
    pub strings: Vec<u8>,
    /// The variable table.
    pub vars: Vec<DifVar>,
    /// The type of the result.
    pub rtype: DifType,
}

impl Default for Object {
    fn default() -> Self {
        Self {
            text: Vec::new(),
            ints: Vec::new(),
            strings: vec![0],
            vars: Vec::new(),
            rtype: int(8),
        }
    }
}

/// Returns the type of an integer of `size` bytes.
pub fn int(size: u32) -> DifType {
    DifType {
        size,
        ..DifType::default()
    }
}

/// Returns the type of a string.
pub fn string() -> DifType {
    DifType {
        kind: DIF_TYPE_STRING,
        flags: DIF_TF_BYREF,
        ..DifType::default()
    }
}

/// Returns the type of `size` bytes, by reference.
pub fn bytes(size: u32) -> DifType {
    DifType {
        flags: DIF_TF_BYREF,
        size,
        ..DifType::default()
    }
}

/// A text that is not DIF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub text: String,
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

impl core::error::Error for Error {}

/// Assembles an object.
pub fn assemble(text: &str) -> Result<Object, Error> {
    let mut asm = Assembler::default();
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let mut line = uncommented(line).trim();
        if let Some((label, rest)) = line.split_once(':') {
            if is_label(label) {
                let known = asm.labels.insert(label, lines.len() as u32);
                if known.is_some() {
                    let text = format!("label {label} stands twice");
                    return Err(Error { line: at + 1, text });
                }
                line = rest.trim();
            }
        }
        let failed = |text| Error { line: at + 1, text };
        match line.strip_prefix('.') {
            _ if line.is_empty() => {}
            Some(_) if word(line).0 == ".word" => lines.push((at, line)),
            Some(declaration) => asm.declare(declaration).map_err(failed)?,
            None => lines.push((at, line)),
        }
    }
    for (at, line) in lines {
        let instr = asm.instruction(line);
        let instr = instr.map_err(|text| Error { line: at + 1, text })?;
        asm.object.text.push(instr);
    }
    Ok(asm.object)
}

/// Returns a line without its comment. A string may contain what begins one.
fn uncommented(line: &str) -> &str {
    let mut is_string = false;
    let mut is_escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_string => is_escaped = true,
            '"' => is_string = !is_string,
            ';' if !is_string => return line.get(..at).unwrap_or_default(),
            _ => {}
        }
    }
    line
}

/// Splits a text into its first word and the rest.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

fn is_label(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    !text.is_empty() && !is_number && text.chars().all(is_word)
}

#[derive(Default)]
struct Assembler<'a> {
    object: Object,
    labels: BTreeMap<&'a str, u32>,
}

/// What was read, or what is wrong with it.
type Parsed<T> = Result<T, String>;

impl Assembler<'_> {
    /// Reads a declaration, without its point.
    fn declare(&mut self, line: &str) -> Parsed<()> {
        let (what, rest) = word(line);
        match what {
            "type" => self.object.rtype = ty(rest)?,
            "int" => self.object.ints.push(number(rest)?),
            "string" => {
                let text = unquoted(rest)?;
                self.object.strings.extend(text);
            }
            "scalar" => self.variable(rest, DIFV_KIND_SCALAR)?,
            "array" => self.variable(rest, DIFV_KIND_ARRAY)?,
            "variable" => {
                let (kind, rest) = word(rest);
                self.variable(rest, small(kind)?)?;
            }
            _ => return Err(format!("no declaration .{what}")),
        }
        Ok(())
    }

    /// Reads the declaration of a variable: scope, number, type, and its name and flags if these
    /// are not 0: `.scalar global 0x500 int 8, 3 1`.
    fn variable(&mut self, line: &str, kind: u8) -> Parsed<()> {
        let (line, rest) = line.split_once(',').unwrap_or((line, ""));
        let (scope, line) = word(line);
        let (id, line) = word(line);
        let scope = match scope {
            "global" => DIFV_SCOPE_GLOBAL,
            "thread" => DIFV_SCOPE_THREAD,
            "local" => DIFV_SCOPE_LOCAL,
            other => small(other)?,
        };
        let (name, rest) = word(rest);
        let (flags, rest) = word(rest);
        if !rest.is_empty() {
            return Err(format!("nothing may follow the flags: {rest}"));
        }
        let or_0 = |text: &'_ str| match text {
            "" => Ok(0),
            text => small::<u32>(text),
        };
        self.object.vars.push(DifVar {
            kind,
            scope,
            id: small(id)?,
            ty: ty(line)?,
            name: or_0(name)?,
            flags: u16::try_from(or_0(flags)?).map_err(|_| format!("{flags} does not fit"))?,
        });
        Ok(())
    }

    /// Returns the index of an integer, which is added to the table if it is not there.
    fn int(&mut self, text: &str) -> Parsed<u16> {
        if let Some(index) = text.strip_prefix('#') {
            return small(index);
        }
        let value = number(text)?;
        let ints = &mut self.object.ints;
        let at = ints.iter().position(|known| *known == value);
        let at = at.unwrap_or_else(|| {
            ints.push(value);
            ints.len() - 1
        });
        u16::try_from(at).map_err(|_| "too many integers".to_owned())
    }

    /// Returns the offset of a string, which is added to the table.
    fn string(&mut self, text: &str) -> Parsed<u16> {
        if let Some(offset) = text.strip_prefix('#') {
            return small(offset);
        }
        let at = self.object.strings.len();
        let text = unquoted(text)?;
        self.object.strings.extend(text);
        self.object.strings.push(0);
        u16::try_from(at).map_err(|_| "the table of strings is full".to_owned())
    }

    fn label(&self, text: &str) -> Parsed<u32> {
        let at = match self.labels.get(text) {
            Some(at) => *at,
            None if text.starts_with(|c: char| c.is_ascii_digit()) => small(text)?,
            None => return Err(format!("no label {text}")),
        };
        match Instr::branch(Op::Ba, at).label() == at {
            true => Ok(at),
            false => Err(format!("{text} is too far")),
        }
    }

    fn instruction(&mut self, line: &str) -> Parsed<Instr> {
        let (name, rest) = word(line);
        if name == ".word" {
            return Ok(Instr(small(rest)?));
        }
        let op = op_named(name)?;
        // A string may contain commas.
        let args: Vec<&str> = match (op, rest.rsplit_once(',')) {
            (Op::Sets, Some((text, rd))) => vec![text.trim(), rd.trim()],
            (_, None) if rest.is_empty() => Vec::new(),
            _ => rest.split(',').map(str::trim).collect(),
        };
        Ok(match (operands(op), args.as_slice()) {
            (Operands::Integer, [value, rd]) => Instr::indexed(op, self.int(value)?, register(rd)?),
            (Operands::String, [text, rd]) => Instr::indexed(op, self.string(text)?, register(rd)?),
            (Operands::Element, [id, index, rd]) => {
                let id = u8::try_from(variable(id)?).map_err(|_| format!("no array {id}"))?;
                Instr::fmt(op, id, register(index)?, register(rd)?)
            }
            (Operands::Variable, [id, rd]) => Instr::indexed(op, variable(id)?, register(rd)?),
            (Operands::Assigned, [rs, id]) => Instr::indexed(op, variable(id)?, register(rs)?),
            (Operands::Subroutine, [subr, rd]) => {
                Instr::indexed(op, subroutine(subr)?, register(rd)?)
            }
            (Operands::Translator, [index, rd]) => Instr::indexed(op, small(index)?, register(rd)?),
            (Operands::Entry, [kind, size, rs]) => {
                Instr::fmt(op, entry(kind)?, register(size)?, register(rs)?)
            }
            (Operands::Tested, [r1]) => Instr::fmt(op, register(r1)?, 0, 0),
            (Operands::Compared, [r1, r2]) => Instr::fmt(op, register(r1)?, register(r2)?, 0),
            (Operands::Label, [label]) => Instr::branch(op, self.label(label)?),
            (Operands::None, []) => Instr::fmt(op, 0, 0, 0),
            (Operands::Result, [rd]) => Instr::fmt(op, 0, 0, register(rd)?),
            (Operands::Load, [r1, rd]) => Instr::fmt(op, memory(r1)?, 0, register(rd)?),
            (Operands::Store, [r1, rd]) => Instr::fmt(op, register(r1)?, 0, memory(rd)?),
            (Operands::Unary, [r1, rd]) => Instr::fmt(op, register(r1)?, 0, register(rd)?),
            (Operands::Binary, [r1, r2, rd]) => {
                Instr::fmt(op, register(r1)?, register(r2)?, register(rd)?)
            }
            _ => return Err(format!("wrong operands of {name}")),
        })
    }
}

fn op_named(name: &str) -> Parsed<Op> {
    let mut all = (0..=u8::MAX).filter_map(Op::from_raw);
    all.find(|op| mnemonic(*op) == name)
        .ok_or_else(|| format!("no operation {name}"))
}

/// Reads digits.
fn decimal(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|c| c.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// Reads a number of 64 bits: decimal, with a `-` or not, or `0x…`.
fn number(text: &str) -> Parsed<u64> {
    let is_hex = |digits: &&str| digits.bytes().all(|c| c.is_ascii_hexdigit());
    let value = match (text.strip_prefix("0x"), text.strip_prefix('-')) {
        (Some(digits), _) => {
            let digits = Some(digits).filter(is_hex);
            digits.and_then(|digits| u64::from_str_radix(digits, 16).ok())
        }
        (_, Some(_)) => text.parse::<i64>().ok().map(|value| value as u64),
        _ => decimal(text),
    };
    value.ok_or_else(|| format!("no number {text}"))
}

/// Reads a number that fits `T`.
fn small<T: TryFrom<u64>>(text: &str) -> Parsed<T> {
    T::try_from(number(text)?).map_err(|_| format!("{text} does not fit"))
}

fn register(text: &str) -> Parsed<u8> {
    let digits = text.strip_prefix("%r");
    let number = digits.and_then(|digits| decimal(digits)?.try_into().ok());
    number.ok_or_else(|| format!("no register {text}"))
}

/// Reads a register in brackets, which holds an address.
fn memory(text: &str) -> Parsed<u8> {
    let inner = text.strip_prefix('[');
    let inner = inner.and_then(|text| text.strip_suffix(']'));
    register(inner.ok_or_else(|| format!("no address {text}"))?)
}

fn variable(text: &str) -> Parsed<u16> {
    match Var::named(text) {
        Some(var) => Ok(var as u16),
        None => small(text).map_err(|_| format!("no variable {text}")),
    }
}

fn subroutine(text: &str) -> Parsed<u16> {
    match Subr::named(text) {
        Some(subr) => Ok(subr as u16),
        None => small(text).map_err(|_| format!("no subroutine {text}")),
    }
}

/// Reads the type of an entry of the tuple stack.
fn entry(text: &str) -> Parsed<u8> {
    match text {
        "ctf" => Ok(DIF_TYPE_CTF),
        "string" => Ok(DIF_TYPE_STRING),
        other => small(other),
    }
}

fn ty(text: &str) -> Parsed<DifType> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(match *words.as_slice() {
        ["int", size] => int(small(size)?),
        ["string"] => string(),
        ["bytes", size] => bytes(small(size)?),
        ["type", kind, ckind, flags, pad, size] => DifType {
            kind: small(kind)?,
            ckind: small(ckind)?,
            flags: small(flags)?,
            pad: small(pad)?,
            size: small(size)?,
        },
        _ => return Err(format!("no type {text}")),
    })
}

/// Reads a string in quotes, with the escapes that [`quoted`] writes.
fn unquoted(text: &str) -> Parsed<Vec<u8>> {
    let wrong = || format!("no string {text}");
    let inner = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let mut rest = inner.ok_or_else(wrong)?.bytes();
    let mut found = Vec::new();
    while let Some(byte) = rest.next() {
        found.push(match byte {
            b'\\' => match rest.next() {
                Some(b'n') => b'\n',
                Some(b'0') => 0,
                Some(b'x') => {
                    let digits = [rest.next(), rest.next()];
                    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                    let [high, low] = digits.map(digit);
                    let (high, low) = high.zip(low).ok_or_else(wrong)?;
                    (high << 4 | low) as u8
                }
                Some(byte @ (b'"' | b'\\')) => byte,
                _ => return Err(wrong()),
            },
            b'"' => return Err(wrong()),
            byte => byte,
        });
    }
    Ok(found)
}

/// Writes bytes as a string in quotes.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(*byte));
            }
            b'\n' => text.push_str("\\n"),
            0 => text.push_str("\\0"),
            b' '..=b'~' => text.push(char::from(*byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(text, "\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

/// A type in the words of the language.
fn type_text(ty: DifType) -> String {
    match ty {
        _ if ty == int(ty.size) => format!("int {}", ty.size),
        _ if ty == string() => "string".to_owned(),
        _ if ty == bytes(ty.size) => format!("bytes {}", ty.size),
        DifType {
            kind,
            ckind,
            flags,
            pad,
            size,
        } => format!("type {kind} {ckind} {flags} {pad} {size}"),
    }
}

impl Display for Object {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // The tables are given only if the instructions do not bring them about.
        let plain = self.written(false);
        match assemble(&plain).as_ref() == Ok(self) {
            true => f.write_str(&plain),
            false => f.write_str(&self.written(true)),
        }
    }
}

impl Object {
    /// Writes the object, with its tables if `with_tables`.
    fn written(&self, with_tables: bool) -> String {
        let mut text = String::new();
        if self.rtype != int(8) {
            text += &format!(".type {}\n", type_text(self.rtype));
        }
        for var in &self.vars {
            text += &variable_text(var);
        }
        if with_tables {
            for value in &self.ints {
                text += &format!(".int {value:#x}\n");
            }
            // The first NUL is there without a word.
            let strings = self.strings.get(1..).unwrap_or_default();
            if !strings.is_empty() {
                text += &format!(".string {}\n", quoted(strings));
            }
        }
        let mut known = Assembler::default();
        known.object.ints.clone_from(&self.ints);
        for instr in &self.text {
            let line = self.instruction(*instr, with_tables, &mut known);
            text += &format!("    {line}\n");
        }
        text
    }

    /// Writes an instruction: as its operation says, or as a number if that leaves out a part of
    /// it.
    /// `known` has the object's integers.
    fn instruction(&self, instr: Instr, with_tables: bool, known: &mut Assembler<'_>) -> String {
        let word = || format!(".word {:#010x}", instr.0);
        let Some(line) = instr.op().map(|op| self.line(op, instr, with_tables)) else {
            return word();
        };
        match known.instruction(&line) {
            // A string is appended, and so has another offset than here.
            Ok(read) if read == instr || read.op() == Some(Op::Sets) && !with_tables => line,
            _ => word(),
        }
    }

    fn line(&self, op: Op, i: Instr, with_tables: bool) -> String {
        let name = mnemonic(op);
        let (r1, r2, rd, index) = (i.r1(), i.r2(), i.rd(), i.index());
        match operands(op) {
            Operands::Integer => match self.ints.get(usize::from(index)) {
                Some(value) if !with_tables => format!("{name} {value:#x}, %r{rd}"),
                _ => format!("{name} #{index}, %r{rd}"),
            },
            Operands::String => {
                let tail = self.strings.get(usize::from(index)..).unwrap_or_default();
                match tail.iter().position(|byte| *byte == 0) {
                    Some(end) if !with_tables => {
                        let string = quoted(tail.get(..end).unwrap_or_default());
                        format!("{name} {string}, %r{rd}")
                    }
                    _ => format!("{name} #{index}, %r{rd}"),
                }
            }
            Operands::Element => format!("{name} {}, %r{r2}, %r{rd}", variable_name(r1.into())),
            Operands::Variable => format!("{name} {}, %r{rd}", variable_name(index)),
            Operands::Assigned => format!("{name} %r{rd}, {}", variable_name(index)),
            Operands::Subroutine => {
                let subr = Subr::from_raw(index);
                let subr = subr.map_or_else(|| index.to_string(), |subr| subr.name().to_owned());
                format!("{name} {subr}, %r{rd}")
            }
            Operands::Translator => format!("{name} {index}, %r{rd}"),
            Operands::Entry => {
                let kind = match r1 {
                    DIF_TYPE_CTF => "ctf".to_owned(),
                    DIF_TYPE_STRING => "string".to_owned(),
                    other => other.to_string(),
                };
                format!("{name} {kind}, %r{r2}, %r{rd}")
            }
            // The listing of `dtrace -S` has the same words for these.
            Operands::None
            | Operands::Tested
            | Operands::Compared
            | Operands::Unary
            | Operands::Binary
            | Operands::Load
            | Operands::Store
            | Operands::Label
            | Operands::Result => Listing::default().instr(i).to_string(),
        }
    }
}

fn variable_name(id: u16) -> String {
    match Var::from_raw(id) {
        Some(var) => var.name().to_owned(),
        None => format!("{id:#x}"),
    }
}

fn variable_text(var: &DifVar) -> String {
    let kind = match var.kind {
        DIFV_KIND_ARRAY => "array".to_owned(),
        DIFV_KIND_SCALAR => "scalar".to_owned(),
        other => format!("variable {other}"),
    };
    let scope = match var.scope {
        DIFV_SCOPE_GLOBAL => "global".to_owned(),
        DIFV_SCOPE_THREAD => "thread".to_owned(),
        DIFV_SCOPE_LOCAL => "local".to_owned(),
        other => other.to_string(),
    };
    let more = match (var.name, var.flags) {
        (0, 0) => String::new(),
        (name, flags) => format!(", {name} {flags}"),
    };
    let ty = type_text(var.ty);
    format!(".{kind} {scope} {:#x} {ty}{more}\n", var.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = r#"
        ; a comment
        .type string
        .scalar local 0x500 int 8
        .array global 0x503 bytes 24, 7 3
        setx 5, %r1   ; five
        setx 0xffffffffffffffff, %r3
        setx 5, %r4
        sets "a;b, \"c\"\n", %r2
        ldgs pid, %r3
        ldga uregs, %r1, %r2
        call strlen, %r4
    again: cmp %r1, %r3
        be out
        ldx [%r1], %r2
        stx %r2, [%r1]
        pushtr string, %r0, %r1
        pushtv ctf, %r0, %r1
        loop again
    out: ret %r1
    "#;

    #[test]
    fn what_is_read_is_written_and_read_again() {
        let object = assemble(PROGRAM).expect("a program");
        assert_eq!(object.ints, [5, u64::MAX]);
        assert_eq!(object.strings, b"\0a;b, \"c\"\n\0");
        assert_eq!(object.text[2], Instr::indexed(Op::Setx, 0, 4));
        assert_eq!(object.text[8], Instr::branch(Op::Be, 14));
        assert_eq!(object.text[13], Instr::branch(Op::Loop, 7));
        assert_eq!(object.vars[1].ty, bytes(24));
        assert_eq!((object.vars[1].name, object.vars[1].flags), (7, 3));
        let text = object.to_string();
        assert!(!text.contains('#') && !text.contains(".word"), "{text}");
        assert_eq!(assemble(&text), Ok(object), "{text}");
    }

    #[test]
    fn what_no_instruction_brings_about_is_written_too() {
        let mut object = assemble(PROGRAM).expect("a program");
        object.ints.insert(0, 9);
        object.strings.extend(b"\xff\0tail without an end");
        object.rtype.ckind = 77;
        object.vars[0].scope = 9;
        object.vars[1].kind = 2;
        object.vars[1].ty.pad = 1;
        // Bits that the operation ignores, indexes out of range, an unknown operation.
        for word in [
            0x2300_0501,
            0x25ff_ff01,
            0x26ff_ff01,
            0xff00_0001,
            0,
            0x1ff_ffff,
        ] {
            object.text.push(Instr(word));
        }
        let text = object.to_string();
        assert_eq!(assemble(&text), Ok(object), "{text}");
    }

    #[test]
    fn each_instruction_is_read_as_it_is_written() {
        // Each operation, and unknown ones, with operands in all bytes.
        for op in 0..=u8::MAX {
            for rest in [0, 0x01_0203, 0x00_0001, 0x06_0000, 0xff_ffff, 0x80_7f00] {
                let object = Object {
                    text: vec![Instr(u32::from(op) << 24 | rest)],
                    ..Object::default()
                };
                let text = object.to_string();
                assert_eq!(assemble(&text), Ok(object), "{text}");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, expected) in [
            ("nop\nadd %r1, %r2", "line 2: wrong operands of add"),
            ("frob %r1", "line 1: no operation frob"),
            ("add %r1, %x2, %r3", "line 1: no register %x2"),
            ("ba nowhere", "line 1: no label nowhere"),
            ("setx 1x, %r1", "line 1: no number 1x"),
            ("sets \"a, %r1", "line 1: no string \"a"),
            ("sets \"\\q\", %r1", "line 1: no string \"\\q\""),
            ("ldgs nobody, %r1", "line 1: no variable nobody"),
            ("call nobody, %r1", "line 1: no subroutine nobody"),
            (".type long", "line 1: no type long"),
            (".scalar global 0x500", "line 1: no type "),
            (".frob 1", "line 1: no declaration .frob"),
            ("a: nop\na: nop", "line 2: label a stands twice"),
            ("ldga 0x500, %r0, %r1", "line 1: no array 0x500"),
            ("stx [%r1], %r2", "line 1: no register [%r1]"),
            ("ldx %r1, %r2", "line 1: no address %r1"),
            ("add %r+1, %r2, %r3", "line 1: no register %r+1"),
            ("ba 0x1000000", "line 1: 0x1000000 is too far"),
            (
                ".scalar  local  1 int 8, 0 65536",
                "line 1: 65536 does not fit",
            ),
            (
                ".scalar local 1 int 8, 0 1 2",
                "line 1: nothing may follow the flags: 2",
            ),
            (".wordy 1", "line 1: no declaration .wordy"),
            (".word 0x100000000", "line 1: 0x100000000 does not fit"),
        ] {
            let error = assemble(text).expect_err(text);
            assert_eq!(error.to_string(), expected);
        }
    }
}
