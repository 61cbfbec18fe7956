// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Register numbers in debugging information (System V ABI, AMD64 §3.6.2 and i386 §2.5).

use dtrace_unwind::Word;
use gimli::Register;
use object::Architecture;

/// The registers that are needed to find frames.
#[derive(Clone)]
pub struct Registers {
    /// Their width.
    pub word: Word,
    /// The stack pointer.
    pub sp: Register,
    /// The frame pointer.
    pub fp: Register,
    /// A column instead of a register: the return address, or the resumption point.
    pub return_address: Register,
}

impl Registers {
    /// Returns the registers of an architecture whose stacks can be walked.
    pub fn of(architecture: Architecture) -> Option<Self> {
        let (word, sp, fp, return_address) = match architecture {
            Architecture::X86_64 => (Word::Eight, 7, 6, 16),
            Architecture::I386 => (Word::Four, 4, 5, 8),
            _ => return None,
        };
        Some(Self {
            word,
            sp: Register(sp),
            fp: Register(fp),
            return_address: Register(return_address),
        })
    }
}
