// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compile errors.
//!
//! A [`Diagnostic`] is a value: a tag that scripts may rely on (shown under `-xerrtags`), a message
//! in DTrace's wording, the location, and notes. Its first line when rendered is exactly DTrace's.
//! The source line with a caret and the notes follow it, so that scripts that match the first line
//! still work.

use crate::source::{Origin, Source, Span};
use std::fmt;

/// An error in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// `D_SYNTAX`, `D_PDESC_ZERO`, …
    pub tag: &'static str,
    /// The message.
    pub message: String,
    /// The location.
    pub span: Span,
    /// The byte whose line the headline shows, if DTrace reports a later line than that of the
    /// location, because its parser has read ahead when it finds the error.
    pub counted: Option<u32>,
    /// Whether it is an error of the code generator, for which DTrace shows neither tag nor
    /// location: the headline is the message alone.
    pub is_generators: bool,
    /// The part of a clause, shown where there are no line numbers.
    pub region: Option<&'static str>,
    /// Further help: suggestions, earlier declarations.
    pub notes: Vec<String>,
}

/// The result of a compiler pass.
pub type Result<T, E = Box<Diagnostic>> = std::result::Result<T, E>;

impl Diagnostic {
    /// Creates an error at `span`.
    pub fn new(tag: &'static str, span: Span, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            tag,
            message: message.into(),
            span,
            counted: None,
            is_generators: false,
            region: None,
            notes: Vec::new(),
        })
    }

    /// Creates the error that no code can be generated for `span`.
    pub fn generators(span: Span, message: impl Into<String>) -> Box<Self> {
        let mut error = Self::new("D_UNKNOWN", span, message);
        error.is_generators = true;
        error
    }

    /// Sets the byte `offset` whose line the headline shows.
    pub fn counted_at(mut self: Box<Self>, offset: u32) -> Box<Self> {
        self.counted = Some(offset);
        self
    }

    /// Adds a note.
    pub fn note(mut self: Box<Self>, note: impl Into<String>) -> Box<Self> {
        self.notes.push(note.into());
        self
    }

    /// Adds several notes.
    pub fn notes(mut self: Box<Self>, notes: impl IntoIterator<Item = String>) -> Box<Self> {
        self.notes.extend(notes);
        self
    }

    /// Sets the part of a clause, unless it is already set.
    pub fn within(mut self: Box<Self>, region: &'static str) -> Box<Self> {
        self.region.get_or_insert(region);
        self
    }

    /// Returns DTrace's own line: `[TAG] line N: message`, with the tag only if `tags`. Programs on
    /// the command line have no line numbers; for them it is `in predicate: message`.
    pub fn headline(&self, source: &Source, tags: bool) -> String {
        if self.is_generators {
            return self.message.clone();
        }
        let place = match (&source.origin, self.region) {
            (Origin::File(_) | Origin::Library(_), _) => {
                let offset = self.counted.unwrap_or(self.span.start);
                format!("line {}: ", source.position(offset).line)
            }
            (Origin::Argument, Some(region)) => format!("in {region}: "),
            (Origin::Argument, None) => String::new(),
        };
        if tags {
            format!("[{}] {place}{}", self.tag, self.message)
        } else {
            format!("{place}{}", self.message)
        }
    }

    /// Returns what follows the headline: the source line with a caret under the location, unless
    /// the line is empty, and the notes. Each line ends with a newline.
    pub fn snippet(&self, source: &Source) -> String {
        let position = source.position(self.span.start);
        let line = source.line(self.span.start);
        let gutter = position.line.to_string();
        let lead: String = line
            .chars()
            .take(position.column as usize - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let room = line.chars().count().saturating_sub(lead.chars().count());
        let width = source
            .slice(self.span)
            .chars()
            .take_while(|c| *c != '\n')
            .count();
        let mut text = match line.trim_end() {
            "" => String::new(),
            _ => format!(
                "{gutter} | {line}\n{} | {lead}{}\n",
                " ".repeat(gutter.len()),
                "^".repeat(width.clamp(1, room.max(1)))
            ),
        };
        for note in &self.notes {
            text.push_str(&format!("{} = {note}\n", " ".repeat(gutter.len())));
        }
        text
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.tag, self.message)
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_dtraces_and_a_caret_follows() {
        let source = Source::file("x.d", "BEGIN\n{\n\ttrace(foo);\n}\n");
        let start = source.text.find("foo").unwrap() as u32;
        let error = Diagnostic::new(
            "D_IDENT_UNDEF",
            Span::new(start, start + 3),
            "failed to resolve foo: Unknown variable name",
        )
        .note("did you mean `fop`?");
        assert_eq!(
            error.headline(&source, true),
            "[D_IDENT_UNDEF] line 3: failed to resolve foo: Unknown variable name"
        );
        assert_eq!(
            error.snippet(&source),
            "3 | \ttrace(foo);\n  | \t      ^^^\n  = did you mean `fop`?\n"
        );
    }

    #[test]
    fn nothing_is_shown_where_nothing_stands() {
        let source = Source::file("x.d", "BEGIN\n{\n}\n");
        let end = source.text.len() as u32;
        let error = Diagnostic::new("D_EMPTY", Span::new(end, end), "too soon").note("go on");
        assert_eq!(error.headline(&source, false), "line 4: too soon");
        assert_eq!(error.snippet(&source), "  = go on\n");
    }

    #[test]
    fn the_code_generator_names_no_place_but_shows_it() {
        let source = Source::file("x.d", "BEGIN { a[1]; }");
        let error = Diagnostic::generators(Span::new(8, 9), "Insufficient registers");
        assert_eq!(error.headline(&source, true), "Insufficient registers");
        assert_eq!(
            error.snippet(&source),
            "1 | BEGIN { a[1]; }\n  |         ^\n"
        );
    }

    #[test]
    fn on_the_command_line_the_part_of_the_clause_is_named() {
        let source = Source::argument("BEGIN { trace(foo); }");
        let error = || Diagnostic::new("D_IDENT_UNDEF", Span::default(), "failed to resolve foo");
        assert_eq!(error().headline(&source, false), "failed to resolve foo");
        let within = error().within("action list").within("predicate");
        assert_eq!(
            within.headline(&source, true),
            "[D_IDENT_UNDEF] in action list: failed to resolve foo"
        );
    }
}
