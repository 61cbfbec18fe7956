// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! C's floating-point conversions `%e`, `%f`, `%g` and `%a`, and the default form of a number.
//!
//! The digits are exact, because Rust's formatting rounds the exact decimal expansion as C's does.
//! Only the form of exponents, `%g` and `%a` are implemented here, because Rust lacks them. The
//! default form, without a conversion, is that of `%.17g`, but with the fewest digits that
//! distinguish the number from every other number of its type.

use super::pad::{self, Spec};
use dtrace_consumer::value::to_f64;

/// C's default precision.
const DEFAULT_PRECISION: usize = 6;
/// Limit of the precision: an `f64` has at most 1074 digits behind its point before only zeros
/// follow.
const MAX_PRECISION: usize = 1100;

/// Decimal exponents with which the default form, like `%.17g`, has no exponent.
const FIXED: std::ops::Range<i32> = -4..17;

/// Appends `value` by the conversion `kind`, one of `aAeEfFgG`. A precision beyond
/// [`MAX_PRECISION`] is reduced to it, except by `%a`.
pub fn float(out: &mut Vec<u8>, spec: &Spec, value: f64, kind: char) {
    let magnitude = value.abs();
    let precision = spec
        .precision
        .unwrap_or(DEFAULT_PRECISION)
        .min(MAX_PRECISION);
    let body = if value.is_nan() {
        "nan".into()
    } else if value.is_infinite() {
        "inf".into()
    } else {
        match kind.to_ascii_lowercase() {
            'a' => hexadecimal(magnitude, spec),
            'e' => exponential(magnitude, precision, spec.flags.alt),
            'f' => fixed(magnitude, precision, spec.flags.alt),
            _ => general(magnitude, precision.max(1), spec.flags.alt),
        }
    };
    let body = if kind.is_ascii_uppercase() {
        body.to_ascii_uppercase()
    } else {
        body
    };
    pad::float(
        out,
        spec,
        value.is_sign_negative(),
        &body,
        value.is_finite(),
    );
}

/// Formats as `d.ddd`; with `alt` the point is kept even if no digit follows.
fn fixed(value: f64, precision: usize, alt: bool) -> String {
    let mut text = format!("{value:.precision$}");
    if alt && precision == 0 {
        text.push('.');
    }
    text
}

/// Returns mantissa and decimal exponent of `value`, rounded to `precision` digits behind the
/// point.
fn scientific(value: f64, precision: usize) -> (String, i32) {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.into(), exponent.parse().unwrap_or(0)),
        None => (text, 0),
    }
}

/// Formats as `d.ddde±dd`.
fn exponential(value: f64, precision: usize, alt: bool) -> String {
    let (mut mantissa, exponent) = scientific(value, precision);
    if alt && precision == 0 {
        mantissa.push('.');
    }
    with_exponent(&mantissa, exponent)
}

