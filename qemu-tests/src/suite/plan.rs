// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Turns a file of the suite into what the machine runs, by the rules of the suite's own runner.
//!
//! `tst.*` must succeed, `err.*` must end with status 1, `err.D_TAG.*` with that tag, `drp.TAG.*`
//! must report that drop; other programs are only compiled unless they name a trigger. The guest's
//! side is `guest/suite` and `guest/suite-cases`, which get all this in shell variables.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::options::{directories, Options};
use crate::session::Work;

/// The suite's location below the root that `scripts/suite` makes.
const PLACE: &str = "usr/lib/x86_64-linux-gnu/dtrace/testsuite";
/// Seconds that a case may take if it does not request more: three times the suite's limit, because
/// an emulated machine is slow.
const LIMIT: u64 = 123;
/// Seconds that the guest's scripts need beyond the case, for its filter and for killing what is
/// left.
const MARGIN: u64 = 30;

/// Paths of the suite and of the installation under test.
#[derive(Clone, Debug)]
pub struct Places {
    /// The directory that `scripts/suite` made.
    pub suite: PathBuf,
    /// The directory that `packaging/install` filled.
    pub installed: PathBuf,
    /// This checkout.
    pub top: PathBuf,
}

impl Places {
    /// The suite's top directory.
    pub fn top_of_suite(&self) -> PathBuf {
        self.suite.join("root").join(PLACE)
    }

    /// The script that the machine runs once, to work through the cases.
    pub fn runner(&self) -> String {
        let script = self.top.join("qemu-tests/guest/suite");
        let word = |path: &Path| quoted(&path.display().to_string());
        format!(
            "suite={}\ninstalled={}\n. {}\n",
            word(&self.suite.join("root")),
            word(&self.installed),
            word(&script)
        )
    }
}

/// The demands on a case.
#[derive(Debug)]
pub struct Demands {
    /// The exit status.
    pub status: i32,
    /// A tag that standard error must name.
    pub tag: Option<String>,
    /// The expected output, if the suite has one.
    pub output: Option<Vec<u8>>,
    /// Whether a filter has already joined standard output and standard error.
    pub filtered: bool,
    /// Whether the order of the lines counts.
    pub ordered: bool,
    /// Whether running out of time is not a failure.
    pub endless: bool,
    /// How often the case may be repeated until it passes.
    pub again: u32,
}

/// One case, ready to be run.
#[derive(Debug)]
pub struct Plan {
    /// What the machine runs.
    pub work: Work,
    /// What the judge checks.
    pub demands: Demands,
}

/// How a case is run.
enum Kind {
    D,
    Shell,
    Interpreter,
}

/// Plans the case `name`, a path below the suite's top. An error is the reason why the suite skips
/// it.
pub fn plan(places: &Places, name: &str) -> Result<Plan, String> {
    let top = places.top_of_suite();
    let path = top.join(name);
    let options = Options::read(&path);
    if options.given("skip") {
        return Err(options.value("skip"));
    }
    let kind = kind(&path)?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let words: Vec<&str> = file.split('.').collect();
    let (sort, second) = (words[0], words.get(1).copied().unwrap_or(""));

    let mut flags = vec!["-DARCH_x86_64"];
    let mut tag = None;
    if sort == "err" && second.starts_with("D_") {
        flags.push("-xerrtags");
        tag = Some(second.to_owned());
    } else if sort == "drp" {
        flags.push("-xdroptags");
        tag = Some(second.to_owned());
    }
    let limit = options.value("timeout").parse().unwrap_or(0).max(LIMIT);
    let base = path.with_extension("");
    let expected = [
        base.with_file_name(format!("{}.x86_64.r", name_of(&base))),
        with(&base, "r"),
    ]
    .iter()
    .find_map(|path| std::fs::read(path).ok());
    let filter = match with(&base, "r.p") {
        path if executable(&path) => below(&top, &path),
        _ => String::new(),
    };
    let variables = [
        ("case", name.to_owned()),
        ("base", below(&top, &base)),
        (
            "kind",
            match kind {
                Kind::D => "d",
                Kind::Shell => "shell",
                Kind::Interpreter => "interpreter",
            }
            .to_owned(),
        ),
        ("flags", flags.join(" ")),
        ("options", options.value("runtest-opts")),
        ("trigger", trigger(&top, &base, &options, sort, &kind)),
        ("timing", timing(&options)),
        ("limit", limit.to_string()),
        (
            "providers",
            if text(&path).contains("check_provider") {
                "yes"
            } else {
                "no"
            }
            .to_owned(),
        ),
        ("excuses", excuses(&top, &path)),
        ("filter", filter.clone()),
    ];
    let command = variables
        .iter()
        .map(|(key, value)| format!("{key}={}\n", quoted(value)))
        .collect();
    Ok(Plan {
        work: Work {
            name: name.to_owned(),
            command,
            limit: Duration::from_secs(limit + MARGIN),
            last: false,
        },
        demands: Demands {
            status: i32::from(sort == "err"),
            tag,
            output: expected,
            filtered: !filter.is_empty(),
            ordered: options.given("nosort"),
            endless: options.given("timeout-success"),
            again: options.value("reinvoke-failure").parse().unwrap_or(0),
        },
    })
}

