// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Processes that begin: as copies of others, and as other programs.
//!
//! Two tracepoints tell of them, before the process executes anything in user mode. Their calls may not sleep.

use super::audience::{Crowd, Source};
use super::tracepoint::{Attached, Hit};
use crate::bindings;
use core::ffi::CStr;
use core::marker::PhantomData;
use core::ptr::NonNull;
use kernel::prelude::*;
use kernel::sync::Arc;

/// What is told of processes that begin, by the task that it is about, or whose child it is. Nothing of it may sleep.
pub trait Births: Clone + Send + Sync + 'static {
    /// The current task has made another one, a thread perhaps.
    fn made(&self, _child: &Child<'_>) {}

    /// The current task has made a process with a memory of its own.
    fn forked(&self, child: &Child<'_>);

    /// The current task has become another program.
    fn executed(&self);
}

/// A task that the current one has made and that has not run yet.
pub struct Child<'a> {
    task: NonNull<bindings::task_struct>,
    _told: PhantomData<&'a ()>,
}

impl Child<'_> {
    pub(super) fn as_ptr(&self) -> *mut bindings::task_struct {
        self.task.as_ptr()
    }
}

/// What is called at one of the two.
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
                // SAFETY: The tracepoint's second word is the new task, which lives while it is being passed.
                if unsafe { bindings::dtrace_has_new_memory(task.as_ptr()) } {
                    births.forked(&child);
                }
            }
            (Self::Exec(births), _) => births.executed(),
            _ => {}
        }
    }
}

/// Tells of processes that begin, until it is dropped, which waits until nobody is being told.
pub struct Telling<B: Births> {
    _told: Attached<Told<B>>,
}

impl<B: Births> Telling<B> {
    /// Tells `births`.
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

/// Each of a crowd is told.
impl<B: Births> Source for Telling<Arc<Crowd<B>>> {
    type Ear = B;

    fn begin(crowd: &Arc<Crowd<B>>) -> Result<Self> {
        Self::begin(crowd)
    }
}

/// Whether the current task has this name.
pub fn is_called(name: &CStr) -> bool {
    // SAFETY: It ends with NUL.
    unsafe { bindings::dtrace_is_called(name.as_char_ptr().cast()) }
}

/// Whether who traces the current task by `ptrace()` may stop it before it goes back to its program.
pub fn may_be_stopped() -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_may_be_stopped() }
}

/// Whether somebody traces the current task by `ptrace()`.
pub fn is_ptraced() -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_is_ptraced() }
}
