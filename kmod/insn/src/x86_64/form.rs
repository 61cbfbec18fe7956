// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What an instruction does, in the words of whoever does it: an operation and its operands.
//!
//! A [`Form`] is made once, when a place gets its probe, and performed at each hit. Only what can be done exactly has one.

use super::insn::Mode;
use super::prefixes::Segment;

/// A general register by its number: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
///
/// Invariant: at most 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(u8);

impl Register {
    /// The accumulator.
    pub const RAX: Self = Self(0);
    /// The counter.
    pub const RCX: Self = Self(1);
    /// The accumulator's other half.
    pub const RDX: Self = Self(2);
    /// The stack pointer.
    pub const RSP: Self = Self(4);
    /// The frame pointer.
    pub const RBP: Self = Self(5);

    /// The register whose number is in the lowest four bits.
    pub const fn new(number: u8) -> Self {
        Self(number & 15)
    }

    /// Its number, 0 to 15.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// How wide an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// 1 byte.
    Byte,
    /// 2 bytes.
    Word,
    /// 4 bytes.
    Long,
    /// 8 bytes.
    Quad,
}

impl Size {
    /// In bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Byte => 1,
            Self::Word => 2,
            Self::Long => 4,
            Self::Quad => 8,
        }
    }

    /// In bits.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Byte => 8,
            Self::Word => 16,
            Self::Long => 32,
            Self::Quad => 64,
        }
    }

    /// All bits of it.
    pub const fn mask(self) -> u64 {
        match self {
            Self::Byte => 0xff,
            Self::Word => 0xffff,
            Self::Long => 0xffff_ffff,
            Self::Quad => u64::MAX,
        }
    }

    /// The highest bit of it.
    pub const fn sign(self) -> u64 {
        self.mask() ^ self.mask() >> 1
    }

    /// A number of this size as one of 8 bytes with the same sign.
    pub const fn extend(self, value: u64) -> u64 {
        let unused = 64_u32.wrapping_sub(self.bits());
        (value as i64).wrapping_shl(unused).wrapping_shr(unused) as u64
    }
}

/// What the parts of an address are added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Nothing,
    /// The address of the next instruction.
    Next,
    Register(Register),
}

/// Where an operand lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub base: Base,
    /// A register, and how far it is shifted.
    pub index: Option<(Register, u8)>,
    pub displacement: u64,
    pub segment: Segment,
    /// Whether it is computed in 64 bits, else in 32.
    pub wide: bool,
}

/// Where a value comes from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Register(Register),
    /// Bits 8 to 15 of one.
    High(Register),
    Immediate(u64),
    Memory(Address),
}

/// A condition on the flags, by its number in opcodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition(pub u8);

/// The eight that share an encoding, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Or,
    AddCarry,
    SubtractBorrow,
    And,
    Subtract,
    Xor,
    Compare,
}

/// Shifts and rotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shift {
    RotateLeft,
    RotateRight,
    Left,
    Right,
    /// Right, the sign stays.
    Arithmetic,
}

/// What is done. Operands are `to` and `from` of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Nothing.
    Nothing,
    Move,
    /// `from` is of this size and becomes wider.
    MoveZero(Size),
    MoveSign(Size),
    /// The address itself.
    Address,
    Arithmetic(Arithmetic),
    /// And, for the flags alone.
    Test,
    Increment,
    Decrement,
    Negate,
    Not,
    /// By `from`.
    Shift(Shift),
    Swap,
    /// And `from` becomes what `to` was before they were added.
    ExchangeAdd,
    /// `to` becomes `from` if it is the accumulator, which becomes `to` otherwise.
    CompareExchange,
    /// The order of bytes.
    Reverse,
    /// The accumulator becomes twice as wide.
    Widen,
    /// The accumulator's sign goes to rdx.
    Spread,
    Set(Condition),
    MoveIf(Condition),
    Push,
    Pop,
    PushFlags,
    PopFlags,
    Leave,
    ClearFlag(u64),
    SetFlag(u64),
    FlipCarry,
    /// To `from`.
    Jump,
    /// By so many bytes from the next instruction.
    JumpBy(u64),
    JumpIf(Condition, u64),
    /// Where the counter is 0.
    JumpEmpty(u64),
    /// Where it is not, after it was decremented, and the zero flag is as wanted.
    Loop(Option<bool>, u64),
    Call,
    CallBy(u64),
    /// And so many bytes more are taken from the stack.
    Return(u64),
}

/// An instruction that can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub(super) operation: Operation,
    pub(super) size: Size,
    pub(super) to: Operand,
    pub(super) from: Operand,
    pub(super) length: u8,
    pub(super) mode: Mode,
    /// Whether nobody may change memory between its load and its store.
    pub(super) atomic: bool,
}
