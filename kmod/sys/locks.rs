// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The state of the kernel's locks, read without taking part in them.

use super::nofault::Unreachable;
use crate::bindings;

/// Address of the task that holds the mutex at `addr`, 0 where none does.
pub fn mutex_owner(addr: u64) -> Result<u64, Unreachable> {
    let mut owner = 0;
    // SAFETY: `owner` is valid for the write; the load from `addr` does not fault.
    match unsafe { bindings::dtrace_mutex_owner(&mut owner, addr) } {
        0 => Ok(owner),
        _ => Err(Unreachable),
    }
}

/// Who holds a lock for readers and writers.
pub struct Holders(u32);

impl Holders {
    /// Of the `rwlock_t` at `addr`.
    pub fn of(addr: u64) -> Result<Self, Unreachable> {
        // SAFETY: The load from `addr` does not fault.
        let state = unsafe { bindings::dtrace_rwlock(addr) };
        u32::try_from(state).map(Self).map_err(|_| Unreachable)
    }

    fn has(&self, bit: bindings::dtrace_holders) -> bool {
        self.0 & bit != 0
    }

    /// One or more readers.
    pub fn readers(&self) -> bool {
        self.has(bindings::dtrace_holders_DTRACE_RWLOCK_READERS)
    }

    /// A writer.
    pub fn writer(&self) -> bool {
        self.has(bindings::dtrace_holders_DTRACE_RWLOCK_WRITER)
    }

    /// A writer waits.
    pub fn writer_waits(&self) -> bool {
        self.has(bindings::dtrace_holders_DTRACE_RWLOCK_WRITER_WAITS)
    }
}
