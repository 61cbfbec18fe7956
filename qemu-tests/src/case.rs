// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A case: a D program or a shell script, with its expected output next to it.
//!
//! `cases/AREA/NAME.d` is run as `dtrace -s NAME.d`, `NAME.sh` by bash, with the module loaded.
//! `NAME.out` is the expected standard output, and `NAME.err`, if it exists, the expected standard
//! error ([`crate::expect`]). A `PROGRAM.c` in the same folder is compiled beforehand and can be
//! called by its name (`qemu-tests/case-programs`). Lines in a comment among the first 30 lines of
//! the source change the defaults:
//!
//! | line | meaning | default |
//! |---|---|---|
//! | `@args: …` | words for dtrace's command line, as bash reads them | none |
//! | `@status: N` | the expected exit status | 0 |
//! | `@limit: N` | the most seconds it takes on an idle computer ([`PATIENCE`]) | 30 |
//! | `@slow: WHY` | `make test` skips it, `make cases` runs it | both run it |
//! | `@last: WHY` | no other case can use the machine after it | the next one does |
//! | `@debug: quick` | `make test` runs it on the debug kernel too | it does not |
//! | `@debug: never` | the debug kernel lacks something that it needs | it runs there |
//! | `@before: 7.3` | kernels from that version on lack something that it needs | all have it |

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::Arguments;

use crate::expect::Expected;
use crate::session::{Ending, Outcome, Work};
use crate::vm::Setup;

/// The limit of a case without `@limit`, in seconds.
const LIMIT: u64 = 30;

/// The harness ends a case after this many times its limit. A limit is to end what hangs; a
/// computer that runs other things as well is slow but does not hang.
const PATIENCE: u32 = 6;

/// How a case relates to the debug kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDebug {
    /// Runs there when all cases do.
    Usual,
    /// Also runs there in every `make test`.
    Quick,
    /// Must not run there: something that it needs is not built for that kernel.
    Never,
}

/// A kernel's version, as far as cases distinguish versions: 7.3.4 is `(7, 3)`.
type Version = (u32, u32);

/// One case.
#[derive(Debug)]
pub struct Case {
    /// `AREA/NAME`.
    pub name: String,
    /// The text that bash runs.
    pub command: String,
    /// How long it may take on an idle computer.
    pub limit: Duration,
    last: bool,
    /// `make test` skips it.
    pub slow: bool,
    /// How it relates to the debug kernel.
    pub on_debug: OnDebug,
    before: Option<Version>,
    status: i32,
    stdout: Expected,
    stderr: Option<Expected>,
}

impl Case {
    /// Reads the case whose source is `path`; `cases` is the folder of all cases.
    pub fn read(cases: &Path, path: &Path) -> Result<Self, String> {
        let fail = |why: String| format!("{}: {why}", path.display());
        let source = fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
        let name = path
            .strip_prefix(cases)
            .unwrap_or(path)
            .with_extension("")
            .display()
            .to_string();
        let number = |key: &str, usual: u64| match header(&source, key) {
            None => Ok(usual),
            Some(text) => text
                .parse()
                .map_err(|_| fail(format!("@{key}: not a number: {text}"))),
        };
        let expected = |extension: &str| {
            let file = path.with_extension(extension);
            let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            Expected::parse(&text).map_err(|e| format!("{}: {e}", file.display()))
        };
        let stderr = if path.with_extension("err").exists() {
            Some(expected("err")?)
        } else {
            None
        };
        let on_debug = match header(&source, "debug") {
            None => OnDebug::Usual,
            Some("quick") => OnDebug::Quick,
            Some("never") => OnDebug::Never,
            Some(text) => return Err(fail(format!("@debug: not `quick` or `never`: {text}"))),
        };
        let before = match header(&source, "before") {
            None => None,
            Some(text) => {
                Some(version(text).ok_or_else(|| fail(format!("@before: not a version: {text}")))?)
            }
        };
        Ok(Self {
            command: command(path, header(&source, "args").unwrap_or("")),
            limit: Duration::from_secs(number("limit", LIMIT)?),
            last: header(&source, "last").is_some(),
            slow: header(&source, "slow").is_some(),
            status: i32::try_from(number("status", 0)?)
                .map_err(|_| fail("@status: too large".to_owned()))?,
            stdout: expected("out")?,
            stderr,
            name,
            on_debug,
            before,
        })
    }

