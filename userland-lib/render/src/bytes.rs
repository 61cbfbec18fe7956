// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Byte arrays: shown as strings if they look like strings, otherwise dumped.
//!
//! An array looks like a string if all of it is printable, or if it is printable up to a NUL after
//! which only NULs follow. The option `rawbytes` and `tracemem()` always dump.

use super::{pad, Renderer};
use dtrace_consumer::value::until_nul;

/// Bytes per line of a dump.
const LINE: usize = 16;
/// Indentation of a dump, columns.
const MARGIN: usize = 5;

impl Renderer<'_> {
    /// Appends a byte array: as a string in a column of `width`, or as a dump.
    pub(super) fn bytes(&self, out: &mut Vec<u8>, data: &[u8], width: usize, quiet: bool) {
        match as_string(data) {
            _ if data.is_empty() => {}
            Some(text) if !self.style.rawbytes => string_column(out, text, width, quiet),
            _ => dump(out, data),
        }
    }
}

/// Appends a string in a column of `width`, or without padding if `quiet`.
pub(super) fn string_column(out: &mut Vec<u8>, text: &[u8], width: usize, quiet: bool) {
    if quiet {
        out.extend_from_slice(text);
    } else {
        out.extend_from_slice(b"  ");
        pad::pad(out, text, width, true);
    }
}

/// Returns the string that `data` holds, if it looks like one.
pub(super) fn as_string(data: &[u8]) -> Option<&[u8]> {
    let text = until_nul(data);
    let rest = data.get(text.len()..).unwrap_or_default();
    (!text.is_empty() && text.iter().all(is_printable) && rest.iter().all(|&b| b == 0))
        .then_some(text)
}

/// Whether the byte is printable ASCII, white space, bell or backspace.
fn is_printable(byte: &u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t'..=b'\r' | 0x07 | 0x08)
}

/// Appends a dump: a ruler, then lines of offset, hexadecimal bytes and characters.
pub(super) fn dump(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    put!(out, "\n{:MARGIN$}      ", "");
    for digit in "0123456789abcdef".chars() {
        put!(out, "  {digit}");
    }
    put!(out, "  0123456789abcdef\n");
    for (line, bytes) in data.chunks(LINE).enumerate() {
        put!(out, "{:MARGIN$}{:5x}:", "", line * LINE);
        for byte in bytes {
            put!(out, " {byte:02x}");
        }
        pad::fill(out, b' ', 3 * (LINE - bytes.len()) + 2);
        let shown = |&b: &u8| if matches!(b, b' '..=b'~') { b } else { b'.' };
        out.extend(bytes.iter().map(shown));
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        testing::{render, visible},
        Style,
    };
    use expect_test::expect;

    fn bytes(data: &[u8], style: Style) -> String {
        render(&style, |r, out| r.bytes(out, data, 10, style.quiet))
    }

    #[test]
    fn dumps_have_a_ruler_and_full_columns() {
        let mut data: Vec<u8> = (0..18).collect();
        data.extend(b" ~\x7f\xff");
        let text = bytes(&data, Style::default());
        expect![[r#"
            |$
            |             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef$
            |         0: 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  ................$
            |        10: 10 11 20 7e 7f ff                                .. ~..$
        "#]]
        .assert_eq(&visible(&text));
    }

    #[test]
    fn strings_are_recognised() {
        for (data, expected) in [
            (&b"abc\0\0"[..], "  abc       "),
            (b"abc", "  abc       "),
            (b"a\tb\x07\n\0", "  a\tb\x07\n     "),
            (b"longer than ten\0", "  longer than ten"),
            (b"", ""),
        ] {
            assert_eq!(bytes(data, Style::default()), expected);
        }
        for data in [&b"abc\0d"[..], b"\0", b"\0\0", b"\xc3\xa4\0", b"a\x1b\0"] {
            assert!(
                bytes(data, Style::default()).starts_with("\n  "),
                "{data:?}"
            );
        }
    }

    #[test]
    fn options_choose_the_form() {
        let quiet = Style {
            quiet: true,
            ..Style::default()
        };
        assert_eq!(bytes(b"abc\0", quiet), "abc");
        let raw = Style {
            rawbytes: true,
            ..Style::default()
        };
        assert!(bytes(b"abc\0", raw).contains(" 61 62 63 00"));
    }
}
