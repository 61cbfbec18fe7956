// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Destructive actions on the machine.

use crate::bindings;
use kernel::prelude::*;

/// The signal that stops a process.
pub const SIGSTOP: u64 = bindings::SIGSTOP as u64;

/// Panics the kernel, for the action `panic()`.
pub fn panic() {
    // SAFETY: The format string is constant and has no conversions, so it takes no arguments. The
    // call does not return.
    unsafe { bindings::panic(c"dtrace: panic action".as_char_ptr()) };
}
