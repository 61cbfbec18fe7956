// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What differs between processors.

#[cfg(CONFIG_X86_64)]
mod x86_64;

#[cfg(CONFIG_X86_64)]
pub use x86_64::{program, regs, syscalls, thread_pointer, TEXT};
