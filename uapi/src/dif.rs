// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! The D Intermediate Format: 32-bit instructions for a machine with eight 64-bit registers.
//!
//! An instruction is `op | r1 | r2 | rd`, one byte each from the top. Branches have a 24-bit
//! absolute instruction index instead of the operands. Calls and loads of variables, integers and
//! strings have a 16-bit index instead of `r1 r2`. Register 0 reads as zero and cannot be written.
//!
//! Operations from 200 on are specific to Linux: floating-point arithmetic, and [`Op::Loop`], the
//! only backward branch. The operands of floating-point operations are registers that hold the bits
//! of an IEEE 754 binary64, or, where stated, of a binary32 in the lower half. Results are rounded
//! to nearest, ties to even. There is one NaN, and no operation faults.

use crate::numbered::numbered;
use zerocopy_derive::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// The version of DIF that is described here.
pub const DIF_VERSION: u8 = 2;
/// Number of integer registers, `%r0` to `%r7`.
pub const DIF_NREGS: u8 = 8;
/// Number of entries of the tuple stack.
pub const DIF_NTREGS: u8 = 8;
/// Greatest index into the integer table.
pub const DIF_INTOFF_MAX: u32 = 0xffff;
/// Greatest offset into the string table.
pub const DIF_STROFF_MAX: u32 = 0xffff;
/// Greatest index into an array variable.
pub const DIF_VARIDX_MAX: u32 = 0xff;
/// Difference between the codes of a kernel load and its restricted form, which is used for
/// consumers without rights over the kernel.
pub const DIF_RLD_DELTA: u8 = Op::Rldsb as u8 - Op::Ldsb as u8;

