// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Locks that every consumer's calls need. A task that may decide about priorities
//! (`CAP_SYS_NICE`), and a kernel thread, does not wait for the scheduling of a user: the holder of
//! the lock inherits its priority meanwhile (INV-32, `helpers/common.c`).

use crate::bindings;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::types::NotThreadSafe;

/// What a lock protects.
#[derive(Clone, Copy)]
pub enum Of {
    /// What concerns more than one consumer (the framework's mutex).
    State,
    /// The accounts of users.
    Users,
    /// Which consumers want to know what programs register.
    Desk,
    /// Whether children are examined for what their parents have registered.
    Heirs,
    /// The listeners of an [`Audience`](super::audience::Audience).
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

/// Such a lock and the value that it protects.
pub struct Common<T> {
    raw: NonNull<bindings::dtrace_common>,
    data: UnsafeCell<T>,
}

// SAFETY: The lock and the value may move between tasks, because `T` is `Send`.
unsafe impl<T: Send> Send for Common<T> {}
// SAFETY: Only the task that holds the lock reaches the value, and `T` is `Send`.
unsafe impl<T: Send> Sync for Common<T> {}

impl<T> Common<T> {
    /// Returns an unlocked one. Fails with `ENOMEM`. May sleep.
    pub fn new(of: Of, data: T) -> Result<Self> {
        // SAFETY: Must be called where sleeping is allowed, which is the caller's part.
        let raw = unsafe { bindings::dtrace_common_make(of.raw()) };
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            data: UnsafeCell::new(data),
        })
    }

    /// Locks it. May sleep.
    pub fn lock(&self) -> CommonGuard<'_, T> {
        // SAFETY: The lock lives as long as `self`, and the caller may sleep. The call cannot fail,
        // because the wait is not killable.
        unsafe { bindings::dtrace_common_lock(self.raw.as_ptr(), false) };
        CommonGuard(self, NotThreadSafe)
    }

    /// Locks it. Fails with `EINTR` if the task is killed meanwhile. May sleep.
    pub fn lock_killable(&self) -> Result<CommonGuard<'_, T>> {
        // SAFETY: The lock lives as long as `self`, and the caller may sleep.
        to_result(unsafe { bindings::dtrace_common_lock(self.raw.as_ptr(), true) })?;
        Ok(CommonGuard(self, NotThreadSafe))
    }
}

impl<T> Drop for Common<T> {
    fn drop(&mut self) {
        // SAFETY: The lock must be neither held nor waited for. Both would borrow `self`.
        unsafe { bindings::dtrace_common_free(self.raw.as_ptr()) };
    }
}

/// The locked lock. Dropping it unlocks.
pub struct CommonGuard<'a, T>(&'a Common<T>, NotThreadSafe);

impl<T> Deref for CommonGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: The current task holds the lock, so no other task reaches the value.
        unsafe { &*self.0.data.get() }
    }
}

impl<T> DerefMut for CommonGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: As in `deref`; the guard is borrowed exclusively.
        unsafe { &mut *self.0.data.get() }
    }
}

impl<T> Drop for CommonGuard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: The current task has locked it: a guard exists only after `dtrace_common_lock()`
        // has succeeded, and cannot go to another task.
        unsafe { bindings::dtrace_common_unlock(self.0.raw.as_ptr()) };
    }
}
