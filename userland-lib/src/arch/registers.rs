// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What debugging information calls registers (System V ABI, AMD64 §3.6.2 and i386 §2.5).

use dtrace_unwind::Word;
use gimli::Register;
use object::Architecture;

/// The registers by which frames are found.
#[derive(Clone)]
pub struct Registers {
    /// How wide they are.
    pub word: Word,
    /// The stack pointer.
    pub sp: Register,
    /// The frame pointer.
    pub fp: Register,
    /// In place of a register: the return address, or where the code goes on.
    pub return_address: Register,
}

impl Registers {
    /// Those of a processor whose programs are walked.
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
