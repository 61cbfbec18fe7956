// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Trees as text: one line for each node, with its line in the source, indented below its parent.

use crate::source::{Source, Span};
use std::fmt::Write as _;

/// The text of a tree that is being printed.
pub(crate) struct Outline<'s> {
    source: &'s Source,
    depth: usize,
    out: String,
}

impl<'s> Outline<'s> {
    /// Begins the text of a tree of the program `source`.
    pub(crate) fn new(source: &'s Source) -> Self {
        Self {
            source,
            depth: 0,
            out: String::new(),
        }
    }

    /// Returns the text.
    pub(crate) fn text(self) -> String {
        self.out
    }

    /// Prints a node without children: its line in the source, and its description.
    pub(crate) fn line(&mut self, span: Span, words: &str) {
        let number = self.source.position(span.start).line;
        let indent = 2 * self.depth;
        // Writing to a string cannot fail.
        let _ = writeln!(self.out, "{number:<4}{:indent$}{words}", "");
    }

    /// Prints a node and its children.
    pub(crate) fn node(&mut self, span: Span, words: &str, parts: impl FnOnce(&mut Self)) {
        self.line(span, words);
        self.depth += 1;
        parts(self);
        self.depth -= 1;
    }

    /// Returns the source text of a node, with white space reduced to single blanks.
    pub(crate) fn words(&self, span: Span) -> String {
        let words: Vec<&str> = self.source.slice(span).split_whitespace().collect();
        words.join(" ")
    }
}
