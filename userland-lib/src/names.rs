// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Names that programs and files give, as they are printed and as probes are called by them.
//!
//! Whoever makes a program names its functions and files, and may not be who reads the names on a terminal. So what does something to a
//! terminal is replaced where a name is read. It becomes `?`, which in a description stands for any character: a name can be given back as
//! it was printed.

use dtrace_uapi::names::{misleads, separates};
use std::borrow::Cow;

/// A text that does nothing to a terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    without(text, misleads)
}

/// As much of a text as takes no more bytes than `most`.
pub fn shortened(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// What a file's probes have for a module, by the file's name.
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
