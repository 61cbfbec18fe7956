// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `sched`: which thread runs on which CPU, and why.
//!
//! A running task of Linux stays in its run queue. So `enqueue` and `dequeue` mean that a task
//! becomes runnable or ceases to be, moves between CPUs, or changes its priority; they do not mean
//! that it gets or leaves a CPU.
//!
//! `preempt` fires for every task that leaves its CPU although it could go on, because the kernel
//! does not report whether it called `sched_yield(2)`. `change-pri` by a system call fires when the
//! call requests the change, even if the request is then refused. A lower priority number is more
//! urgent, as everywhere in Linux. The `cpucaps-` and `schedctl-` probes are missing, because Linux
//! has no such mechanisms.

use super::event::{register as register_events, Arg, Definition, Event, Passage, Source};
use crate::framework::{Framework, Registration};
use crate::sys::places::sched::{self, Change, Why};
use crate::sys::places::task::Task;
use kernel::prelude::*;
use kernel::sync::Arc;

const ON_CPU: usize = 0;
const OFF_CPU: usize = 1;
const REMAIN_CPU: usize = 2;
const PREEMPT: usize = 3;
const SLEEP: usize = 4;
const WAKEUP: usize = 5;
const ENQUEUE: usize = 6;
const DEQUEUE: usize = 7;
const TICK: usize = 8;
const SURRENDER: usize = 9;
const CHANGE_PRI: usize = 10;

const BOTH: [Arg; 2] = [Arg::thread(0), Arg::process(0)];
const CPU: Arg = Arg::translated("struct rq *", "cpuinfo_t *", 1);

/// In the order of the numbers above.
static PROBES: [Event; 11] = [
    Event::new("on-cpu", &[]),
    Event::new("off-cpu", &BOTH),
    Event::new("remain-cpu", &[]),
    Event::new("preempt", &[]),
    Event::new("sleep", &[]),
    Event::new("wakeup", &BOTH),
    Event::new(
        "enqueue",
        &[Arg::thread(0), Arg::process(0), CPU, Arg::plain("int", 2)],
    ),
    Event::new("dequeue", &[Arg::thread(0), Arg::process(0), CPU]),
    Event::new("tick", &BOTH),
    Event::new("surrender", &BOTH),
    Event::new(
        "change-pri",
        &[Arg::thread(0), Arg::process(0), Arg::plain("int", 1)],
    ),
];

static SOURCES: [Source; 11] = [
    Source::new(sched::SWITCHED, &[ON_CPU], switched),
    Source::new(sched::SWITCH, &[OFF_CPU, PREEMPT, SLEEP], switch),
    Source::new(sched::CHOSEN, &[REMAIN_CPU], chosen),
    Source::new(sched::WAKING, &[WAKEUP], waking),
    Source::new(sched::ENQUEUE, &[ENQUEUE], enqueued),
    Source::new(sched::DEQUEUE, &[DEQUEUE], dequeued),
    Source::new(sched::TICK, &[TICK], tick),
    Source::new(sched::RESCHED, &[SURRENDER], resched),
    Source::new(sched::NICE, &[CHANGE_PRI], nice),
    Source::new(sched::POLICY, &[CHANGE_PRI], policy),
    Source::new(sched::INHERIT, &[CHANGE_PRI], inherit),
];

static SCHED: Definition = Definition {
    name: "sched",
    probes: &PROBES,
    sources: &SOURCES,
    begin: || {},
};

/// Registers the provider and creates its probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    register_events(framework, &SCHED)
}

fn switched(passage: &Passage<'_>) {
    passage.fire(ON_CPU, &[]);
}

fn switch(passage: &Passage<'_>) {
    let switch = sched::switch(passage.call);
    match switch.why {
        Why::Sleeps => passage.fire(SLEEP, &[]),
        Why::Preempted => passage.fire(PREEMPT, &[]),
        Why::Other => {}
    }
    passage.fire(OFF_CPU, &[switch.next.addr()]);
}

fn chosen(passage: &Passage<'_>) {
    if sched::remains(passage.call) {
        passage.fire(REMAIN_CPU, &[]);
    }
}

fn waking(passage: &Passage<'_>) {
    passage.fire(WAKEUP, &[sched::waking(passage.call).addr()]);
}

fn enqueued(passage: &Passage<'_>) {
    let (task, queue, front) = sched::queued(passage.call);
    passage.fire(ENQUEUE, &[task.addr(), queue, u64::from(front)]);
}

fn dequeued(passage: &Passage<'_>) {
    let (task, queue, _) = sched::queued(passage.call);
    passage.fire(DEQUEUE, &[task.addr(), queue]);
}

fn tick(passage: &Passage<'_>) {
    passage.fire(TICK, &[Task::current().addr()]);
}

fn resched(passage: &Passage<'_>) {
    if let Some(task) = sched::resched(passage.call) {
        passage.fire(SURRENDER, &[task.addr()]);
    }
}

fn nice(passage: &Passage<'_>) {
    change(passage, sched::nice(passage.call));
}

fn policy(passage: &Passage<'_>) {
    change(passage, sched::policy(passage.call));
}

fn inherit(passage: &Passage<'_>) {
    change(passage, sched::inherit(passage.call));
}

fn change(passage: &Passage<'_>, change: Option<Change>) {
    if let Some(change) = change {
        passage.fire(CHANGE_PRI, &[change.task.addr(), change.new as u64]);
    }
}
