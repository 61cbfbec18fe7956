// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compile errors.
//!
//! A [`Diagnostic`] is a value: a tag that scripts may rely on (shown under `-xerrtags`), a message
//! in DTrace's wording, the location, and notes. Its first line when rendered is exactly DTrace's.
//! The source line with carets and the notes follow it, so that scripts that match the first line
//! still work.
//!
//! `annotate-snippets` draws what follows the first line. It knows how wide a terminal shows each
//! character, and cuts long lines around the location. A program may come from anybody, so its text
//! must not control the terminal of whoever compiles it. The crate shows most control characters of
//! source lines, but not those of Latin-1 (C1), which some terminals obey, and none of notes:
//! [`printable`] replaces all before.

use crate::source::{Origin, Source, Span};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use dtrace_uapi::names::misleads;
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

    /// Returns what follows the headline: the source line with carets under the location, unless
    /// the line is empty, and the notes. Each line ends with a newline. If the location has several
    /// lines, the first is shown.
    pub fn snippet(&self, source: &Source) -> String {
        let mut block = Group::with_level(Level::ERROR);
        let parts = source.line_around(self.span).map(printable);
        let line = parts.concat();
        if !line.trim_end().is_empty() {
            let [before, marked, _] = parts.map(|part| part.len());
            block = block.element(
                Snippet::source(line)
                    .line_start(source.position(self.span.start).line as usize)
                    .annotation(AnnotationKind::Primary.span(before..before + marked)),
            );
        }
        for note in &self.notes {
            block = block.element(Level::NOTE.no_name().message(printable(note)));
        }
        if block.is_empty() {
            return String::new();
        }
        Renderer::plain().render(&[block]) + "\n"
    }
}

/// Returns `text` with U+FFFD for each character but tabs that [misleads] who reads a terminal.
fn printable(text: &str) -> String {
    text.replace(|c| misleads(c) && c != '\t', "\u{fffd}")
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
    use proptest::prelude::*;

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
            "  |\n3 |     trace(foo);\n  |           ^^^\n  |\n  = did you mean `fop`?\n"
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
            "  |\n1 | BEGIN { a[1]; }\n  |         ^\n"
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

    /// Returns the two lines with the source and the carets for the location of `marked`.
    fn shown(text: &str, marked: &str) -> String {
        let source = Source::file("x.d", text);
        let start = text.find(marked).expect("what is marked");
        let span = Span::new(start as u32, (start + marked.len()) as u32);
        let block = Diagnostic::new("D_SYNTAX", span, "wrong").snippet(&source);
        block.strip_prefix("  |\n").expect(&block).to_owned()
    }

    #[test]
    fn carets_are_where_the_terminal_shows_the_location() {
        for (text, marked, expected) in [
            ("\ta\tfoo;", "foo", "1 |     a    foo;\n  |          ^^^\n"),
            ("\"a\tb\" c", "\"a\tb\"", "1 | \"a    b\" c\n  | ^^^^^^^^\n"),
            ("é = foo", "foo", "1 | é = foo\n  |     ^^^\n"),
            ("\"漢字\" foo", "foo", "1 | \"漢字\" foo\n  |        ^^^\n"),
            ("\"漢字\";", "漢字", "1 | \"漢字\";\n  |  ^^^^\n"),
            ("e\u{301} foo", "foo", "1 | e\u{301} foo\n  |   ^^^\n"),
            // At the end of a line, of several lines, and of the text.
            ("BEGIN {\n}", "\n", "1 | BEGIN {\n  |        ^\n"),
            ("BEGIN {\r\n}", "\r\n", "1 | BEGIN {\n  |        ^\n"),
            ("a /* b\nc */", "/* b\nc */", "1 | a /* b\n  |   ^^^^\n"),
            ("BEGIN", "", "1 | BEGIN\n  | ^\n"),
        ] {
            assert_eq!(shown(text, marked), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_are_numbered_as_the_preprocessor_says() {
        let text = "# 41 \"x.d\"\nBEGIN\n{ foo; }\n";
        assert_eq!(
            Diagnostic::new("D_SYNTAX", Span::new(19, 22), "wrong")
                .snippet(&Source::file("x.d", text)),
            "   |\n42 | { foo; }\n   |   ^^^\n"
        );
    }

    #[test]
    fn long_lines_are_cut_around_the_location() {
        let text = format!("{}foo{}", "1 + ".repeat(500), " + 1".repeat(500));
        let block = shown(&text, "foo");
        let (line, carets) = block.split_once('\n').expect("two lines");
        assert!(line.len() < 160, "{line}");
        assert!(
            line.starts_with("1 | ...") && line.ends_with("..."),
            "{line}"
        );
        assert_eq!(line.find("foo"), carets.find("^^^"), "{block}");
    }

    #[test]
    fn a_program_cannot_control_the_terminal() {
        let text = "\"\u{1b}[2J\u{9b}2J\u{7}\u{202e}\r\u{0}\u{7f}\" foo";
        assert_eq!(
            shown(text, "foo"),
            "1 | \"�[2J�2J�����\" foo\n  |                ^^^\n"
        );
        let note = Diagnostic::new("D_SYNTAX", Span::default(), "wrong").note("\u{1b}[2J\u{9b}2J");
        assert_eq!(note.snippet(&Source::argument("")), "  = �[2J�2J\n");
    }

    proptest! {
        /// For any text and location, there are lines to show, and none of them is a command to
        /// the terminal.
        #[test]
        fn any_location_can_be_shown(
            text in "([\\PC\\pC\t\r\n é漢\u{301}\u{200d}]|[ -~]){0,200}",
            note in "\\PC{0,9}|\\pC{0,9}",
            start in 0u32..210,
            length in 0u32..210,
        ) {
            let span = Span::new(start, start + length);
            let error = Diagnostic::new("D_SYNTAX", span, "wrong").note(note);
            let block = error.snippet(&Source::argument(text));
            prop_assert!(block.ends_with('\n'));
            let is_control = |c: char| c.is_control() && c != '\n' && c != '\t';
            prop_assert!(!block.contains(is_control), "{block:?}");
        }
    }
}
