// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tasks that wait on their way to user mode (INV-25).
//!
//! Code that stops a task where the task may not wait, at a breakpoint or in a tracepoint, queues a
//! [`Pause`]. The task runs it when it is about to return to its program, and waits there until the
//! pause is [ended](Pause::end), its time has passed, or the task is killed.
//!
//! A queued pause is a future call of the module's text. [`Calls`] waits for such calls when the
//! module goes; nothing can be queued any more by then.

use super::births::Child;
use super::rculist;
use super::symbols::{self, Address};
use crate::bindings;
use core::ptr::NonNull;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::Arc;
use kernel::types::Opaque;

/// Callbacks of a wait. They run in the task that waits, and may sleep.
pub trait Waits: Sized + Send + Sync + 'static {
    /// Called before the task waits.
    fn begins(pause: &Arc<Pause<Self>>);

    /// Called after that, or without `begins` if the wait is taken back because the module goes.
    /// `late`: the time has passed and nobody has ended the wait.
    fn ends(pause: &Arc<Pause<Self>>, late: bool);
}

/// A wait.
#[repr(C)]
pub struct Pause<W> {
    // Must be first: a pointer to it is a pointer to the whole.
    raw: Opaque<bindings::dtrace_pause>,
    /// What the wait is about.
    pub of: W,
}

// SAFETY: `raw` is written before the value is shared. After that only C functions use it, which
// any task may call.
unsafe impl<W: Send> Send for Pause<W> {}
// SAFETY: As above.
unsafe impl<W: Sync> Sync for Pause<W> {}

impl<W: Waits> Pause<W> {
    /// Makes the current task wait for at most `ms` ms. Does not sleep. Fails with `ENOMEM`, or
    /// with `ESRCH` if the task is exiting.
    pub fn current(of: W, ms: u32) -> Result {
        // SAFETY: No preconditions.
        Self::queue(unsafe { bindings::dtrace_current() }, of, ms)
    }

    /// Makes the child of the current task, which a tracepoint reports, wait for at most `ms` ms.
    /// Does not sleep. Errors as [`Self::current`].
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
        // SAFETY: The task is alive: it is the current one, or a new one that has not run yet and
        // is not woken before the tracepoint returns. The pause stays alive until `end`, because
        // the reference is leaked here.
        let queued = unsafe { bindings::dtrace_pause_queue(raw.cast_mut().cast(), task) };
        to_result(queued).inspect_err(|_| {
            // SAFETY: The pause was not queued, so C does not have it; this takes the leaked
            // reference back.
            drop(unsafe { Arc::from_raw(raw) });
        })
    }

    /// Ends the wait, which must have been queued. In any context that may wake tasks.
    pub fn end(&self) {
        // SAFETY: The completion was initialized when the pause was queued. Others get references
        // to a pause only after that.
        unsafe { bindings::dtrace_pause_over(self.raw.get()) };
    }
}

/// # Safety
///
/// Called by `pause.c`, at most once and before [`end`], with the first field of a `Pause<W>` that
/// `queue` has given it.
unsafe extern "C" fn begin<W: Waits>(pause: *mut bindings::dtrace_pause) {
    // SAFETY: The pointer came from `Arc::into_raw()` in `queue`. The reference stays C's, so it is
    // not dropped here.
    let this = unsafe { core::mem::ManuallyDrop::new(Arc::from_raw(pause.cast::<Pause<W>>())) };
    W::begins(&this);
}

/// # Safety
///
/// Called by `pause.c`, once, with the first field of a `Pause<W>` that `queue` has given it, which
/// it does not use afterwards.
unsafe extern "C" fn end<W: Waits>(pause: *mut bindings::dtrace_pause, late: bool) {
    // SAFETY: The pointer came from `Arc::into_raw()` in `queue`, and this takes that reference
    // over.
    let this = unsafe { Arc::from_raw(pause.cast::<Pause<W>>()) };
    W::ends(&this, late);
}

/// A process, whatever its number in the namespaces.
pub struct Pid(NonNull<bindings::pid>);

// SAFETY: The structure is reference-counted, and any task may drop the reference.
unsafe impl Send for Pid {}
// SAFETY: It is only read through shared references.
unsafe impl Sync for Pid {}

impl Pid {
    /// Returns that of the current task; `None` if the task has left all lists. Does not sleep.
    pub fn current() -> Option<Self> {
        // SAFETY: The helper needs a task that stays alive; the current one does.
        NonNull::new(unsafe { bindings::dtrace_process_of(bindings::dtrace_current()) }).map(Self)
    }

    /// Returns that of a task which has not run yet. Does not sleep.
    pub(super) fn of_child(child: &Child<'_>) -> Option<Self> {
        // SAFETY: The task is alive while a `Child` of it exists.
        NonNull::new(unsafe { bindings::dtrace_process_of(child.as_ptr()) }).map(Self)
    }

    /// Takes over a reference.
    ///
    /// # Safety
    ///
    /// `raw` must be null, or come with a reference that the caller gives up.
    pub(super) unsafe fn from_raw(raw: *mut bindings::pid) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    /// Returns the pointer for C functions.
    pub(super) fn as_ptr(&self) -> *mut bindings::pid {
        self.0.as_ptr()
    }

    /// Returns the process that the current process knows by this number.
    pub fn find(number: i32) -> Option<Self> {
        // SAFETY: No preconditions.
        NonNull::new(unsafe { bindings::dtrace_process_find(number) }).map(Self)
    }

    /// Whether it is the process of the current task. Does not sleep.
    pub fn is_current(&self) -> bool {
        // SAFETY: `self` holds a reference.
        unsafe { bindings::dtrace_process_is_current(self.0.as_ptr()) }
    }

    /// Returns its number in the first namespace.
    pub fn in_records(&self) -> i32 {
        // SAFETY: `self` holds a reference.
        unsafe { bindings::dtrace_process_first_number(self.0.as_ptr()) }
    }

    /// Returns its number in the namespace of the current process, if it is visible there.
    pub fn number(&self) -> Option<i32> {
        // SAFETY: `self` holds a reference.
        let number = unsafe { bindings::dtrace_process_number(self.0.as_ptr()) };
        (number > 0).then_some(number)
    }
}

impl Drop for Pid {
    fn drop(&mut self) {
        // SAFETY: `self` holds a reference, which is dropped once.
        unsafe { bindings::dtrace_process_put(self.0.as_ptr()) };
    }
}

/// Calls that are queued. Dropping the value takes back those that have not begun, and waits for
/// the others. May sleep.
pub struct Calls(());

impl Calls {
    /// Looks up what taking back needs.
    pub fn new() -> Result<Self> {
        let cancel = symbols::find(c"task_work_cancel")?.map_or(0, Address::get);
        // SAFETY: The argument is the address of `task_work_cancel()` or 0. Nothing is taken back
        // while it is set.
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
