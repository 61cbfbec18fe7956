// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What differs between processors.
//!
//! [`HOST`] says what the processor of this machine decides. What a program's file decides, such as how its instructions
//! follow each other, is asked by the file's machine: programs of 32 and of 64 bits run side by side.
//! So what is of x86 is there on any machine, but for `stopped`, which is of this one's processes.

mod host;
mod instructions;
mod registers;
pub mod x86_64;

pub use host::HOST;
pub use instructions::{Instructions, LONGEST};
pub use registers::Registers;
#[cfg(target_arch = "x86_64")]
pub use x86_64::stopped;
