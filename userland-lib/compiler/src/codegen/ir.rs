// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The intermediate representation: DIF's operations over virtual registers.
//!
//! Every instruction stands for exactly one DIF instruction, except for labels, which stand for
//! none. Lowering decides what is computed and in which order; the later passes decide only where
//! values are kept and how instructions are encoded.
//!
//! Lowering guarantees these invariants of [`Func`]: Branches go forward only. Thus the order of
//! instructions is their order in time, and the registers live at an instruction are those assigned
//! before it and read after it. A register may be assigned in several branches, but every path to a
//! use assigns it first. A loop goes back, but an iteration reads no register that was not assigned
//! in the same iteration.

use crate::source::Span;
use dtrace_uapi::dif::Op;
use dtrace_uapi::subr::Subr;
use dtrace_uapi::types::DifType;

/// A virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VReg(pub(super) u32);

impl VReg {
    /// DIF's `%r0`, which always reads as 0.
    pub const ZERO: Self = Self(0);
}

/// A branch target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(u32);

impl Label {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A string in the function's string table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StrId(u32);

impl StrId {
    /// Returns the string's offset in the table.
    pub(super) fn offset(self) -> u32 {
        self.0
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The fields are the operands that DIF's own description names.
pub enum Inst {
    /// `setx`: loads a constant.
    Const { dst: VReg, value: u64 },
    /// `sets`: loads the address of a string.
    Str { dst: VReg, string: StrId },
    /// Arithmetic with two operands.
    Bin { op: Op, dst: VReg, a: VReg, b: VReg },
    /// `not`, `mov` and conversions of floating-point numbers.
    Un { op: Op, dst: VReg, a: VReg },
    /// Loads from memory.
    Load { op: Op, dst: VReg, addr: VReg },
    /// `stb`, `sth`, `stw`, `stx`.
    Store { op: Op, src: VReg, addr: VReg },
    /// `ldgs`, `ldts`, `ldls`, `ldgaa`, `ldtaa`.
    LoadVar { op: Op, dst: VReg, var: u16 },
    /// `stgs`, `stts`, `stls`, `stgaa`, `sttaa`.
    StoreVar { op: Op, src: VReg, var: u16 },
    /// `ldga`, `ldta`: loads an element of an array variable.
    LoadArray {
        op: Op,
        dst: VReg,
        var: u8,
        index: VReg,
    },
    /// `cmp`, `scmp`: sets the condition codes.
    Compare { op: Op, a: VReg, b: VReg },
    /// `tst`: sets the condition codes.
    Test { a: VReg },
    /// `ba` and the conditional branches.
    Branch { op: Op, label: Label },
    /// `loop`: goes back to a label.
    Loop { head: Label },
    /// Marks the target of branches to the label.
    Label(Label),
    /// Calls a subroutine with the arguments that were pushed.
    Call { dst: VReg, subr: Subr },
    /// `pushtr`, `pushtv`: pushes a key or an argument.
    Push {
        op: Op,
        ty: u8,
        size: VReg,
        value: VReg,
    },
    /// Pops the last value pushed.
    Pop,
    /// Empties the tuple stack.
    Flush,
    /// Allocates scratch memory.
    Alloc { dst: VReg, size: VReg },
    /// Copies `size` bytes from `src` to the address in `dst`.
    Copy { src: VReg, size: VReg, dst: VReg },
    /// Returns; always the last instruction.
    Ret { src: VReg },
}

impl Inst {
    /// Returns the register that the instruction assigns.
    pub fn assigned(&self) -> Option<VReg> {
        match *self {
            Self::Const { dst, .. }
            | Self::Str { dst, .. }
            | Self::Bin { dst, .. }
            | Self::Un { dst, .. }
            | Self::Load { dst, .. }
            | Self::LoadVar { dst, .. }
            | Self::LoadArray { dst, .. }
            | Self::Call { dst, .. }
            | Self::Alloc { dst, .. } => Some(dst),
            _ => None,
        }
    }

    /// Calls `f` for every register that the instruction reads.
    pub fn for_each_read(&mut self, mut f: impl FnMut(&mut VReg)) {
        match self {
            Self::Bin { a, b, .. } | Self::Compare { a, b, .. } => {
                f(a);
                f(b);
            }
            Self::Un { a, .. } | Self::Test { a } => f(a),
            Self::Load { addr, .. } => f(addr),
            Self::Store { src, addr, .. } => {
                f(src);
                f(addr);
            }
            Self::StoreVar { src, .. } | Self::Ret { src } => f(src),
            Self::LoadArray { index, .. } => f(index),
            Self::Push { size, value, .. } => {
                f(size);
                f(value);
            }
            Self::Alloc { size, .. } => f(size),
            Self::Copy { src, size, dst } => {
                f(src);
                f(size);
                f(dst);
            }
            Self::Const { .. }
            | Self::Str { .. }
            | Self::LoadVar { .. }
            | Self::Branch { .. }
            | Self::Loop { .. }
            | Self::Label(_)
            | Self::Call { .. }
            | Self::Pop
            | Self::Flush => {}
        }
    }

    /// Calls `f` for the register that the instruction assigns.
    pub(super) fn for_assigned(&mut self, f: impl FnOnce(&mut VReg)) {
        match self {
            Self::Const { dst, .. }
            | Self::Str { dst, .. }
            | Self::Bin { dst, .. }
            | Self::Un { dst, .. }
            | Self::Load { dst, .. }
            | Self::LoadVar { dst, .. }
            | Self::LoadArray { dst, .. }
            | Self::Call { dst, .. }
            | Self::Alloc { dst, .. } => f(dst),
            _ => {}
        }
    }

    /// Returns the id of the variable that the instruction accesses, and the operation.
    pub(super) fn variable(&self) -> Option<(u16, Op)> {
        match *self {
            Self::LoadVar { op, var, .. } | Self::StoreVar { op, var, .. } => Some((var, op)),
            Self::LoadArray { op, var, .. } => Some((var.into(), op)),
            _ => None,
        }
    }
}

/// A variable that a function uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VarDecl {
    /// Its name in D.
    pub name: String,
    /// Its id.
    pub id: u16,
    /// `DIFV_KIND_*`.
    pub kind: u8,
    /// `DIFV_SCOPE_*`.
    pub scope: u8,
    /// Its type.
    pub ty: DifType,
}

/// The code of one expression.
#[derive(Clone, Debug, Default)]
pub struct Func {
    pub(super) code: Vec<(Inst, Span)>,
    pub(super) strings: Vec<u8>,
    pub(super) vars: Vec<VarDecl>,
    vregs: u32,
    labels: u32,
}

impl Func {
    /// Creates a function without code.
    pub fn new() -> Self {
        Self {
            strings: vec![0],
            vregs: 1,
            ..Self::default()
        }
    }

