// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Text from files and from the system.

use std::io;

/// Decodes a file as text. Bytes that are not valid UTF-8, such as Latin-1 letters in a comment,
/// are replaced by U+FFFD, which is not accepted in literals.
pub fn decoded(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the text of a system error without the error number that Rust appends.
pub fn plain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => nix::errno::Errno::from_raw(number).desc().to_owned(),
        None => error.to_string(),
    }
}

/// Parses a number in C's notation: decimal, `0x…` or `0…`.
pub fn parse_number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    // `from_str_radix` would accept a sign.
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(parse_number("0"), Some(0));
        assert_eq!(parse_number("0x1f"), Some(31));
        assert_eq!(parse_number("010"), Some(8));
        for bad in ["", "-1", "+1", "1 ", "09", "0x", "18446744073709551616"] {
            assert_eq!(parse_number(bad), None, "{bad}");
        }
    }
}
