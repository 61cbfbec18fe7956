// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! C's integer and string conversions: sign, prefix, precision, padding.
//!
//! A [`Spec`] is a conversion whose `*` are resolved. Numbers are formatted as sign and magnitude,
//! so that `i64::MIN` and `u64::MAX` take the same path.

use dtrace_compiler::format::{Flags, MAX_COUNT};

/// A conversion's flags, width and precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// The flags; `-` may result from a negative `*`.
    pub flags: Flags,
    /// Minimum width, bytes.
    pub width: usize,
    /// Minimum number of digits of a number, maximum number of bytes of a string.
    pub precision: Option<usize>,
}

/// Base and letters of the digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Radix {
    /// Decimal.
    Dec,
    /// Octal.
    Oct,
    /// Hexadecimal.
    Hex,
    /// Hexadecimal in capitals.
    HexUpper,
}

/// Appends `n` copies of `byte`.
pub fn fill(out: &mut Vec<u8>, byte: u8, n: usize) {
    out.resize(out.len() + n, byte);
}

/// Appends `text`, padded with spaces to `width` (at most [`MAX_COUNT`]): on the right if `left`.
pub fn pad(out: &mut Vec<u8>, text: &[u8], width: usize, left: bool) {
    let n = width.min(MAX_COUNT).saturating_sub(text.len());
    if !left {
        fill(out, b' ', n);
    }
    out.extend_from_slice(text);
    if left {
        fill(out, b' ', n);
    }
}

/// Appends at most `spec.precision` bytes of `text`, padded.
pub fn string(out: &mut Vec<u8>, spec: &Spec, text: &[u8]) {
    let n = spec.precision.unwrap_or(text.len()).min(text.len());
    pad(out, &text[..n], spec.width, spec.flags.left);
}

/// Returns the sign that is printed before a number's digits.
fn sign(spec: &Spec, negative: bool) -> &'static str {
    if negative {
        "-"
    } else if spec.flags.plus {
        "+"
    } else if spec.flags.space {
        " "
    } else {
        ""
    }
}

/// Appends a signed number in decimal, without any flags, width or precision.
pub fn decimal(out: &mut Vec<u8>, value: i64) {
    let mut bytes = [0; DIGITS_MAX];
    let mut left = value.unsigned_abs();
    let mut start = DIGITS_MAX;
    for byte in bytes.iter_mut().rev() {
        *byte = b'0' + (left % 10) as u8;
        left /= 10;
        start -= 1;
        if left == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&bytes[start..]);
}

/// Appends a signed number in decimal, by `spec`.
pub fn signed(out: &mut Vec<u8>, spec: &Spec, value: i64) {
    let digits = Digits::new(spec, value.unsigned_abs(), Radix::Dec);
    number(
        out,
        spec,
        sign(spec, value < 0),
        digits.zeros,
        digits.text(),
    );
}

/// Appends an unsigned number, by `spec`.
pub fn unsigned(out: &mut Vec<u8>, spec: &Spec, value: u64, radix: Radix) {
    let mut digits = Digits::new(spec, value, radix);
    let prefix = match radix {
        Radix::Hex if spec.flags.alt && value != 0 => "0x",
        Radix::HexUpper if spec.flags.alt && value != 0 => "0X",
        // The octal prefix `0` counts as a digit of the precision.
        Radix::Oct if spec.flags.alt && digits.zeros == 0 && digits.text() != b"0" => {
            digits.zeros = 1;
            ""
        }
        _ => "",
    };
    number(out, spec, prefix, digits.zeros, digits.text());
}

/// Appends a floating-point number's sign and body; infinities are not padded with zeros.
pub fn float(out: &mut Vec<u8>, spec: &Spec, negative: bool, body: &str, finite: bool) {
    let mut spec = *spec;
    // The digits already have the precision; a precision here would disable padding with zeros.
    spec.precision = None;
    spec.flags.zero &= finite;
    number(out, &spec, sign(&spec, negative), 0, body.as_bytes());
}

/// Maximum digits of a number: 64 bits in octal.
const DIGITS_MAX: usize = 22;

/// A number's digits, and the count of zeros that the precision adds before them. Kept on the stack
/// to avoid allocations, because numbers are most of the output.
struct Digits {
    bytes: [u8; DIGITS_MAX],
    start: usize,
    zeros: usize,
}

impl Digits {
    fn new(spec: &Spec, value: u64, radix: Radix) -> Self {
        let mut digits = Self {
            bytes: [0; DIGITS_MAX],
            start: DIGITS_MAX,
            zeros: 0,
        };
        match radix {
            Radix::Dec => digits.write(value, 10, b"0123456789"),
            Radix::Oct => digits.write(value, 8, b"01234567"),
            Radix::Hex => digits.write(value, 16, b"0123456789abcdef"),
            Radix::HexUpper => digits.write(value, 16, b"0123456789ABCDEF"),
        }
        let least = spec.precision.unwrap_or(1).min(MAX_COUNT);
        if value == 0 && least == 0 {
            // As in C, zero has no digits if the precision is zero.
            digits.start = DIGITS_MAX;
        }
        digits.zeros = least.saturating_sub(digits.text().len());
        digits
    }

