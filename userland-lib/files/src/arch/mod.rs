// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Processor-specific parts.
//!
//! [`HOST`] has the properties of this machine's processor. Properties of a program, such as its
//! instruction set, depend on its file's architecture, because 32-bit and 64-bit programs run side
//! by side. Therefore the x86 parts exist on every machine, except for `stopped`, which handles
//! processes of this machine.

mod host;
mod instructions;
mod registers;
pub mod x86_64;

pub use host::HOST;
pub use instructions::{Instructions, LONGEST};
pub use registers::Registers;
#[cfg(target_arch = "x86_64")]
pub use x86_64::stopped;
