// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! DIF as text, in the form that `dtrace -S` prints.
//!
//! The text is for people; nothing parses it. (The language that is read is in `asm`.) It also shows
//! invalid programs, because a program that the verifier refuses is the one that a user wants to
//! inspect: an unknown operation or an index out of range is printed as numbers.

use crate::dif::{Instr, Op};
use crate::subr::Subr;
use crate::types::{
    DifType, DifVar, DIFV_F_MOD, DIFV_F_REF, DIFV_KIND_ARRAY, DIFV_KIND_SCALAR, DIFV_SCOPE_GLOBAL,
    DIFV_SCOPE_LOCAL, DIFV_SCOPE_THREAD, DIF_TF_BYREF, DIF_TF_BYUREF, DIF_TYPE_CTF,
    DIF_TYPE_STRING,
};
use crate::var::{Var, ARRAY_UBASE, OTHER_MIN, OTHER_UBASE};
use core::fmt::{self, Display, Formatter};

/// A borrowed DIF object. Its `Display` is the whole listing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Listing<'a> {
    /// The instructions.
    pub text: &'a [u32],
    /// The integer table.
    pub ints: &'a [u64],
    /// The string table: strings that end with NUL.
    pub strings: &'a [u8],
    /// The variable table.
    pub vars: &'a [DifVar],
    /// The type of the returned value.
    pub rtype: DifType,
}

impl<'a> Listing<'a> {
    /// The string at `offset` of the table, without its NUL; `None` if `offset` is out of range, no
    /// NUL follows, or the string is not UTF-8.
    pub fn string(&self, offset: u32) -> Option<&'a str> {
        let tail = self.strings.get(offset as usize..)?;
        let end = tail.iter().position(|&b| b == 0)?;
        core::str::from_utf8(tail.get(..end)?).ok()
    }

    /// One instruction as text.
    pub fn instr(&'a self, instr: Instr) -> impl Display + 'a {
        Line {
            listing: self,
            instr,
        }
    }

    /// The name of the variable `id` of `scope`: from the variable table, or the name of the
    /// built-in variable.
    fn var_name(&self, id: u16, scope: u8) -> Option<&'a str> {
        let builtin = id < ARRAY_UBASE || (OTHER_MIN..OTHER_UBASE).contains(&id);
        let own = self
            .vars
            .iter()
            .find(|v| v.id == id.into() && v.scope == scope);
        match own.and_then(|v| self.string(v.name)) {
            Some(name) => Some(name),
            None if builtin => Var::from_raw(id).map(Var::name),
            None => None,
        }
    }
}

impl Display for Listing<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "OFF OPCODE      INSTRUCTION")?;
        for (offset, &word) in self.text.iter().enumerate() {
            writeln!(f, "{offset:02}: {word:08x}    {}", self.instr(Instr(word)))?;
        }
        if !self.vars.is_empty() {
            writeln!(f, "\n{:<16} {:<4} KND SCP FLAG TYPE", "NAME", "ID")?;
        }
        for var in self.vars {
            let name = self.string(var.name).unwrap_or("?");
            let kind = match var.kind {
                DIFV_KIND_ARRAY => "arr",
                DIFV_KIND_SCALAR => "scl",
                _ => "???",
            };
            let scope = match var.scope {
                DIFV_SCOPE_GLOBAL => "glb",
                DIFV_SCOPE_THREAD => "tls",
                DIFV_SCOPE_LOCAL => "loc",
                _ => "???",
            };
            let read = if var.flags & DIFV_F_REF != 0 { "r" } else { "" };
            let written = if var.flags & DIFV_F_MOD != 0 { "w" } else { "" };
            let flags = [read, written];
            let width = 4usize.saturating_sub(read.len() + written.len());
            write!(
                f,
                "{name:<16} {:<4x} {kind} {scope} {}{}{:width$} ",
                var.id, flags[0], flags[1], ""
            )?;
            writeln!(f, "{}", TypeName(var.ty))?;
        }
        Ok(())
    }
}

/// A DIF type as `-S` shows it: `D type (integer) (size 4)`.
#[derive(Clone, Copy, Debug)]
pub struct TypeName(pub DifType);

