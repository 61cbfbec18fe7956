// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Decides whether a case of the suite passed.
//!
//! The suite's runner masks addresses and numbers of eBPF instructions, sorts the lines unless the
//! case says that their order counts, and compares. This module masks two more things, on both
//! sides, because they name what the two systems do not share:
//!
//! - **Where a fault happened.** `at BPF pc NNN` there is `at DIF offset NNN` here.
//! - **Which clause faulted.** Most expected texts name an eBPF program, `error in dt_clause_0 for
//!   probe ID 1 (P): W at …`, where every other DTrace names enabling, probe and action: `error on
//!   enabled probe ID 3 (ID 1: P): W in action #1 at …`. Both become the probe's name and the
//!   fault; enabling, action and probe ID (which depends on how many probes a system has) are
//!   removed.
//!
//! Two messages are ignored that the other DTrace never prints: the compiler's warnings about
//! declared variables that cut values, and that the process of `-c` or `-p` has exited.
//!
//! A case that its authors expect to fail (`@@xfail`, status 67) is judged like any other.

use regex_lite::Regex;

use super::plan::Demands;
use crate::session::Outcome;

/// The status with which `guest/suite-cases` reports that the suite skips the case.
const LEFT_OUT: i32 = 200;
/// The status with which a case reports that it cannot be expected to pass.
const EXCUSED: i32 = 67;

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As the suite demands.
    Pass,
    /// It failed: the reason in one line, and details.
    Fail(String, String),
    /// The suite skips it on this machine: why.
    Skip(String),
}

/// Masks what may differ between the two systems.
pub struct Judge {
    address: Regex,
    instruction: Regex,
    fault: Regex,
}

impl Judge {
    /// Compiles the expressions.
    pub fn new() -> Result<Self, regex_lite::Error> {
        Ok(Self {
            address: Regex::new("0x[0-9a-f]+")?,
            instruction: Regex::new("at (?:BPF pc|DIF offset) (?:[0-9]+|NNN)")?,
            fault: Regex::new(
                r"error (?:in dt_clause_[0-9]+ for probe ID [0-9]+ \(|on enabled probe ID [0-9]+ \(ID [0-9]+: )([^()]*)\): (.*?)(?: in (?:action #[0-9]+|predicate))?( at DIF offset NNN)?$",
            )?,
        })
    }

    /// Returns the verdict on a case's outcome.
    pub fn judge(&self, demands: &Demands, outcome: &Outcome) -> Verdict {
        if outcome.status == LEFT_OUT {
            return Verdict::Skip(outcome.stdout.trim().to_owned());
        }
        let late = outcome.timed_out() && !demands.endless;
        let mut wrong = Vec::new();
        let mut details = String::new();
        if late {
            wrong.push("it ran out of time".to_owned());
        } else if outcome.status == EXCUSED {
            wrong.push("it says that it cannot pass (status 67)".to_owned());
        } else if !outcome.timed_out() && outcome.status != demands.status {
            wrong.push(format!(
                "exit status {} instead of {}",
                outcome.status, demands.status
            ));
        }
        if let Some(tag) = &demands.tag {
            if !outcome.stderr.contains(&format!("[{tag}]")) {
                wrong.push(format!("no [{tag}]"));
            }
        }
        if let Some(expected) = &demands.output {
            let expected = self.masked(&String::from_utf8_lossy(expected), demands.ordered);
            let found = self.masked(&joined(demands, outcome), demands.ordered);
            if expected != found {
                wrong.push("other output".to_owned());
                details = difference(&expected, &found);
            }
        }
        if wrong.is_empty() {
            return Verdict::Pass;
        }
        if details.is_empty() {
            details = joined(demands, outcome);
        }
        Verdict::Fail(wrong.join(", "), details)
    }

    fn masked(&self, text: &str, ordered: bool) -> Vec<String> {
        let mut lines: Vec<String> = text.lines().map(|line| self.line(line)).collect();
        if !ordered {
            lines.sort();
        }
        lines
    }

    fn line(&self, line: &str) -> String {
        let line = self.address.replace_all(line, "{ptr}");
        let line = self.instruction.replace_all(&line, "at DIF offset NNN");
        self.fault
            .replace_all(&line, "error at probe $1: $2$3")
            .into_owned()
    }
}

/// Standard output and standard error in the form of the suite's expected texts.
fn joined(demands: &Demands, outcome: &Outcome) -> String {
    let mut text = outcome.stdout.clone();
    let lines = outcome.stderr.split_inclusive('\n');
    let said: String = lines.filter(|line| !is_ours_alone(line)).collect();
    if !demands.filtered && !said.is_empty() {
        text.push_str("-- @@stderr --\n");
        text.push_str(&said);
    }
    text
}

fn is_ours_alone(line: &str) -> bool {
    let warns = line.starts_with("dtrace: warning: ") && line.contains(" and cuts values of type ");
    let pid = line.strip_prefix("dtrace: pid ");
    let pid = pid.and_then(|rest| rest.trim_end().strip_suffix(" has exited"));
    warns || pid.is_some_and(|pid| pid.bytes().all(|c| c.is_ascii_digit()))
}

