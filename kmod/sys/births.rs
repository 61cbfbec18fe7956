// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Notification of processes that begin: copies of other processes, and processes that execute
//! another program.
//!
//! Two tracepoints, `sched_process_fork` and `sched_process_exec`, report them before the process
//! executes anything in user mode. Their callbacks must not sleep.

use super::audience::{Crowd, Source};
use super::tracepoint::{Attached, Hit};
use crate::bindings;
use core::ffi::CStr;
use core::marker::PhantomData;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Callbacks for processes that begin. They run in the task that executes a program, or in the
/// parent of the new task. None of them may sleep.
pub trait Births: Clone + Send + Sync + 'static {
    /// The current task has made another task, which may be a thread.
    fn made(&self, _child: &Child<'_>) {}

    /// The current task has made a process with an address space of its own.
    fn forked(&self, child: &Child<'_>);

    /// The current task has begun to execute another program.
    fn executed(&self);
}

/// A task that the current task has made and that has not run yet.
pub struct Child<'a> {
    task: NonNull<bindings::task_struct>,
    _told: PhantomData<&'a ()>,
}

impl Child<'_> {
    pub(super) fn as_ptr(&self) -> *mut bindings::task_struct {
        self.task.as_ptr()
    }
}

/// The callbacks, tagged with one of the two tracepoints.
enum Told<B> {
    Fork(B),
    Exec(B),
}

impl<B: Births> Hit for Told<B> {
    fn hit(&self, args: &[u64]) {
        match (self, args) {
            (Self::Fork(births), [_, child, ..]) => {
                let Some(task) = NonNull::new(*child as *mut bindings::task_struct) else {
                    return;
                };
                let _told = PhantomData;
                let child = Child { task, _told };
                births.made(&child);
                // SAFETY: The tracepoint's second argument is the new task, which is alive while
                // the tracepoint's probes are called.
                if unsafe { bindings::dtrace_has_new_memory(task.as_ptr()) } {
                    births.forked(&child);
                }
            }
            (Self::Exec(births), _) => births.executed(),
            _ => {}
        }
    }
}

/// The registration of callbacks. Dropping it waits until none of them is running.
pub struct Telling<B: Births> {
    _told: Attached<Told<B>>,
}

impl<B: Births> Telling<B> {
    /// Registers `births`. May sleep.
    pub fn begin(births: &B) -> Result<Self> {
        let told = [
            (&b"sched_process_fork"[..], Told::Fork(births.clone())),
            (b"sched_process_exec", Told::Exec(births.clone())),
        ];
        Ok(Self {
            _told: Attached::new(told, false)?,
        })
    }
}

impl<B: Births> Births for Arc<Crowd<B>> {
    fn made(&self, child: &Child<'_>) {
        self.each(|one| one.made(child));
    }

    fn forked(&self, child: &Child<'_>) {
        self.each(|one| one.forked(child));
    }

    fn executed(&self) {
        self.each(Births::executed);
    }
}

/// Calls each member of a crowd.
impl<B: Births> Source for Telling<Arc<Crowd<B>>> {
    type Ear = B;

    fn begin(crowd: &Arc<Crowd<B>>) -> Result<Self> {
        Self::begin(crowd)
    }
}

/// Whether the current task's name is `name`.
pub fn is_called(name: &CStr) -> bool {
    // SAFETY: The helper needs a string that ends with NUL, which a `CStr` does.
    unsafe { bindings::dtrace_is_called(name.as_char_ptr().cast()) }
}

/// Whether a tracer that uses `ptrace()` may stop the current task before the task returns to its
/// program.
pub fn may_be_stopped() -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_may_be_stopped() }
}

/// Whether the current task is traced by `ptrace()`.
pub fn is_ptraced() -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_is_ptraced() }
}
