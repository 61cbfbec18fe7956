// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The begin and the end of a run of tracing.

use crate::aggregate::Aggregations;
use rustix::time::{clock_gettime, ClockId};
use std::fs;

/// What a run begins with.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Returns where and when it begins. Only the receivers that tell it ask.
    pub system: fn() -> System,
    /// The programs, in the order in which they were enabled. None if the run was claimed.
    pub programs: &'a [Traced],
    /// The aggregations that the programs declare.
    pub aggregations: &'a Aggregations,
}

/// A program that is traced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// What the user calls it: its description, or its file.
    pub name: String,
    /// The number of probes that it has enabled.
    pub matched: u32,
    /// The matching probes that could not be enabled, and why. Empty if there are none.
    pub left_out: String,
}

/// A machine and a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct System {
    /// The host's name.
    pub host: String,
    /// The number of this boot.
    pub boot_id: String,
    /// The kernel's release.
    pub kernel: String,
    /// The time by the clock of D's `timestamp`, ns.
    pub timestamp: u64,
    /// The same time by the clock of D's `walltimestamp`, ns since 1970.
    pub walltimestamp: u64,
}

impl System {
    /// Returns this machine and this moment. What cannot be read is empty.
    pub fn now() -> Self {
        let read = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}"));
            text.unwrap_or_default().trim_end().to_owned()
        };
        Self {
            host: read("hostname"),
            boot_id: read("random/boot_id"),
            kernel: read("osrelease"),
            timestamp: time(ClockId::Monotonic),
            walltimestamp: time(ClockId::Realtime),
        }
    }
}

fn time(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// What a run ends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// The argument of `exit()`, or 0.
    pub status: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_both_clocks() {
        let (before, after) = (System::now(), System::now());
        assert!(before.timestamp <= after.timestamp);
        // The year 2020.
        assert!(before.walltimestamp > 1_577_836_800_000_000_000);
        assert!(!before.kernel.is_empty());
    }
}
