// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Which threads have fired a site's probes but have not executed its instruction yet.
//!
//! Such a thread comes to the site again and must not fire it a second time. Many threads may be in
//! that state at one site: a debugger that covers our breakpoint stops each of them there and steps
//! them one after the other. Probe context cannot allocate a list for that, so the notes of all
//! sites share one table of fixed size. A set of the table that is full forgets one of its notes;
//! the thread of that note fires twice.
//!
//! A site without notes, as nearly every site is, costs one load.

use crate::sys::regs::Regs;
use crate::sys::task;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Marks a note of a thread that has fired everything. The digest of its registers is between this
/// bit and the thread's number.
const ALL: u64 = 1 << 31;
/// The lowest bit of the digest, above the largest number of a thread (`PID_MAX_LIMIT`,
/// include/linux/threads.h).
const DIGEST: u32 = 22;
/// The lowest bit of the site's number.
const SITE: u32 = 32;
/// The bits of the site's number and of the thread's.
const NAME: u64 = !0 << SITE | ((1 << DIGEST) - 1);

const SETS: usize = 256;
const WAYS: usize = 8;
/// A note consists of the site's number, [`ALL`], the digest and the thread's number. 0 is no note.
static NOTES: [[AtomicU64; WAYS]; SETS] = [const { [const { AtomicU64::new(0) }; WAYS] }; SETS];

/// The number of the last site. It takes years to use all numbers; two sites with the same number
/// would disturb each other only for a thread of the same number.
static LAST: AtomicU32 = AtomicU32::new(0);

/// Which slot of a full set is overwritten next: notes of threads that have gone another way, or
/// ended, must not fill the table for good.
static VICTIM: AtomicU32 = AtomicU32::new(0);

/// What the current thread has fired at a site since it last executed the instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fired {
    Nothing,
    /// The probes that fire before the instruction.
    Before,
    /// These, and the probes that fire after the instruction.
    All,
}

/// The notes of one site.
pub struct Notes {
    site: u32,
    /// An upper bound of the number of notes. A note that the table has forgotten stays counted.
    count: AtomicU32,
}

impl Notes {
    /// Creates the notes of a new site.
    pub fn new() -> Self {
        Self {
            site: LAST.fetch_add(1, Ordering::Relaxed),
            count: AtomicU32::new(0),
        }
    }

    /// Notes what the current thread has fired. Replaces an older note of the thread at this site.
    pub fn note(&self, fired: Fired, regs: &Regs) {
        let note = match fired {
            Fired::Nothing => return,
            Fired::Before => self.made(0, regs),
            Fired::All => self.made(ALL, regs),
        };
        let is_mine = |old: u64| (old ^ note) & NAME == 0;
        // Other CPUs use the set at the same time, so the exchange may fail and is tried again.
        for _ in 0..WAYS {
            let set = self.set();
            let mine = set.iter().find(|way| is_mine(way.load(Ordering::Relaxed)));
            let free = || set.iter().find(|way| way.load(Ordering::Relaxed) == 0);
            let victim = || set.get(VICTIM.fetch_add(1, Ordering::Relaxed) as usize % WAYS);
            let Some(way) = mine.or_else(free).or_else(victim) else {
                return;
            };
            let old = way.load(Ordering::Relaxed);
            let put = way.compare_exchange(old, note, Ordering::Relaxed, Ordering::Relaxed);
            if put.is_ok() {
                if !is_mine(old) {
                    self.count.fetch_add(1, Ordering::Relaxed);
                }
                return;
            }
        }
    }

    /// Returns what the current thread has fired, and removes the note.
    #[inline(always)]
    pub fn take(&self, regs: &Regs) -> Fired {
        match self.count.load(Ordering::Relaxed) {
            0 => Fired::Nothing,
            _ => self.take_mine(regs),
        }
    }

    #[cold]
    fn take_mine(&self, regs: &Regs) -> Fired {
        if self.remove(self.made(0, regs)) {
            Fired::Before
        } else if self.remove(self.made(ALL, regs)) {
            Fired::All
        } else {
            // Only other threads have notes; or the debugger has executed a copy of the
            // instruction for this thread.
            Fired::Nothing
        }
    }

    fn remove(&self, note: u64) -> bool {
        let is_removed = |way: &AtomicU64| {
            if way.load(Ordering::Relaxed) != note {
                return false;
            }
            let taken = way.compare_exchange(note, 0, Ordering::Relaxed, Ordering::Relaxed);
            taken.is_ok()
        };
        let removed = self.set().iter().any(is_removed);
        if removed {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        removed
    }

    /// The note of the current thread with these registers. A thread that has not executed the
    /// instruction still has them when it comes again; one that has gone another way hardly has.
    fn made(&self, all: u64, regs: &Regs) -> u64 {
        let digest = u64::from(regs.digest()) << DIGEST & (ALL - 1);
        self.name() | all | digest
    }

    /// The site and the current thread.
    fn name(&self) -> u64 {
        u64::from(self.site) << SITE | u64::from(task::number())
    }

    /// The slots in which a note of the current thread at this site may be.
    fn set(&self) -> &'static [AtomicU64] {
        // Fibonacci hashing: the upper bits of the product are well mixed.
        let hash = self.name().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        NOTES
            .get(hash as usize % SETS)
            .map_or(&[], |set| set.as_slice())
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        for way in NOTES.iter().flatten() {
            let note = way.load(Ordering::Relaxed);
            if note >> SITE == u64::from(self.site) {
                // If this fails the note is another site's by now.
                let _ = way.compare_exchange(note, 0, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }
}
