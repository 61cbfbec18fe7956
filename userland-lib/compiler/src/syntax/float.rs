// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Floating-point constants as in C: `1.5`, `.5e-3f`, `0x1.8p3`.
//!
//! Digits are a floating-point constant if a point or an exponent follows them. A hexadecimal one
//! must have an exponent, which is a power of two. The value is the nearest one of the constant's
//! type; a `long double` constant has only the precision of a double.
//!
//! Rust reads no hexadecimal ones. The crate `rustc_apfloat` does, but adds 57 kB to a program, for
//! the sixty lines of [`hexadecimal`] and [`nearest`].

use super::ast::FloatSuffix;
use crate::diag::{Diagnostic, Result};
use crate::source::Span;

/// Returns the length in bytes of the floating-point constant, with its suffix, at the beginning of
/// `text`; `None` if there is none.
pub fn length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let hex = matches!(bytes, [b'0', b'x' | b'X', ..]);
    let start = if hex { 2 } else { 0 };
    let digits = |at: usize| {
        let is_digit = |b: &&u8| b.is_ascii_digit() || hex && b.is_ascii_hexdigit();
        bytes.iter().skip(at).take_while(is_digit).count()
    };
    let mut at = start + digits(start);
    let mut count = at - start;
    let point = bytes.get(at) == Some(&b'.');
    if point {
        let behind = digits(at + 1);
        at += 1 + behind;
        count += behind;
    }
    let exponent = exponent_length(&bytes[at..], hex);
    if count == 0 || exponent == 0 && (hex || !point) {
        return None;
    }
    at += exponent;
    Some(at + usize::from(matches!(bytes.get(at), Some(b'f' | b'F' | b'l' | b'L'))))
}

