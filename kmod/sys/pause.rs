// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tasks that wait on their way to user mode.
//!
//! Who stops a task where it may not wait, at a breakpoint or in a tracepoint, queues a [`Pause`]: the task calls it when it is about
//! to go back to its program, and waits there until it is [over](Pause::end), for as long as it was told at most, or until it is killed.
//!
//! Waits that are queued are calls of the module's text to come. [`Calls`] waits for them when the module goes; nobody can queue
//! any by then.

use super::births::Child;
use super::rculist;
use super::symbols::{self, Address};
use crate::bindings;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// What is done by a task that waits. It may sleep.
pub trait Waits: Sized + Send + Sync + 'static {
    /// Before it waits.
    fn begins(pause: &Arc<Pause<Self>>);

    /// After that. `late`: nobody has ended the wait.
    fn ends(pause: &Arc<Pause<Self>>, late: bool);
}

/// A wait.
#[repr(C)]
pub struct Pause<W> {
    // First, so that a pointer to it is a pointer to the whole.
    raw: Opaque<bindings::dtrace_pause>,
    /// What it is about.
    pub of: W,
}

// SAFETY: The structure is written before it is shared; after that it is used by functions that may be called by anybody.
unsafe impl<W: Send> Send for Pause<W> {}
// SAFETY: As above.
unsafe impl<W: Sync> Sync for Pause<W> {}

impl<W: Waits> Pause<W> {
    /// Has the current task wait, for so many ms. Does not sleep.
    pub fn current(of: W, ms: u32) -> Result {
        // SAFETY: No preconditions.
        Self::queue(unsafe { bindings::dtrace_current() }, of, ms)
    }

    /// Has the task wait that the current one has just made, by what a tracepoint says of it. Does not sleep.
    pub fn child(child: &Child<'_>, of: W, ms: u32) -> Result {
        Self::queue(child.as_ptr(), of, ms)
    }

    fn queue(task: *mut bindings::task_struct, of: W, ms: u32) -> Result {
        let raw = bindings::dtrace_pause {
            begin: Some(begin::<W>),
            end: Some(end::<W>),
            ms,
            ..Default::default()
        };
        let this = Self {
            raw: Opaque::new(raw),
            of,
        };
        let raw = Arc::into_raw(Arc::new(this, GFP_ATOMIC)?);
        // SAFETY: The task is alive: it is current, or about to be woken for the first time. The pause is, until `end`.
        let queued = unsafe { bindings::dtrace_pause_queue(raw.cast_mut().cast(), task) };
        to_result(queued).inspect_err(|_| {
            // SAFETY: It is nobody else's.
            drop(unsafe { Arc::from_raw(raw) });
        })
    }

    /// Ends the wait, which has begun.
    pub fn end(&self) {
        // SAFETY: It was made whole when it was queued.
        unsafe { bindings::dtrace_pause_over(self.raw.get()) };
    }
}

/// # Safety
///
/// Called by `pause.c` with the first field of a `Pause<W>` that `queue` has given it.
unsafe extern "C" fn begin<W: Waits>(pause: *mut bindings::dtrace_pause) {
    // SAFETY: By the caller's promise; the count stays what it is.
    let this = unsafe { core::mem::ManuallyDrop::new(Arc::from_raw(pause.cast::<Pause<W>>())) };
    W::begins(&this);
}

/// # Safety
///
/// As above, once.
unsafe extern "C" fn end<W: Waits>(pause: *mut bindings::dtrace_pause, late: bool) {
    // SAFETY: By the caller's promise.
    let this = unsafe { Arc::from_raw(pause.cast::<Pause<W>>()) };
    W::ends(&this, late);
}

/// A process, whatever number it has for whom.
pub struct Pid(NonNull<bindings::pid>);

// SAFETY: It is counted, and the count may be dropped by anybody.
unsafe impl Send for Pid {}
// SAFETY: It is only asked for its number.
unsafe impl Sync for Pid {}

impl Pid {
    /// That of the current task. Does not sleep.
    pub fn current() -> Option<Self> {
        // SAFETY: The task is current.
        NonNull::new(unsafe { bindings::dtrace_process_of(bindings::dtrace_current()) }).map(Self)
    }

    /// That of a task which has not run yet. Does not sleep.
    pub(super) fn of_child(child: &Child<'_>) -> Option<Self> {
        // SAFETY: The task lives while it is passed.
        NonNull::new(unsafe { bindings::dtrace_process_of(child.as_ptr()) }).map(Self)
    }

    /// One that was counted for us.
    ///
    /// # Safety
    ///
    /// It was, or is null.
    pub(super) unsafe fn from_raw(raw: *mut bindings::pid) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    /// What C knows it by.
    pub(super) fn as_ptr(&self) -> *mut bindings::pid {
        self.0.as_ptr()
    }

    /// That which the current process knows by this number.
    pub fn find(number: i32) -> Option<Self> {
        // SAFETY: No preconditions.
        NonNull::new(unsafe { bindings::dtrace_process_find(number) }).map(Self)
    }

    /// Whether it is that of the current task.
    pub fn is_current(&self) -> bool {
        // SAFETY: It is counted.
        unsafe { bindings::dtrace_process_is_current(self.0.as_ptr()) }
    }

    /// Its number in the first namespace.
    pub fn in_records(&self) -> i32 {
        // SAFETY: It is counted.
        unsafe { bindings::dtrace_process_first_number(self.0.as_ptr()) }
    }

    /// What the current process calls it by, if it can see it.
    pub fn number(&self) -> Option<i32> {
        // SAFETY: It is counted.
        let number = unsafe { bindings::dtrace_process_number(self.0.as_ptr()) };
        (number > 0).then_some(number)
    }
}

impl Drop for Pid {
    fn drop(&mut self) {
        // SAFETY: It was counted for us.
        unsafe { bindings::dtrace_process_put(self.0.as_ptr()) };
    }
}

/// The calls that are to come. Dropping it takes back what has not begun, and waits for the others.
pub struct Calls(());

impl Calls {
    /// None yet.
    pub fn new() -> Result<Self> {
        let cancel = symbols::find(c"task_work_cancel")?.map_or(0, Address::get);
        // SAFETY: It is the function's address, or 0. Nothing is waited for yet.
        unsafe { bindings::dtrace_calls_cancel_by(cancel) };
        Ok(Self(()))
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        // SAFETY: No preconditions; may sleep.
        if unsafe { bindings::dtrace_pauses_wait() } {
            rculist::synchronize_tasks();
        }
    }
}
