// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Locks that everybody's calls want. Who may decide about priorities, and the kernel, waits for no user's scheduling: the holder runs
//! at once meanwhile (`bindings/common.c`).

use crate::bindings;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::types::NotThreadSafe;

/// What is locked.
#[derive(Clone, Copy)]
pub enum Of {
    /// What concerns more than one consumer.
    State,
    /// Who pays.
    Users,
    /// Who wants to know what programs register.
    Desk,
    /// Whether children are looked at for what programs have registered.
    Heirs,
    /// Who listens to hooks.
    Audience,
}

impl Of {
    const fn raw(self) -> bindings::dtrace_common_of {
        match self {
            Self::State => bindings::dtrace_common_of_DTRACE_COMMON_STATE,
            Self::Users => bindings::dtrace_common_of_DTRACE_COMMON_USERS,
            Self::Desk => bindings::dtrace_common_of_DTRACE_COMMON_DESK,
            Self::Heirs => bindings::dtrace_common_of_DTRACE_COMMON_HEIRS,
            Self::Audience => bindings::dtrace_common_of_DTRACE_COMMON_AUDIENCE,
        }
    }
}

/// Such a lock, and what it is for.
pub struct Common<T> {
    raw: NonNull<bindings::dtrace_common>,
    data: UnsafeCell<T>,
}

// SAFETY: One task at a time has what is in it.
unsafe impl<T: Send> Send for Common<T> {}
// SAFETY: As above.
unsafe impl<T: Send> Sync for Common<T> {}

impl<T> Common<T> {
    /// One that nobody has. `ENOMEM`.
    pub fn new(of: Of, data: T) -> Result<Self> {
        // SAFETY: It can be called anywhere that sleeps.
        let raw = unsafe { bindings::dtrace_common_make(of.raw()) };
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            data: UnsafeCell::new(data),
        })
    }

    /// Waits for it. It may sleep.
    pub fn lock(&self) -> CommonGuard<'_, T> {
        // SAFETY: It is there as long as `self`. It cannot fail: the wait is not killable.
        unsafe { bindings::dtrace_common_lock(self.raw.as_ptr(), false) };
        CommonGuard(self, NotThreadSafe)
    }

    /// The same. `EINTR`: the task is killed.
    pub fn lock_killable(&self) -> Result<CommonGuard<'_, T>> {
        // SAFETY: It is there as long as `self`.
        to_result(unsafe { bindings::dtrace_common_lock(self.raw.as_ptr(), true) })?;
        Ok(CommonGuard(self, NotThreadSafe))
    }
}

impl<T> Drop for Common<T> {
    fn drop(&mut self) {
        // SAFETY: Whoever has it borrows it.
        unsafe { bindings::dtrace_common_free(self.raw.as_ptr()) };
    }
}

/// The lock, held. Dropping it gives it up.
pub struct CommonGuard<'a, T>(&'a Common<T>, NotThreadSafe);

impl<T> Deref for CommonGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: The current task holds the lock.
        unsafe { &*self.0.data.get() }
    }
}

impl<T> DerefMut for CommonGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: As above, and the guard is borrowed for nobody else.
        unsafe { &mut *self.0.data.get() }
    }
}

impl<T> Drop for CommonGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: The current task holds the lock, as the guard is no other's.
        unsafe { bindings::dtrace_common_unlock(self.0.raw.as_ptr()) };
    }
}
