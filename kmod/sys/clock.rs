// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Clocks that can be read in any context, NMI included.

use crate::bindings;

/// Returns the nanoseconds since boot, without the time that the machine was suspended. On one CPU
/// the clock does not step back, except that a reading taken in an NMI in the middle of a clock
/// update may be ahead of the next ones.
#[inline]
pub fn monotonic() -> u64 {
    // SAFETY: No preconditions.
    unsafe { bindings::ktime_get_mono_fast_ns() }
}

/// Returns the nanoseconds since 1970 (wall-clock time).
pub fn wall() -> u64 {
    // SAFETY: No preconditions.
    unsafe { bindings::ktime_get_real_fast_ns() }
}

/// Spins for `ns` nanoseconds, or until the clock is found to stand still, as it does while the
/// machine goes to sleep.
pub fn spin(ns: u64) {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_chill(ns) }
}
