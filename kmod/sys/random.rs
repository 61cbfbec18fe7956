// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Random numbers that cannot be guessed.

use crate::bindings;

/// Returns a random number of 64 bits (`get_random_u64()` of drivers/char/random.c). In the first
/// moments of the boot the kernel itself may have too little entropy for that.
pub fn word() -> u64 {
    // SAFETY: No preconditions.
    unsafe { bindings::get_random_u64() }
}
