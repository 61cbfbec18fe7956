// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Where a program goes from an instruction, as far as the instruction alone tells.

use super::insn::{Encoding, Insn, Map};
use super::refusal::{refusal, Refusal};
use core::ops::Range;

/// What comes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The instruction behind it.
    Next,
    /// A target: in the instruction, or `None` where a register or memory has it.
    Jump(Option<u64>),
    /// This target, or the instruction behind it.
    Branch(u64),
    /// A function, likewise, and then the instruction behind it.
    Call(Option<u64>),
    /// Whoever called.
    Return,
    /// Something else: the kernel, another segment, the end of a transaction.
    Elsewhere,
}

/// Whether a function ends with an instruction of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// No.
    Never,
    /// Yes, if the place where it goes is outside of the function, which is known afterwards.
    Perhaps,
    /// Yes.
    Always,
}

impl Insn {
    /// What comes after it, if it is at `at`.
    pub fn flow(&self, at: u64) -> Flow {
        if self.encoding != Encoding::Legacy {
            return Flow::Next;
        }
        match refusal(self) {
            None | Some(Refusal::Privileged | Refusal::StackSegment) => (),
            Some(_) => return Flow::Elsewhere,
        }
        let target = self.wrapped(self.next(at).wrapping_add(self.immediate));
        match (self.map, self.opcode) {
            (Map::Primary, 0x70..=0x7f | 0xe0..=0xe3) => Flow::Branch(target),
            (Map::Secondary, 0x80..=0x8f) => Flow::Branch(target),
            (Map::Primary, 0xe8) => Flow::Call(Some(target)),
            (Map::Primary, 0xe9 | 0xeb) => Flow::Jump(Some(target)),
            (Map::Primary, 0xc2 | 0xc3) => Flow::Return,
            (Map::Primary, 0xff) => match self.middle() {
                2 => Flow::Call(None),
                4 => Flow::Jump(None),
                _ => Flow::Next,
            },
            _ => Flow::Next,
        }
    }

    /// Whether the function whose addresses are `function` ends with this instruction of it, which is at `at`: by a return, or
    /// by a jump to another function. A jump whose target is not in the instruction is one of a table or to another function;
    /// only doing it tells.
    pub fn leaves(&self, at: u64, function: &Range<u64>) -> Leaves {
        match self.flow(at) {
            Flow::Return => Leaves::Always,
            Flow::Jump(Some(target)) if !function.contains(&target) => Leaves::Always,
            Flow::Branch(target) if !function.contains(&target) => Leaves::Perhaps,
            Flow::Jump(None) => Leaves::Perhaps,
            _ => Leaves::Never,
        }
    }

    /// Whether it reads or writes the shadow stack of a thread that has one, by the way: calls and returns do. Where there is
    /// one they are not to be done without it.
    pub fn touches_shadow_stack(&self) -> bool {
        matches!(self.flow(0), Flow::Call(_) | Flow::Return)
    }
}
