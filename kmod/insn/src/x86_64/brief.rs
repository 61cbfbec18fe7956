// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! A fast path for the instructions with which 64-bit programs begin and end most functions.
//!
//! A [`Form`] describes any emulated instruction. For `endbr64` and other instructions that do
//! nothing, for `push` of a register, and for `ret`, a length and a stack pointer are enough. Their
//! effect is that of [`Form::perform`]; a test compares both.

use super::form::{Form, Operand, Operation, Register, Size};
use super::insn::Mode;
use super::perform::Memory;

/// One of these instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brief {
    kind: Kind,
    length: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nothing,
    Push(Register),
    Return,
}

/// The registers that it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Briefly {
    /// The instruction pointer after it.
    pub ip: u64,
    /// The stack pointer after it.
    pub sp: u64,
}

impl Form {
    /// Returns the instruction in this shape, if it is one of them.
    pub fn brief(&self) -> Option<Brief> {
        let kind = match (self.mode, self.operation, self.size, self.from) {
            (Mode::Long, Operation::Nothing, ..) => Kind::Nothing,
            (Mode::Long, Operation::Push, Size::Quad, Operand::Register(register)) => {
                Kind::Push(register)
            }
            (Mode::Long, Operation::Return(0), Size::Quad, _) => Kind::Return,
            _ => return None,
        };
        Some(Brief {
            kind,
            length: self.length,
        })
    }
}

impl Brief {
    /// Performs the instruction at `ip`, with the stack pointer `sp`, including its store. Returns
    /// the changed registers. `None`, with nothing changed: memory cannot be accessed at once, the
    /// target is not the program's, or the stack pointer is not aligned to 8 bytes.
    #[inline]
    pub fn perform<M: Memory>(
        &self,
        ip: u64,
        sp: u64,
        register: impl FnOnce(Register) -> u64,
        memory: &mut M,
    ) -> Option<Briefly> {
        let next = ip.wrapping_add(u64::from(self.length));
        if self.kind == Kind::Nothing {
            return Some(Briefly { ip: next, sp });
        }
        // An aligned word is on one page, and cannot raise an alignment-check exception.
        if sp & 7 != 0 {
            return None;
        }
        match self.kind {
            Kind::Push(from) => {
                let sp = sp.checked_sub(8).filter(|sp| *sp < memory.end())?;
                memory.store(sp, Size::Quad, register(from))?;
                Some(Briefly { ip: next, sp })
            }
            _ => {
                if sp >= memory.end() {
                    return None;
                }
                let to = memory.load(sp, Size::Quad)?;
                (to < memory.end()).then_some(Briefly {
                    ip: to,
                    sp: sp.wrapping_add(8),
                })
            }
        }
    }
}
