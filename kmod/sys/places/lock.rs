// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Locks.
//!
//! The kernel reports where a task begins to wait for a lock and where the wait ends. That a lock
//! was taken or released is seen at the functions that do so; a lock that is taken by inlined code
//! is not seen. A kernel that checks its locks (lockdep) takes some of them by functions of other
//! names, which are named last.

use super::task::Task;
use super::{At, Call};
use crate::sys::task::irq_level;
use core::ffi::CStr;

/// A wait for a lock begins, or goes on in another way.
pub const WAIT: At = At::Tracepoint("contention_begin");

/// A wait for a lock has ended, with the lock or without it.
pub const WAITED: At = At::Tracepoint("contention_end");

/// Where processors wait for spinlocks. The tracepoints report only processors that queue up: not
/// the first in the queue, and none in a guest of a hypervisor that cannot wake them.
const SPIN_SLOWLY: &[&CStr] = &[
    c"queued_spin_lock_slowpath",
    c"native_queued_spin_lock_slowpath",
    c"__pv_queued_spin_lock_slowpath",
];

/// A wait for a spinlock begins.
pub const SPIN_WAIT: At = At::Entries(SPIN_SLOWLY);

/// A wait for a spinlock has ended.
pub const SPIN_WAITED: At = At::Returns(SPIN_SLOWLY);

/// How a lock is wanted, in the numbers of DTrace's documentation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Exclusively.
    Writer = 0,
    /// Shared with other readers.
    Reader = 1,
}

/// What is waited for, and how.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// A mutex, spinning, because its owner is running.
    MutexSpin,
    /// A mutex, asleep.
    MutexBlock,
    /// A spinlock.
    Spin,
    /// A reader-writer lock, spinning.
    RwSpin(Mode),
    /// A reader-writer semaphore, asleep.
    RwBlock(Mode),
    /// A mutex whose holder inherits the priority of the waiters (`rt_mutex`), asleep.
    RtBlock,
}

// `LCB_F_*` of the tracepoint, which are in no header that bindgen could read here.
/// The wait is for a spinlock.
pub const SPIN: u64 = 1;
const READ: u64 = 2;
const WRITE: u64 = 4;
const RT: u64 = 8;
const PERCPU: u64 = 16;
const MUTEX: u64 = 32;

impl Wait {
    /// Converts the tracepoint's flags. `None`: a lock of another kind (a counting semaphore).
    #[inline]
    pub fn of(flags: u64) -> Option<Self> {
        Some(match flags & !PERCPU {
            SPIN => Self::Spin,
            flags if flags == SPIN | READ => Self::RwSpin(Mode::Reader),
            flags if flags == SPIN | WRITE => Self::RwSpin(Mode::Writer),
            flags if flags == MUTEX | SPIN => Self::MutexSpin,
            MUTEX => Self::MutexBlock,
            READ => Self::RwBlock(Mode::Reader),
            WRITE => Self::RwBlock(Mode::Writer),
            RT => Self::RtBlock,
            _ => return None,
        })
    }
}

/// Returns the lock that is waited for, and the flags for [`Wait::of`], which fit into a byte.
#[inline]
pub fn waits(call: &Call<'_>) -> (u64, u64) {
    (call.word(0), call.word(1) & 0xff)
}

/// Returns the lock that was waited for.
#[inline]
pub fn waited(call: &Call<'_>) -> u64 {
    call.word(0)
}

/// Returns a number that identifies this wait for `lock`, by this task or by the interrupt on top
/// of it.
#[inline]
pub fn wait_key(lock: u64) -> u64 {
    Task::current().addr() ^ lock.rotate_left(32) ^ u64::from(irq_level())
}

/// A mutex has been taken.
pub const MUTEX_TAKEN: At = At::Returns(&[
    c"mutex_lock",
    c"mutex_lock_nested",
    c"_mutex_lock_nest_lock",
]);

/// A mutex has been taken or not; the value says which (0: taken).
pub const MUTEX_MAYBE: At = At::Returns(&[
    c"mutex_lock_interruptible",
    c"mutex_lock_killable",
    c"mutex_lock_interruptible_nested",
    c"_mutex_lock_killable",
    // A wound/wait mutex begins with a mutex.
    c"ww_mutex_lock",
    c"ww_mutex_lock_interruptible",
]);

/// A mutex has been taken or not; the value says which (0: not taken).
pub const MUTEX_TRIED: At = At::Returns(&[c"mutex_trylock", c"_mutex_trylock_nest_lock"]);

