// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! x86: programs of 64 bits (AMD64), and of 32 (i386) beside them.

mod calling;
mod operand;
mod passed;
pub mod replaced;
#[cfg(target_arch = "x86_64")]
pub mod stopped;

pub use calling::{word, word_of_32, Class};
pub use operand::{arguments, Operand, Symbols};
pub use passed::{answer, below_return, passed, Shape};

use object::elf::{self, Machine, RelocationType};

/// A word that a file has by where it is loaded: what is added to that stands in the relocation.
pub const RELATIVE: RelocationType = elf::R_X86_64_RELATIVE;

/// Whether programs of this machine are ours, of 64 or of 32 bits.
pub fn is_ours(machine: Machine) -> bool {
    matches!(machine, elf::EM_X86_64 | elf::EM_386)
}