fn with_exponent(mantissa: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// Formats as `%g`: fixed or exponential, depending on the exponent, with `digits` significant
/// digits. Trailing zeros are removed unless `alt`.
fn general(value: f64, digits: usize, alt: bool) -> String {
    let trim = |text: String| {
        if alt || !text.contains('.') {
            text
        } else {
            text.trim_end_matches('0').trim_end_matches('.').into()
        }
    };
    let (mantissa, exponent) = scientific(value, digits - 1);
    let places = i64::try_from(digits).unwrap_or(i64::MAX) - 1 - i64::from(exponent);
    match usize::try_from(places) {
        Ok(places) if exponent >= -4 => trim(fixed(value, places, alt)),
        _ => {
            let point = if alt && digits == 1 { "." } else { "" };
            with_exponent(&trim(mantissa + point), exponent)
        }
    }
}

/// Formats as `0xh.hhhp±d`; without a precision, with all digits up to the last that is not zero.
/// The first digit is 0 for zero and subnormal numbers; otherwise it is 1, or 2 if rounding
/// carries.
fn hexadecimal(value: f64, spec: &Spec) -> String {
    const FRACTION: u32 = 52;
    let (field, fraction) = (
        value.to_bits() >> FRACTION,
        value.to_bits() & ((1 << FRACTION) - 1),
    );
    let exponent = match (field, fraction) {
        (0, 0) => 0,
        (0, _) => -1022,
        _ => field as i64 - 1023,
    };
    let significand = fraction | u64::from(field != 0) << FRACTION;
    let (significand, digits) = match spec.precision {
        Some(digits) if digits < 13 => {
            // Round to nearest, ties to even.
            let lost = FRACTION - 4 * digits as u32;
            let (kept, rest, half) = (
                significand >> lost,
                significand & ((1 << lost) - 1),
                1 << (lost - 1),
            );
            let up = rest > half || rest == half && kept & 1 != 0;
            ((kept + u64::from(up)) << lost, digits)
        }
        Some(digits) => (significand, digits),
        None => (
            significand,
            13 - (significand.trailing_zeros() as usize / 4).min(13),
        ),
    };
    let (first, rest) = (significand >> FRACTION, significand & ((1 << FRACTION) - 1));
    let shown = format!("{rest:013x}");
    let shown = &shown[..digits.min(13)];
    let point = if digits > 0 || spec.flags.alt {
        "."
    } else {
        ""
    };
    format!("0x{first}{point}{shown:0<digits$}p{exponent:+}")
}

/// Returns the default form of a number.
pub fn shortest(value: f64) -> String {
    own_form(value, &format!("{value:e}"))
}

/// Returns the default form of a number of 4, 8 or 16 recorded bytes; `None` for other sizes.
pub fn text(data: &[u8]) -> Option<String> {
    let value = to_f64(data)?;
    Some(match data.len() {
        4 => own_form(value, &format!("{:e}", value as f32)),
        _ => shortest(value),
    })
}

/// Returns the default form of `value`. `short` is its exponential form with the fewest digits that
/// are read back as the same number.
fn own_form(value: f64, short: &str) -> String {
    let Some((mantissa, exponent)) = short.split_once('e') else {
        return if value.is_nan() {
            "nan".into()
        } else {
            short.into()
        };
    };
    let exponent = exponent.parse().unwrap_or(0);
    if !FIXED.contains(&exponent) {
        return with_exponent(mantissa, exponent);
    }
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count() as i32;
    let places = usize::try_from(digits - 1 - exponent).unwrap_or(0);
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_compiler::format::Flags;

    fn show(value: f64, kind: char, flags: &str, width: usize, precision: Option<usize>) -> String {
        let spec = Spec {
            flags: Flags {
                left: flags.contains('-'),
                plus: flags.contains('+'),
                alt: flags.contains('#'),
                zero: flags.contains('0'),
                ..Flags::default()
            },
            width,
            precision,
        };
        let mut out = Vec::new();
        float(&mut out, &spec, value, kind);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_as_in_c() {
        for (value, kind, flags, width, precision, expected) in [
            (0.0, 'f', "", 0, None, "0.000000"),
            (-0.0, 'f', "", 0, None, "-0.000000"),
            (1.5, 'f', "+", 0, Some(1), "+1.5"),
            (2.5, 'f', "", 0, Some(0), "2"),
            (2.5, 'f', "#", 0, Some(0), "2."),
            (-1.5, 'f', "0", 8, Some(2), "-0001.50"),
            (-1.5, 'f', "-", 8, Some(2), "-1.50   "),
            (0.0, 'e', "", 0, None, "0.000000e+00"),
            (12345.678, 'e', "", 0, Some(3), "1.235e+04"),
            (1e-100, 'E', "", 0, Some(0), "1E-100"),
            (1e100, 'e', "#", 0, Some(0), "1.e+100"),
            (100000.0, 'g', "", 0, None, "100000"),
            (1000000.0, 'g', "", 0, None, "1e+06"),
            (0.0001, 'g', "", 0, None, "0.0001"),
            (0.00001, 'G', "", 0, None, "1E-05"),
            (0.0, 'g', "", 0, None, "0"),
            (1.5, 'g', "#", 0, None, "1.50000"),
            (5.0, 'g', "", 0, Some(0), "5"),
            (999999.9, 'g', "", 0, None, "1e+06"),
            (f64::INFINITY, 'f', "0", 6, None, "   inf"),
            (f64::NEG_INFINITY, 'G', "", 0, None, "-INF"),
            (f64::NAN, 'g', "", 5, None, "  nan"),
        ] {
            assert_eq!(show(value, kind, flags, width, precision), expected);
        }
    }

    #[test]
    fn hexadecimal_digits() {
        for (value, flags, precision, expected) in [
            (1.0, "", None, "0x1p+0"),
            (0.0, "", None, "0x0p+0"),
            (0.1, "", None, "0x1.999999999999ap-4"),
            (-0.75, "", None, "-0x1.8p-1"),
            (1e300, "+", None, "+0x1.7e43c8800759cp+996"),
            (5e-324, "", None, "0x0.0000000000001p-1022"),
            (f64::MAX, "", None, "0x1.fffffffffffffp+1023"),
            (0.1, "", Some(2), "0x1.9ap-4"),
            (1.96875, "", Some(1), "0x2.0p+0"),
            (1.03125, "", Some(1), "0x1.0p+0"),
            (1.5, "", Some(15), "0x1.800000000000000p+0"),
            (1.0, "#", Some(0), "0x1.p+0"),
            (f64::INFINITY, "", None, "inf"),
        ] {
            assert_eq!(show(value, 'a', flags, 0, precision), expected);
        }
        assert_eq!(show(-10.0, 'A', "", 12, None), "   -0X1.4P+3");
    }

    #[test]
    fn the_own_form_has_no_digit_too_many_and_none_too_few() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (100.0, "100"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (0.0001, "0.0001"),
            (0.000012, "1.2e-05"),
            (123456789.25, "123456789.25"),
            (1.0 / 3.0, "0.3333333333333333"),
            (-f64::MIN_POSITIVE, "-2.2250738585072014e-308"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(shortest(value), expected);
        }
        assert_eq!(text(&0.1f32.to_ne_bytes()).as_deref(), Some("0.1"));
        assert_eq!(
            text(&f64::from(0.1f32).to_ne_bytes()).as_deref(),
            Some("0.10000000149011612")
        );
        assert_eq!(text(&[0; 3]), None);
    }

    proptest::proptest! {
        #[test]
        fn the_own_form_is_read_as_the_same_number(bits in proptest::num::u64::ANY) {
            let value = f64::from_bits(bits);
            proptest::prop_assume!(value.is_finite());
            proptest::prop_assert_eq!(shortest(value).parse::<f64>().unwrap().to_bits(), bits);
            let single = f32::from_bits(bits as u32);
            proptest::prop_assume!(single.is_finite());
            let text = text(&single.to_ne_bytes()).unwrap();
            proptest::prop_assert_eq!(text.parse::<f32>().unwrap().to_bits(), bits as u32);
        }
    }
}
