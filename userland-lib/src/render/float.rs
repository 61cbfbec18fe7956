// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! C's floating-point conversions `%e`, `%f` and `%g`.
//!
//! D computes no floating-point numbers; it prints those that the traced memory holds. The digits are exact
//! (Rust's formatting rounds the exact decimal expansion, as C's does); only exponents and `%g` are C's own.

use super::pad::{self, Spec};

/// The digits that C prints without a precision.
const DEFAULT_PRECISION: usize = 6;
/// An `f64` has no more than 1074 digits behind its point that are not zero.
const MAX_PRECISION: usize = 1100;

/// Appends `value` as the conversion letter `kind` says: one of `eEfFgG`.
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

/// `d.ddd`; with `alt` the point stands even if no digit follows.
fn fixed(value: f64, precision: usize, alt: bool) -> String {
    let mut text = format!("{value:.precision$}");
    if alt && precision == 0 {
        text.push('.');
    }
    text
}

/// Mantissa and decimal exponent of `value`, rounded to `precision` digits behind the point.
fn scientific(value: f64, precision: usize) -> (String, i32) {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.into(), exponent.parse().unwrap_or(0)),
        None => (text, 0),
    }
}

/// `d.ddde±dd`.
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

/// The shorter of the two, with `digits` significant digits; zeros at the end go unless `alt`.
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

/// The number that 4, 8 or 16 recorded bytes are; the last is the x87's extended format, rounded to 64 bits.
pub fn from_bytes(data: &[u8]) -> Option<f64> {
    match data.len() {
        4 => Some(f32::from_ne_bytes(data.try_into().ok()?).into()),
        8 => Some(f64::from_ne_bytes(data.try_into().ok()?)),
        16 => {
            let mantissa = u64::from_le_bytes(data[..8].try_into().ok()?);
            let high = u16::from_le_bytes(data[8..10].try_into().ok()?);
            Some(extended(mantissa, high))
        }
        _ => None,
    }
}

fn extended(mantissa: u64, high: u16) -> f64 {
    let sign = if high & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(high & 0x7fff);
    if exponent == 0x7fff {
        // Without the integer bit what remains tells infinity from a number that is none.
        return if mantissa << 1 == 0 {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    let exponent = exponent - 16383 - 63;
    // In two steps: the scale alone may lie beyond an f64 where the product does not.
    sign * mantissa as f64 * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Flags;

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
    fn recorded_bytes_become_numbers() {
        assert_eq!(from_bytes(&1.5f32.to_ne_bytes()), Some(1.5));
        assert_eq!(from_bytes(&(-2.25f64).to_ne_bytes()), Some(-2.25));
        assert_eq!(from_bytes(&[0; 3]), None);
        let x87 = |mantissa: u64, high: u16| {
            let mut data = [0; 16];
            data[..8].copy_from_slice(&mantissa.to_le_bytes());
            data[8..10].copy_from_slice(&high.to_le_bytes());
            from_bytes(&data).unwrap()
        };
        assert_eq!(x87(1 << 63, 16383), 1.0);
        assert_eq!(x87(3 << 62, 0xc000), -3.0);
        assert_eq!(x87(0, 0), 0.0);
        assert_eq!(x87(1 << 63, 0x7fff), f64::INFINITY);
        assert!(x87(3 << 62, 0x7fff).is_nan());
    }
}
