// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! This project's lists of the suite's cases, in `qemu-tests/suite`.
//!
//! `classes` assigns a class to each case: the D language and what any DTrace has, Linux's
//! providers and kernel names, or internals of the other implementation. A line is a path prefix
//! and a class; the longest matching prefix counts.
//!
//! `expected-failures` has a case and a reason on each line. It may only shrink: a case on it that
//! passes is as wrong as a failure that is not on it. A case that sometimes passes has a reason
//! that begins with `sometimes: `. A path that ends in `/` stands for all cases below it, for
//! example because a provider is missing; it is an error if none of them fails.

use std::collections::BTreeMap;
use std::fmt;

/// The subject of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The language, the compiler, the consumer.
    Language,
    /// Providers and names of Linux.
    Linux,
    /// Internals of the other implementation.
    Impl,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Language => "language",
            Self::Linux => "linux",
            Self::Impl => "impl",
        })
    }
}

/// The class of each path prefix, longest first.
#[derive(Debug)]
pub struct Classes(Vec<(String, Class)>);

impl Classes {
    /// Parses the list.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rules = lines(text)
            .map(|line| {
                let (path, class) = line.split_once('\t').ok_or(format!("no class: {line}"))?;
                let class = match class {
                    "language" => Class::Language,
                    "linux" => Class::Linux,
                    "impl" => Class::Impl,
                    other => return Err(format!("no such class: {other}")),
                };
                Ok((path.to_owned(), class))
            })
            .collect::<Result<Vec<_>, _>>()?;
        rules.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Ok(Self(rules))
    }

    /// The class of a case; [`Class::Language`] if no prefix matches.
    pub fn of(&self, case: &str) -> Class {
        self.0
            .iter()
            .find(|(path, _)| case.starts_with(path.as_str()))
            .map_or(Class::Language, |(_, class)| *class)
    }
}

/// The failures that are expected.
#[derive(Debug)]
pub struct Expected(BTreeMap<String, String>);

impl Expected {
    /// Parses the list.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut cases = BTreeMap::new();
        for line in lines(text) {
            let (case, reason) = line
                .split_once('\t')
                .filter(|(_, reason)| !reason.is_empty())
                .ok_or(format!("no reason: {line}"))?;
            if cases.insert(case.to_owned(), reason.to_owned()).is_some() {
                return Err(format!("twice: {case}"));
            }
        }
        Ok(Self(cases))
    }

    /// Why the case is expected to fail, if it is.
    pub fn reason(&self, case: &str) -> Option<&str> {
        let own = self.0.get(case);
        own.or_else(|| {
            self.0
                .iter()
                .rfind(|(path, _)| path.ends_with('/') && case.starts_with(path.as_str()))
                .map(|(_, reason)| reason)
        })
        .map(String::as_str)
    }

    /// Whether passing is not an error for the case.
    pub fn may_pass(&self, case: &str) -> bool {
        self.0
            .get(case)
            .is_none_or(|reason| reason.starts_with("sometimes: "))
    }

    /// The listed paths that stand for all cases below them.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0
            .keys()
            .map(String::as_str)
            .filter(|path| path.ends_with('/'))
    }

    /// The listed cases and paths that the suite does not have.
    pub fn unknown<'a>(&'a self, all: &'a [String]) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str).filter(|&path| {
            !all.iter()
                .any(|case| case == path || path.ends_with('/') && case.starts_with(path))
        })
    }
}

/// The lines that are neither empty nor comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_counts() {
        let classes =
            Classes::parse("# why\na/\tlinux\na/b/\timpl\na/b/c.d\tlanguage\n").expect("list");
        assert_eq!(classes.of("a/x.d"), Class::Linux);
        assert_eq!(classes.of("a/b/x.d"), Class::Impl);
        assert_eq!(classes.of("a/b/c.d"), Class::Language);
        assert_eq!(classes.of("z.d"), Class::Language);
        assert!(Classes::parse("a\tnone\n").is_err());
    }

    #[test]
    fn a_failure_needs_a_reason() {
        assert!(Expected::parse("a.d\n").is_err());
        assert!(Expected::parse("a.d\t\n").is_err());
        assert!(Expected::parse("a.d\tx\na.d\ty\n").is_err());
        let expected = Expected::parse("a.d\tnot yet\nb.d\tsometimes: slow\n").expect("list");
        assert_eq!(expected.reason("a.d"), Some("not yet"));
        assert!(!expected.may_pass("a.d"));
        assert!(expected.may_pass("b.d"));
        assert!(expected.may_pass("c.d"));
        let all = ["b.d".to_owned()];
        assert_eq!(expected.unknown(&all).collect::<Vec<_>>(), ["a.d"]);
    }

    #[test]
    fn a_field_stands_for_its_cases() {
        let expected =
            Expected::parse("f/\tno provider\nf/a.d\tno tool\nf/g/\tno card\n").expect("list");
        assert_eq!(expected.reason("f/a.d"), Some("no tool"));
        assert_eq!(expected.reason("f/b.d"), Some("no provider"));
        assert_eq!(expected.reason("f/g/b.d"), Some("no card"));
        assert_eq!(expected.reason("g/b.d"), None);
        assert!(!expected.may_pass("f/a.d"));
        assert!(expected.may_pass("f/b.d"));
        assert_eq!(expected.fields().collect::<Vec<_>>(), ["f/", "f/g/"]);
        let all = ["f/a.d".to_owned()];
        assert_eq!(expected.unknown(&all).collect::<Vec<_>>(), ["f/g/"]);
    }
}
