// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Program text and locations in it.
//!
//! Everything the compiler creates has its location as a [`Span`] of byte offsets, the cheapest
//! form; lines and columns are computed from the [`Source`] only for messages.

use dtrace_files::names::shortened;

/// A range of bytes of a [`Source`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

impl Span {
    /// Creates the range from `start` to `end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// Returns the smallest range that contains both.
    pub fn to(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// The origin of a program's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A probe specifier on the command line (`-n` and similar): a clause may have no body.
    Argument,
    /// A script with this name.
    File(String),
    /// A D library with this name.
    Library(String),
}

/// A position in a [`Source`], counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

/// A program's text.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its origin.
    pub origin: Origin,
    /// The text.
    pub text: String,
}

impl Source {
    /// Creates the source for a program on the command line.
    pub fn argument(text: impl Into<String>) -> Self {
        Self {
            origin: Origin::Argument,
            text: text.into(),
        }
    }

    /// Creates the source for the script `name`.
    pub fn file(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            origin: Origin::File(name.into()),
            text: text.into(),
        }
    }

    /// Creates the source for the D library `name`.
    pub fn library(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            origin: Origin::Library(name.into()),
            text: text.into(),
        }
    }

    /// Returns line and column of byte `offset`. Line markers of the C preprocessor are taken into
    /// account.
    pub fn position(&self, offset: u32) -> Position {
        let before = self.before(offset);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let lines = before[..line_start].split_terminator('\n');
        Position {
            line: lines.fold(1, |number, line| marker(line).unwrap_or(number + 1)),
            column: 1 + before[line_start..].chars().count() as u32,
        }
    }

    /// Returns the line that contains byte `offset`, without its end.
    fn line(&self, offset: u32) -> &str {
        let start = self.before(offset).rfind('\n').map_or(0, |at| at + 1);
        let rest = &self.text[start..];
        rest[..rest.find('\n').unwrap_or(rest.len())].trim_end_matches('\r')
    }

    /// Returns the line in which `span` begins, without its end, in three parts: what is before the
    /// span, what of the line is in the span, and the rest.
    pub fn line_around(&self, span: Span) -> [&str; 3] {
        let (line, before) = (self.line(span.start), self.before(span.start));
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        // A span may begin with the line's end.
        let (before, rest) = line.split_at((before.len() - start).min(line.len()));
        let inside = shortened(rest, (span.end - span.start) as usize);
        [before, inside, &rest[inside.len()..]]
    }

    /// Returns the text of `span`.
    pub fn slice(&self, span: Span) -> &str {
        self.text
            .get(span.start as usize..span.end as usize)
            .unwrap_or("")
    }

    fn before(&self, offset: u32) -> &str {
        shortened(&self.text, offset as usize)
    }
}

/// Returns the number that a line marker (`# 12 "file"`, `#line 12`) gives to the line after it.
fn marker(line: &str) -> Option<u32> {
    let rest = line.strip_prefix('#')?.trim_start();
    let rest = rest.strip_prefix("line").unwrap_or(rest);
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let source = Source::argument("a\nbé = c\n");
        let at = source.text.find('c').unwrap() as u32;
        assert_eq!(source.position(at), Position { line: 2, column: 6 });
        assert_eq!(source.line(at), "bé = c");
        assert_eq!(source.position(u32::MAX).line, 3);
    }

    #[test]
    fn a_line_is_divided_by_a_span() {
        let source = Source::argument("a\nbé = c\r\nd");
        let parts = |start, end| source.line_around(Span::new(start, end));
        assert_eq!(parts(2, 5), ["", "bé", " = c"]);
        assert_eq!(parts(8, 12), ["bé = ", "c", ""]);
        assert_eq!(parts(9, 11), ["bé = c", "", ""]);
        assert_eq!(parts(10, 11), ["bé = c", "", ""]);
        assert_eq!(parts(4, 6), ["b", "é", " = c"]);
        assert_eq!(parts(u32::MAX, u32::MAX), ["d", "", ""]);
    }

    #[test]
    fn line_markers_number_the_lines_after_them() {
        let source = Source::argument(
            "# 0 \"<built-in>\"\n# 7 \"/dev/stdin\"\na\nb\n#line 40\nc\n#define 9\nd",
        );
        let line = |text: &str| {
            source
                .position(source.text.rfind(text).unwrap() as u32)
                .line
        };
        assert_eq!(["a", "b", "c", "d"].map(line), [7, 8, 40, 42]);
    }
}
