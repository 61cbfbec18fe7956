// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What programs of 64 bits begin and end most functions with, for whoever is in a hurry.
//!
//! A [`Form`] says in general what an instruction does. `endbr64` and other instructions that do nothing, `push` of a register and
//! `ret` need nothing of that but a distance and a stack pointer. They are what [`Form::perform`] makes of them; a test compares.

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

/// What it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Briefly {
    /// Where the thread goes on.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
}

impl Form {
    /// The instruction as one of these.
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
    /// What it changes, at `ip` and with this stack pointer; its store is made. `None`: it cannot be done at once, or the program has asked
    /// for an exception where the stack is not aligned, and nothing has changed.
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
        // So it lies on one page too, and who checks alignment has nothing to say.
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
