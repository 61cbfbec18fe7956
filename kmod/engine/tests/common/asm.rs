// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! An assembler: one instruction per line, labels `name:`, and integers and strings written where
//! they are used.
//!
//! ```text
//!     setx 5, %r1            integers go to the integer table
//!     sets "abc", %r2        strings to the string table
//!     ldgs pid, %r3          built-ins by name, own variables by number
//!     call strlen, %r4
//!     cmp %r1, %r3
//!     be  out
//!     ldx [%r1], %r2         stx %r2, [%r1]
//!     pushtr string, %r0, %r1
//! out: ret %r1
//! ```

use dtrace_engine::dof::Difo;
use dtrace_engine::mem::Vec as EVec;
use dtrace_uapi::dif::{Instr, Op};
use dtrace_uapi::subr::Subr;
use dtrace_uapi::types::{DifType, DifVar, DIF_TF_BYREF, DIF_TYPE_STRING};
use dtrace_uapi::var::Var;
use std::collections::BTreeMap;

pub fn int(size: u32) -> DifType {
    DifType {
        size,
        ..DifType::default()
    }
}

pub fn string() -> DifType {
    DifType {
        kind: DIF_TYPE_STRING,
        flags: DIF_TF_BYREF,
        ..DifType::default()
    }
}

pub fn bytes(size: u32) -> DifType {
    DifType {
        flags: DIF_TF_BYREF,
        size,
        ..DifType::default()
    }
}

pub fn var(id: u32, scope: u8, ty: DifType) -> DifVar {
    DifVar {
        id,
        scope,
        kind: 1,
        ty,
        ..DifVar::default()
    }
}

pub fn array(id: u32, scope: u8, ty: DifType) -> DifVar {
    DifVar {
        kind: 0,
        ..var(id, scope, ty)
    }
}

fn op_named(name: &str) -> Op {
    let all = (0..=255).filter_map(Op::from_raw);
    all.into_iter()
        .find(|op| format!("{op:?}").to_lowercase() == name)
        .unwrap_or_else(|| panic!("no operation {name}"))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text
            .parse::<i64>()
            .map(|n| n as u64)
            .or_else(|_| text.parse())
            .ok(),
    }
}

fn reg(text: &str) -> u8 {
    text.trim_matches(|c| c == '[' || c == ']')
        .strip_prefix("%r")
        .and_then(|n| n.parse().ok())
        .unwrap_or_else(|| panic!("no register {text}"))
}

fn variable(text: &str) -> u16 {
    Var::named(text).map_or_else(|| number(text).unwrap() as u16, |var| var as u16)
}

fn subroutine(text: &str) -> u16 {
    Subr::named(text).map_or_else(|| number(text).unwrap() as u16, |subr| subr as u16)
}

struct Assembler {
    ints: Vec<u64>,
    strings: Vec<u8>,
    labels: BTreeMap<String, u32>,
}

impl Assembler {
    fn int(&mut self, value: u64) -> u16 {
        let at = self.ints.iter().position(|v| *v == value);
        at.unwrap_or_else(|| {
            self.ints.push(value);
            self.ints.len() - 1
        }) as u16
    }

    fn string(&mut self, text: &str) -> u16 {
        let at = self.strings.len();
        self.strings.extend(text.as_bytes());
        self.strings.push(0);
        at as u16
    }

    fn line(&mut self, line: &str) -> Instr {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let op = op_named(name);
        // A string may contain commas.
        let args: Vec<&str> = if name == "sets" {
            let end = rest.rfind(',').unwrap();
            vec![rest[..end].trim(), rest[end + 1..].trim()]
        } else {
            rest.split(',')
                .map(str::trim)
                .filter(|a| !a.is_empty())
                .collect()
        };
        match (op, &args[..]) {
            (Op::Setx, [value, rd]) => {
                Instr::indexed(op, self.int(number(value).unwrap()), reg(rd))
            }
            (Op::Sets, [text, rd]) => {
                Instr::indexed(op, self.string(text.trim_matches('"')), reg(rd))
            }
            (Op::Ldga | Op::Ldta, [id, index, rd]) => {
                Instr::fmt(op, variable(id) as u8, reg(index), reg(rd))
            }
            (Op::Ldgs | Op::Ldts | Op::Ldls | Op::Ldgaa | Op::Ldtaa, [id, rd]) => {
                Instr::indexed(op, variable(id), reg(rd))
            }
            (Op::Stgs | Op::Stts | Op::Stls | Op::Stgaa | Op::Sttaa, [rs, id]) => {
                Instr::indexed(op, variable(id), reg(rs))
            }
            (Op::Call, [subr, rd]) => Instr::indexed(op, subroutine(subr), reg(rd)),
            (Op::Pushtr | Op::Pushtv, [ty, size, rs]) => {
                Instr::fmt(op, u8::from(*ty == "string"), reg(size), reg(rs))
            }
            (Op::Tst, [r1]) => Instr::fmt(op, reg(r1), 0, 0),
            (Op::Cmp | Op::Scmp, [r1, r2]) => Instr::fmt(op, reg(r1), reg(r2), 0),
            (_, [label]) if op == Op::Loop || (Op::Ba..=Op::Bleu).contains(&op) => Instr::branch(
                op,
                number(label)
                    .map(|n| n as u32)
                    .unwrap_or_else(|| self.labels[*label]),
            ),
            (_, []) => Instr::fmt(op, 0, 0, 0),
            (_, [rd]) => Instr::fmt(op, 0, 0, reg(rd)),
            (_, [r1, rd]) => Instr::fmt(op, reg(r1), 0, reg(rd)),
            (_, [r1, r2, rd]) => Instr::fmt(op, reg(r1), reg(r2), reg(rd)),
            _ => panic!("bad operands: {line}"),
        }
    }
}

/// Assembles `text` into an object that returns `rtype` and uses `vars`.
pub fn asm_with(text: &str, rtype: DifType, vars: &[DifVar]) -> Difo {
    let mut asm = Assembler {
        ints: vec![],
        strings: vec![0],
        labels: BTreeMap::new(),
    };
    let mut lines = vec![];
    for line in text.split('\n') {
        let mut line = line.trim();
        if let Some((label, rest)) = line.split_once(':') {
            if !label.contains(['"', ' ']) {
                asm.labels.insert(label.into(), lines.len() as u32);
                line = rest.trim();
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    let mut text = EVec::new();
    for line in lines {
        text.push(asm.line(line)).unwrap();
    }
    Difo {
        text,
        ints: super::copy(&asm.ints),
        strings: super::copy(&asm.strings),
        vars: super::copy(vars),
        rtype,
    }
}

/// Assembles an object that returns eight bytes by value.
pub fn asm(text: &str) -> Difo {
    asm_with(text, int(8), &[])
}
