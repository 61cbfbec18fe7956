// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Something done again and again in process context, until it is dropped.
//!
//! The `kernel` crate's delayed work cannot be cancelled and waited for, but a module's text must not go while work of its
//! own is pending.

use crate::bindings;
use core::marker::PhantomPinned;
use kernel::prelude::*;
use kernel::types::Opaque;

/// What is done.
pub trait Task: Send {
    /// Does it once; returns after how many ns to do it again.
    fn run(&mut self) -> u64;
}

/// A running repetition. Dropping it waits until the task has ended for the last time.
///
/// # Invariants
///
/// `work` is initialized, and queued or running.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Periodic<T: Task> {
    // First, so that its address is that of the whole; see `run`.
    #[pin]
    work: Opaque<bindings::delayed_work>,
    task: Opaque<T>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The task is `Send`, and is touched by the queue's thread only.
unsafe impl<T: Task> Send for Periodic<T> {}
// SAFETY: There is nothing to do with a shared reference.
unsafe impl<T: Task> Sync for Periodic<T> {}

impl<T: Task> Periodic<T> {
    /// Runs `task` for the first time after `ns`.
    pub fn start(ns: u64, task: T) -> impl PinInit<Self> {
        pin_init!(Self {
            task: Opaque::new(task),
            _pin: PhantomPinned,
            work <- Opaque::ffi_init(move |slot: *mut bindings::delayed_work| {
                // SAFETY: `slot` is ours to write, and pinned; everything that `run` uses has been initialized before.
                unsafe {
                    bindings::dtrace_periodic_init(slot, Some(Self::run));
                    bindings::dtrace_periodic_queue(slot, ns);
                }
            }),
        })
    }

    /// # Safety
    ///
    /// `work` is the work of a live `Periodic<T>`.
    unsafe extern "C" fn run(work: *mut bindings::work_struct) {
        // `delayed_work` begins with its `work_struct`, and `Self` with that.
        let this = work.cast::<Self>();
        // SAFETY: The queue runs a work once at a time, and `drop` waits for it; nobody else touches the task.
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
        // SAFETY: The work is initialized; the call also stops a work that queues itself. Then nobody uses the task, which
        // `Opaque` does not drop by itself.
        unsafe {
            bindings::cancel_delayed_work_sync(self.work.get());
            core::ptr::drop_in_place(self.task.get());
        }
    }
}
