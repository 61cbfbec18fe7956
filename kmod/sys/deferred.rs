// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Work that runs in process context soon, or a while later, for code that must not wait.
//!
//! The `kernel` crate's work items cannot be cancelled and waited for, but the module's text must
//! not go while work of its own is pending.

use crate::bindings;
use core::marker::PhantomPinned;
use kernel::prelude::*;
use kernel::types::Opaque;

/// The work.
pub trait Chore: Send + Sync {
    /// Does the work once, for all requests until now. May sleep.
    fn run(&self);
}

/// A work item. Dropping it cancels the work and waits until it is not running. May sleep.
///
/// # Invariants
///
/// `work` is initialized.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Deferred<T: Chore> {
    // Must be first: its address is that of the whole; see `run`.
    #[pin]
    work: Opaque<bindings::work_struct>,
    chore: T,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The workqueue code synchronizes accesses to `work`; the chore is `Send`.
unsafe impl<T: Chore> Send for Deferred<T> {}
// SAFETY: As above; the chore is `Sync`.
unsafe impl<T: Chore> Sync for Deferred<T> {}

impl<T: Chore> Deferred<T> {
    /// Returns a work item that is not queued.
    pub fn new(chore: T) -> impl PinInit<Self> {
        pin_init!(Self {
            chore,
            _pin: PhantomPinned,
            work <- Opaque::ffi_init(move |slot: *mut bindings::work_struct| {
                // SAFETY: `slot` is valid for writes and pinned, so the work item keeps its
                // address.
                unsafe { bindings::dtrace_work_init(slot, Some(Self::run)) };
            }),
        })
    }

    /// Queues the work, unless it is queued already. Does not wait. Takes locks of the workqueue
    /// code, so not for probe context.
    pub fn ask(&self) {
        // SAFETY: The work is initialized, and `drop` waits for it, so that the worker never sees
        // freed memory.
        unsafe { bindings::dtrace_work_queue(self.work.get()) };
    }

    /// Queues the work for a task on `cpu`. If that CPU is offline, another CPU does it. Does not
    /// wait. Takes locks of the workqueue code, so not for probe context.
    pub fn ask_on(&self, cpu: u32) {
        // SAFETY: As in `ask`; the helper checks the number.
        unsafe { bindings::dtrace_work_queue_on(self.work.get(), cpu) };
    }

    /// Returns the chore.
    pub fn chore(&self) -> &T {
        &self.chore
    }

    /// Cancels the work if it is queued, and waits until it is not running. The caller must make
    /// sure that it is not queued again. May sleep.
    pub fn cancel(&self) {
        // SAFETY: The work is initialized.
        unsafe { bindings::cancel_work_sync(self.work.get()) };
    }
    /// # Safety
    ///
    /// `work` must be the work of a live `Deferred<T>`.
    unsafe extern "C" fn run(work: *mut bindings::work_struct) {
        // SAFETY: By the caller's promise, and because the work is the first field. The value stays
        // alive: `drop` waits until this has returned.
        unsafe { &*work.cast::<Self>() }.chore.run();
    }
}

#[pinned_drop]
impl<T: Chore> PinnedDrop for Deferred<T> {
    fn drop(self: Pin<&mut Self>) {
        // `ask` needs a reference, so the work cannot be queued any more.
        self.cancel();
    }
}

/// A work item that runs a while after it was requested. Dropping it cancels the work and waits
/// until it is not running. May sleep.
///
/// # Invariants
///
/// `work` is initialized.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Delayed<T: Chore> {
    // Must be first: its address is that of the whole; see `run`.
    #[pin]
    work: Opaque<bindings::delayed_work>,
    chore: T,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The workqueue code synchronizes accesses to `work`; the chore is `Send`.
unsafe impl<T: Chore> Send for Delayed<T> {}
// SAFETY: As above; the chore is `Sync`.
unsafe impl<T: Chore> Sync for Delayed<T> {}

impl<T: Chore> Delayed<T> {
    /// Returns a work item that is not queued.
    pub fn new(chore: T) -> impl PinInit<Self> {
        pin_init!(Self {
            chore,
            _pin: PhantomPinned,
            work <- Opaque::ffi_init(move |slot: *mut bindings::delayed_work| {
                // SAFETY: `slot` is valid for writes and pinned, so the work item keeps its
                // address.
                unsafe { bindings::dtrace_periodic_init(slot, Some(Self::run)) };
            }),
        })
    }

    /// Queues the work to run in `ns` nanoseconds. If it is queued already, its time changes to
    /// that. Does not wait.
    pub fn ask_in(&self, ns: u64) {
        // SAFETY: The work is initialized, and `drop` waits for it.
        unsafe { bindings::dtrace_work_put_off(self.work.get(), ns) };
    }

    /// # Safety
    ///
    /// `work` must be the work of a live `Delayed<T>`.
    unsafe extern "C" fn run(work: *mut bindings::work_struct) {
        // SAFETY: By the caller's promise. A `delayed_work` begins with its `work_struct`, and
        // `Self` begins with the `delayed_work`. The value stays alive: `drop` waits until this has
        // returned.
        unsafe { &*work.cast::<Self>() }.chore.run();
    }
}

#[pinned_drop]
impl<T: Chore> PinnedDrop for Delayed<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The work is initialized. `ask_in` needs a reference, so it cannot be queued any
        // more.
        unsafe { bindings::cancel_delayed_work_sync(self.work.get()) };
    }
}