/// A mutex is released. Releasing a wound/wait mutex releases the mutex within it.
pub const MUTEX_GIVEN: At = At::NestedEntry([c"ww_mutex_unlock", c"mutex_unlock"]);

/// An `rt_mutex` has been taken.
pub const RT_TAKEN: At = At::Returns(&[
    c"rt_mutex_lock",
    c"rt_mutex_lock_nested",
    c"_rt_mutex_lock_nest_lock",
]);

/// An `rt_mutex` has been taken or not (0: taken).
pub const RT_MAYBE: At = At::Returns(&[c"rt_mutex_lock_interruptible", c"rt_mutex_lock_killable"]);

/// An `rt_mutex` has been taken or not (0: not taken).
pub const RT_TRIED: At = At::Returns(&[c"rt_mutex_trylock"]);

/// An `rt_mutex` is released.
pub const RT_GIVEN: At = At::Entries(&[c"rt_mutex_unlock"]);

/// A spinlock has been taken.
pub const SPIN_TAKEN: At = At::Returns(&[
    c"_raw_spin_lock",
    c"_raw_spin_lock_bh",
    c"_raw_spin_lock_irq",
    c"_raw_spin_lock_irqsave",
    c"_raw_spin_lock_nested",
    c"_raw_spin_lock_irqsave_nested",
    c"_raw_spin_lock_nest_lock",
]);

/// A spinlock has been taken or not (0: not taken).
pub const SPIN_TRIED: At = At::Returns(&[c"_raw_spin_trylock", c"_raw_spin_trylock_bh"]);

/// A spinlock is released.
pub const SPIN_GIVEN: At = At::Entries(&[
    c"_raw_spin_unlock",
    c"_raw_spin_unlock_bh",
    c"_raw_spin_unlock_irq",
    c"_raw_spin_unlock_irqrestore",
]);

/// A lock has been taken for reading.
pub const READ_TAKEN: At = At::Returns(&[
    c"_raw_read_lock",
    c"_raw_read_lock_bh",
    c"_raw_read_lock_irq",
    c"_raw_read_lock_irqsave",
    c"down_read",
    c"down_read_nested",
]);

/// A lock has been taken for reading or not (0: taken).
pub const READ_MAYBE: At = At::Returns(&[
    c"down_read_interruptible",
    c"down_read_killable",
    c"down_read_killable_nested",
]);

/// A lock has been taken for reading or not (0: not taken).
pub const READ_TRIED: At = At::Returns(&[c"_raw_read_trylock", c"down_read_trylock"]);

/// A lock that was taken for reading is released.
pub const READ_GIVEN: At = At::Entries(&[
    c"_raw_read_unlock",
    c"_raw_read_unlock_bh",
    c"_raw_read_unlock_irq",
    c"_raw_read_unlock_irqrestore",
    c"up_read",
]);

/// A lock has been taken for writing.
pub const WRITE_TAKEN: At = At::Returns(&[
    c"_raw_write_lock",
    c"_raw_write_lock_bh",
    c"_raw_write_lock_irq",
    c"_raw_write_lock_irqsave",
    c"down_write",
    c"_raw_write_lock_nested",
    c"down_write_nested",
    c"_down_write_nest_lock",
]);

/// A lock has been taken for writing or not (0: taken).
pub const WRITE_MAYBE: At = At::Returns(&[c"down_write_killable", c"down_write_killable_nested"]);

/// A lock has been taken for writing or not (0: not taken).
pub const WRITE_TRIED: At = At::Returns(&[c"_raw_write_trylock", c"down_write_trylock"]);

/// A lock that was taken for writing is released.
pub const WRITE_GIVEN: At = At::Entries(&[
    c"_raw_write_unlock",
    c"_raw_write_unlock_bh",
    c"_raw_write_unlock_irq",
    c"_raw_write_unlock_irqrestore",
    c"up_write",
]);

/// A writer becomes a reader.
pub const DOWNGRADED: At = At::Entries(&[c"downgrade_write"]);

/// Returns the lock that a function has taken.
#[inline]
pub fn taken(call: &Call<'_>) -> u64 {
    call.word(1)
}

/// Returns the lock of a function that may have failed, and its error; 0: the lock was taken.
#[inline]
pub fn maybe(call: &Call<'_>) -> (u64, i32) {
    (call.word(1), call.int(0).wrapping_neg())
}

/// Returns the lock, if the attempt succeeded.
#[inline]
pub fn tried(call: &Call<'_>) -> Option<u64> {
    (call.int(0) != 0).then(|| call.word(1))
}

/// Returns the lock that a function is about to release.
#[inline]
pub fn given(call: &Call<'_>) -> u64 {
    call.word(0)
}