/// Operation codes.
#[repr(u8)]
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    TryFromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
pub enum Op {
    /// `or` R3: r1,r2,rd (rd!=0).
    Or = 1,
    /// `xor` R3: r1,r2,rd (rd!=0).
    Xor = 2,
    /// `and` R3: r1,r2,rd (rd!=0).
    And = 3,
    /// `sll` R3: r1,r2,rd (rd!=0).
    Sll = 4,
    /// `srl` R3: r1,r2,rd (rd!=0).
    Srl = 5,
    /// `sub` R3: r1,r2,rd (rd!=0).
    Sub = 6,
    /// `add` R3: r1,r2,rd (rd!=0).
    Add = 7,
    /// `mul` R3: r1,r2,rd (rd!=0).
    Mul = 8,
    /// `sdiv` R3: r1,r2,rd (rd!=0).
    Sdiv = 9,
    /// `udiv` R3: r1,r2,rd (rd!=0).
    Udiv = 10,
    /// `srem` R3: r1,r2,rd (rd!=0).
    Srem = 11,
    /// `urem` R3: r1,r2,rd (rd!=0).
    Urem = 12,
    /// `not` R2: r1,-,rd (r2=0, rd!=0).
    Not = 13,
    /// `mov` R2: r1,-,rd (r2=0, rd!=0).
    Mov = 14,
    /// `cmp` C: r1,r2,- (rd=0).
    Cmp = 15,
    /// `tst` C1: r1 (r2=rd=0).
    Tst = 16,
    /// `ba` B: 24-bit label, forward only, < len.
    Ba = 17,
    /// `be` B: 24-bit label, forward only, < len.
    Be = 18,
    /// `bne` B: 24-bit label, forward only, < len.
    Bne = 19,
    /// `bg` B: 24-bit label, forward only, < len.
    Bg = 20,
    /// `bgu` B: 24-bit label, forward only, < len.
    Bgu = 21,
    /// `bge` B: 24-bit label, forward only, < len.
    Bge = 22,
    /// `bgeu` B: 24-bit label, forward only, < len.
    Bgeu = 23,
    /// `bl` B: 24-bit label, forward only, < len.
    Bl = 24,
    /// `blu` B: 24-bit label, forward only, < len.
    Blu = 25,
    /// `ble` B: 24-bit label, forward only, < len.
    Ble = 26,
    /// `bleu` B: 24-bit label, forward only, < len.
    Bleu = 27,
    /// `ldsb` LD: \[r1\],-,rd (r2=0, rd!=0).
    Ldsb = 28,
    /// `ldsh` LD: \[r1\],-,rd (r2=0, rd!=0).
    Ldsh = 29,
    /// `ldsw` LD: \[r1\],-,rd (r2=0, rd!=0).
    Ldsw = 30,
    /// `ldub` LD: \[r1\],-,rd (r2=0, rd!=0).
    Ldub = 31,
    /// `lduh` LD: \[r1\],-,rd (r2=0, rd!=0).
    Lduh = 32,
    /// `lduw` LD: \[r1\],-,rd (r2=0, rd!=0).
    Lduw = 33,
    /// `ldx` LD: \[r1\],-,rd (r2=0, rd!=0).
    Ldx = 34,
    /// `ret` rd only (r1=r2=0); the last instruction must be a `ret`.
    Ret = 35,
    /// `nop` no operands (all zero).
    Nop = 36,
    /// `setx` W: intindex16, rd!=0.
    Setx = 37,
    /// `sets` W: stroffset16, rd!=0.
    Sets = 38,
    /// `scmp` C: r1,r2,- (rd=0).
    Scmp = 39,
    /// `ldga` A: var8 (<=0xff), r2=index, rd!=0.
    Ldga = 40,
    /// `ldgs` V: var16 (0x100..0xffff), rd!=0.
    Ldgs = 41,
    /// `stgs` V: var16 (>=0x500), rs.
    Stgs = 42,
    /// `ldta` A: var8 (<=0xff), r2=index, rd!=0.
    Ldta = 43,
    /// `ldts` V: var16 (0x100..0xffff), rd!=0.
    Ldts = 44,
    /// `stts` V: var16 (>=0x500), rs.
    Stts = 45,
    /// `sra` R3: r1,r2,rd (rd!=0).
    Sra = 46,
    /// `call` V: subr16 (a [`Subr`](crate::subr::Subr)), rd!=0.
    Call = 47,
    /// `pushtr` T: type8 (CTF 0 or STRING 1), r2=size reg, rs=value.
    Pushtr = 48,
    /// `pushtv` T: type8 (CTF 0 only), r2=size reg, rs=value.
    Pushtv = 49,
    /// `popts` no operands (all zero).
    Popts = 50,
    /// `flushts` no operands (all zero).
    Flushts = 51,
    /// `ldgaa` V: var16 (0x100..0xffff), rd!=0.
    Ldgaa = 52,
    /// `ldtaa` V: var16 (0x100..0xffff), rd!=0.
    Ldtaa = 53,
    /// `stgaa` V: var16 (>=0x500), rs.
    Stgaa = 54,
    /// `sttaa` V: var16 (>=0x500), rs.
    Sttaa = 55,
    /// `ldls` V: var16 (0x100..0xffff), rd!=0.
    Ldls = 56,
    /// `stls` V: var16 (>=0x500), rs.
    Stls = 57,
    /// `allocs` R2: r1,-,rd (r2=0, rd!=0).
    Allocs = 58,
    /// `copys` R3: r1,r2,rd (rd!=0).
    Copys = 59,
    /// `stb` ST: r1,-,\[rd\] (rd!=0).
    Stb = 60,
    /// `sth` ST: r1,-,\[rd\] (rd!=0).
    Sth = 61,
    /// `stw` ST: r1,-,\[rd\] (rd!=0).
    Stw = 62,
    /// `stx` ST: r1,-,\[rd\] (rd!=0).
    Stx = 63,
    /// `uldsb` LD: \[r1\],-,rd (r2=0, rd!=0).
    Uldsb = 64,
    /// `uldsh` LD: \[r1\],-,rd (r2=0, rd!=0).
    Uldsh = 65,
    /// `uldsw` LD: \[r1\],-,rd (r2=0, rd!=0).
    Uldsw = 66,
    /// `uldub` LD: \[r1\],-,rd (r2=0, rd!=0).
    Uldub = 67,
    /// `ulduh` LD: \[r1\],-,rd (r2=0, rd!=0).
    Ulduh = 68,
    /// `ulduw` LD: \[r1\],-,rd (r2=0, rd!=0).
    Ulduw = 69,
    /// `uldx` LD: \[r1\],-,rd (r2=0, rd!=0).
    Uldx = 70,
    /// `rldsb` LD: \[r1\],-,rd (r2=0, rd!=0).
    Rldsb = 71,
    /// `rldsh` LD: \[r1\],-,rd (r2=0, rd!=0).
    Rldsh = 72,
    /// `rldsw` LD: \[r1\],-,rd (r2=0, rd!=0).
    Rldsw = 73,
    /// `rldub` LD: \[r1\],-,rd (r2=0, rd!=0).
    Rldub = 74,
    /// `rlduh` LD: \[r1\],-,rd (r2=0, rd!=0).
    Rlduh = 75,
    /// `rlduw` LD: \[r1\],-,rd (r2=0, rd!=0).
    Rlduw = 76,
    /// `rldx` LD: \[r1\],-,rd (r2=0, rd!=0).
    Rldx = 77,
    /// `xlate` X: xlref16, rd; user-level only, must be eliminated before kernel (rejected by
    /// verifier).
    Xlate = 78,
    /// `xlarg` X: xlref16, rd; user-level only, must be eliminated before kernel (rejected by
    /// verifier).
    Xlarg = 79,
    /// `fadd` R3: r1,r2,rd (rd!=0).
    Fadd = 200,
    /// `fsub` R3: r1,r2,rd (rd!=0).
    Fsub = 201,
    /// `fmul` R3: r1,r2,rd (rd!=0).
    Fmul = 202,
    /// `fdiv` R3: r1,r2,rd (rd!=0).
    Fdiv = 203,
    /// `feq` R3: r1,r2,rd (rd!=0): 1 if the numbers are equal, otherwise 0; NaN is not equal to
    /// anything.
    Feq = 204,
    /// `flt` R3: r1,r2,rd (rd!=0): 1 if the first number is less, otherwise 0.
    Flt = 205,
    /// `fle` R3: r1,r2,rd (rd!=0): 1 if the first number is less or equal, otherwise 0.
    Fle = 206,
    /// `fxtod` R2: r1,-,rd (r2=0, rd!=0): converts a signed integer to a binary64.
    Fxtod = 207,
    /// `futod` R2: r1,-,rd (r2=0, rd!=0): converts an unsigned integer to a binary64.
    Futod = 208,
    /// `fdtox` R2: r1,-,rd (r2=0, rd!=0): converts a binary64 to a signed integer, truncating; out
    /// of range gives the nearest integer, NaN gives 0.
    Fdtox = 209,
    /// `fdtou` R2: r1,-,rd (r2=0, rd!=0): the same, to an unsigned integer.
    Fdtou = 210,
    /// `fstod` R2: r1,-,rd (r2=0, rd!=0): converts a binary32 to a binary64.
    Fstod = 211,
    /// `fdtos` R2: r1,-,rd (r2=0, rd!=0): converts a binary64 to a binary32.
    Fdtos = 212,
    /// `fxtos` R2: r1,-,rd (r2=0, rd!=0): converts a signed integer to a binary32.
    Fxtos = 213,
    /// `futos` R2: r1,-,rd (r2=0, rd!=0): converts an unsigned integer to a binary32.
    Futos = 214,
    /// `loop` B: 24-bit label, backward only (or to itself). Each round draws on the firing's
    /// budget. The tuple stack must be empty here and at the label.
    Loop = 215,
}

