// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Counts of calls, passed from one process to another as lines.

use std::collections::BTreeMap;
use std::io::{self, Write};

/// The first word of such a line.
const HEAD: &str = "tally";

/// How often each call succeeded, and how often it was refused for each reason.
#[derive(Default)]
pub struct Tally(BTreeMap<String, u64>);

impl Tally {
    /// Counts a successful call.
    pub fn done(&mut self, call: &str) {
        *self.0.entry(call.to_owned()).or_default() += 1;
    }

    /// Counts a refused call.
    pub fn refused(&mut self, call: &str, error: &io::Error, reason: &str) {
        let number = error.raw_os_error().unwrap_or(0);
        // Numbers in a reason are replaced, because there might be too many different ones.
        let reason: String = reason
            .split(|c: char| c.is_ascii_digit())
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("N");
        let reason: String = reason.chars().take(70).collect();
        self.done(&format!("{call}!{number} {reason}"));
    }

    /// Prints all counts. Errors are ignored, because the reader may have gone.
    pub fn tell(&self, round: u64) {
        let counts = self.0.iter().map(|(what, n)| format!("\t{what}={n}"));
        let line = format!("{HEAD}\t{round}{}\n", counts.collect::<String>());
        let _ = io::stdout().write_all(line.as_bytes());
    }

    /// Parses a line into its round and counts.
    pub fn read(line: &str) -> Option<(u64, Self)> {
        let mut words = line.split('\t');
        if words.next() != Some(HEAD) {
            return None;
        }
        let round = words.next()?.parse().ok()?;
        let counts = words.filter_map(|word| {
            let (what, n) = word.rsplit_once('=')?;
            Some((what.to_owned(), n.parse().ok()?))
        });
        Some((round, Self(counts.collect())))
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Self) {
        for (what, n) in &other.0 {
            *self.0.entry(what.clone()).or_default() += n;
        }
    }

    /// How often the call succeeded.
    pub fn count(&self, call: &str) -> u64 {
        self.0.get(call).copied().unwrap_or(0)
    }

    /// How often the call was refused.
    pub fn refusals(&self, call: &str) -> u64 {
        self.reasons(call).map(|(_, n)| n).sum()
    }

    /// Why the call was refused, and how often for each reason.
    pub fn reasons(&self, call: &str) -> impl Iterator<Item = (&str, u64)> {
        let head = format!("{call}!");
        self.0.iter().filter_map(move |(what, n)| {
            let reason = what.strip_prefix(head.as_str())?;
            Some((reason, *n))
        })
    }
}
