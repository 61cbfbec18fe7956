// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The state of the kernel's locks, read without taking part in them.

use super::nofault::Unreachable;
use crate::bindings;

/// Returns the address of the task that holds the mutex at `addr`, 0 if no task does.
pub fn mutex_owner(addr: u64) -> Result<u64, Unreachable> {
    let mut owner = 0;
    // SAFETY: `owner` is valid for the write; the load from `addr` may fault and is caught.
    match unsafe { bindings::dtrace_mutex_owner(&mut owner, addr) } {
        0 => Ok(owner),
        _ => Err(Unreachable),
    }
}

/// The holders of a reader-writer lock.
pub struct Holders(u32);

impl Holders {
    /// Reads those of the `rwlock_t` at `addr`. Also fails on kernels without queued reader-writer
    /// locks, and with `PREEMPT_RT`.
    pub fn of(addr: u64) -> Result<Self, Unreachable> {
        // SAFETY: The load from `addr` may fault and is caught.
        let state = unsafe { bindings::dtrace_rwlock(addr) };
        u32::try_from(state).map(Self).map_err(|_| Unreachable)
    }

    fn has(&self, bit: bindings::dtrace_holders) -> bool {
        self.0 & bit != 0
    }

    /// Whether one or more readers hold it.
    pub fn readers(&self) -> bool {
        self.has(bindings::dtrace_holders_DTRACE_RWLOCK_READERS)
    }

    /// Whether a writer holds it.
    pub fn writer(&self) -> bool {
        self.has(bindings::dtrace_holders_DTRACE_RWLOCK_WRITER)
    }

    /// Whether a writer waits for it.
    pub fn writer_waits(&self) -> bool {
        self.has(bindings::dtrace_holders_DTRACE_RWLOCK_WRITER_WAITS)
    }
}