    /// Creates a new register.
    pub fn vreg(&mut self) -> VReg {
        let vreg = VReg(self.vregs);
        self.vregs += 1;
        vreg
    }

    /// Creates a new label, to be placed with [`Inst::Label`].
    pub fn label(&mut self) -> Label {
        let label = Label(self.labels);
        self.labels += 1;
        label
    }

    /// Appends an instruction that was generated for `span` of the source.
    pub fn push(&mut self, inst: Inst, span: Span) {
        self.code.push((inst, span));
    }

    /// Returns the string `text`, without its NUL, in the table. Adds it unless it is there
    /// already. Text after an embedded NUL is cut off.
    pub fn string(&mut self, text: &[u8]) -> StrId {
        let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
        let text = &text[..end];
        let mut offset = 0;
        for entry in self.strings.split_inclusive(|&b| b == 0) {
            if entry.strip_suffix(&[0]) == Some(text) {
                return StrId(offset);
            }
            offset += entry.len() as u32;
        }
        self.strings.extend_from_slice(text);
        self.strings.push(0);
        StrId(offset)
    }

    /// Declares a variable that the code uses. A repeated declaration has no effect.
    pub fn variable(&mut self, var: VarDecl) {
        if !self
            .vars
            .iter()
            .any(|v| (v.id, v.scope) == (var.id, var.scope))
        {
            self.vars.push(var);
        }
    }

    pub(super) fn vreg_count(&self) -> usize {
        self.vregs as usize
    }

    pub(super) fn label_count(&self) -> usize {
        self.labels as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_shared() {
        let mut f = Func::new();
        let empty = f.string(b"");
        let a = f.string(b"a");
        assert_eq!(f.string(b"a\0b"), a);
        assert_ne!(f.string(b"ab"), a);
        assert_eq!(f.string(b""), empty);
        assert_eq!(f.strings, b"\0a\0ab\0");
    }
}
