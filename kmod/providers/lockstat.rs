// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The provider `lockstat`: acquisition and release of locks, and the time spent waiting for them.
//!
//! An adaptive lock is a mutex. What illumos calls a readers/writer lock is two kinds of lock in
//! Linux: the `rw_semaphore`, which sleeps, and the `rwlock_t`, which spins. The `rw-` probes are
//! for both; `rw-block` is for the first and `rw-spin` for the second. The mode is 0 for a writer
//! and 1 for a reader. `-spin` and `-block` fire when that kind of wait ends, with its duration in
//! nanoseconds. A wait for a mutex may spin and block in turn.
//!
//! The `rt-` probes are specific to Linux. They are for the `rt_mutex`, whose holder inherits the
//! priority of its waiters.
//!
//! `rw-upgrade` is missing because Linux has no such operation, and so is `thread-spin`. The
//! provider does not see locks that inlined code takes, counting semaphores, and what futexes do
//! with an `rt_mutex`.
//!
//! At most 4,096 waits are timed at once. Further waits fire no probe, and neither do waits that
//! began before the probe was enabled.

use super::event::{register as register_events, Arg, Definition, Event, Passage, Source};
use super::pending::Pending;
use crate::framework::{Framework, Registration};
use crate::sys::clock;
use crate::sys::places::lock::{self, Mode, Wait};
use kernel::prelude::*;
use kernel::sync::Arc;

const ADAPTIVE_ACQUIRE: usize = 0;
const ADAPTIVE_ACQUIRE_ERROR: usize = 1;
const ADAPTIVE_SPIN: usize = 2;
const ADAPTIVE_BLOCK: usize = 3;
const ADAPTIVE_RELEASE: usize = 4;
const SPIN_ACQUIRE: usize = 5;
const SPIN_SPIN: usize = 6;
const SPIN_RELEASE: usize = 7;
const RW_ACQUIRE: usize = 8;
const RW_SPIN: usize = 9;
const RW_BLOCK: usize = 10;
const RW_RELEASE: usize = 11;
const RW_DOWNGRADE: usize = 12;
const RT_ACQUIRE: usize = 13;
const RT_BLOCK: usize = 14;
const RT_RELEASE: usize = 15;

/// The probes that the contention tracepoints feed.
const WAITS: [usize; 5] = [ADAPTIVE_SPIN, ADAPTIVE_BLOCK, RW_SPIN, RW_BLOCK, RT_BLOCK];

const MUTEX: Arg = Arg::plain("struct mutex *", 0);
const RT_MUTEX: Arg = Arg::plain("struct rt_mutex *", 0);
const SPINLOCK: Arg = Arg::plain("spinlock_t *", 0);
/// The address of a lock of either kind.
const RWLOCK: Arg = Arg::plain("uintptr_t", 0);
const TIME: Arg = Arg::plain("uint64_t", 1);
const RW_WAIT: [Arg; 3] = [RWLOCK, TIME, Arg::plain("int", 2)];
const RW_MODE: [Arg; 2] = [RWLOCK, Arg::plain("int", 1)];

/// In the order of the numbers above.
static PROBES: [Event; 16] = [
    Event::new("adaptive-acquire", &[MUTEX]),
    Event::new("adaptive-acquire-error", &[MUTEX, Arg::plain("int", 1)]),
    Event::new("adaptive-spin", &[MUTEX, TIME]),
    Event::new("adaptive-block", &[MUTEX, TIME]),
    Event::new("adaptive-release", &[MUTEX]),
    Event::new("spin-acquire", &[SPINLOCK]),
    Event::new("spin-spin", &[SPINLOCK, TIME]),
    Event::new("spin-release", &[SPINLOCK]),
    Event::new("rw-acquire", &RW_MODE),
    Event::new("rw-spin", &RW_WAIT),
    Event::new("rw-block", &RW_WAIT),
    Event::new("rw-release", &RW_MODE),
    Event::new("rw-downgrade", &[RWLOCK]),
    Event::new("rt-acquire", &[RT_MUTEX]),
    Event::new("rt-block", &[RT_MUTEX, TIME]),
    Event::new("rt-release", &[RT_MUTEX]),
];