/// Returns the length of an exponent in bytes, including its letter; 0 if there is none.
fn exponent_length(bytes: &[u8], hex: bool) -> usize {
    let sign = match (bytes, hex) {
        ([b'e' | b'E', rest @ ..], false) | ([b'p' | b'P', rest @ ..], true) => {
            usize::from(matches!(rest, [b'+' | b'-', ..]))
        }
        _ => return 0,
    };
    let digits = bytes.iter().skip(1 + sign);
    match digits.take_while(|b| b.is_ascii_digit()).count() {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

/// Returns the value of a constant, of which `word` must have the form that [`length`] accepts.
/// Fails if it overflows its type.
pub fn value(word: &str, span: Span) -> Result<(f64, FloatSuffix)> {
    let (hex, suffix) = match (word.get(..2), word.as_bytes().last()) {
        (Some("0x" | "0X"), _) => (true, word.as_bytes().last()),
        (_, last) => (false, last),
    };
    let suffix = match suffix {
        Some(b'f' | b'F') => FloatSuffix::Float,
        Some(b'l' | b'L') => FloatSuffix::LongDouble,
        _ => FloatSuffix::Double,
    };
    let number = match suffix {
        FloatSuffix::Double => word,
        _ => &word[..word.len() - 1],
    };
    let single = suffix == FloatSuffix::Float;
    let value = match hex {
        true => hexadecimal(&number[2..], single),
        false if single => number.parse().map_or(f64::NAN, |value: f32| value.into()),
        false => number.parse().unwrap_or(f64::NAN),
    };
    if value.is_finite() {
        return Ok((value, suffix));
    }
    let message = format!("constant {word} results in floating-point overflow");
    Err(Diagnostic::new("D_FLT_OFLOW", span, message))
}

/// Returns the value of hexadecimal digits with an exponent, rounded to the nearest double or
/// single-precision number.
fn hexadecimal(text: &str, single: bool) -> f64 {
    let (digits, power) = text.split_once(['p', 'P']).unwrap_or((text, "0"));
    let behind = digits
        .split_once('.')
        .map_or(0, |(_, behind)| behind.len() as i64);
    // An exponent with too many digits to parse is out of any range.
    let far = if power.starts_with('-') {
        i64::from(i32::MIN)
    } else {
        i32::MAX.into()
    };
    let mut exponent = power
        .parse()
        .unwrap_or(far)
        .clamp(i32::MIN.into(), i32::MAX.into())
        - 4 * behind;
    let mut significand = 0u64;
    for digit in digits.chars().filter_map(|c| c.to_digit(16)) {
        if significand >> 60 == 0 {
            significand = significand << 4 | u64::from(digit);
        } else {
            // A digit that does not fit sets the lowest bit if it is not zero (a sticky bit).
            significand |= u64::from(digit != 0);
            exponent += 4;
        }
    }
    nearest(significand, exponent, single)
}

/// Returns `significand` times two to the power of `exponent`, rounded to the nearest double or
/// single-precision number; infinity if it is too large. The lowest bit of the significand may be
/// sticky, that is, stand for the bits below it.
fn nearest(significand: u64, exponent: i64, single: bool) -> f64 {
    let zeros = significand.leading_zeros();
    let Some(normal) = significand.checked_shl(zeros) else {
        return 0.0;
    };
    let exponent = exponent - i64::from(zeros);
    let (precision, least, greatest) = if single {
        (24, -126, 127)
    } else {
        (53, -1022, 1023)
    };
    let missing = (least - (exponent + 63)).max(0);
    let lost = u32::try_from(64 - precision + missing).unwrap_or(u32::MAX);
    let kept = normal.checked_shr(lost).unwrap_or(0);
    let rest = match lost {
        ..=63 => normal << (64 - lost),
        64 => normal,
        _ => 0,
    };
    let up = rest > 1 << 63 || rest == 1 << 63 && kept & 1 != 0;
    let kept = kept + u64::from(up);
    let scale = exponent + i64::from(lost);
    if kept == 0 {
        return 0.0;
    }
    if i64::from(kept.ilog2()) + scale > greatest {
        return f64::INFINITY;
    }
    // Multiply in two steps, because the scale alone may be out of a double's range. Both are
    // exact.
    let (half, other) = ((scale / 2) as i32, (scale - scale / 2) as i32);
    kept as f64 * 2f64.powi(half) * 2f64.powi(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(word: &str) -> f64 {
        assert_eq!(length(word), Some(word.len()), "{word}");
        value(word, Span::default()).expect(word).0
    }

    #[test]
    fn constants_end_where_their_suffix_does() {
        for (text, n) in [
            ("1.5x", 3),
            (".5", 2),
            ("1.", 2),
            ("1.f+", 3),
            ("2e3L", 4),
            ("1e5ms", 3),
            ("0x1p3", 5),
            ("0x.8p-1f", 8),
            ("1.5.2", 3),
            ("1.5e+x", 3),
        ] {
            assert_eq!(length(text), Some(n), "{text}");
        }
        for text in [
            "1", "0x1f", "1ul", "10ms", "1f", ".", ".e5", "0x1.8", "0x", "x", "", "1e", "1e+",
            "0xp1",
        ] {
            assert_eq!(length(text), None, "{text}");
        }
    }

    #[test]
    fn values_are_the_nearest_of_their_type() {
        assert_eq!(read("0.1"), 0.1);
        assert_eq!(read("0.1f"), f64::from(0.1f32));
        assert_eq!(read("1e-400"), 0.0);
        assert_eq!(read("0x1.8p1"), 3.0);
        assert_eq!(read("0X.8P-1"), 0.25);
        assert_eq!(read("0x1.fffffffffffff8p0"), 2.0);
        assert_eq!(read("0x1.fffffffffffff7fffffffffffp0"), 2.0 - f64::EPSILON);
        assert_eq!(
            read("0x1.0000010000000000001p0f"),
            f64::from(1.0f32 + f32::EPSILON)
        );
        assert_eq!(read("0x1.000001p0f"), 1.0);
        assert_eq!(read("0x1p-1074"), f64::from_bits(1));
        assert_eq!(read("0x1p-1075"), 0.0);
        assert_eq!(read("0x1.8p-1075"), f64::from_bits(1));
        assert_eq!(read("0x1p-149f"), f64::from(f32::from_bits(1)));
        assert_eq!(read("0x1p-99999999999999999999"), 0.0);
        assert_eq!(read("0x0p9999999999999"), 0.0);
        let suffix = |word| value(word, Span::default()).expect(word).1;
        assert_eq!(suffix("1.0F"), FloatSuffix::Float);
        assert_eq!(suffix("0x1p1"), FloatSuffix::Double);
        assert_eq!(suffix("1e1l"), FloatSuffix::LongDouble);
    }

    #[test]
    fn what_is_too_great_is_refused() {
        for word in [
            "1e309",
            "1e39f",
            "0x1p1024",
            "0x1p128f",
            "0x1.ffffffp127f",
            "0x1p99999999999999999999",
        ] {
            let error = value(word, Span::default()).unwrap_err();
            assert_eq!(error.tag, "D_FLT_OFLOW", "{word}");
        }
    }

    proptest! {
        #[test]
        fn hexadecimal_digits_are_exact(bits in any::<u64>()) {
            let expected = f64::from_bits(bits & !(1 << 63));
            prop_assume!(expected.is_finite());
            let (exponent, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
            let word = match exponent {
                0 => format!("0x0.{fraction:013x}p-1022"),
                _ => format!("0x1.{fraction:013x}p{}", exponent as i64 - 1023),
            };
            prop_assert_eq!(read(&word), expected);
            let single = expected as f32;
            if single.is_finite() {
                prop_assert_eq!(read(&(word + "f")), f64::from(single));
            }
        }
    }
}
