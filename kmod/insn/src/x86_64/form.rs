// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! The effect of an instruction, in a form that is ready to perform: an operation and its operands.
//!
//! A [`Form`] is created once, when a place gets its probe, and performed at each hit. Only
//! instructions that can be emulated exactly have one.

use super::insn::Mode;
use super::prefixes::Segment;

/// A general register by its number: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
///
/// Invariant: the number is at most 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register(u8);

impl Register {
    /// The accumulator.
    pub const RAX: Self = Self(0);
    /// The counter.
    pub const RCX: Self = Self(1);
    /// The upper half of the accumulator.
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

/// The width of an operand.
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

    /// A mask of all bits of this size.
    pub const fn mask(self) -> u64 {
        match self {
            Self::Byte => 0xff,
            Self::Word => 0xffff,
            Self::Long => 0xffff_ffff,
            Self::Quad => u64::MAX,
        }
    }

    /// The sign bit.
    pub const fn sign(self) -> u64 {
        self.mask() ^ self.mask() >> 1
    }

    /// Sign-extends a number of this size to 8 bytes.
    pub const fn extend(self, value: u64) -> u64 {
        let unused = 64_u32.wrapping_sub(self.bits());
        (value as i64).wrapping_shl(unused).wrapping_shr(unused) as u64
    }
}

/// The register part of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Nothing,
    /// The address of the next instruction.
    Next,
    Register(Register),
}

/// The address of a memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub base: Base,
    /// A register, and the number of bits by which it is shifted.
    pub index: Option<(Register, u8)>,
    pub displacement: u64,
    pub segment: Segment,
    /// Whether it is computed in 64 bits; otherwise in 32.
    pub wide: bool,
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Register(Register),
    /// Bits 8 to 15 of a register.
    High(Register),
    Immediate(u64),
    Memory(Address),
}

/// A condition on the flags, by its number in opcodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition(pub u8);

/// The eight operations that share an encoding, in its order.
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
    /// To the right, with the sign kept.
    Arithmetic,
}

/// An operation. `to` and `from` are operands of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// A nop.
    Nothing,
    Move,
    /// Zero-extends `from`, which is of this size.
    MoveZero(Size),
    MoveSign(Size),
    /// Loads the address of `from` (`lea`).
    Address,
    Arithmetic(Arithmetic),
    /// A logical and, for the flags only.
    Test,
    Increment,
    Decrement,
    Negate,
    Not,
    /// By `from` bits.
    Shift(Shift),
    Swap,
    /// Adds `from` to `to`; `from` becomes the old value of `to`.
    ExchangeAdd,
    /// If `to` equals the accumulator, it becomes `from`; otherwise the accumulator becomes `to`.
    CompareExchange,
    /// Reverses the bytes of `to`.
    Reverse,
    /// Sign-extends the lower half of the accumulator to `size` (`cbw` and its kin).
    Widen,
    /// Fills rdx with the accumulator's sign (`cwd` and its kin).
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
    /// Jumps to `from`.
    Jump,
    /// Jumps by this distance from the next instruction.
    JumpBy(u64),
    JumpIf(Condition, u64),
    /// Jumps if the counter is 0.
    JumpEmpty(u64),
    /// Decrements the counter; jumps if it is not 0 and the zero flag is as given.
    Loop(Option<bool>, u64),
    Call,
    CallBy(u64),
    /// Returns, and removes this many further bytes from the stack.
    Return(u64),
}

/// An instruction that can be emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub(super) operation: Operation,
    pub(super) size: Size,
    pub(super) to: Operand,
    pub(super) from: Operand,
    pub(super) length: u8,
    pub(super) mode: Mode,
    /// Whether no other processor may change the memory operand between its load and its store.
    pub(super) atomic: bool,
}