numbered!(Op: u8, "operation");

/// One instruction word.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instr(pub u32);

impl Instr {
    /// Makes `op r1, r2, rd`.
    pub const fn fmt(op: Op, r1: u8, r2: u8, rd: u8) -> Self {
        Self((op as u32) << 24 | (r1 as u32) << 16 | (r2 as u32) << 8 | rd as u32)
    }

    /// Makes `op label`. Only the low 24 bits of `label` are used.
    pub const fn branch(op: Op, label: u32) -> Self {
        Self((op as u32) << 24 | label & 0x00ff_ffff)
    }

    /// Makes `op index, rd`. The index is that of a variable, integer, string or subroutine.
    pub const fn indexed(op: Op, index: u16, rd: u8) -> Self {
        Self((op as u32) << 24 | (index as u32) << 8 | rd as u32)
    }

    /// The operation's raw code.
    pub const fn op_raw(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// The operation; `None` if the code is unknown.
    pub fn op(self) -> Option<Op> {
        Op::from_raw(self.op_raw())
    }

    /// The first source register; for an instruction that pushes a tuple entry, the type of the
    /// entry.
    pub const fn r1(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// The second source register.
    pub const fn r2(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// The destination register; for a store to a variable, the source register.
    pub const fn rd(self) -> u8 {
        self.0 as u8
    }

    /// The target of a branch.
    pub const fn label(self) -> u32 {
        self.0 & 0x00ff_ffff
    }

    /// The 16-bit index of a variable, integer, string or subroutine.
    pub const fn index(self) -> u16 {
        (self.0 >> 8) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_keep_their_numbers() {
        assert_eq!(Op::Or as u8, 1);
        assert_eq!(Op::Setx as u8, 37);
        assert_eq!(Op::Xlarg as u8, 79);
        assert_eq!(DIF_RLD_DELTA, 43);
        assert_eq!(Op::from_raw(0), None);
        assert_eq!(Op::from_raw(80), None);
        assert_eq!((Op::Fadd as u8, Op::Futos as u8), (200, 214));
        assert_eq!(Op::Loop as u8, 215);
        assert_eq!(Op::from_raw(216), None);
        assert!((1..80)
            .chain(200..216)
            .all(|n| Op::from_raw(n).is_some_and(|op| op as u8 == n)));
    }

    #[test]
    fn fields_round_trip() {
        let i = Instr::fmt(Op::Add, 1, 2, 3);
        assert_eq!((i.op(), i.r1(), i.r2(), i.rd()), (Some(Op::Add), 1, 2, 3));
        let i = Instr::indexed(Op::Ldgs, 0x0118, 4);
        assert_eq!((i.op(), i.index(), i.rd()), (Some(Op::Ldgs), 0x0118, 4));
        assert_eq!(Instr::branch(Op::Ba, 0x0102_0304).label(), 0x02_0304);
    }
}