    /// Writes the digits of `value`, the last first, towards the start of `bytes`.
    #[inline(always)]
    fn write(&mut self, mut value: u64, base: u64, letters: &[u8]) {
        loop {
            self.start -= 1;
            self.bytes[self.start] = letters[(value % base) as usize];
            value /= base;
            if value == 0 {
                return;
            }
        }
    }

    fn text(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

fn number(out: &mut Vec<u8>, spec: &Spec, prefix: &str, leading: usize, digits: &[u8]) {
    let width = spec.width.min(MAX_COUNT);
    let n = width.saturating_sub(prefix.len() + leading + digits.len());
    let zeros = spec.flags.zero && !spec.flags.left && spec.precision.is_none();
    if !zeros && !spec.flags.left {
        fill(out, b' ', n);
    }
    out.extend_from_slice(prefix.as_bytes());
    if zeros {
        fill(out, b'0', n);
    }
    fill(out, b'0', leading);
    out.extend_from_slice(digits);
    if spec.flags.left {
        fill(out, b' ', n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_compiler::format::{Count, Format};

    fn spec(text: &str) -> Spec {
        let format = Format::parse(text).unwrap();
        let conv = format.conversions().next().unwrap();
        let count = |c| match c {
            Some(Count::Fixed(n)) => Some(n),
            _ => None,
        };
        Spec {
            flags: conv.flags,
            width: count(conv.width).unwrap_or(0),
            precision: count(conv.precision),
        }
    }

    fn text(f: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        f(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn signed_numbers_as_in_c() {
        for (format, value, expected) in [
            ("%d", 0, "0"),
            ("%d", i64::MIN, "-9223372036854775808"),
            ("%d", i64::MAX, "9223372036854775807"),
            ("%5d", -42, "  -42"),
            ("%-5d|", -42, "-42  "),
            ("%05d", -42, "-0042"),
            ("%-05d", -42, "-42  "),
            ("%+d", 42, "+42"),
            ("% d", 42, " 42"),
            ("%+ d", 42, "+42"),
            ("%.5d", -42, "-00042"),
            ("%8.5d", -42, "  -00042"),
            ("%08.5d", -42, "  -00042"),
            ("%.0d", 0, ""),
            ("%3.0d", 0, "   "),
            ("%+.0d", 0, "+"),
        ] {
            assert_eq!(
                text(|o| signed(o, &spec(format), value)),
                expected,
                "{format}"
            );
            if format == "%d" {
                assert_eq!(text(|o| decimal(o, value)), expected);
            }
        }
    }

    #[test]
    fn unsigned_numbers_as_in_c() {
        use Radix::{Dec, Hex, HexUpper, Oct};
        for (format, value, radix, expected) in [
            ("%u", u64::MAX, Dec, "18446744073709551615"),
            ("%+u", 1, Dec, "1"),
            ("%x", 0xbeef, Hex, "beef"),
            ("%X", 0xbeef, HexUpper, "BEEF"),
            ("%#x", 0xbeef, Hex, "0xbeef"),
            ("%#X", 0xbeef, HexUpper, "0XBEEF"),
            ("%#x", 0, Hex, "0"),
            ("%#10x", 0xbeef, Hex, "    0xbeef"),
            ("%#010x", 0xbeef, Hex, "0x0000beef"),
            ("%#-10x", 0xbeef, Hex, "0xbeef    "),
            ("%#.8x", 0xbeef, Hex, "0x0000beef"),
            ("%o", 8, Oct, "10"),
            ("%#o", 8, Oct, "010"),
            ("%#.5o", 8, Oct, "00010"),
            ("%#o", 0, Oct, "0"),
            ("%#.0o", 0, Oct, "0"),
            ("%#8o", 8, Oct, "     010"),
            ("%?x", 0xff, Hex, "              ff"),
        ] {
            let out = text(|o| unsigned(o, &spec(format), value, radix));
            assert_eq!(out, expected, "{format}");
        }
    }

    #[test]
    fn strings_are_cut_and_padded_as_bytes() {
        let mut out = Vec::new();
        string(&mut out, &spec("%5.2s"), b"\xff\xfe\xfd");
        string(&mut out, &spec("%-5s"), b"\xff");
        assert_eq!(out, b"   \xff\xfe\xff    ");
        assert_eq!(text(|o| string(o, &spec("%.0s"), b"abc")), "");
        assert_eq!(text(|o| string(o, &spec("%2s"), b"abc")), "abc");
    }

    #[test]
    fn widths_are_capped() {
        let mut spec = Spec {
            width: usize::MAX,
            precision: Some(usize::MAX),
            ..Spec::default()
        };
        assert_eq!(text(|o| unsigned(o, &spec, 1, Radix::Dec)).len(), MAX_COUNT);
        spec.precision = None;
        assert_eq!(text(|o| string(o, &spec, b"a")).len(), MAX_COUNT);
    }
}
