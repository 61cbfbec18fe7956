// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Instructions at which a breakpoint may stand for a probe, and who may carry it.
//!
//! What is done here, or [moved](Insn::is_movable), needs nobody but who writes the breakpoint. The kernel's uprobes can have
//! it if they execute the instruction as the processor would. Both sides ask: the library before it promises a probe, the module before it
//! sets a breakpoint.

use super::class::Class;
use super::form::Form;
use super::insn::Insn;
use super::refusal::Refusal;
use super::uprobes::Uprobes;

impl Insn {
    /// How it is done where it can be done here; `None`: the processor does it, somewhere else.
    pub fn probed(&self) -> Result<Option<Form>, Refusal> {
        match self.class() {
            Class::Refused(refusal) => Err(refusal),
            Class::Done(form) => Ok(Some(form)),
            Class::Slot => Ok(None),
        }
    }

    /// Whether uprobes may have a breakpoint at it, and execute it.
    pub fn is_carried(&self) -> bool {
        matches!(
            self.uprobes(),
            Uprobes::Right | Uprobes::Nop5 | Uprobes::Nop10
        )
    }

    /// Whether uprobes never have a breakpoint at it, so that any is somebody else's.
    pub fn is_barred(&self) -> bool {
        self.uprobes() == Uprobes::Refused
    }

    /// Whether uprobes make something else of it that is faster than a breakpoint.
    pub fn is_optimized(&self) -> bool {
        matches!(self.uprobes(), Uprobes::Nop5 | Uprobes::Nop10)
    }
}
