// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Something done soon, or a while later, in process context, when somebody who may not wait asks for it.
//!
//! The `kernel` crate's work cannot be cancelled and waited for, but a module's text must not go while work of its own is
//! pending.

use crate::bindings;
use core::marker::PhantomPinned;
use kernel::prelude::*;
use kernel::types::Opaque;

/// What is done.
pub trait Chore: Send + Sync {
    /// Does it, once for all who have asked until now.
    fn run(&self);
}

/// A chore. Dropping it waits until it is not being done, and it never will be again.
///
/// # Invariants
///
/// `work` is initialized.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Deferred<T: Chore> {
    // First, so that its address is that of the whole; see `run`.
    #[pin]
    work: Opaque<bindings::work_struct>,
    chore: T,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The work is the queue's, which locks it; the chore is `Send`.
unsafe impl<T: Chore> Send for Deferred<T> {}
// SAFETY: As above; the chore is `Sync`.
unsafe impl<T: Chore> Sync for Deferred<T> {}

impl<T: Chore> Deferred<T> {
    /// A chore that nobody has asked for.
    pub fn new(chore: T) -> impl PinInit<Self> {
        pin_init!(Self {
            chore,
            _pin: PhantomPinned,
            work <- Opaque::ffi_init(move |slot: *mut bindings::work_struct| {
                // SAFETY: `slot` is ours to write, and pinned.
                unsafe { bindings::dtrace_work_init(slot, Some(Self::run)) };
            }),
        })
    }

    /// Asks for it. Does not wait.
    pub fn ask(&self) {
        // SAFETY: The work is initialized, and `drop` waits for it.
        unsafe { bindings::dtrace_work_queue(self.work.get()) };
    }

    /// Asks for it on a CPU, in a task like any other. On a CPU that has gone another does it. Does not wait.
    pub fn ask_on(&self, cpu: u32) {
        // SAFETY: As above; the helper looks at the number.
        unsafe { bindings::dtrace_work_queue_on(self.work.get(), cpu) };
    }

    /// What is done.
    pub fn chore(&self) -> &T {
        &self.chore
    }

    /// Waits until it is not being done, and takes back what was asked. The caller sees to it that nobody asks any more.
    pub fn cancel(&self) {
        // SAFETY: The work is initialized.
        unsafe { bindings::cancel_work_sync(self.work.get()) };
    }

    /// # Safety
    ///
    /// `work` is the work of a live `Deferred<T>`.
    unsafe extern "C" fn run(work: *mut bindings::work_struct) {
        // SAFETY: By the caller's promise; the work is the first field, and `drop` waits until this has returned.
        unsafe { &*work.cast::<Self>() }.chore.run();
    }
}

#[pinned_drop]
impl<T: Chore> PinnedDrop for Deferred<T> {
    fn drop(self: Pin<&mut Self>) {
        // Nobody asks any more, who would need a reference.
        self.cancel();
    }
}

/// A chore that is done a while after it was asked for. Dropping it waits until it is not being done, and it never will be again.
///
/// # Invariants
///
/// `work` is initialized.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Delayed<T: Chore> {
    // First, so that its address is that of the whole; see `run`.
    #[pin]
    work: Opaque<bindings::delayed_work>,
    chore: T,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The work is the queue's, which locks it; the chore is `Send`.
unsafe impl<T: Chore> Send for Delayed<T> {}
// SAFETY: As above; the chore is `Sync`.
unsafe impl<T: Chore> Sync for Delayed<T> {}

impl<T: Chore> Delayed<T> {
    /// A chore that nobody has asked for.
    pub fn new(chore: T) -> impl PinInit<Self> {
        pin_init!(Self {
            chore,
            _pin: PhantomPinned,
            work <- Opaque::ffi_init(move |slot: *mut bindings::delayed_work| {
                // SAFETY: `slot` is ours to write, and pinned.
                unsafe { bindings::dtrace_periodic_init(slot, Some(Self::run)) };
            }),
        })
    }

    /// Asks for it in so many ns, and not before, whenever it was to be done. Does not wait.
    pub fn ask_in(&self, ns: u64) {
        // SAFETY: The work is initialized, and `drop` waits for it.
        unsafe { bindings::dtrace_work_put_off(self.work.get(), ns) };
    }

    /// # Safety
    ///
    /// `work` is the work of a live `Delayed<T>`.
    unsafe extern "C" fn run(work: *mut bindings::work_struct) {
        // SAFETY: By the caller's promise; a `delayed_work` begins with its `work_struct`, and `Self` with that. `drop` waits until
        // this has returned.
        unsafe { &*work.cast::<Self>() }.chore.run();
    }
}

#[pinned_drop]
impl<T: Chore> PinnedDrop for Delayed<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The work is initialized; nobody asks any more, who would need a reference.
        unsafe { bindings::cancel_delayed_work_sync(self.work.get()) };
    }
}
