// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Processor-specific parts.
//!
//! [`HOST`] has the properties of this machine's processor. Properties of a program, such as its
//! instruction set, depend on its file's architecture, because 32-bit and 64-bit programs run side
//! by side. Therefore the x86 parts exist on every machine, except for `stopped`, which handles
//! processes of this machine. Nobody else names a processor: [`programs`] has what is known of
//! programs.

mod host;
mod instructions;
mod registers;
#[cfg(not(target_arch = "x86_64"))]
#[path = "unknown.rs"]
pub mod stopped;
mod x86_64;

pub use host::HOST;
pub use instructions::{Instructions, LONGEST};
pub use registers::Registers;
#[cfg(target_arch = "x86_64")]
pub use x86_64::stopped;

/// What is known of programs: how functions are called, how USDT tells where arguments are, what
/// replaces a probe's call, and relocations. All of it is x86's; with a second processor this is
/// where the file's architecture chooses.
pub mod programs {
    pub use super::x86_64::{
        answer, arguments, below_return, is_ours, passed, replaced, word, word_of_32, Class,
        Operand, Shape, Symbols, ABSOLUTE, RELATIVE,
    };
}
