// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Program text and places in it.
//!
//! Everything the compiler makes remembers where it came from as a [`Span`] of byte offsets, the cheapest form;
//! lines and columns are computed from the [`Source`] only when somebody reads a message.

/// A range of bytes of a [`Source`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range from `start` to `end`.
    pub const fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The smallest range that holds both.
    pub fn to(self, other: Self) -> Self {
        Self {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// Where a program's text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A probe specifier on the command line (`-n` and its kin): a clause without a body is allowed.
    Argument,
    /// A script of this name.
    File(String),
    /// A D library of this name.
    Library(String),
}

/// A place in a [`Source`] as people count: from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line.
    pub line: u32,
    /// Column, characters.
    pub column: u32,
}

/// What a file holds as text. Bytes that are no UTF-8, such as Latin-1's letters in a comment, are replaced by U+FFFD, with which a
/// literal is refused.
pub fn decoded(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// A program's text.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it comes from.
    pub origin: Origin,
    /// The text.
    pub text: String,
}

impl Source {
    /// Text from a command line.
    pub fn argument(text: impl Into<String>) -> Self {
        Self {
            origin: Origin::Argument,
            text: text.into(),
        }
    }

    /// The text of the script `name`.
    pub fn file(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            origin: Origin::File(name.into()),
            text: text.into(),
        }
    }

    /// The text of the D library `name`.
    pub fn library(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            origin: Origin::Library(name.into()),
            text: text.into(),
        }
    }

    /// Line and column of byte `offset`; line markers of the C preprocessor are obeyed.
    pub fn position(&self, offset: u32) -> Position {
        let before = self.before(offset);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let lines = before[..line_start].split_terminator('\n');
        Position {
            line: lines.fold(1, |number, line| marker(line).unwrap_or(number + 1)),
            column: 1 + before[line_start..].chars().count() as u32,
        }
    }

    /// The line that byte `offset` is in, without its end.
    pub fn line(&self, offset: u32) -> &str {
        let start = self.before(offset).rfind('\n').map_or(0, |at| at + 1);
        let rest = &self.text[start..];
        rest[..rest.find('\n').unwrap_or(rest.len())].trim_end_matches('\r')
    }

    /// The text of `span`.
    pub fn slice(&self, span: Span) -> &str {
        self.text
            .get(span.start as usize..span.end as usize)
            .unwrap_or("")
    }

    fn before(&self, offset: u32) -> &str {
        let mut end = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        &self.text[..end]
    }
}

/// The number that a line marker (`# 12 "file"`, `#line 12`) gives the line after it.
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
