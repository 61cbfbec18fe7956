// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `proc`: creation and end of processes and threads, execution of programs, and
//! signals.
//!
//! A task of Linux is a thread; the first thread of a process also stands for the process. So
//! `create`, `start` and `exit` fire for processes, and `lwp-create`, `lwp-start` and `lwp-exit`
//! for every thread, including the first, in the documented order. Kernel threads are not processes
//! and fire none of these.
//!
//! Specific to Linux: `signal-handle` fires for every signal that is delivered, with 0 as the
//! handler if the default action is taken. It also fires for each thread of a process that a signal
//! ends, with that signal. `signal-clear` fires for signals that `sigtimedwait(2)` and similar
//! calls take. `fault` fires for faults that cause a signal, so it is never `FLTPAGE`, `FLTSTACK`
//! or `FLTCPCOVF`. The argument of `exec-failure` is a positive errno.

use super::event::{register as register_events, Arg, Definition, Event, Passage, Source};
use crate::framework::{Framework, Registration};
use crate::sys::places::task::{self, End, Fate};
use kernel::prelude::*;
use kernel::sync::Arc;

const CREATE: usize = 0;
const LWP_CREATE: usize = 1;
const START: usize = 2;
const LWP_START: usize = 3;
const LWP_EXIT: usize = 4;
const EXIT: usize = 5;
const EXEC: usize = 6;
const EXEC_FAILURE: usize = 7;
const EXEC_SUCCESS: usize = 8;
const SIGNAL_SEND: usize = 9;
const SIGNAL_DISCARD: usize = 10;
const SIGNAL_HANDLE: usize = 11;
const SIGNAL_CLEAR: usize = 12;
const FAULT: usize = 13;

const INT: Arg = Arg::plain("int", 0);
const SIGNALLED: [Arg; 3] = [Arg::thread(0), Arg::process(0), Arg::plain("int", 1)];
const SIGINFO: Arg = Arg::plain("siginfo_t *", 1);

/// In the order of the numbers above.
static PROBES: [Event; 14] = [
    Event::new("create", &[Arg::process(0)]),
    Event::new("lwp-create", &[Arg::thread(0), Arg::process(0)]),
    Event::new("start", &[]),
    Event::new("lwp-start", &[]),
    Event::new("lwp-exit", &[]),
    Event::new("exit", &[INT]),
    Event::new("exec", &[Arg::plain("string", 0)]),
    Event::new("exec-failure", &[INT]),
    Event::new("exec-success", &[]),
    Event::new("signal-send", &SIGNALLED),
    Event::new("signal-discard", &SIGNALLED),
    Event::new(
        "signal-handle",
        &[INT, SIGINFO, Arg::plain("__sighandler_t", 2)],
    ),
    Event::new("signal-clear", &[INT]),
    Event::new("fault", &[INT, SIGINFO]),
];

static SOURCES: [Source; 10] = [
    Source::new(task::CREATED, &[CREATE, LWP_CREATE], created),
    Source::new(task::STARTED, &[START, LWP_START], started),
    Source::new(task::ENDED, &[LWP_EXIT, EXIT], ended),
    Source::new(task::EXEC, &[EXEC], exec),
    Source::new(task::EXEC_RETURNED, &[EXEC_FAILURE], exec_returned),
    Source::new(task::HELPER_EXEC_RETURNED, &[EXEC_FAILURE], exec_returned),
    Source::new(task::EXECUTED, &[EXEC_SUCCESS], executed),
    Source::new(
        task::SIGNALLED,
        &[SIGNAL_SEND, SIGNAL_DISCARD, FAULT],
        signalled,
    ),
    Source::new(task::DELIVERED, &[SIGNAL_HANDLE], delivered),
    Source::new(task::WAITED, &[SIGNAL_CLEAR], waited),
];

static PROC: Definition = Definition {
    name: "proc",
    probes: &PROBES,
    sources: &SOURCES,
    begin: || {},
};

/// Registers the provider and creates its probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    register_events(framework, &PROC)
}

fn created(passage: &Passage<'_>) {
    if let Some(task) = task::created(passage.call) {
        passage.fire(LWP_CREATE, &[task.addr()]);
        if task.leads() {
            passage.fire(CREATE, &[task.addr()]);
        }
    }
}

fn started(passage: &Passage<'_>) {
    if let Some(task) = task::started(passage.call) {
        if task.leads() {
            passage.fire(START, &[]);
        }
        passage.fire(LWP_START, &[]);
    }
}

fn ended(passage: &Passage<'_>) {
    let Some(end) = task::ended(passage.call) else {
        return;
    };
    passage.fire(LWP_EXIT, &[]);
    if let End::Process(reason) = end {
        passage.fire(EXIT, &[reason as u64]);
    }
}

fn exec(passage: &Passage<'_>) {
    passage.fire(EXEC, &[task::exec(passage.call)]);
}

fn exec_returned(passage: &Passage<'_>) {
    if let Some(error) = task::exec_returned(passage.call) {
        passage.fire(EXEC_FAILURE, &[error as u64]);
    }
}

fn executed(passage: &Passage<'_>) {
    passage.fire(EXEC_SUCCESS, &[]);
}

fn signalled(passage: &Passage<'_>) {
    let signal = task::signalled(passage.call);
    if let Some(fault) = signal.fault {
        passage.fire(FAULT, &[fault as u64, signal.info]);
    }
    let words = [signal.task.addr(), signal.number as u64];
    match signal.fate {
        Fate::Sent => passage.fire(SIGNAL_SEND, &words),
        Fate::Ignored => passage.fire(SIGNAL_DISCARD, &words),
        Fate::Failed => {}
    }
}

fn delivered(passage: &Passage<'_>) {
    let (number, info, handler) = task::delivered(passage.call);
    passage.fire(SIGNAL_HANDLE, &[number as u64, info, handler]);
}

fn waited(passage: &Passage<'_>) {
    if let Some(number) = task::waited(passage.call) {
        passage.fire(SIGNAL_CLEAR, &[number as u64]);
    }
}
