// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A task that is repeated in process context until it is dropped.
//!
//! The `kernel` crate's delayed work cannot be cancelled and waited for, but the module's text must
//! not go while work of its own is pending.

use crate::bindings;
use core::marker::PhantomPinned;
use kernel::prelude::*;
use kernel::types::Opaque;

/// What is repeated.
pub trait Task: Send {
    /// Runs once. Returns after how many ns to run again; one jiffy at least passes. May sleep.
    fn run(&mut self) -> u64;
}

/// A running repetition. Dropping it waits until the task has run for the last time. May sleep.
///
/// # Invariants
///
/// `work` is initialized, and queued or running.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Periodic<T: Task> {
    // Must be first: its address is that of the whole; see `run`.
    #[pin]
    work: Opaque<bindings::delayed_work>,
    task: Opaque<T>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The task is `Send`, and only the worker that runs the work accesses it.
unsafe impl<T: Task> Send for Periodic<T> {}
// SAFETY: A shared reference gives no access to anything.
unsafe impl<T: Task> Sync for Periodic<T> {}

impl<T: Task> Periodic<T> {
    /// Runs `task` for the first time after `ns` nanoseconds.
    pub fn start(ns: u64, task: T) -> impl PinInit<Self> {
        pin_init!(Self {
            task: Opaque::new(task),
            _pin: PhantomPinned,
            work <- Opaque::ffi_init(move |slot: *mut bindings::delayed_work| {
                // SAFETY: `slot` is valid for writes and pinned. `run` may be called as soon as the
                // work is queued; `task`, which it uses, is initialized before.
                unsafe {
                    bindings::dtrace_periodic_init(slot, Some(Self::run));
                    bindings::dtrace_periodic_queue(slot, ns);
                }
            }),
        })
    }

    /// # Safety
    ///
    /// `work` must be the work of a live `Periodic<T>`.
    unsafe extern "C" fn run(work: *mut bindings::work_struct) {
        // A `delayed_work` begins with its `work_struct`, and `Self` begins with the
        // `delayed_work`.
        let this = work.cast::<Self>();
        // SAFETY: By the caller's promise. A work item does not run twice at the same time, and
        // nothing else accesses the task, so the exclusive reference is sound. `drop` waits until
        // this has returned.
        unsafe {
            let task = &mut *(*this).task.get();
            let ns = task.run();
            bindings::dtrace_periodic_queue((*this).work.get(), ns);
        }
    }
}

#[pinned_drop]
impl<T: Task> PinnedDrop for Periodic<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The work is initialized; the call also stops a work item that queues itself
        // again. After it nothing uses the task, which was initialized and which `Opaque` does not
        // drop by itself.
        unsafe {
            bindings::cancel_delayed_work_sync(self.work.get());
            core::ptr::drop_in_place(self.task.get());
        }
    }
}