/// The cases below a directory of the suite, as paths below its top, in order.
pub fn cases(places: &Places, below_top: &str) -> std::io::Result<Vec<String>> {
    let top = places.top_of_suite();
    let mut found = Vec::new();
    let mut dirs = vec![top.join(below_top)];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "d" || e == "sh")
                && !name_of(&path).starts_with('.')
            {
                found.push(below(&top, &path));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn kind(path: &Path) -> Result<Kind, String> {
    if path.extension().is_some_and(|e| e == "sh") {
        return if executable(path) {
            Ok(Kind::Shell)
        } else {
            Err("not executable".to_owned())
        };
    }
    let first = text(path);
    let first = first.split_whitespace().next();
    Ok(if first == Some("#!dtrace") {
        Kind::Interpreter
    } else {
        Kind::D
    })
}

/// The trigger's path below the suite's top; `none` if there is none, empty if the program is only
/// compiled.
fn trigger(top: &Path, base: &Path, options: &Options, sort: &str, kind: &Kind) -> String {
    let own = with(base, "t");
    if executable(&own) {
        return below(top, &own);
    }
    let named = if options.given("trigger") {
        options.value("trigger")
    } else {
        String::new()
    };
    match named.as_str() {
        "" if matches!(sort, "tst" | "err" | "drp") || !matches!(kind, Kind::D) => {
            "none".to_owned()
        }
        "" | "none" => named,
        _ => format!("test/triggers/{named}"),
    }
}

fn timing(options: &Options) -> String {
    match options.value("trigger-timing") {
        timing if timing.is_empty() => "synchro".to_owned(),
        timing => timing,
    }
}

/// The programs that decide whether the case makes sense on this system: the case's own, and those
/// of its directories.
fn excuses(top: &Path, path: &Path) -> String {
    let of = |dir: &Path, base: &str| {
        [format!("{base}.x86_64.x"), format!("{base}.x")]
            .iter()
            .map(|name| dir.join(name))
            .find(|path| executable(path))
    };
    let base = path.with_extension("");
    let own = of(base.parent().unwrap_or(top), &name_of(&base));
    own.into_iter()
        .chain(directories(path).iter().filter_map(|dir| of(dir, "test")))
        .map(|path| below(top, &path))
        .collect::<Vec<_>>()
        .join(" ")
}

fn executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn text(path: &Path) -> String {
    crate::vm::read_lossy(path)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// `base` with one more extension; dots in its name stay.
fn with(base: &Path, extension: &str) -> PathBuf {
    base.with_file_name(format!("{}.{extension}", name_of(base)))
}

fn below(top: &Path, path: &Path) -> String {
    path.strip_prefix(top).unwrap_or(path).display().to_string()
}

/// Quotes a word for bash.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_survive_bash() {
        assert_eq!(quoted("a'b $c"), r"'a'\''b $c'");
    }

    #[test]
    fn dots_of_a_name_stay() {
        assert_eq!(
            with(Path::new("test/err.D_TAG.name"), "r"),
            Path::new("test/err.D_TAG.name.r")
        );
    }
}