static SOURCES: [Source; 24] = [
    Source::new(lock::WAIT, &WAITS, waits),
    Source::new(lock::WAITED, &WAITS, waited),
    Source::new(lock::SPIN_WAIT, &[SPIN_SPIN], spin_waits),
    Source::new(lock::SPIN_WAITED, &[SPIN_SPIN], spin_waited),
    Source::new(lock::MUTEX_TAKEN, &[ADAPTIVE_ACQUIRE], mutex_taken),
    Source::new(
        lock::MUTEX_MAYBE,
        &[ADAPTIVE_ACQUIRE, ADAPTIVE_ACQUIRE_ERROR],
        mutex_maybe,
    ),
    Source::new(lock::MUTEX_TRIED, &[ADAPTIVE_ACQUIRE], mutex_tried),
    Source::new(lock::MUTEX_GIVEN, &[ADAPTIVE_RELEASE], mutex_given),
    Source::new(lock::SPIN_TAKEN, &[SPIN_ACQUIRE], spin_taken),
    Source::new(lock::SPIN_TRIED, &[SPIN_ACQUIRE], spin_tried),
    Source::new(lock::SPIN_GIVEN, &[SPIN_RELEASE], spin_given),
    Source::new(lock::READ_TAKEN, &[RW_ACQUIRE], |p| taken(p, Mode::Reader)),
    Source::new(lock::READ_MAYBE, &[RW_ACQUIRE], |p| maybe(p, Mode::Reader)),
    Source::new(lock::READ_TRIED, &[RW_ACQUIRE], |p| tried(p, Mode::Reader)),
    Source::new(lock::READ_GIVEN, &[RW_RELEASE], |p| given(p, Mode::Reader)),
    Source::new(lock::WRITE_TAKEN, &[RW_ACQUIRE], |p| taken(p, Mode::Writer)),
    Source::new(lock::WRITE_MAYBE, &[RW_ACQUIRE], |p| maybe(p, Mode::Writer)),
    Source::new(lock::WRITE_TRIED, &[RW_ACQUIRE], |p| tried(p, Mode::Writer)),
    Source::new(lock::WRITE_GIVEN, &[RW_RELEASE], |p| given(p, Mode::Writer)),
    Source::new(lock::DOWNGRADED, &[RW_DOWNGRADE], downgraded),
    Source::new(lock::RT_TAKEN, &[RT_ACQUIRE], rt_taken),
    Source::new(lock::RT_MAYBE, &[RT_ACQUIRE], rt_maybe),
    Source::new(lock::RT_TRIED, &[RT_ACQUIRE], rt_tried),
    Source::new(lock::RT_GIVEN, &[RT_RELEASE], rt_given),
];

static LOCKSTAT: Definition = Definition {
    name: "lockstat",
    probes: &PROBES,
    sources: &SOURCES,
    begin: || PENDING.clear(),
};

/// Registers the provider and creates its probes.
pub fn register(framework: &Arc<Framework>) -> Result<Registration> {
    register_events(framework, &LOCKSTAT)
}

/// Waits that have begun. The lowest byte of a value holds the tracepoint's flags, the rest the
/// time in nanoseconds.
static PENDING: Pending<4096> = Pending::new();

const FLAGS_BITS: u32 = 8;

fn waits(passage: &Passage<'_>) {
    let (lock, flags) = lock::waits(passage.call);
    // Waits for spinlocks are reported by the slow-path function, within which this tracepoint is
    // passed.
    if matches!(Wait::of(flags), Some(Wait::Spin)) {
        return;
    }
    let now = clock::monotonic();
    // A task that begins to wait in another way has ended its first wait.
    end_wait(passage, lock, now);
    let Some(probe) = Wait::of(flags).map(probe_of) else {
        return;
    };
    if !PENDING.begin(lock::wait_key(lock), now << FLAGS_BITS | flags) {
        passage.lose(probe);
    }
}

fn spin_waits(passage: &Passage<'_>) {
    let lock = lock::given(passage.call);
    let begun = clock::monotonic() << FLAGS_BITS | lock::SPIN;
    if !PENDING.begin(lock::wait_key(lock), begun) {
        passage.lose(SPIN_SPIN);
    }
}

fn spin_waited(passage: &Passage<'_>) {
    end_wait(passage, lock::taken(passage.call), clock::monotonic());
}

fn waited(passage: &Passage<'_>) {
    end_wait(passage, lock::waited(passage.call), clock::monotonic());
}

