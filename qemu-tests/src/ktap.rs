// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads the results of the kernel's unit tests from the console, in KTAP.
//!
//! A suite begins with `# Subtest: NAME` and a plan `1..N`. Each of its tests ends with a line `ok
//! M NAME` or `not ok M NAME`, indented once, as are the messages of a failed test before that
//! line. A planned test without such a line did not end, which is also a failure.

/// One test and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// `SUITE::TEST`.
    pub name: String,
    /// Its messages, if it failed.
    pub result: Result<(), String>,
}

/// A suite that is being read.
#[derive(Default)]
struct Suite {
    name: String,
    planned: Option<usize>,
    ended: usize,
    said: Vec<String>,
}

impl Suite {
    /// Closes the suite; planned tests that did not end become failures.
    fn close(self, tests: &mut Vec<Test>) {
        let Some(planned) = self.planned else {
            return;
        };
        for number in self.ended + 1..=planned {
            let said = self.said.join("\n");
            tests.push(Test {
                name: format!("{}::{number}", self.name),
                result: Err(format!("it did not end\n{said}")),
            });
        }
    }
}

/// Returns the tests in a console's log.
pub fn tests(log: &str) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut suite = Suite::default();
    for line in log.lines().map(message) {
        if let Some(name) = line.trim_start().strip_prefix("# Subtest: ") {
            let name = name.trim_end().to_owned();
            std::mem::replace(
                &mut suite,
                Suite {
                    name,
                    ..Suite::default()
                },
            )
            .close(&mut tests);
            continue;
        }
        let Some(inner) = line.strip_prefix("    ") else {
            continue;
        };
        if let Some(number) = inner.strip_prefix("1..") {
            suite.planned = number.trim().parse().ok();
        } else if let Some((ok, name)) = ending(inner) {
            let said = std::mem::take(&mut suite.said).join("\n");
            suite.ended += 1;
            tests.push(Test {
                name: format!("{}::{name}", suite.name),
                result: if ok { Ok(()) } else { Err(said) },
            });
        } else {
            suite.said.push(inner.to_owned());
        }
    }
    suite.close(&mut tests);
    tests
}

/// A line without the kernel's time stamp.
fn message(line: &str) -> &str {
    match line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("] "))
    {
        Some((time, rest)) if time.trim().parse::<f64>().is_ok() => rest,
        _ => line,
    }
}

/// If a line ends a test: whether the test passed, and its name.
fn ending(line: &str) -> Option<(bool, &str)> {
    let (ok, rest) = match line.strip_prefix("not ") {
        Some(rest) => (false, rest),
        None => (true, line),
    };
    let (number, name) = rest.strip_prefix("ok ")?.split_once(' ')?;
    number.parse::<usize>().ok()?;
    // A skipped test has a directive after its name; it counts as failed, because no test of the
    // module has a reason to be skipped.
    let (name, left_out) = match name.split_once(" # ") {
        Some((name, directive)) => (name, directive.starts_with("SKIP")),
        None => (name, false),
    };
    Some((ok && !left_out, name.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "[    9.000000] dtrace-vm: begin\n[   10.100000]     KTAP version 1\n\
        [   10.100001]     # Subtest: one\n[   10.100002]     # module: dtrace\n[   10.100003]     1..2\n\
        [   10.100004]     ok 1 good\n[   10.100005]     # bad: ASSERTION FAILED at a.rs:0\n\
        [   10.100006]     Expected x == y to be true, but is false\n[   10.100007]     not ok 2 bad\n\
        [   10.100008] # one: pass:1 fail:1 skip:0 total:2\n[   10.100009] not ok 1 one\n\
        [   10.100010]     KTAP version 1\n[   10.100011]     # Subtest: two\n[   10.100012]     1..2\n\
        [   10.100013]     ok 1 left # SKIP\n[   10.100014]     saying\n";

    #[test]
    fn each_test_of_the_plan_has_an_ending() {
        let found = tests(LOG);
        let names: Vec<&str> = found.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names, ["one::good", "one::bad", "two::left", "two::2"]);
        let failed: Vec<bool> = found.iter().map(|test| test.result.is_err()).collect();
        assert_eq!(failed, [false, true, true, true]);
    }

    #[test]
    fn a_failure_says_why() {
        let why = |name: &str| {
            let test = tests(LOG).into_iter().find(|test| test.name == name);
            test.and_then(|test| test.result.err()).unwrap_or_default()
        };
        assert!(why("one::bad").contains("Expected x == y"));
        assert!(why("two::2").contains("saying"));
    }

    #[test]
    fn a_log_without_suites_has_no_tests() {
        assert_eq!(tests("[ 1.0] ok 1 that is no test\nok\n"), []);
    }
}
