// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Where a program continues after an instruction, as far as the instruction alone tells.

use super::insn::{Encoding, Insn, Map};
use super::refusal::{refusal, Refusal};
use core::ops::Range;

/// What comes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next instruction.
    Next,
    /// A target: in the instruction, or `None` if it is in a register or memory.
    Jump(Option<u64>),
    /// This target, or the next instruction.
    Branch(u64),
    /// A function, with its address as for `Jump`, and then the next instruction.
    Call(Option<u64>),
    /// The caller.
    Return,
    /// Something else: the kernel, another segment, the end of a transaction.
    Elsewhere,
}

/// Whether a function ends with one of its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// It does not.
    Never,
    /// It ends if the program continues outside of the function, which is known only after the
    /// instruction.
    Perhaps,
    /// It does.
    Always,
}

impl Insn {
    /// What comes after the instruction, if it is at `at`.
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

    /// Whether the function with the addresses `function` ends with this instruction, which is at
    /// `at` in that function: by a return, or by a jump to another function. An indirect jump may
    /// be that of a jump table or lead to another function; only executing it tells.
    pub fn leaves(&self, at: u64, function: &Range<u64>) -> Leaves {
        match self.flow(at) {
            Flow::Return => Leaves::Always,
            Flow::Jump(Some(target)) if !function.contains(&target) => Leaves::Always,
            Flow::Branch(target) if !function.contains(&target) => Leaves::Perhaps,
            Flow::Jump(None) => Leaves::Perhaps,
            _ => Leaves::Never,
        }
    }

    /// Whether it implicitly reads or writes the shadow stack, if its thread has one: calls and
    /// returns do. Then it must not be emulated, because the shadow stack would not change.
    pub fn touches_shadow_stack(&self) -> bool {
        matches!(self.flow(0), Flow::Call(_) | Flow::Return)
    }
}
