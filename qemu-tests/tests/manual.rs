// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! What `packaging/manual` makes of `docs/man`: pages that say the same, and errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A copy of what the manual is made of, which a test may change.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&tree);
        for path in [
            "packaging/manual",
            "packaging/completions.py",
            "scripts/lib.sh",
            "docs/man/dtrace.5.md",
            "docs/man/dtrace.8.md",
        ] {
            let copy = tree.join(path);
            fs::create_dir_all(copy.parent().expect("a folder")).expect("a folder");
            fs::copy(top().join(path), copy).expect(path);
        }
        Self(tree)
    }

    /// Replaces some text in a page.
    fn change(&self, page: &str, from: &str, to: &str) {
        let path = self.0.join("docs/man").join(page);
        let text = read(&path);
        assert!(text.contains(from), "{from}");
        fs::write(path, text.replacen(from, to, 1)).expect(page);
    }

    fn make(&self) -> Output {
        let mut make = Command::new(self.0.join("packaging/manual"));
        make.arg(self.0.join("made")).output().expect("it runs")
    }
}

/// Returns a text without spaces and marks.
fn essence(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !"*`|\\".contains(*c))
        .collect()
}

/// Returns what a page in Markdown says, line by line.
fn said(markdown: &str) -> Vec<String> {
    let (_, text) = markdown.split_once("-->").expect("a licence");
    let mut lines = text.lines().peekable();
    let mut said = Vec::new();
    while let Some(line) = lines.next() {
        match line.split_once(' ') {
            // The heading of a table.
            _ if lines.next_if(|next| next.starts_with("|--")).is_some() => (),
            Some(("#", title)) => {
                let (name, summary) = title.split_once(" - ").expect("a summary");
                let (name, _) = name.split_once('(').expect("a section");
                said.push(essence(&format!("NAME{name}-{summary}")));
            }
            Some(("##", heading)) => said.push(essence(heading)),
            _ => said.push(essence(line)),
        }
    }
    said
}

/// Returns what a page for man(1) says.
fn shown(roff: &str) -> String {
    let lines = roff.lines().map(|line| match line.strip_prefix(".SH ") {
        Some(heading) => heading,
        None if line.starts_with('.') => "",
        None => line,
    });
    let mut text: String = lines.collect();
    for (escape, meaning) in [
        ("\\fB", ""),
        ("\\fI", ""),
        ("\\fR", ""),
        ("\\&", ""),
        ("\\-", "-"),
        ("\\(aq", "'"),
        ("\\(dq", "\""),
        ("\\(ga", "`"),
        ("\\(ha", "^"),
        ("\\(ti", "~"),
        ("\\e", "\\"),
    ] {
        text = text.replace(escape, meaning);
    }
    essence(&text)
}

#[test]
fn the_pages_say_what_their_sources_say() {
    let tree = Tree::new("pages");
    let made = tree.make();
    assert!(made.status.success(), "{made:?}");
    for page in ["dtrace.5", "dtrace.8"] {
        let shown = shown(&read(&tree.0.join("made").join(page)));
        let mut rest = shown.as_str();
        for line in said(&read(&tree.0.join(format!("docs/man/{page}.md")))) {
            let at = rest.get(..line.len());
            assert_eq!(at, Some(line.as_str()), "{page}");
            rest = &rest[line.len()..];
        }
        assert_eq!(rest, "", "{page}");
    }
}

/// What is typed is shown as typed: `-` is no hyphen, and `'` no quotation mark.
#[test]
fn options_can_be_searched_for() {
    let tree = Tree::new("signs");
    let made = tree.make();
    assert!(made.status.success(), "{made:?}");
    for (page, line) in [
        (
            "dtrace.8",
            "\n\\fB\\-b\\fR \\fIsize\\fR\nSet the size of each CPU\\(aqs",
        ),
        ("dtrace.8", "\ndtrace \\- trace the kernel"),
        ("dtrace.5", "self\\->since = timestamp;\n"),
        ("dtrace.5", "\\(ha\\(ha"),
    ] {
        let text = read(&tree.0.join("made").join(page));
        assert!(text.contains(line), "{page}: {line}");
    }
}

#[test]
fn a_table_that_cannot_be_read_is_an_error() {
    for (name, page, from, to, message) in [
        (
            "cells",
            "dtrace.8.md",
            "| `-e` |",
            "| `-e` | end |",
            "dtrace.8.md:37: a row of a table without two cells",
        ),
        (
            "title",
            "dtrace.5.md",
            "# dtrace(5) - ",
            "# dtrace - ",
            "dtrace.5.md:6: the title is not NAME(SECTION) - SUMMARY",
        ),
        (
            "words",
            "dtrace.8.md",
            "| `-e` |",
            "| the option e |",
            "dtrace.8.md: an option in other words: the option e",
        ),
        (
            "section",
            "dtrace.8.md",
            "## TRACING OPTIONS",
            "## SETTINGS",
            "dtrace.8.md: no options in TRACING OPTIONS",
        ),
    ] {
        let tree = Tree::new(name);
        tree.change(page, from, to);
        let made = tree.make();
        let error = String::from_utf8_lossy(&made.stderr);
        assert!(!made.status.success(), "{name}");
        assert!(error.trim_end().ends_with(message), "{name}: {error}");
    }
}
