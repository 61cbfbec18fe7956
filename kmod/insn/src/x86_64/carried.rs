// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Instructions at which a breakpoint may stand for a probe, and who may carry it.
//!
//! What is done here needs nobody but who writes the breakpoint. All else is left to the kernel's uprobes, if they execute it as the
//! processor would. Both sides ask: the library before it promises a probe, the module before it sets a breakpoint.

use super::class::Class;
use super::form::Form;
use super::insn::Insn;
use super::uprobes::Uprobes;
use core::fmt;

/// Why there can be no probe at an instruction, in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unprobed(&'static str);

impl fmt::Display for Unprobed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the instruction {}", self.0)
    }
}

impl Insn {
    /// How it is done where it can be done here; `None`: uprobes carry it.
    pub fn probed(&self) -> Result<Option<Form>, Unprobed> {
        match (self.class(), self.uprobes()) {
            (Class::Refused(refusal), _) => Err(Unprobed(refusal.text())),
            (Class::Done(form), _) => Ok(Some(form)),
            (Class::Slot, Uprobes::Right | Uprobes::Nop5 | Uprobes::Nop10) => Ok(None),
            (Class::Slot, Uprobes::Refused) => {
                Err(Unprobed("is one that the kernel's uprobes refuse"))
            }
            (Class::Slot, Uprobes::Wrong) => {
                Err(Unprobed("is one that the kernel's uprobes execute wrongly"))
            }
            (Class::Slot, Uprobes::Repeats) => Err(Unprobed("repeats")),
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
