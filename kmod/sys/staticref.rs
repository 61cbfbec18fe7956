// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A reference to something that stays as long as the module, given while somebody may be looking.

use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A reference, once there is one.
pub struct StaticRef<T: Sync + 'static> {
    to: AtomicPtr<T>,
    _to: PhantomData<&'static T>,
}

impl<T: Sync> StaticRef<T> {
    /// None yet.
    pub const fn none() -> Self {
        Self {
            to: AtomicPtr::new(null_mut()),
            _to: PhantomData,
        }
    }

    /// The reference. Whoever has it also sees what was written before it was given.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: It is null or was made of a reference that is valid for ever.
        unsafe { self.to.load(Ordering::Acquire).as_ref() }
    }

    /// Gives it, or takes it back.
    pub fn set(&self, to: Option<&'static T>) {
        let to = to.map_or(null_mut(), |to| core::ptr::from_ref(to).cast_mut());
        self.to.store(to, Ordering::Release);
    }
}
