// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Who executes an instruction whose first byte is a breakpoint.
//!
//! What can be done is done. What only computes is executed by the processor at another address. What says where it is, what
//! traps by design, and what goes somewhere in a way that is not done here, cannot have a probe.

use super::form::Form;
use super::insn::Insn;
use super::prepare;
use super::refusal::{refusal, Refusal};
use super::Flow;

/// Who executes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// We do it.
    Done(Form),
    /// The processor, at another address: [`Insn::relocate`].
    Slot,
    /// Nobody: it can have no probe.
    Refused(Refusal),
}

impl Insn {
    /// Who executes it if its place has a probe.
    pub fn class(&self) -> Class {
        if let Some(refusal) = refusal(self) {
            return Class::Refused(refusal);
        }
        match prepare::form(self) {
            Some(form) => Class::Done(form),
            None if self.flow(0) == Flow::Next => Class::Slot,
            None => Class::Refused(Refusal::Branch),
        }
    }
}
