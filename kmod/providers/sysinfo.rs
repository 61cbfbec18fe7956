// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `sysinfo`: the system's statistics of work done. Each statistic is a probe that
//! fires when it grows; `arg0` is the growth.
//!
//! Linux does not keep these counters, so there is no `arg1` that points to one. The probes are at
//! the places where the counters would be incremented. These probes are missing, because Linux has
//! no such event or does not report it: `bawrite`, `intrblk`, `lread`, `lwrite`, `procovf`, `trap`,
//! `ufsdirblk`, `ufsiget`, `ufsinopage`, `ufsipage`, `wait_ticks_io`. `bread`, `bwrite`, `phread`
//! and `phwrite` correspond to `io:::start`. `readch` and `writech` fire for calls that transferred
//! at least one byte.

use super::event::{register as register_events, Arg, Definition, Event, Passage, Source};
use crate::framework::{Framework, Registration};
use crate::sys::places::lock::{self, Mode, Wait};
use crate::sys::places::{sched, statistics, task};
use kernel::prelude::*;
use kernel::sync::Arc;

const IDLETHREAD: usize = 0;
const INV_SWTCH: usize = 1;
const MODLOAD: usize = 2;
const MODUNLOAD: usize = 3;
const MSG: usize = 4;
const MUTEX_ADENTERS: usize = 5;
const NAMEI: usize = 6;
const NTHREADS: usize = 7;
const PSWITCH: usize = 8;
const READCH: usize = 9;
const RW_RDFAILS: usize = 10;
const RW_WRFAILS: usize = 11;
const SEMA: usize = 12;
const SYSEXEC: usize = 13;
const SYSFORK: usize = 14;
const SYSREAD: usize = 15;
const SYSVFORK: usize = 16;
const SYSWRITE: usize = 17;
const WRITECH: usize = 18;
const XCALLS: usize = 19;

const GROWTH: [Arg; 1] = [Arg::plain("uint64_t", 0)];

/// In the order of the numbers above.
static PROBES: [Event; 20] = [
    Event::new("idlethread", &GROWTH),
    Event::new("inv_swtch", &GROWTH),
    Event::new("modload", &GROWTH),
    Event::new("modunload", &GROWTH),
    Event::new("msg", &GROWTH),
    Event::new("mutex_adenters", &GROWTH),
    Event::new("namei", &GROWTH),
    Event::new("nthreads", &GROWTH),
    Event::new("pswitch", &GROWTH),
    Event::new("readch", &GROWTH),
    Event::new("rw_rdfails", &GROWTH),
    Event::new("rw_wrfails", &GROWTH),
    Event::new("sema", &GROWTH),
    Event::new("sysexec", &GROWTH),
    Event::new("sysfork", &GROWTH),
    Event::new("sysread", &GROWTH),
    Event::new("sysvfork", &GROWTH),
    Event::new("syswrite", &GROWTH),
    Event::new("writech", &GROWTH),
    Event::new("xcalls", &GROWTH),
];

static SOURCES: [Source; 15] = [
    Source::new(sched::SWITCH, &[PSWITCH, INV_SWTCH, IDLETHREAD], switch),
    Source::new(task::CREATED, &[NTHREADS, SYSFORK, SYSVFORK], created),
    Source::new(task::EXEC, &[SYSEXEC], |p| p.fire(SYSEXEC, &[1])),
    Source::new(lock::WAIT, &[MUTEX_ADENTERS, RW_RDFAILS, RW_WRFAILS], waits),
    Source::new(statistics::MODULE_LOAD, &[MODLOAD], |p| {
        p.fire(MODLOAD, &[1])
    }),
    Source::new(statistics::MODULE_FREE, &[MODUNLOAD], |p| {
        p.fire(MODUNLOAD, &[1])
    }),
    Source::new(statistics::MESSAGE_SENT, &[MSG], |p| p.fire(MSG, &[1])),
    Source::new(statistics::MESSAGE_RECEIVED, &[MSG], |p| p.fire(MSG, &[1])),
    Source::new(statistics::SEMAPHORE, &[SEMA], |p| p.fire(SEMA, &[1])),
    Source::new(statistics::LOOKUP, &[NAMEI], |p| p.fire(NAMEI, &[1])),
    Source::new(statistics::READ, &[SYSREAD], |p| p.fire(SYSREAD, &[1])),
    Source::new(statistics::READ_DONE, &[READCH], |p| moved(p, READCH)),
    Source::new(statistics::WRITE, &[SYSWRITE], |p| p.fire(SYSWRITE, &[1])),
    Source::new(statistics::WRITE_DONE, &[WRITECH], |p| moved(p, WRITECH)),
    Source::new(statistics::CROSS_CALL, &[XCALLS], |p| p.fire(XCALLS, &[1])),
];

static SYSINFO: Definition = Definition {
    name: "sysinfo",
    probes: &PROBES,
    sources: &SOURCES,
    begin: || {},
};

/// Registers the provider and creates its probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    register_events(framework, &SYSINFO)
}

fn switch(passage: &Passage<'_>) {
    let (preempted, to_idle) = statistics::switch(passage.call);
    passage.fire(PSWITCH, &[1]);
    if preempted {
        passage.fire(INV_SWTCH, &[1]);
    }
    if to_idle {
        passage.fire(IDLETHREAD, &[1]);
    }
}

fn created(passage: &Passage<'_>) {
    let Some(task) = task::created(passage.call) else {
        return;
    };
    passage.fire(NTHREADS, &[1]);
    if task.leads() {
        let probe = if statistics::waits_for_child(passage.call) {
            SYSVFORK
        } else {
            SYSFORK
        };
        passage.fire(probe, &[1]);
    }
}

fn waits(passage: &Passage<'_>) {
    let (_, flags) = lock::waits(passage.call);
    match Wait::of(flags) {
        Some(Wait::MutexSpin) => passage.fire(MUTEX_ADENTERS, &[1]),
        Some(Wait::RwSpin(Mode::Reader) | Wait::RwBlock(Mode::Reader)) => {
            passage.fire(RW_RDFAILS, &[1]);
        }
        Some(Wait::RwSpin(Mode::Writer) | Wait::RwBlock(Mode::Writer)) => {
            passage.fire(RW_WRFAILS, &[1]);
        }
        _ => {}
    }
}

fn moved(passage: &Passage<'_>, probe: usize) {
    match statistics::moved(passage.call) {
        0 => {}
        bytes => passage.fire(probe, &[bytes]),
    }
}