    /// Reads all cases below a folder, sorted by path.
    pub fn all(cases: &Path) -> Result<Vec<Self>, String> {
        let mut sources = Vec::new();
        find(cases, &mut sources).map_err(|e| format!("{}: {e}", cases.display()))?;
        sources.sort();
        sources.iter().map(|path| Self::read(cases, path)).collect()
    }

    /// Whether the booted kernel has what the case needs.
    pub fn can_run(&self, setup: &Setup) -> bool {
        self.has_its_needs(setup.debug, &setup.release)
    }

    fn has_its_needs(&self, debug: bool, release: &str) -> bool {
        let in_time = match (self.before, version(release)) {
            (Some(before), Some(booted)) => booted < before,
            _ => true,
        };
        in_time && !(debug && self.on_debug == OnDebug::Never)
    }

    /// What the machine does for it.
    pub fn work(&self) -> Work {
        Work {
            name: self.name.clone(),
            command: self.command.clone(),
            limit: self.limit * PATIENCE,
            last: self.last,
        }
    }

    /// Checks how the case ended with [`Self::check`], and writes how long it took to `times`.
    pub fn judge(&self, ending: Ending, times: &mut impl Write) -> Result<(), String> {
        let outcome = ending?;
        // A full disk does not fail a case.
        let _ = writeln!(times, "{:.1} {}", outcome.took.as_secs_f64(), self.name);
        self.check(&outcome)
    }

    /// Whether the outcome is as expected; the error is a report.
    pub fn check(&self, outcome: &Outcome) -> Result<(), String> {
        let mut wrong = Vec::new();
        if outcome.timed_out() {
            let limit = self.limit.as_secs();
            wrong.push(format!(
                "it took longer than {PATIENCE} times {limit} s, its limit in a machine that is alone"
            ));
        } else if outcome.status != self.status {
            wrong.push(format!(
                "exit status {} instead of {}",
                outcome.status, self.status
            ));
        }
        if let Err(why) = self.stdout.check(&outcome.stdout) {
            wrong.push(format!("standard output: {why}"));
        }
        if let Some(Err(why)) = self.stderr.as_ref().map(|e| e.check(&outcome.stderr)) {
            wrong.push(format!("standard error: {why}"));
        }
        if wrong.is_empty() {
            return Ok(());
        }
        wrong.extend(outcome.trapped.clone());
        Err(format!(
            "{}\n--- standard output\n{}--- standard error\n{}---",
            wrong.join("\n"),
            outcome.stdout,
            outcome.stderr
        ))
    }
}

/// Whether libtest-mimic will run the case: machines are prepared before it decides.
pub fn wanted(args: &Arguments, case: &Case) -> bool {
    let matches = |pattern: &String| {
        if args.exact {
            case.name == *pattern
        } else {
            case.name.contains(pattern.as_str())
        }
    };
    let of_its_kind = match case.slow {
        true => args.ignored || args.include_ignored,
        false => !args.ignored,
    };
    of_its_kind && args.filter.as_ref().is_none_or(matches) && !args.skip.iter().any(matches)
}

fn command(path: &Path, args: &str) -> String {
    let directory = path.parent().unwrap_or(path).display();
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    if path.extension().is_some_and(|e| e == "d") {
        format!("cd {directory} && exec dtrace {args} -s {file}\n")
    } else {
        format!("cd {directory} && exec bash {file}\n")
    }
}

