// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! x86: 64-bit programs (AMD64), and 32-bit programs (i386).

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

/// The relocation of a word that is relative to the load address; the relocation has the addend.
pub const RELATIVE: RelocationType = elf::R_X86_64_RELATIVE;

/// The relocation of a word that is a symbol's address.
pub const ABSOLUTE: RelocationType = elf::R_X86_64_64;

/// Whether programs of this machine, of 64 or of 32 bits, are supported.
pub fn is_ours(machine: Machine) -> bool {
    matches!(machine, elf::EM_X86_64 | elf::EM_386)
}
