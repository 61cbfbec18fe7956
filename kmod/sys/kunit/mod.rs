// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Unit tests of what only a kernel has: run by KUnit when the module has been loaded into a kernel that has it
//! (`make kunit`); elsewhere there is nothing of them.
//!
//! A failed assertion ends the test's thread where it stands, and nothing is dropped. So nothing is asserted while something
//! is held that must be given back, a CPU above all: a test gathers what it sees, gives back, and asserts then.

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

/// Memory and a writer for a framework of a test's own. All of its probes and lists are its own too.
///
/// # Safety
///
/// No reference to a probe or a name may be used when the framework has been dropped, or has retired the probe.
pub unsafe fn parts<P: Sync, N: Sync>() -> Parts<P, N> {
    // SAFETY: By the caller's promise; the writer is that of lists which nobody else knows.
    unsafe {
        Parts {
            probes: Arena::new(16),
            texts: Strings::new(),
            names: Arena::new(16),
            writer: Writer::new(),
        }
    }
}

/// Sleeps.
pub fn sleep_ms(ms: i64) {
    fsleep(Delta::from_millis(ms));
}

/// Sleeps until `done` holds, for some seconds at most; whether it did.
pub fn wait_until(done: impl Fn() -> bool) -> bool {
    for _ in 0..1000 {
        if done() {
            return true;
        }
        sleep_ms(10);
    }
    false
}
