// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The manual pages, for tests that compare them with the library.
//!
//! A name is in the first column of a table, as code: `` `strlen(string)` `` documents `strlen`.

use crate::compile::Settings;
use crate::corpus;
use crate::source::Source;
use std::collections::BTreeSet;

/// The command's page.
pub const COMMAND: &str = include_str!("../../../docs/man/dtrace.8.md");
/// The language's page.
pub const LANGUAGE: &str = include_str!("../../../docs/man/dtrace.5.md");

/// Returns the rows of the table of a section, and the names that each documents.
pub fn rows<'a>(page: &'a str, section: &str) -> Vec<(Vec<String>, &'a str)> {
    let heading = format!("\n## {section}\n");
    let (_, rest) = page.split_once(&heading).expect("the section");
    let lines = rest.lines().take_while(|line| !line.starts_with('#'));
    let rows = lines.filter_map(|line| {
        let (term, text) = line.strip_prefix("| ")?.split_once(" | ")?;
        let codes = term.split('`').skip(1).step_by(2);
        let names = codes.map(|code| {
            let end = code.find(['(', '[', '=', ' ']);
            code[..end.unwrap_or(code.len())].to_owned()
        });
        Some((names.collect(), text))
    });
    rows.collect()
}

/// Returns the names that the table of a section documents.
pub fn names(page: &str, section: &str) -> BTreeSet<String> {
    names_with(page, section, "")
}

/// Returns those of these names whose rows contain `words`.
pub fn names_with(page: &str, section: &str, words: &str) -> BTreeSet<String> {
    let rows = rows(page, section).into_iter();
    let rows = rows.filter(|(_, text)| text.contains(words));
    let names: BTreeSet<_> = rows.flat_map(|(names, _)| names).collect();
    assert!(!names.is_empty(), "{section}");
    names
}

#[test]
fn the_programs_of_the_language_compile() {
    let lines: Vec<_> = LANGUAGE.lines().collect();
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with("    ");
    let programs = lines.split(is_text).map(|lines| lines.join("\n"));
    let programs: Vec<_> = programs.filter(|p| !p.trim().is_empty()).collect();
    assert!(programs.len() >= 4);
    let settings = Settings {
        macros: vec![("target".to_owned(), 7)],
        ..Settings::default()
    };
    for program in programs {
        corpus::compiles(&Source::file("dtrace.5.md", program), &settings);
    }
}
