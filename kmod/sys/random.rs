// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Random numbers that nobody can guess.

use crate::bindings;

/// One of 64 bits (`get_random_u64()` of drivers/char/random.c). In the first moments of the boot the kernel itself may know too little for that.
pub fn word() -> u64 {
    // SAFETY: Needs nothing.
    unsafe { bindings::get_random_u64() }
}
