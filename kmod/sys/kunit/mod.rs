// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Unit tests of what exists only in a kernel. KUnit runs them when the module is loaded into a
//! kernel that has it (`make kunit`); elsewhere they are not compiled.
//!
//! A failed assertion ends the test's thread at that point, and nothing is dropped. So nothing may
//! be asserted while something is held that must be released, above all a CPU: a test collects what
//! it sees, releases everything, and asserts then.

mod audience;
mod code;
mod cpu;
mod lists;
mod memory;
mod places;
mod stack;
mod time;

use super::arena::{Arena, Strings};
use super::once::Parts;
use super::rculist::Writer;
use kernel::time::{delay::fsleep, Delta};

/// Returns memory and a writer for a framework of a test's own, whose probes and lists are its own
/// too.
///
/// # Safety
///
/// No reference to a probe or a name may be used after the framework has been dropped, or has
/// retired the probe.
pub unsafe fn parts<P: Sync, N: Sync>() -> Parts<P, N> {
    // SAFETY: By the caller's promise, for the arenas. The writer is the only one for its lists,
    // because only this framework knows them.
    unsafe {
        Parts {
            probes: Arena::new(16),
            texts: Strings::new(),
            names: Arena::new(16),
            writer: Writer::new(),
        }
    }
}

/// Sleeps for `ms` ms.
pub fn sleep_ms(ms: i64) {
    fsleep(Delta::from_millis(ms));
}

/// Sleeps until `done` returns `true`, for ten seconds at most. Returns whether it did.
pub fn wait_until(done: impl Fn() -> bool) -> bool {
    for _ in 0..1000 {
        if done() {
            return true;
        }
        sleep_ms(10);
    }
    false
}