/// Names of the values of [`DifType::ckind`], by number: the kinds of the Compact C Type Format.
const CKINDS: [&str; 14] = [
    "unknown", "integer", "float", "pointer", "array", "function", "struct", "union", "enum",
    "forward", "typedef", "volatile", "const", "restrict",
];

impl Display for TypeName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.kind {
            DIF_TYPE_CTF => f.write_str("D type")?,
            DIF_TYPE_STRING => f.write_str("string")?,
            kind => write!(f, "0x{kind:x}")?,
        }
        match CKINDS.get(usize::from(self.0.ckind)) {
            Some(name) => write!(f, " ({name})")?,
            None => write!(f, " (0x{:x})", self.0.ckind)?,
        }
        if self.0.flags & DIF_TF_BYREF != 0 {
            f.write_str(" by ref")?;
        }
        if self.0.flags & DIF_TF_BYUREF != 0 {
            f.write_str(" by user ref")?;
        }
        write!(f, " (size {})", self.0.size)
    }
}

struct Line<'a> {
    listing: &'a Listing<'a>,
    instr: Instr,
}

/// The name of an operation in assembly text.
pub const fn mnemonic(op: Op) -> &'static str {
    let (mut all, mut before): (&[&'static str], u8) = match (op as u8).checked_sub(Op::Fadd as u8)
    {
        Some(before) => (&LINUX_MNEMONICS, before.saturating_add(1)),
        None => (&MNEMONICS, op as u8),
    };
    while let [first, rest @ ..] = all {
        before = before.saturating_sub(1);
        if before == 0 {
            return first;
        }
        all = rest;
    }
    ""
}

const MNEMONICS: [&str; Op::Xlarg as usize] = [
    "or", "xor", "and", "sll", "srl", "sub", "add", "mul", "sdiv", "udiv", "srem", "urem", "not",
    "mov", "cmp", "tst", "ba", "be", "bne", "bg", "bgu", "bge", "bgeu", "bl", "blu", "ble", "bleu",
    "ldsb", "ldsh", "ldsw", "ldub", "lduh", "lduw", "ldx", "ret", "nop", "setx", "sets", "scmp",
    "ldga", "ldgs", "stgs", "ldta", "ldts", "stts", "sra", "call", "pushtr", "pushtv", "popts",
    "flushts", "ldgaa", "ldtaa", "stgaa", "sttaa", "ldls", "stls", "allocs", "copys", "stb", "sth",
    "stw", "stx", "uldsb", "uldsh", "uldsw", "uldub", "ulduh", "ulduw", "uldx", "rldsb", "rldsh",
    "rldsw", "rldub", "rlduh", "rlduw", "rldx", "xlate", "xlarg",
];

/// The mnemonics from [`Op::Fadd`] on.
const LINUX_MNEMONICS: [&str; 16] = [
    "fadd", "fsub", "fmul", "fdiv", "feq", "flt", "fle", "fxtod", "futod", "fdtox", "fdtou",
    "fstod", "fdtos", "fxtos", "futos", "loop",
];

/// What stands behind the mnemonic of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operands {
    /// Nothing.
    None,
    /// `%r1`.
    Tested,
    /// `%r1, %r2`.
    Compared,
    /// `%r1, %rd`.
    Unary,
    /// `%r1, %r2, %rd`.
    Binary,
    /// `[%r1], %rd`.
    Load,
    /// `%r1, [%rd]`.
    Store,
    /// The index of an instruction.
    Label,
    /// `%rd`.
    Result,
    /// An integer of the table, and `%rd`.
    Integer,
    /// A string of the table, and `%rd`.
    String,
    /// An array's number in place of r1, its index in `%r2`, and `%rd`.
    Element,
    /// A variable, and `%rd`.
    Variable,
    /// `%rd`, and a variable.
    Assigned,
    /// A subroutine, and `%rd`.
    Subroutine,
    /// The type of a tuple's entry in place of r1, `%r2`, and `%rd`.
    Entry,
    /// A translator, and `%rd`.
    Translator,
}

