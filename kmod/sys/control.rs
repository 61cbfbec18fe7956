// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What destructive actions do to the machine.

use crate::bindings;
use kernel::prelude::*;

/// The signal that stops a process.
pub const SIGSTOP: u64 = bindings::SIGSTOP as u64;

/// Ends the kernel, as `panic()` in a D program asks.
pub fn panic() {
    // SAFETY: The format is a constant without conversions. It does not return.
    unsafe { bindings::panic(c"dtrace: panic action".as_char_ptr()) };
}
