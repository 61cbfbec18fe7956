// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Long times, and how much of them is due to the computer, which had something else to do than run
//! this machine ([`qemu_tests::processors`]).
//!
//! The true duration is at most what was measured minus the longest time that a processor had to
//! wait meanwhile; and a processor is held no longer than it ran.

use qemu_tests::processors::{History, NAME};
use std::path::{Path, PathBuf};

/// What took long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A processor was held.
    Late,
    /// A system call of root.
    Call,
    /// A control call of root.
    Wait,
}

/// A duration, in microseconds.
struct Span {
    kind: Kind,
    /// Where, or which operation.
    what: String,
    cpu: usize,
    length: u64,
    end: u64,
    /// When in the run, in seconds.
    at: u64,
}

/// The longest of a kind, in microseconds.
#[derive(Debug, Default)]
pub struct Longest {
    /// The duration without the computer's part.
    pub time: u64,
    pub what: String,
    /// The measured duration.
    pub seemed: u64,
    /// When, in seconds.
    pub at: u64,
    /// The longest measured duration of any of the kind.
    pub any: u64,
}

/// All long durations.
pub struct Times {
    spans: Vec<Span>,
    file: PathBuf,
    ahead: Option<i64>,
}

impl Times {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self {
            spans: Vec::new(),
            file: Path::new("/run/vm").join(NAME),
            ahead: None,
        }
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.spans.clear();
    }

    /// Compares the machine's clock with the computer's, once more.
    pub fn compare(&mut self) {
        let now = History::ahead(&self.file);
        self.ahead = match (self.ahead, now) {
            (Some(before), Some(now)) => Some(before.min(now)),
            (before, now) => before.or(now),
        };
    }

    /// Parses a line's words, received `at` seconds after the begin. Returns whether they report a
    /// duration.
    pub fn hear(&mut self, words: &[&str], at: u64) -> bool {
        let (kind, what, length, end) = match words {
            ["late", cpu, length, end] => (Kind::Late, cpu, length, end),
            ["call", cpu, length, end] => (Kind::Call, cpu, length, end),
            ["control", what, length, end] => (Kind::Wait, what, length, end),
            _ => return false,
        };
        if let (Ok(length), Ok(end)) = (length.parse(), end.parse()) {
            self.spans.push(Span {
                kind,
                what: (*what).to_owned(),
                cpu: what.parse().unwrap_or(0),
                length,
                end,
                at,
            });
        }
        true
    }

    /// The longest of a kind, and whether the computer's part is known.
    pub fn longest(&self, kind: Kind) -> (Longest, bool) {
        let history = History::read(&self.file, self.ahead.unwrap_or(0));
        let mut longest = Longest::default();
        for span in self.spans.iter().filter(|span| span.kind == kind) {
            let begin = span.end.saturating_sub(span.length);
            let held_up = history.waited(begin, span.end);
            let mut time = span.length.saturating_sub(held_up);
            if kind != Kind::Wait {
                let ran = history.ran(span.cpu, begin, span.end);
                time = time.min(ran.unwrap_or(u64::MAX));
            }
            longest.any = longest.any.max(span.length);
            if time > longest.time {
                longest = Longest {
                    time,
                    what: span.what.clone(),
                    seemed: span.length,
                    at: span.at,
                    any: longest.any,
                };
            }
        }
        (longest, !history.is_empty())
    }
}
