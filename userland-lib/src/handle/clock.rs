// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! When the status, the aggregations and the records are due.
//!
//! Each has a rate of its own, which may change while tracing goes on. All are due at once at the beginning: a
//! program that exits in `BEGIN` must not wait for the first tick.

use crate::options::Options;
use dtrace_uapi::limits::RATE_DEFAULT;
use dtrace_uapi::option::Opt;
use std::time::{Duration, Instant};

/// The last time that something was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Last(Option<Instant>);

impl Last {
    /// When it is due next at `rate` ns, which nobody need have set; `now` if it never was done.
    fn due(self, now: Instant, rate: Option<u64>) -> Instant {
        let rate = Duration::from_nanos(rate.unwrap_or(RATE_DEFAULT));
        match self.0 {
            None => now,
            // A time beyond the clock's end is never.
            Some(last) => last
                .checked_add(rate)
                .unwrap_or(now + Duration::from_secs(86_400)),
        }
    }

    /// Whether it is due; if so, it counts as done.
    pub fn take(&mut self, now: Instant, rate: Option<u64>) -> bool {
        let due = self.due(now, rate) <= now;
        if due {
            self.0 = Some(now);
        }
        due
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
}

impl Clock {
    /// When the first of them is due.
    pub fn due(&self, options: &Options) -> Instant {
        let now = Instant::now();
        [
            (self.status, Opt::Statusrate),
            (self.aggregations, Opt::Aggrate),
            (self.records, Opt::Switchrate),
        ]
        .map(|(last, opt)| last.due(now, options.get(opt)))
        .into_iter()
        .min()
        .unwrap_or(now)
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
            .set("switchrate", Some("10ms"), crate::options::Setter::User)
            .unwrap();
        assert_eq!(clock.due(&options), now + Duration::from_millis(10));
    }
}
