// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The time that members' timers take (INV-33).
//!
//! A probe that a process reaches takes the time of that process. A timer takes the time of
//! whatever task it interrupts, and no scheduler charges that to the user who has set it. So this
//! time is measured: for all tracings of a member together, and for all members together. All of it
//! may be taken on one CPU, so the limits are parts of one CPU's time, however many CPUs there are.
//! When the part of a period is used up, each tracing that would fire in the rest of the period is
//! killed, as by the deadman.
//!
//! Probe context writes single words, on all CPUs at once, with `Relaxed` ordering. At the end of a
//! period, the time of two CPUs may be counted for the wrong period. A firing is counted when it
//! has ended, so each CPU may exceed the limit by one firing.

use core::sync::atomic::{AtomicU64, Ordering};
use kernel::sync::Arc;

/// Length of a period, ns.
const PERIOD: u64 = 1_000_000_000;
/// The part of it that the timers of a member may take.
pub const OF_USER: u64 = PERIOD / 8;
/// The part of it that the timers of all members may take together.
pub const OF_ALL: u64 = PERIOD / 4;
/// Maximum time that one firing counts as, ns. A virtual machine may be paused during a firing, and
/// one pause must not exceed a limit. A clause and the `ERROR` clauses after it take less.
const FIRING_MAX: u64 = PERIOD / 9;

/// The time that some timers have taken.
pub struct Share {
    /// The limit of a period, ns.
    most: u64,
    /// When the last period began, ns.
    since: AtomicU64,
    /// The time taken since then, ns.
    taken: AtomicU64,
}

impl Share {
    /// Nothing has been taken. `most` is the limit of a period, ns.
    pub fn new(most: u64) -> Self {
        Self {
            most,
            since: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        }
    }

    /// Whether the limit was exceeded before `now`, ns. Stays true until the period ends.
    pub fn is_spent(&self, now: u64) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        let is_over = now.saturating_sub(since) >= PERIOD;
        !is_over && self.taken.load(Ordering::Relaxed) > self.most
    }

    /// Adds a firing that began at `began` and ended at `ended`, ns. Returns whether the limit is
    /// exceeded.
    pub fn take(&self, began: u64, ended: u64) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        let is_over = ended.saturating_sub(since) >= PERIOD;
        let set = Ordering::Relaxed;
        if is_over && self.since.compare_exchange(since, ended, set, set).is_ok() {
            self.taken.store(0, Ordering::Relaxed);
        }
        let took = ended.saturating_sub(began).min(FIRING_MAX);
        let before = self.taken.fetch_add(took, Ordering::Relaxed);
        before.saturating_add(took) > self.most
    }
}

/// The shares that a member's timers take from.
#[derive(Clone)]
pub struct Shares {
    /// The member's own.
    pub user: Arc<Share>,
    /// That of all members.
    pub all: Arc<Share>,
}

impl Shares {
    /// Whether one of them is [spent](Share::is_spent).
    pub fn are_spent(&self, now: u64) -> bool {
        self.user.is_spent(now) || self.all.is_spent(now)
    }

    /// [Takes](Share::take) from both. Returns whether one limit is exceeded.
    pub fn take(&self, began: u64, ended: u64) -> bool {
        let of_user = self.user.take(began, ended);
        let of_all = self.all.take(began, ended);
        of_user || of_all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::shared::share;

    const MS: u64 = 1_000_000;

    /// Fires every `interval` ms for `took` ms, for so many seconds. Returns when the limit was
    /// exceeded, ms.
    fn too_much(interval: u64, took: u64, seconds: u64) -> Option<u64> {
        let share = Share::new(OF_USER);
        let mut times = (0..seconds * 1000 / interval).map(|n| n * interval);
        times.find(|at| share.take((5000 + at) * MS, (5000 + at + took) * MS))
    }

    #[test]
    fn a_share_is_of_a_second() {
        // 12 ms every 100 ms is 120 ms in a second, 13 ms is 130 ms; the limit is 125 ms.
        assert_eq!(too_much(100, 12, 3600), None);
        assert_eq!(too_much(100, 13, 3600), Some(900));
        assert_eq!(too_much(10, 3, 3600), Some(410));
        // Two firings that take almost the maximum each.
        assert_eq!(too_much(400, 100, 3600), Some(400));
    }

    #[test]
    fn a_machine_that_stands_still_is_not_too_much() {
        let share = Share::new(OF_USER);
        assert!(!share.take(5000 * MS, 3_600_000 * MS));
        assert!(!share.is_spent(3_600_000 * MS));
        assert!((1..5).all(|n| !share.take(3_600_000 * MS, (3_600_000 + n) * MS)));
        // The clock of another CPU may be behind.
        assert!(!share.take(5001 * MS, 5000 * MS));
    }

    #[test]
    fn after_too_much_everything_is_until_the_second_ends() {
        let share = Share::new(OF_USER);
        let take = |at| share.take((5000 + at) * MS, (5010 + at) * MS);
        let first = (0..100).map(|n| n * 10).find(|at| take(*at));
        assert_eq!(first, Some(120));
        assert!((13..100).all(|n| share.is_spent((5000 + n * 10) * MS) && take(n * 10)));
        assert!(!share.is_spent(6010 * MS));
        assert!(!take(1000));
    }

    #[test]
    fn all_users_have_one_share_together() {
        let all = share(Share::new(OF_ALL)).unwrap();
        let users = [(); 3].map(|()| Shares {
            user: share(Share::new(OF_USER)).unwrap(),
            all: all.clone(),
        });
        let take = |shares: &Shares| shares.take(5000 * MS, 5100 * MS);
        assert_eq!(
            [0, 1, 2].map(|n: usize| take(&users[n])),
            [false, false, true]
        );
        assert!(users.iter().all(|shares| shares.are_spent(5100 * MS)));
        assert!(!users[2].user.is_spent(5100 * MS));
        assert!(!users.iter().any(|shares| shares.are_spent(6100 * MS)));
    }
}
