// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The scoreboard: what passed, by directory and class, and what contradicts the list of expected
//! failures.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::judge::Verdict;
use super::lists::{Class, Classes, Expected};

/// How many lines of a failure's details are shown, from the beginning and from the end each.
const DETAILS: usize = 20;

const CLASSES: [Class; 3] = [Class::Language, Class::Linux, Class::Impl];

/// The verdicts, counted.
pub struct Board<'a> {
    classes: &'a Classes,
    expected: &'a Expected,
    verdicts: BTreeMap<String, Verdict>,
}

/// How many cases passed, failed, and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Count {
    fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail(..) => self.failed += 1,
            Verdict::Skip(_) => self.skipped += 1,
        }
    }

    fn run(&self) -> usize {
        self.passed + self.failed
    }
}

impl<'a> Board<'a> {
    /// Creates an empty board.
    pub fn new(classes: &'a Classes, expected: &'a Expected) -> Self {
        Self {
            classes,
            expected,
            verdicts: BTreeMap::new(),
        }
    }

    /// Adds the verdict on a case.
    pub fn add(&mut self, case: &str, verdict: Verdict) {
        self.verdicts.insert(case.to_owned(), verdict);
    }

    /// Returns the table of passed and run cases, by directory and class, with the sum of each
    /// class.
    pub fn table(&self) -> String {
        let mut rows: BTreeMap<&str, [Count; 3]> = BTreeMap::new();
        let mut sums = [Count::default(); 3];
        for (case, verdict) in &self.verdicts {
            let class = self.classes.of(case);
            let directory = case.rsplit_once('/').map_or(case.as_str(), |(dir, _)| dir);
            let row = rows.entry(directory).or_default();
            for (at, of) in CLASSES.iter().enumerate() {
                if *of == class {
                    row[at].add(verdict);
                    sums[at].add(verdict);
                }
            }
        }
        let mut text = format!("{:<44}", "passed of those run");
        for class in CLASSES {
            let _ = write!(text, "{class:>12}");
        }
        text.push('\n');
        for (directory, row) in &rows {
            let _ = write!(text, "{directory:<44}");
            for count in row {
                let cell = match count.run() {
                    0 => String::new(),
                    run => format!("{}/{run}", count.passed),
                };
                let _ = write!(text, "{cell:>12}");
            }
            text.push('\n');
        }
        for (class, count) in CLASSES.iter().zip(&sums) {
            if count.run() + count.skipped > 0 {
                let _ = writeln!(
                    text,
                    "{class}: {} of {} passed ({:.1} %), {} left out by the suite",
                    count.passed,
                    count.run(),
                    100.0 * count.passed as f64 / count.run().max(1) as f64,
                    count.skipped
                );
            }
        }
        text
    }

    /// Returns all failures, one line each with the reason.
    pub fn failures(&self) -> String {
        self.verdicts
            .iter()
            .filter_map(|(case, verdict)| match verdict {
                Verdict::Fail(why, _) => Some(self.line(case, why)),
                _ => None,
            })
            .collect()
    }

    /// Returns a failure's line and details; empty if the case did not fail.
    pub fn details(&self, case: &str, verdict: &Verdict) -> String {
        let Verdict::Fail(why, details) = verdict else {
            return String::new();
        };
        let mut text = self.line(case, why);
        let lines: Vec<&str> = details.lines().collect();
        // A failing program gives the reason at the end of its output, so keep that too.
        let left_out = lines.len().saturating_sub(2 * DETAILS);
        let (begin, rest) = lines.split_at(lines.len().min(DETAILS));
        let mut add = |lines: &[&str]| {
            for line in lines {
                let _ = writeln!(text, "    {line}");
            }
        };
        add(begin);
        if left_out > 0 {
            add(&[&format!("({left_out} lines)")]);
        }
        add(&rest[left_out..]);
        text
    }

    fn line(&self, case: &str, why: &str) -> String {
        let class = self.classes.of(case);
        let known = self.expected.reason(case).unwrap_or("not expected");
        format!("FAIL {case} [{class}] {why} ({known})\n")
    }

    /// Returns what contradicts the list of expected failures. That all cases below a listed path
    /// pass can be said only if all of them ran (`complete`).
    pub fn surprises(&self, complete: bool) -> Vec<String> {
        let mut found: Vec<String> = self
            .verdicts
            .iter()
            .filter_map(|(case, verdict)| match verdict {
                Verdict::Fail(why, _) if self.expected.reason(case).is_none() => {
                    Some(format!("{case} failed unexpectedly: {why}"))
                }
                Verdict::Pass if !self.expected.may_pass(case) => Some(passed(case)),
                _ => None,
            })
            .collect();
        if complete {
            found.extend(
                self.expected
                    .fields()
                    .filter(|field| !self.fails_below(field))
                    .map(passed),
            );
        }
        found
    }

    fn fails_below(&self, field: &str) -> bool {
        self.verdicts
            .iter()
            .any(|(case, verdict)| case.starts_with(field) && matches!(verdict, Verdict::Fail(..)))
    }
}

fn passed(what: &str) -> String {
    format!("{what} passed: take it off the list of expected failures")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surprises_are_both_ways() {
        let classes = Classes::parse("").expect("classes");
        let expected = Expected::parse("d/b.d\tno\nd/c.d\tno\nf/\tno\n").expect("list");
        let mut board = Board::new(&classes, &expected);
        let failed = || Verdict::Fail("other output".to_owned(), "-a\n".to_owned());
        board.add("d/a.d", Verdict::Pass);
        board.add("d/b.d", failed());
        assert!(board.surprises(false).is_empty());
        board.add("d/c.d", Verdict::Pass);
        board.add("d/e.d", failed());
        let surprises = board.surprises(true);
        assert_eq!(surprises.len(), 3);
        assert!(surprises[0].starts_with("d/c.d passed"));
        assert!(surprises[1].starts_with("d/e.d failed unexpectedly"));
        assert!(surprises[2].starts_with("f/ passed"));
        board.add("f/a.d", failed());
        assert_eq!(board.surprises(true).len(), 2);
    }

    #[test]
    fn those_left_out_are_not_run() {
        let classes = Classes::parse("l/\tlinux\n").expect("classes");
        let expected = Expected::parse("").expect("list");
        let mut board = Board::new(&classes, &expected);
        board.add("d/a.d", Verdict::Pass);
        board.add("d/b.d", Verdict::Skip("no".to_owned()));
        board.add("l/c.d", Verdict::Fail("no".to_owned(), String::new()));
        let table = board.table();
        assert!(table.contains("language: 1 of 1 passed (100.0 %), 1 left out"));
        assert!(table.contains("linux: 0 of 1 passed (0.0 %), 0 left out"));
    }
}
