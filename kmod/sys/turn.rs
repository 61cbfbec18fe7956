// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A lock that makes the calls of one user take turns, or the calls at one file (INV-31). However
//! many calls wait for it, and for how long, the kernel does not take them for hung.

use crate::bindings;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::types::NotThreadSafe;

/// Such a lock.
pub struct Turn(NonNull<bindings::dtrace_turn>);

// SAFETY: Any task may use the lock, which synchronizes itself.
unsafe impl Send for Turn {}
// SAFETY: As above.
unsafe impl Sync for Turn {}

impl Turn {
    /// Returns an unlocked one for a user. Fails with `ENOMEM`. May sleep.
    pub fn new() -> Result<Self> {
        Self::made(false)
    }

    /// Returns an unlocked one for a file, which is taken before that of a user. Fails with
    /// `ENOMEM`. May sleep.
    pub fn of_file() -> Result<Self> {
        Self::made(true)
    }

    fn made(of_file: bool) -> Result<Self> {
        // SAFETY: Must be called where sleeping is allowed, which is the caller's part.
        let turn = unsafe { bindings::dtrace_turn_make(of_file) };
        NonNull::new(turn).map(Self).ok_or(ENOMEM)
    }

    /// Takes it, in the order in which calls have come. Fails with `EINTR` if the task is killed
    /// meanwhile. May sleep.
    pub fn take(&self) -> Result<Taken<'_>> {
        // SAFETY: The lock lives as long as `self`, and the caller may sleep.
        to_result(unsafe { bindings::dtrace_turn_take(self.0.as_ptr()) })?;
        Ok(Taken(self, NotThreadSafe))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // SAFETY: The lock must be neither taken nor waited for. Both would borrow `self`.
        unsafe { bindings::dtrace_turn_free(self.0.as_ptr()) };
    }
}

/// The taken lock. Dropping it passes it to the task that has waited longest.
pub struct Taken<'a>(&'a Turn, NotThreadSafe);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        // SAFETY: The current task has taken it: the value exists only after `dtrace_turn_take()`
        // has succeeded, and cannot go to another task.
        unsafe { bindings::dtrace_turn_give(self.0 .0.as_ptr()) };
    }
}
