// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! How long the computer let each of a machine's processors run.
//!
//! Inside an emulated machine it is not visible when the computer was busy with something else:
//! time passes in the machine as well. Therefore the harness records, ten times a second, the
//! statistics of the computer's scheduler for the threads that are the machine's processors, and
//! programs in the machine subtract the delays from the times they measure.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The file's name in the run directory.
pub const NAME: &str = "processors";
/// How often a line is appended.
const PERIOD: Duration = Duration::from_millis(100);

/// Microseconds since 1970.
pub fn stamp() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_micros() as u64)
}

/// Writes the file, outside of the machine.
pub struct Writer {
    file: Option<File>,
    /// The threads' folders in /proc, once they exist.
    threads: Vec<PathBuf>,
    /// A word that only this machine's command line contains.
    word: String,
    written: Instant,
}

impl Writer {
    /// Creates a writer for the machine with this run directory.
    pub fn new(dir: &Path) -> Self {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        Self {
            file: None,
            threads: Vec::new(),
            word: format!("control-{name},"),
            written: Instant::now(),
        }
    }

    /// Appends a line if it is time. Writes nothing if the statistics cannot be read.
    pub fn note(&mut self, dir: &Path) {
        if self.written.elapsed() < PERIOD {
            return;
        }
        self.written = Instant::now();
        if self.threads.is_empty() {
            self.threads = threads(&self.word);
            let options = OpenOptions::new().append(true).create(true).clone();
            self.file = options.open(dir.join(NAME)).ok();
        }
        let mut line = stamp().to_string();
        for thread in &self.threads {
            let Ok(text) = fs::read_to_string(thread.join("schedstat")) else {
                return;
            };
            // Nanoseconds that it ran, and that it waited to run; the third number, the count of
            // time slices, is not needed.
            let words: Vec<&str> = text.split_whitespace().take(2).collect();
            line = format!("{line} {}", words.join(" "));
        }
        line.push('\n');
        if let (Some(file), false) = (&mut self.file, self.threads.is_empty()) {
            // Errors are ignored: the machine's measurements are then not corrected.
            let _ = file.write_all(line.as_bytes());
        }
    }
}

/// The threads that are the processors of the machine whose command line contains `word`, in order.
fn threads(word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        let program = words.split('\0').next().unwrap_or_default();
        if !program.contains("qemu-system") || !words.contains(word) {
            continue;
        }
        for thread in fs::read_dir(process.path().join("task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
            let number = name
                .strip_prefix("CPU ")
                .and_then(|rest| rest.split('/').next());
            if let Some(number) = number.and_then(|number| number.parse::<u32>().ok()) {
                found.push((number, thread.path()));
            }
        }
    }
    found.sort();
    found.dedup_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, path)| path).collect()
}

/// The content of the file, read in the machine.
#[derive(Default)]
pub struct History {
    /// The time, and for each processor how long it has run and waited so far, in microseconds.
    lines: Vec<(u64, Vec<(u64, u64)>)>,
    /// How far the machine's clock is ahead of the computer's, in microseconds.
    ahead: i64,
}

/// An upper bound of the difference between the writer's clock and the times in its lines, and of
/// the time between two lines, in microseconds.
const MARGIN: u64 = 150_000;

impl History {
    /// Reads the file in its current state. `ahead`: see [`ahead`](Self::ahead); the smallest of
    /// many measurements is the right one.
    pub fn read(path: &Path, ahead: i64) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| {
            let numbers: Option<Vec<u64>> = line.split(' ').map(|word| word.parse().ok()).collect();
            let (stamp, rest) = numbers?
                .split_first()
                .map(|(first, rest)| (*first, rest.to_vec()))?;
            let pairs = rest
                .chunks_exact(2)
                .map(|pair| (pair[0] / 1000, pair[1] / 1000));
            Some((stamp, pairs.collect()))
        });
        Self {
            lines: lines.collect(),
            ahead,
        }
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// How far the clock is ahead of the file's last line, in microseconds.
    pub fn ahead(path: &Path) -> Option<i64> {
        let last = Self::read(path, 0).lines.pop()?;
        Some(stamp() as i64 - last.0 as i64)
    }

    /// How long a processor had run and waited at `stamp`, interpolated between two lines.
    fn at(&self, cpu: usize, stamp: u64) -> Option<(u64, u64)> {
        let stamp = (stamp as i64 - self.ahead).max(0) as u64;
        let of = |line: &(u64, Vec<(u64, u64)>)| line.1.get(cpu).map(|pair| (line.0, *pair));
        let next = self.lines.partition_point(|line| line.0 < stamp);
        let after = self.lines.get(next).or(self.lines.last()).and_then(of)?;
        let before = self.lines.get(next.saturating_sub(1)).and_then(of)?;
        let whole = (after.0 - before.0.min(after.0)).max(1);
        let part = stamp.clamp(before.0.min(after.0), after.0) - before.0.min(after.0);
        let between = |one: u64, other: u64| one + other.saturating_sub(one) * part / whole;
        Some((
            between(before.1 .0, after.1 .0),
            between(before.1 .1, after.1 .1),
        ))
    }

    /// An upper bound of how long a processor ran between two times of the machine's clock.
    pub fn ran(&self, cpu: usize, from: u64, to: u64) -> Option<u64> {
        let (before, after) = (self.at(cpu, from - MARGIN)?, self.at(cpu, to + MARGIN)?);
        Some(after.0.saturating_sub(before.0))
    }

    /// The longest time that any processor waited between two times of the machine's clock. The
    /// others may have waited for that one: for a lock it held or for its answer, even with
    /// interrupts off.
    pub fn waited(&self, from: u64, to: u64) -> u64 {
        let cpus = self.lines.first().map_or(0, |line| line.1.len());
        let waits = (0..cpus).filter_map(|cpu| {
            let (before, after) = (self.at(cpu, from)?, self.at(cpu, to)?);
            Some(after.1.saturating_sub(before.1))
        });
        waits.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_computer_took_is_known() {
        let lines = (0..=20u64).map(|n| {
            // The first processor runs always except for the second that begins at 500 ms.
            let ran = 100_000 * n.min(5) + 100_000 * n.saturating_sub(15);
            let waited = 100_000 * n - ran;
            (10_000_000 + 100_000 * n, vec![(ran, waited), (0, 0)])
        });
        let history = History {
            lines: lines.collect(),
            ahead: 1_000_000,
        };
        let ran = |from: u64, to: u64| history.ran(0, 11_000_000 + from, 11_000_000 + to);
        assert_eq!(ran(700_000, 1_300_000), Some(0));
        assert_eq!(ran(200_000, 300_000), Some(400_000));
        assert_eq!(history.ran(1, 11_000_000, 12_000_000), Some(0));
        assert_eq!(history.ran(2, 11_000_000, 12_000_000), None);
        assert_eq!(history.waited(11_500_000, 12_500_000), 1_000_000);
    }
}
