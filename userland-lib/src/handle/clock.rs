// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! When the status, the aggregations and the records are due.
//!
//! Each has its own rate, which may change while tracing. All are due immediately at the beginning,
//! so that a program that exits in `BEGIN` does not wait for the first tick.
//!
//! Without `switchrate`, records are read at a [`Pace`] that follows the load. Other DTraces read
//! once a second, and drop records when a burst fills the buffers in less time.

use dtrace_compiler::options::Options;
use dtrace_uapi::limits::{RATE_DEFAULT, SWITCHRATE_DEFAULT};
use dtrace_uapi::option::Opt;
use std::time::{Duration, Instant};

/// The last time that something was done; `None` if it never was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Last(Option<Instant>);

impl Last {
    /// The next due time at `rate` ns, by default [`RATE_DEFAULT`]. `now` if it was never done.
    fn due(self, now: Instant, rate: Option<u64>) -> Instant {
        let rate = Duration::from_nanos(rate.unwrap_or(RATE_DEFAULT));
        match self.0 {
            None => now,
            // A time that the clock cannot represent is as good as never: use a day.
            Some(last) => last
                .checked_add(rate)
                .unwrap_or(now + Duration::from_secs(86_400)),
        }
    }

    /// Whether it is due. If so, it counts as done at `now`.
    pub fn take(&mut self, now: Instant, rate: Option<u64>) -> bool {
        let due = self.due(now, rate) <= now;
        if due {
            self.0 = Some(now);
        }
        due
    }
}

/// The interval in ns at which records are read if `switchrate` is not set.
#[derive(Clone, Copy, Debug)]
pub struct Pace(u64);

impl Pace {
    /// The interval without load, ns. A buffer of the default size holds what a burst of a million
    /// short records per second adds in this time.
    const SLOWEST: u64 = SWITCHRATE_DEFAULT;
    /// The interval under the greatest load, ns.
    const FASTEST: u64 = 1_000_000;

    /// Adapts to how full the fullest buffer was, in percent.
    pub fn note(&mut self, percent: u64) {
        self.0 = match percent {
            25.. => self.0 / 4,
            0..6 => self.0 * 2,
            _ => self.0,
        }
        .clamp(Self::FASTEST, Self::SLOWEST);
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self(Self::SLOWEST)
    }
}

/// The three rates of a consumer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// `statusrate`
    pub status: Last,
    /// `aggrate`
    pub aggregations: Last,
    /// `switchrate`
    pub records: Last,
    /// The rate of records if `switchrate` is not set.
    pub pace: Pace,
}

impl Clock {
    /// Whether records are due. If so, they count as read at `now`.
    pub fn take_records(&mut self, now: Instant, options: &Options) -> bool {
        self.records.take(now, Some(self.switchrate(options)))
    }

    fn switchrate(&self, options: &Options) -> u64 {
        options.get(Opt::Switchrate).unwrap_or(self.pace.0)
    }

    /// The earliest time at which one of the three is due.
    pub fn due(&self, options: &Options) -> Instant {
        let now = Instant::now();
        let status = self.status.due(now, options.get(Opt::Statusrate));
        let aggregations = self.aggregations.due(now, options.get(Opt::Aggrate));
        let records = self.records.due(now, Some(self.switchrate(options)));
        status.min(aggregations).min(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_at_once_and_then_at_the_rate() {
        let start = Instant::now();
        let mut last = Last::default();
        let at = |ms| start + Duration::from_millis(ms);
        let rate = Some(100_000_000);
        assert!(last.take(at(0), rate));
        assert!(!last.take(at(99), rate));
        assert!(last.take(at(100), rate));
        assert!(!last.take(at(150), rate));
        assert!(last.take(at(150), Some(1)), "a rate may change");
        assert!(!last.take(at(1000), None), "unset means a second");
        assert!(!last.take(at(1000), Some(u64::MAX)));
    }

    #[test]
    fn the_pace_follows_the_load_where_no_rate_is_set() {
        let mut options = Options::default();
        let mut clock = Clock::default();
        assert_eq!(clock.switchrate(&options), Pace::SLOWEST);
        clock.pace.note(80);
        assert_eq!(clock.switchrate(&options), Pace::SLOWEST / 4);
        clock.pace.note(10);
        assert_eq!(clock.switchrate(&options), Pace::SLOWEST / 4);
        for _ in 0..9 {
            clock.pace.note(100);
        }
        assert_eq!(clock.switchrate(&options), Pace::FASTEST);
        for _ in 0..9 {
            clock.pace.note(0);
        }
        assert_eq!(clock.switchrate(&options), Pace::SLOWEST);
        options
            .set(
                "switchrate",
                Some("5s"),
                dtrace_compiler::options::Setter::User,
            )
            .unwrap();
        clock.pace.note(100);
        assert_eq!(clock.switchrate(&options), 5_000_000_000);
    }

    #[test]
    fn the_earliest_counts() {
        let mut options = Options::default();
        let mut clock = Clock::default();
        assert!(clock.due(&options) <= Instant::now());
        let now = Instant::now();
        for last in [
            &mut clock.status,
            &mut clock.aggregations,
            &mut clock.records,
        ] {
            last.take(now, None);
        }
        options
            .set(
                "switchrate",
                Some("10ms"),
                dtrace_compiler::options::Setter::User,
            )
            .unwrap();
        assert_eq!(clock.due(&options), now + Duration::from_millis(10));
    }
}