/// The lines that only one side has, in their order there: `-` expected, `+` found.
fn difference(expected: &[String], found: &[String]) -> String {
    let mut text = String::new();
    for (sign, these, others) in [('-', expected, found), ('+', found, expected)] {
        let mut others: Vec<&String> = others.iter().collect();
        for line in these {
            match others.iter().position(|other| *other == line) {
                Some(at) => drop(others.swap_remove(at)),
                None => text.push_str(&format!("{sign}{line}\n")),
            }
        }
    }
    if text.is_empty() {
        text.push_str("(the same lines in another order)\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands(output: &str) -> Demands {
        Demands {
            status: 0,
            tag: None,
            output: Some(output.as_bytes().to_owned()),
            filtered: false,
            ordered: false,
            endless: false,
            again: 0,
        }
    }

    fn outcome(status: i32, stdout: &str, stderr: &str) -> Outcome {
        Outcome {
            status,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            ..Outcome::default()
        }
    }

    fn verdict(demands: &Demands, outcome: &Outcome) -> Verdict {
        Judge::new().expect("expressions").judge(demands, outcome)
    }

    fn fails(verdict: &Verdict) -> bool {
        matches!(verdict, Verdict::Fail(..))
    }

    #[test]
    fn warnings_of_cut_values_are_left_out_and_errors_are_not() {
        let cuts =
            "dtrace: warning: line 3: x is declared \"int\" and cuts values of type \"long\"\n";
        assert_eq!(
            verdict(&demands("5\n"), &outcome(0, "5\n", cuts)),
            Verdict::Pass
        );
        let error = "dtrace: failed to compile script x.d: line 3\n";
        assert!(fails(&verdict(&demands("5\n"), &outcome(0, "5\n", error))));
    }

    #[test]
    fn that_a_process_has_exited_is_left_out_and_how_else_it_ended_is_not() {
        let told = |line| verdict(&demands("5\n"), &outcome(0, "5\n", line));
        assert_eq!(told("dtrace: pid 12 has exited\n"), Verdict::Pass);
        assert!(fails(&told("dtrace: pid 12 exited with status 1\n")));
        assert!(fails(&told("dtrace: pid x has exited\n")));
    }

    #[test]
    fn faults_are_the_same_whoever_reports_them() {
        let theirs = "dtrace: error in dt_clause_0 for probe ID 1 (dtrace:::BEGIN): invalid address ({ptr}) at BPF pc NNN\n";
        let ours = "dtrace: error on enabled probe ID 3 (ID 1: dtrace:::BEGIN): invalid address (0x0) in action #1 at DIF offset 24\n";
        let other = ours.replace("invalid address", "illegal operation");
        let elsewhere = ours.replace("BEGIN", "END");
        assert_eq!(
            verdict(&demands(theirs), &outcome(0, ours, "")),
            Verdict::Pass
        );
        assert!(fails(&verdict(&demands(theirs), &outcome(0, &other, ""))));
        assert!(fails(&verdict(
            &demands(theirs),
            &outcome(0, &elsewhere, "")
        )));
    }

    #[test]
    fn order_counts_only_where_asked() {
        let mut demands = demands("a\nb\n");
        assert_eq!(verdict(&demands, &outcome(0, "b\na\n", "")), Verdict::Pass);
        assert!(fails(&verdict(&demands, &outcome(0, "b\nb\n", ""))));
        demands.ordered = true;
        assert!(fails(&verdict(&demands, &outcome(0, "b\na\n", ""))));
    }

    #[test]
    fn status_tag_and_time_count() {
        let mut demands = demands("");
        demands.output = None;
        demands.status = 1;
        demands.tag = Some("D_SYNTAX".to_owned());
        assert_eq!(
            verdict(&demands, &outcome(1, "", "dtrace: [D_SYNTAX] no")),
            Verdict::Pass
        );
        assert!(fails(&verdict(
            &demands,
            &outcome(1, "", "dtrace: [D_OTHER] no")
        )));
        assert!(fails(&verdict(&demands, &outcome(0, "", "[D_SYNTAX]"))));
        assert!(fails(&verdict(&demands, &outcome(124, "", "[D_SYNTAX]"))));
        assert!(fails(&verdict(
            &demands,
            &outcome(EXCUSED, "", "[D_SYNTAX]")
        )));
        demands.endless = true;
        assert_eq!(
            verdict(&demands, &outcome(124, "", "[D_SYNTAX]")),
            Verdict::Pass
        );
    }

    #[test]
    fn a_case_may_be_left_out() {
        assert_eq!(
            verdict(&demands("x"), &outcome(LEFT_OUT, "no such machine\n", "")),
            Verdict::Skip("no such machine".to_owned())
        );
    }

    #[test]
    fn difference_shows_both_sides() {
        let of = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(difference(&of("a\nb\nb"), &of("b\nc")), "-a\n-b\n+c\n");
    }
}
