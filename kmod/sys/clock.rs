// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Clocks that may be read in any context, NMI included.

use crate::bindings;

/// Nanoseconds since boot, never stepping back on one CPU.
#[inline]
pub fn monotonic() -> u64 {
    // SAFETY: Needs nothing.
    unsafe { bindings::ktime_get_mono_fast_ns() }
}

/// Nanoseconds since 1970.
pub fn wall() -> u64 {
    // SAFETY: Needs nothing.
    unsafe { bindings::ktime_get_real_fast_ns() }
}

/// Spins.
pub fn spin(ns: u64) {
    // SAFETY: Needs nothing.
    unsafe { bindings::dtrace_chill(ns) }
}