fn end_wait(passage: &Passage<'_>, lock: u64, now: u64) {
    let Some(begun) = PENDING.end(lock::wait_key(lock)) else {
        return;
    };
    // Only the lower 56 bits of the time were stored. They tell the difference of any two times that
    // are less than a year apart; a clock of another CPU may be a little behind.
    let flags = begun & ((1 << FLAGS_BITS) - 1);
    let time = (now << FLAGS_BITS).wrapping_sub(begun & !flags) as i64 >> FLAGS_BITS;
    let time = time.max(0) as u64;
    let Some(wait) = Wait::of(flags) else {
        return;
    };
    let probe = probe_of(wait);
    match wait {
        Wait::RwSpin(mode) | Wait::RwBlock(mode) => passage.fire(probe, &[lock, time, mode as u64]),
        _ => passage.fire(probe, &[lock, time]),
    }
}

/// The probe that fires when a wait ends.
fn probe_of(wait: Wait) -> usize {
    match wait {
        Wait::MutexSpin => ADAPTIVE_SPIN,
        Wait::MutexBlock => ADAPTIVE_BLOCK,
        Wait::Spin => SPIN_SPIN,
        Wait::RwSpin(_) => RW_SPIN,
        Wait::RwBlock(_) => RW_BLOCK,
        Wait::RtBlock => RT_BLOCK,
    }
}

fn mutex_taken(passage: &Passage<'_>) {
    passage.fire(ADAPTIVE_ACQUIRE, &[lock::taken(passage.call)]);
}

fn mutex_maybe(passage: &Passage<'_>) {
    match lock::maybe(passage.call) {
        (lock, 0) => passage.fire(ADAPTIVE_ACQUIRE, &[lock]),
        (lock, error) => passage.fire(ADAPTIVE_ACQUIRE_ERROR, &[lock, error as u64]),
    }
}

fn mutex_tried(passage: &Passage<'_>) {
    if let Some(lock) = lock::tried(passage.call) {
        passage.fire(ADAPTIVE_ACQUIRE, &[lock]);
    }
}

fn mutex_given(passage: &Passage<'_>) {
    passage.fire(ADAPTIVE_RELEASE, &[lock::given(passage.call)]);
}

fn spin_taken(passage: &Passage<'_>) {
    passage.fire(SPIN_ACQUIRE, &[lock::taken(passage.call)]);
}

fn spin_tried(passage: &Passage<'_>) {
    if let Some(lock) = lock::tried(passage.call) {
        passage.fire(SPIN_ACQUIRE, &[lock]);
    }
}

fn spin_given(passage: &Passage<'_>) {
    passage.fire(SPIN_RELEASE, &[lock::given(passage.call)]);
}

fn taken(passage: &Passage<'_>, mode: Mode) {
    passage.fire(RW_ACQUIRE, &[lock::taken(passage.call), mode as u64]);
}

fn maybe(passage: &Passage<'_>, mode: Mode) {
    if let (lock, 0) = lock::maybe(passage.call) {
        passage.fire(RW_ACQUIRE, &[lock, mode as u64]);
    }
}

fn tried(passage: &Passage<'_>, mode: Mode) {
    if let Some(lock) = lock::tried(passage.call) {
        passage.fire(RW_ACQUIRE, &[lock, mode as u64]);
    }
}

fn given(passage: &Passage<'_>, mode: Mode) {
    passage.fire(RW_RELEASE, &[lock::given(passage.call), mode as u64]);
}

fn downgraded(passage: &Passage<'_>) {
    passage.fire(RW_DOWNGRADE, &[lock::given(passage.call)]);
}

fn rt_taken(passage: &Passage<'_>) {
    passage.fire(RT_ACQUIRE, &[lock::taken(passage.call)]);
}

fn rt_maybe(passage: &Passage<'_>) {
    if let (lock, 0) = lock::maybe(passage.call) {
        passage.fire(RT_ACQUIRE, &[lock]);
    }
}

fn rt_tried(passage: &Passage<'_>) {
    if let Some(lock) = lock::tried(passage.call) {
        passage.fire(RT_ACQUIRE, &[lock]);
    }
}

fn rt_given(passage: &Passage<'_>) {
    passage.fire(RT_RELEASE, &[lock::given(passage.call)]);
}
