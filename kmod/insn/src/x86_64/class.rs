// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! How an instruction is executed whose first byte is a breakpoint.
//!
//! Common instructions are emulated. An instruction that only computes is executed by the processor
//! in a slot. An instruction has no probe if it exposes its own address, traps by design, or
//! branches in a way that is not emulated (INV-40).

use super::form::Form;
use super::insn::Insn;
use super::prepare;
use super::refusal::{refusal, Refusal};
use super::Flow;

/// How an instruction is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It is emulated.
    Done(Form),
    /// The processor executes a copy in a slot: [`Insn::relocate`].
    Slot,
    /// It can have no probe.
    Refused(Refusal),
}

impl Insn {
    /// How the instruction is executed if it has a probe.
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
