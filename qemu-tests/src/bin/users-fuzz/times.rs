// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Times that were long, and what of them is the computer's, which had something else to do than to be this machine
//! ([`qemu_tests::processors`]).
//!
//! Whatever it is takes no longer than it seems, less what a processor had to wait meanwhile; and a processor is held no longer than it ran.

use qemu_tests::processors::{History, NAME};
use std::path::{Path, PathBuf};

/// What took long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A processor was held.
    Late,
    /// A system call of root's took long.
    Call,
    /// Root waited.
    Wait,
}

/// A time, microseconds.
struct Span {
    kind: Kind,
    /// Where, or for what.
    what: String,
    cpu: usize,
    length: u64,
    end: u64,
    /// When that was in the run, seconds.
    at: u64,
}

/// The longest of a kind, microseconds.
#[derive(Debug, Default)]
pub struct Longest {
    /// Without what is the computer's.
    pub time: u64,
    pub what: String,
    /// As it seemed.
    pub seemed: u64,
    /// When, seconds.
    pub at: u64,
    /// The longest that any seemed.
    pub any: u64,
}

/// All that took long.
pub struct Times {
    spans: Vec<Span>,
    file: PathBuf,
    ahead: Option<i64>,
}

impl Times {
    /// None yet.
    pub fn new() -> Self {
        Self {
            spans: Vec::new(),
            file: Path::new("/run/vm").join(NAME),
            ahead: None,
        }
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.spans.clear();
    }

    /// Compares the clocks, once more.
    pub fn compare(&mut self) {
        let now = History::ahead(&self.file);
        self.ahead = match (self.ahead, now) {
            (Some(before), Some(now)) => Some(before.min(now)),
            (before, now) => before.or(now),
        };
    }

    /// Takes a line's words, at so many seconds; whether they told of one.
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
