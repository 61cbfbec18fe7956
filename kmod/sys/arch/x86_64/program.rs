// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Instructions of programs: which of them a probe can stand at, and where they go.
//!
//! A breakpoint of the kernel's uprobes stands only where they execute the instruction as the processor would; the crate `dtrace_insn`
//! knows. Where a function ends with a jump or a return is computed on a copy of the registers: nothing here changes the program.

use crate::sys::nofault;
use crate::sys::regs::Regs;
use core::fmt;
use core::ops::Range;
use dtrace_insn::x86_64::{
    decode, Form, Insn, Leaves, Memory, Mode, Register, Registers, Segment, Size, Uncarried,
};
use kernel::prelude::*;

/// Why there can be no probe at an instruction.
pub enum Unprobeable {
    /// It is none that is known.
    Unknown,
    /// It is known, and can have none.
    Uncarried(Uncarried),
}

impl fmt::Display for Unprobeable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("the instruction is not known"),
            Self::Uncarried(why) => why.fmt(f),
        }
    }
}

/// An instruction of a program.
pub struct Instruction {
    insn: Insn,
    form: Option<Form>,
}

impl Instruction {
    /// What `code` begins with, in a program of 64 bits or of 32.
    pub fn new(code: &[u8], is_long: bool) -> Result<Self, Unprobeable> {
        let mode = if is_long {
            Mode::Long
        } else {
            Mode::Compatible
        };
        let insn = decode(code, mode).map_err(|_| Unprobeable::Unknown)?;
        let form = insn.carried().map_err(Unprobeable::Uncarried)?;
        Ok(Self { insn, form })
    }

    /// Whether the function that has the addresses `function` ends with this instruction of it, at `at`: what has it returned to?
    /// `None`: it goes on. Where memory that tells cannot be read at once nobody knows, and a return is one nevertheless.
    pub fn leaves(&self, at: u64, function: &Range<u64>, regs: &Regs) -> Option<Left> {
        let always = match self.insn.leaves(at, function) {
            Leaves::Never => return None,
            Leaves::Perhaps => false,
            Leaves::Always => true,
        };
        let mut after = Copy(*regs);
        let done = self
            .form
            .as_ref()
            .and_then(|form| form.perform(&mut after, &mut Reading).ok());
        match done {
            Some(()) => (always || !function.contains(&after.0.ip())).then_some(Left::To(after.0)),
            None if always => Some(Left::Somewhere),
            None => Some(Left::Unknown),
        }
    }
}

/// How a function ends.
pub enum Left {
    /// With these registers.
    To(Regs),
    /// With those that it has, but where it goes cannot be told.
    Somewhere,
    /// Perhaps not at all.
    Unknown,
}

/// The registers after an instruction that is not executed.
struct Copy(Regs);

impl Registers for Copy {
    fn get(&self, register: Register) -> u64 {
        self.0.general(register.number())
    }

    fn set(&mut self, register: Register, value: u64) {
        self.0.set_general(register.number(), value);
    }

    fn ip(&self) -> u64 {
        self.0.ip()
    }

    fn set_ip(&mut self, ip: u64) {
        self.0.set_ip(ip);
    }

    fn flags(&self) -> u64 {
        self.0.flags()
    }

    fn set_flags(&mut self, _flags: u64) {}

    fn base(&self, segment: Segment) -> u64 {
        super::segment_base(segment)
    }
}

/// The program's memory, which is only read.
struct Reading;

impl Memory for Reading {
    fn end(&self) -> u64 {
        super::program_end()
    }

    fn load(&mut self, address: u64, size: Size) -> Option<u64> {
        let mut word = [0; 8];
        let bytes = word.get_mut(..size.bytes() as usize)?;
        nofault::user_load(address, bytes).ok()?;
        Some(u64::from_le_bytes(word))
    }

    fn store(&mut self, _address: u64, _size: Size, _value: u64) -> Option<()> {
        None
    }
}
