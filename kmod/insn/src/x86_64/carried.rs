// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Instructions at which a breakpoint of the kernel's uprobes may stand for a probe.
//!
//! They are those that uprobes execute as the processor would. Both sides ask: the library before it promises a probe, the module
//! before it plants a breakpoint.

use super::class::Class;
use super::form::Form;
use super::insn::Insn;
use super::uprobes::Uprobes;
use core::fmt;

/// Why there can be no probe at an instruction, in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncarried(&'static str);

impl fmt::Display for Uncarried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the instruction {}", self.0)
    }
}

impl Insn {
    /// How it is done where it can be done here.
    pub fn carried(&self) -> Result<Option<Form>, Uncarried> {
        let form = match self.class() {
            Class::Refused(refusal) => return Err(Uncarried(refusal.text())),
            Class::Done(form) => Some(form),
            Class::Slot => None,
        };
        match self.uprobes() {
            Uprobes::Right | Uprobes::Nop5 | Uprobes::Nop10 => Ok(form),
            Uprobes::Refused => Err(Uncarried("is one that the kernel's uprobes refuse")),
            Uprobes::Wrong => Err(Uncarried(
                "is one that the kernel's uprobes execute wrongly",
            )),
            Uprobes::Repeats => Err(Uncarried("repeats")),
        }
    }
}
