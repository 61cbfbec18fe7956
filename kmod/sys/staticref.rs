// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A reference to something that stays as long as the module, which can be set while others read
//! it.

use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A `&'static T`, once it has been set.
pub struct StaticRef<T: Sync + 'static> {
    to: AtomicPtr<T>,
    _to: PhantomData<&'static T>,
}

impl<T: Sync> StaticRef<T> {
    /// Returns one that is not set.
    pub const fn none() -> Self {
        Self {
            to: AtomicPtr::new(null_mut()),
            _to: PhantomData,
        }
    }

    /// Returns the reference. The caller also sees what was written before it was set (acquire).
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: The pointer is null or was made from a `&'static T` by `set`.
        unsafe { self.to.load(Ordering::Acquire).as_ref() }
    }

    /// Sets the reference, or takes it back (release).
    pub fn set(&self, to: Option<&'static T>) {
        let to = to.map_or(null_mut(), |to| core::ptr::from_ref(to).cast_mut());
        self.to.store(to, Ordering::Release);
    }
}
