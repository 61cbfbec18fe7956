// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names that programs and files define, in the form in which they are printed and used in probe
//! names.
//!
//! The author of a program chooses the names of its functions and files, and another user may read
//! them on a terminal. Therefore characters that could affect a terminal are replaced where a name
//! is read. The replacement is `?`, which matches any character in a description: a name can be
//! used there as it was printed.

use dtrace_uapi::names::{misleads, separates};
use std::borrow::Cow;

/// Returns the text without characters that could affect a terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    without(text, misleads)
}

/// Returns the longest prefix of a text that has at most `most` bytes and splits no character.
pub fn shortened(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the module name of a file's probes, given the file's name.
pub fn module(name: &str) -> Cow<'_, str> {
    without(name, |c| misleads(c) || separates(c))
}

fn without(text: &str, what: impl Fn(char) -> bool) -> Cow<'_, str> {
    match text.contains(&what) {
        true => Cow::Owned(text.replace(what, "?")),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_replaced_can_be_described() {
        for (text, shown) in [
            ("größe", "größe"),
            ("a\x1b[2Jb\n", "a?[2Jb?"),
            ("a\u{9b}2J", "a?2J"),
            ("\u{202e}a", "?a"),
            ("type:.eq.main/t", "type:.eq.main/t"),
        ] {
            assert_eq!(printable(text), shown);
        }
        assert_eq!(module("a:b\x1b.so"), "a?b?.so");
        assert_eq!(module("libc.so.6"), "libc.so.6");
    }
}