/// The version at the beginning of a release string.
fn version(release: &str) -> Option<Version> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

/// The text after `@key:` in the first 30 lines of the source.
fn header<'a>(source: &'a str, key: &str) -> Option<&'a str> {
    let key = format!("@{key}:");
    source.lines().take(30).find_map(|line| {
        let (_, text) = line.split_once(&key)?;
        Some(text.trim().trim_end_matches("*/").trim_end())
    })
}

fn find(dir: &Path, sources: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, sources)?;
        } else if path.extension().is_some_and(|e| e == "d" || e == "sh") {
            sources.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_found_in_any_comment() {
        let source = "/*\n * @args: -q -x strsize=8\n */\n# @limit: 60\n/* @status: 1 */\n";
        assert_eq!(header(source, "args"), Some("-q -x strsize=8"));
        assert_eq!(header(source, "limit"), Some("60"));
        assert_eq!(header(source, "status"), Some("1"));
        assert_eq!(header(source, "other"), None);
    }

    fn case() -> Case {
        Case {
            name: "area/name".to_owned(),
            command: String::new(),
            limit: Duration::from_secs(1),
            last: false,
            slow: false,
            on_debug: OnDebug::Usual,
            before: None,
            status: 1,
            stdout: Expected::parse("out\n").expect("out"),
            stderr: Some(Expected::parse("err\n").expect("err")),
        }
    }

    #[test]
    fn cases_run_where_the_kernel_has_their_needs() {
        assert_eq!(version("7.2.12+deb13-amd64"), Some((7, 2)));
        assert_eq!(version("7"), None);
        assert_eq!(version("latest"), None);

        let usual = case();
        assert!(usual.has_its_needs(true, "7.2.12-debug"));
        let never = Case {
            on_debug: OnDebug::Never,
            ..case()
        };
        assert!(never.has_its_needs(false, "7.2.12+deb13-amd64"));
        assert!(!never.has_its_needs(true, "7.2.12-debug"));
        let before = Case {
            before: Some((7, 3)),
            ..case()
        };
        assert!(before.has_its_needs(false, "7.2.12+deb13-amd64"));
        assert!(before.has_its_needs(false, "6.19.1"));
        assert!(!before.has_its_needs(false, "7.3.4+deb13-amd64"));
        assert!(!before.has_its_needs(false, "7.10.0"));
    }

    #[test]
    fn slow_cases_are_what_a_test_calls_ignored() {
        let slow = Case {
            slow: true,
            ..case()
        };
        let runs = |words: &[&str]| {
            let args = Arguments::from_iter(["cases"].iter().chain(words));
            (wanted(&args, &case()), wanted(&args, &slow))
        };
        assert_eq!(runs(&[]), (true, false));
        assert_eq!(runs(&["--include-ignored", "area"]), (true, true));
        assert_eq!(runs(&["--ignored"]), (false, true));
        assert_eq!(runs(&["--include-ignored", "areas"]), (false, false));
        assert_eq!(runs(&["area", "--exact"]), (false, false));
    }

    #[test]
    fn outcome_is_checked_in_all_its_parts() {
        let case = case();
        let good = || Outcome {
            status: 1,
            stdout: "out\n".to_owned(),
            stderr: "err\n".to_owned(),
            took: Duration::from_millis(1250),
            ..Outcome::default()
        };
        assert!(case.check(&good()).is_ok());
        let mut times = Vec::new();
        assert!(case.judge(Ok(good()), &mut times).is_ok());
        assert_eq!(times, format!("1.2 {}\n", case.name).as_bytes());
        assert!(case.judge(Err("it hung".to_owned()), &mut times).is_err());
        for bad in [
            Outcome {
                status: 0,
                ..good()
            },
            Outcome {
                stdout: String::new(),
                ..good()
            },
            Outcome {
                stderr: String::new(),
                ..good()
            },
        ] {
            assert!(case.check(&bad).is_err());
        }
    }
}