/// Returns the operands of an operation.
pub(crate) const fn operands(op: Op) -> Operands {
    use Op::*;
    match op {
        Or | Xor | And | Sll | Srl | Sra | Sub | Add | Mul | Sdiv | Udiv | Srem | Urem | Copys
        | Fadd | Fsub | Fmul | Fdiv | Feq | Flt | Fle => Operands::Binary,
        Not | Mov | Allocs | Fxtod | Futod | Fdtox | Fdtou | Fstod | Fdtos | Fxtos | Futos => {
            Operands::Unary
        }
        Cmp | Scmp => Operands::Compared,
        Tst => Operands::Tested,
        Ba | Be | Bne | Bg | Bgu | Bge | Bgeu | Bl | Blu | Ble | Bleu | Loop => Operands::Label,
        Ldsb | Ldsh | Ldsw | Ldub | Lduh | Lduw | Ldx | Uldsb | Uldsh | Uldsw | Uldub | Ulduh
        | Ulduw | Uldx | Rldsb | Rldsh | Rldsw | Rldub | Rlduh | Rlduw | Rldx => Operands::Load,
        Stb | Sth | Stw | Stx => Operands::Store,
        Ret => Operands::Result,
        Nop | Popts | Flushts => Operands::None,
        Setx => Operands::Integer,
        Sets => Operands::String,
        Ldga | Ldta => Operands::Element,
        Ldgs | Ldts | Ldls | Ldgaa | Ldtaa => Operands::Variable,
        Stgs | Stts | Stls | Stgaa | Sttaa => Operands::Assigned,
        Call => Operands::Subroutine,
        Pushtr | Pushtv => Operands::Entry,
        Xlate | Xlarg => Operands::Translator,
    }
}

impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let i = self.instr;
        let Some(op) = i.op() else {
            return write!(f, "illop 0x{:x}", i.0);
        };
        let name = mnemonic(op);
        let (r1, r2, rd, index) = (i.r1(), i.r2(), i.rd(), i.index());
        match operands(op) {
            Operands::Binary => write!(f, "{name:<4} %r{r1}, %r{r2}, %r{rd}"),
            Operands::Unary => write!(f, "{name:<4} %r{r1}, %r{rd}"),
            Operands::Compared => write!(f, "{name:<4} %r{r1}, %r{r2}"),
            Operands::Tested => write!(f, "{name:<4} %r{r1}"),
            Operands::Label => write!(f, "{name:<4} {}", i.label()),
            Operands::Load => write!(f, "{name:<4} [%r{r1}], %r{rd}"),
            Operands::Store => write!(f, "{name:<4} %r{r1}, [%r{rd}]"),
            Operands::Result => write!(f, "{name:<4} %r{rd}"),
            Operands::None => f.write_str(name),
            Operands::Integer => {
                write!(f, "{name:<4} DT_INTEGER[{index}], %r{rd}")?;
                match self.listing.ints.get(usize::from(index)) {
                    Some(value) => write!(f, "\t\t! 0x{value:x}"),
                    None => Ok(()),
                }
            }
            Operands::String => {
                write!(f, "{name:<4} DT_STRING[{index}], %r{rd}")?;
                match self.listing.string(index.into()) {
                    Some(string) => write!(f, "\t\t! {string:?}"),
                    None => Ok(()),
                }
            }
            Operands::Element => {
                write!(f, "{name:<4} DT_VAR({r1}), %r{r2}, %r{rd}")?;
                self.comment_var(f, r1.into())
            }
            Operands::Variable => {
                write!(f, "{name:<4} DT_VAR({index}), %r{rd}")?;
                self.comment_var(f, index)
            }
            Operands::Assigned => {
                write!(f, "{name:<4} %r{rd}, DT_VAR({index})")?;
                self.comment_var(f, index)
            }
            Operands::Subroutine => {
                write!(f, "{name:<4} DIF_SUBR({index}), %r{rd}")?;
                match Subr::from_raw(index) {
                    Some(subr) => write!(f, "\t\t\t! {}", subr.name()),
                    None => Ok(()),
                }
            }
            Operands::Entry => {
                let kind = if r1 == DIF_TYPE_STRING {
                    "string"
                } else {
                    "D type"
                };
                write!(
                    f,
                    "{name:<4} DT_TYPE({r1}), %r{r2}, %r{rd}\t! DT_TYPE({r1}) = {kind}"
                )
            }
            Operands::Translator => write!(f, "{name:<4} DT_XLREF[{index}], %r{rd}"),
        }
    }
}

