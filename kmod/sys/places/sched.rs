// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The scheduler.

use super::task::Task;
use super::{At, Call};
use crate::bindings;

/// This CPU is about to switch from the current task to another.
pub const SWITCH: At = At::Tracepoint("sched_switch");

/// Why a task leaves its CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It sleeps.
    Sleeps,
    /// It could go on running.
    Preempted,
    /// It is dead, or it is the CPU's idle task.
    Other,
}

/// A switch.
pub struct Switch {
    /// The next task.
    pub next: Task,
    /// Why the current task leaves.
    pub why: Why,
}

/// Returns the switch.
#[inline]
pub fn switch(call: &Call<'_>) -> Switch {
    let prev = call.word(1) as *const bindings::task_struct;
    let state = call.word(3) as u32;
    // SAFETY: The tracepoint's second argument is the current task, which is alive.
    let idle = unsafe { (*prev).pid } == 0;
    Switch {
        next: Task::new(call.word(2)),
        why: if idle || state & bindings::TASK_DEAD != 0 {
            Why::Other
        } else if call.flag(0) || state == 0 {
            Why::Preempted
        } else {
            Why::Sleeps
        },
    }
}

/// The current task has just got this CPU.
pub const SWITCHED: At = At::Entry(&[c"finish_task_switch", c"finish_task_switch.isra.0"]);

/// This CPU has chosen what to run.
pub const CHOSEN: At = At::Tracepoint("sched_exit_tp");

/// Whether it goes on with the task that it had.
#[inline]
pub fn remains(call: &Call<'_>) -> bool {
    !call.flag(0)
}

/// A task is about to be put into a run queue. Each scheduling class has a function for that.
pub const ENQUEUE: At = At::Entries(&[
    c"enqueue_task_fair",
    c"enqueue_task_rt",
    c"enqueue_task_dl",
    c"enqueue_task_stop",
    c"enqueue_task_scx",
]);

/// A task is about to be taken from a run queue.
pub const DEQUEUE: At = At::Entries(&[
    c"dequeue_task_fair",
    c"dequeue_task_rt",
    c"dequeue_task_dl",
    c"dequeue_task_stop",
    c"dequeue_task_scx",
]);

/// The scheduler's `ENQUEUE_HEAD`, which is defined in its private header.
const ENQUEUE_HEAD: u64 = 0x0001_0000;

/// Returns the task, the address of the run queue, and whether the task becomes the first in it.
#[inline]
pub fn queued(call: &Call<'_>) -> (Task, u64, bool) {
    let front = call.word(2) & ENQUEUE_HEAD != 0;
    (Task::new(call.word(1)), call.word(0), front)
}

/// A task is about to be woken.
pub const WAKING: At = At::Tracepoint("sched_waking");

/// Returns the task.
#[inline]
pub fn waking(call: &Call<'_>) -> Task {
    Task::new(call.word(0))
}

/// A CPU is requested to choose anew what it runs.
pub const RESCHED: At = At::Tracepoint("sched_set_need_resched_tp");

/// Returns the task that the CPU runs, if another CPU requests that.
#[inline]
pub fn resched(call: &Call<'_>) -> Option<Task> {
    // SAFETY: Must be called with preemption off; the tracepoint is passed with the run queue's
    // lock held.
    let here = unsafe { bindings::dtrace_this_cpu() };
    (call.int(1) != here).then(|| Task::new(call.word(0)))
}

/// The clock's tick on this CPU.
pub const TICK: At = At::Entry(&[c"sched_tick", c"scheduler_tick"]);

/// A task's nice value is about to change.
pub const NICE: At = At::Entry(&[c"set_user_nice"]);

/// A task's policy or priority is about to change, if that is allowed.
pub const POLICY: At = At::Entry(&[c"__sched_setscheduler"]);

/// A task is about to inherit a priority, or to give it back.
pub const INHERIT: At = At::Tracepoint("sched_pi_setprio");

/// A change of a task's priority.
pub struct Change {
    /// The task.
    pub task: Task,
    /// Its new priority; less is more urgent.
    pub new: i32,
}

#[inline]
fn change(
    call: &Call<'_>,
    new: impl FnOnce(*const bindings::task_struct) -> i32,
) -> Option<Change> {
    let task = Task::new(call.word(0));
    // SAFETY: The task is the first argument of the place, which keeps it alive.
    let old = unsafe { bindings::dtrace_prio(task.as_ptr()) };
    let new = new(task.as_ptr());
    (old != new).then_some(Change { task, new })
}

/// Returns the change by a nice value; `None` if there is no difference.
#[inline]
pub fn nice(call: &Call<'_>) -> Option<Change> {
    // SAFETY: `change` passes the place's task, which the place keeps alive.
    change(call, |task| unsafe {
        bindings::dtrace_prio_of_nice(task, call.word(1) as i64)
    })
}

/// Returns the change by a policy; `None` if there is no difference.
#[inline]
pub fn policy(call: &Call<'_>) -> Option<Change> {
    // SAFETY: `change` passes the place's task, which the place keeps alive. The second argument of
    // the function is a pointer to its caller's attributes, in kernel memory.
    change(call, |task| unsafe {
        bindings::dtrace_prio_of_attr(task, call.word(1) as *const _)
    })
}

/// Returns the change by inheritance; `None` if there is no difference.
#[inline]
pub fn inherit(call: &Call<'_>) -> Option<Change> {
    // SAFETY: `change` passes the place's task. The place keeps it alive, and so the second
    // argument, the task that lends its priority, which may be null.
    change(call, |task| unsafe {
        bindings::dtrace_prio_inherited(task, call.word(1) as *const _)
    })
}
