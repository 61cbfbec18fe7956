// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! How much of the machine's time the timers of a user take.
//!
//! A probe that a process comes by takes that process' time. A timer takes the time of whoever is there, in an interrupt, and no scheduler
//! charges that to the user who has set it. So it is measured, for all of his tracings together; one whose firing is too much for
//! that second is ended, as by the deadman.
//!
//! Probe context writes single words, on all CPUs at once. What two CPUs do at the end of a second may be counted for the wrong one.

use core::sync::atomic::{AtomicU64, Ordering};

/// For how long time is added up, ns.
const PERIOD: u64 = 1_000_000_000;
/// Which part of the time of all CPUs may be taken.
const PART: u64 = 8;
/// What a firing counts for at most, ns: a virtual machine may stand still in the middle of one.
const FIRING_MAX: u64 = PERIOD / 64;

/// What the timers of a user have taken.
pub struct Share {
    /// What they may take, ns.
    most: u64,
    /// When the last period began, ns.
    since: AtomicU64,
    /// What was taken since, ns.
    taken: AtomicU64,
}

impl Share {
    /// Nothing yet, of the time of so many CPUs.
    pub fn new(cpus: u32) -> Self {
        Self {
            most: (PERIOD / PART).saturating_mul(u64::from(cpus.max(1))),
            since: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        }
    }

    /// Adds a firing that took from `began` until `ended`, ns; whether that is too much. It is so once: the next one begins anew.
    pub fn take(&self, began: u64, ended: u64) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        let is_over = ended.saturating_sub(since) >= PERIOD;
        let set = Ordering::Relaxed;
        if is_over && self.since.compare_exchange(since, ended, set, set).is_ok() {
            self.taken.store(0, Ordering::Relaxed);
        }
        let took = ended.saturating_sub(began).min(FIRING_MAX);
        let before = self.taken.fetch_add(took, Ordering::Relaxed);
        let is_too_much = before.saturating_add(took) > self.most;
        if is_too_much {
            self.taken.store(0, Ordering::Relaxed);
        }
        is_too_much
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Fires every `interval` ms for `took` ms, for so many seconds; when that is too much, ms.
    fn too_much(cpus: u32, interval: u64, took: u64, seconds: u64) -> Option<u64> {
        let share = Share::new(cpus);
        let mut times = (0..seconds * 1000 / interval).map(|n| n * interval);
        times.find(|at| share.take((5000 + at) * MS, (5000 + at + took) * MS))
    }

    #[test]
    fn a_share_is_of_a_second_and_of_all_cpus() {
        // 120 and 130 of 125 ms.
        assert_eq!(too_much(1, 100, 12, 3600), None);
        assert_eq!(too_much(1, 100, 13, 3600), Some(900));
        assert_eq!(too_much(2, 100, 13, 3600), None);
        assert_eq!(too_much(2, 10, 3, 3600), Some(830));
        assert_eq!(too_much(0, 100, 13, 1), Some(900));
    }

    #[test]
    fn a_machine_that_stands_still_takes_no_share() {
        let share = Share::new(1);
        assert!(!share.take(5000 * MS, 3_600_000 * MS));
        assert!((1..8).all(|n| !share.take(3_600_000 * MS, (3_600_000 + n) * MS)));
        // The clock of another CPU is behind.
        assert!(!share.take(5001 * MS, 5000 * MS));
    }

    #[test]
    fn after_too_much_it_begins_anew() {
        let share = Share::new(1);
        let times = (0..24).map(|n| share.take((5000 + n * 10) * MS, (5010 + n * 10) * MS));
        assert_eq!(times.filter(|too_much| *too_much).count(), 1);
    }
}