impl Line<'_> {
    fn comment_var(&self, f: &mut Formatter<'_>, id: u16) -> fmt::Result {
        let scope = match self.instr.op() {
            Some(Op::Ldta | Op::Ldts | Op::Stts | Op::Ldtaa | Op::Sttaa) => DIFV_SCOPE_THREAD,
            Some(Op::Ldls | Op::Stls) => DIFV_SCOPE_LOCAL,
            _ => DIFV_SCOPE_GLOBAL,
        };
        match self.listing.var_name(id, scope) {
            Some(name) => write!(f, "\t\t! DT_VAR({id}) = {name:?}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_operation_has_its_mnemonic() {
        assert_eq!(mnemonic(Op::Or), "or");
        assert_eq!(mnemonic(Op::Ret), "ret");
        assert_eq!(mnemonic(Op::Call), "call");
        assert_eq!(mnemonic(Op::Uldsb), "uldsb");
        assert_eq!(mnemonic(Op::Xlarg), "xlarg");
        assert_eq!(mnemonic(Op::Fadd), "fadd");
        assert_eq!(mnemonic(Op::Fdtos), "fdtos");
        assert_eq!(mnemonic(Op::Futos), "futos");
    }

    #[test]
    fn a_listing_shows_tables_and_names() {
        let vars = [DifVar {
            name: 3,
            id: 0x500,
            kind: DIFV_KIND_SCALAR,
            scope: DIFV_SCOPE_THREAD,
            flags: DIFV_F_REF | DIFV_F_MOD,
            ty: DifType {
                kind: DIF_TYPE_CTF,
                ckind: 1,
                flags: 0,
                pad: 0,
                size: 8,
            },
        }];
        let text = [
            Instr::indexed(Op::Ldgs, Var::Arg0 as u16, 1),
            Instr::indexed(Op::Setx, 0, 2),
            Instr::fmt(Op::Add, 1, 2, 1),
            Instr::indexed(Op::Stts, 0x500, 1),
            Instr::indexed(Op::Sets, 0, 3),
            Instr::indexed(Op::Call, Subr::Strlen as u16, 3),
            Instr::branch(Op::Bne, 8),
            Instr(0xff00_0000),
            Instr::fmt(Op::Ret, 0, 0, 1),
        ]
        .map(|i| i.0);
        let listing = Listing {
            text: &text,
            ints: &[1],
            strings: b"a\n\0ts\0",
            vars: &vars,
            rtype: DifType::default(),
        };
        // The string table holds "a\n" at 0 and "ts" at 3.
        let expected = "\
OFF OPCODE      INSTRUCTION
00: 29010601    ldgs DT_VAR(262), %r1\t\t! DT_VAR(262) = \"arg0\"
01: 25000002    setx DT_INTEGER[0], %r2\t\t! 0x1
02: 07010201    add  %r1, %r2, %r1
03: 2d050001    stts %r1, DT_VAR(1280)\t\t! DT_VAR(1280) = \"ts\"
04: 26000003    sets DT_STRING[0], %r3\t\t! \"a\\n\"
05: 2f000c03    call DIF_SUBR(12), %r3\t\t\t! strlen
06: 13000008    bne  8
07: ff000000    illop 0xff000000
08: 23000001    ret  %r1

NAME             ID   KND SCP FLAG TYPE
ts               500  scl tls rw   D type (integer) (size 8)
";
        assert_eq!(listing.to_string(), expected);
    }

    #[test]
    fn what_is_not_valid_is_shown_all_the_same() {
        let listing = Listing {
            strings: b"open",
            ..Listing::default()
        };
        let line = |i: Instr| listing.instr(i).to_string();
        assert_eq!(
            line(Instr::indexed(Op::Setx, 9, 1)),
            "setx DT_INTEGER[9], %r1"
        );
        assert_eq!(
            line(Instr::indexed(Op::Sets, 0, 1)),
            "sets DT_STRING[0], %r1"
        );
        assert_eq!(
            line(Instr::indexed(Op::Ldgs, 0x4ff, 1)),
            "ldgs DT_VAR(1279), %r1"
        );
        assert_eq!(
            line(Instr::indexed(Op::Call, 999, 1)),
            "call DIF_SUBR(999), %r1"
        );
    }
}
