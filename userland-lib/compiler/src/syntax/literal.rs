// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Values of constants: integers with bases and suffixes, characters, and the escapes in strings
//! and characters.

use super::ast::IntSuffix;
use crate::diag::{Diagnostic, Result};
use crate::source::Span;

/// Returns the length in bytes of the integer constant, with its suffix, at the beginning of
/// `text`, which must begin with a digit.
pub fn length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let count =
        |at: usize, fits: fn(&u8) -> bool| bytes[at..].iter().take_while(|b| fits(b)).count();
    let is_hex = bytes.len() > 1 && bytes[0] == b'0' && matches!(bytes[1], b'x' | b'X');
    let mut at = match is_hex {
        true => 2 + count(2, u8::is_ascii_hexdigit),
        false => count(0, u8::is_ascii_digit),
    };
    let unsigned = |at: usize| usize::from(matches!(bytes.get(at), Some(b'u' | b'U')));
    let before = unsigned(at);
    at += before;
    at += count(at, |b| matches!(b, b'l' | b'L')).min(2);
    match before {
        0 => at + unsigned(at),
        _ => at,
    }
}

/// Returns the value of an integer constant as written, with the parts that decide its type. Fails
/// for invalid digits and for values over 64 bits.
pub fn integer(word: &str, span: Span) -> Result<(u64, IntSuffix)> {
    let body = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let (digits, radix) = match body.get(..2) {
        Some("0x" | "0X") => (&body[2..], 16),
        // A single `0` (also in `0u`) has no octal digits after it and is read as decimal.
        Some(_) if body.starts_with('0') => (&body[1..], 8),
        _ => (body, 10),
    };
    if let Some(bad) = digits.chars().find(|c| !c.is_digit(radix)) {
        return Err(Diagnostic::new(
            "D_INT_DIGIT",
            span,
            format!("constant {word} contains invalid digit {bad}"),
        ));
    }
    if digits.is_empty() {
        return Err(Diagnostic::new(
            "D_SYNTAX",
            span,
            format!("syntax error near \"{word}\""),
        ));
    }
    let value = u64::from_str_radix(digits, radix).map_err(|_| {
        Diagnostic::new(
            "D_INT_OFLOW",
            span,
            format!("constant {word} results in integer overflow"),
        )
    })?;
    let suffix = word[body.len()..].to_ascii_lowercase();
    let suffix = IntSuffix {
        unsigned: suffix.contains('u'),
        longs: suffix.matches('l').count().min(2) as u8,
        based: radix != 10,
    };
    Ok((value, suffix))
}

/// Returns the value of the bytes of a character constant. One byte is sign-extended; several are
/// combined with the first byte highest. Fails for no bytes and for more than 8.
pub fn character(bytes: &[u8], span: Span) -> Result<u64> {
    match bytes {
        [] => Err(Diagnostic::new(
            "D_CHR_NULL",
            span,
            "empty character constant",
        )),
        [one] => Ok(*one as i8 as i64 as u64),
        _ if bytes.len() > 8 => Err(Diagnostic::new(
            "D_CHR_OFLOW",
            span,
            "character constant is too long",
        )),
        _ => Ok(bytes
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte))),
    }
}

/// Replaces those of C's escapes that D has.
pub fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' || at + 1 == bytes.len() {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        let escaped = bytes[at + 1];
        at += 2;
        match escaped {
            b'"' | b'\\' => out.push(escaped),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            // A backslash at the end of a line joins it with the next one.
            b'\n' => (),
            b'x' => at += number(&bytes[at..], 16, usize::MAX, &mut out, b'x'),
            b'0'..=b'7' => {
                at -= 1;
                at += number(&bytes[at..], 8, 3, &mut out, escaped);
            }
            // Not an escape in D: the backslash is kept, even before `?` and `'`.
            _ => out.extend([b'\\', escaped]),
        }
    }
    out
}

/// Reads at most `most` digits and appends the byte that they give, or `instead` if there are none.
/// Returns the number of digits.
fn number(bytes: &[u8], radix: u32, most: usize, out: &mut Vec<u8>, instead: u8) -> usize {
    let digits = bytes
        .iter()
        .take(most)
        .take_while(|b| char::from(**b).is_digit(radix))
        .count();
    if digits == 0 {
        out.push(instead);
        return 0;
    }
    let value = bytes[..digits].iter().fold(0u32, |value, b| {
        value.wrapping_mul(radix) + char::from(*b).to_digit(radix).unwrap_or(0)
    });
    out.push(value as u8);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_c() {
        assert_eq!(unescape(r#"a\n\t\"\\\x41\1012\0"#), b"a\n\t\"\\A\x412\0");
        assert_eq!(unescape("a\\\nb"), b"ab");
        assert_eq!(unescape(r"\q\x\?\'"), br"\qx\?\'");
    }

    #[test]
    fn integers_know_base_and_suffix() {
        let read = |word| integer(word, Span::default()).expect("a number");
        assert_eq!(read("0").0, 0);
        assert_eq!(read("0u").0, 0);
        assert_eq!(read("017").0, 15);
        assert_eq!(read("0xFFull").0, 255);
        assert_eq!(
            read("0xFFull").1,
            IntSuffix {
                unsigned: true,
                longs: 2,
                based: true
            }
        );
        assert_eq!(read("18446744073709551615").0, u64::MAX);
    }

    #[test]
    fn characters_are_signed_and_may_be_several() {
        let read = |bytes| character(bytes, Span::default()).expect("a character");
        assert_eq!(read(b"A"), 65);
        assert_eq!(read(b"\xff"), u64::MAX);
        assert_eq!(read(b"ab"), 0x6162);
    }
}
