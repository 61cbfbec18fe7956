// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Which instructions can have a probe, and whether uprobes can carry its breakpoint.
//!
//! An instruction that is emulated or [relocated](Insn::is_movable) needs nothing but the
//! breakpoint. The kernel's uprobes can carry the breakpoint if they execute the instruction as the
//! processor would. The library asks before it promises a probe, and the module before it sets a
//! breakpoint.

use super::class::Class;
use super::form::Form;
use super::insn::Insn;
use super::refusal::Refusal;
use super::uprobes::Uprobes;

impl Insn {
    /// Returns the form by which it is emulated; `None` if the processor executes it in a slot. The
    /// error says why it can have no probe.
    pub fn probed(&self) -> Result<Option<Form>, Refusal> {
        match self.class() {
            Class::Refused(refusal) => Err(refusal),
            Class::Done(form) => Ok(Some(form)),
            Class::Slot => Ok(None),
        }
    }

    /// Whether uprobes can have a breakpoint at it and execute it correctly.
    pub fn is_carried(&self) -> bool {
        matches!(
            self.uprobes(),
            Uprobes::Right | Uprobes::Nop5 | Uprobes::Nop10
        )
    }

    /// Whether uprobes never have a breakpoint at it, so that any breakpoint there is not theirs.
    pub fn is_barred(&self) -> bool {
        self.uprobes() == Uprobes::Refused
    }

    /// Whether uprobes may replace it by something faster than a breakpoint.
    pub fn is_optimized(&self) -> bool {
        matches!(self.uprobes(), Uprobes::Nop5 | Uprobes::Nop10)
    }
}
