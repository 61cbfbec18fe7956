// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The options in a case of the suite.
//!
//! They are lines of the form `@@NAME: VALUE` in the case's file, or else in a `test.options` of
//! its directory or of one above it up to the suite's top, which contains a file `Makecheck`. If
//! `test.x86_64.options` exists, it is read instead of `test.options`.

use std::fs;
use std::path::{Path, PathBuf};

/// The options of one case.
#[derive(Debug)]
pub struct Options {
    /// The text of the case, and of the options files above it, nearest first.
    texts: Vec<String>,
}

impl Options {
    /// Reads the options of the case `path`.
    pub fn read(path: &Path) -> Self {
        let mut texts = vec![text(path)];
        for dir in path.ancestors().skip(1) {
            let special = dir.join("test.x86_64.options");
            texts.push(text(&if special.exists() {
                special
            } else {
                dir.join("test.options")
            }));
            if dir.join("Makecheck").exists() {
                break;
            }
        }
        Self { texts }
    }

    /// Whether an option whose name begins with `name` is given anywhere.
    pub fn given(&self, name: &str) -> bool {
        let mark = format!("@@{name}");
        self.texts.iter().any(|text| text.contains(&mark))
    }

    /// The option's value, from the nearest text that has one; empty if none has.
    pub fn value(&self, name: &str) -> String {
        let mark = format!("@@{name}");
        self.texts
            .iter()
            .map(|text| text.lines().filter_map(|line| value(line, &mark)).collect())
            .find(|value: &String| !value.is_empty())
            .unwrap_or_default()
    }
}

/// The directories of a case up to the suite's top, nearest first.
pub fn directories(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in path.ancestors().skip(1) {
        found.push(dir.to_owned());
        if dir.join("Makecheck").exists() {
            break;
        }
    }
    found
}

/// The value in `line` of the option with this mark. A longer option name does not match.
fn value(line: &str, mark: &str) -> Option<String> {
    let (_, rest) = line.split_once(mark)?;
    let rest = match rest.trim_start_matches(' ').strip_prefix(':') {
        Some(rest) => rest.strip_prefix(' ').unwrap_or(rest),
        None if rest.is_empty() || rest.starts_with(' ') => rest,
        None => return None,
    };
    Some(rest.trim_end_matches("*/").trim_end_matches(' ').to_owned())
}

/// Reads a file as text; some files of the suite are not UTF-8.
fn text(path: &Path) -> String {
    fs::read(path).map_or_else(
        |_| String::new(),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(texts: &[&str]) -> Options {
        Options {
            texts: texts.iter().map(|&text| text.to_owned()).collect(),
        }
    }

    #[test]
    fn value_ends_with_the_comment() {
        let options = options(&["/* @@runtest-opts: -Z -q */\n# @@timeout: 70\n"]);
        assert_eq!(options.value("runtest-opts"), "-Z -q");
        assert_eq!(options.value("timeout"), "70");
        assert_eq!(options.value("trigger"), "");
    }

    #[test]
    fn a_longer_name_is_another_option() {
        let options = options(&["/* @@trigger-timing: before */\n/* @@nosort */"]);
        assert_eq!(options.value("trigger"), "");
        assert_eq!(options.value("trigger-timing"), "before");
        assert!(options.given("nosort"));
        assert!(!options.given("timeout"));
    }

    #[test]
    fn the_nearest_text_counts() {
        let options = options(&["", "@@trigger: none\n", "@@trigger: other\n@@timeout: 9\n"]);
        assert_eq!(options.value("trigger"), "none");
        assert_eq!(options.value("timeout"), "9");
    }
}
