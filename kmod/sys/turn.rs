// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A lock that one of a user's calls has at a time, or one of those at a file. However many wait for it, and for how long, the kernel does not take them for hung.

use crate::bindings;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::types::NotThreadSafe;

/// Such a lock.
pub struct Turn(NonNull<bindings::dtrace_turn>);

// SAFETY: A lock is for all threads.
unsafe impl Send for Turn {}
// SAFETY: As above.
unsafe impl Sync for Turn {}

impl Turn {
    /// One of a user, which nobody has. `ENOMEM`.
    pub fn new() -> Result<Self> {
        Self::made(false)
    }

    /// One of a file, which is taken before that of a user. `ENOMEM`.
    pub fn of_file() -> Result<Self> {
        Self::made(true)
    }

    fn made(of_file: bool) -> Result<Self> {
        // SAFETY: It can be called anywhere that sleeps.
        let turn = unsafe { bindings::dtrace_turn_make(of_file) };
        NonNull::new(turn).map(Self).ok_or(ENOMEM)
    }

    /// Waits for it. It may sleep. `EINTR`: the task is killed.
    pub fn take(&self) -> Result<Taken<'_>> {
        // SAFETY: It is there as long as `self`.
        to_result(unsafe { bindings::dtrace_turn_take(self.0.as_ptr()) })?;
        Ok(Taken(self, NotThreadSafe))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // SAFETY: Whoever has it borrows it.
        unsafe { bindings::dtrace_turn_free(self.0.as_ptr()) };
    }
}

/// The lock, taken. Dropping it gives it to the next.
pub struct Taken<'a>(&'a Turn, NotThreadSafe);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // SAFETY: The current task has taken it, as the guard is no other's.
        unsafe { bindings::dtrace_turn_give(self.0 .0.as_ptr()) };
    }
}
