// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Conversions between the formats, and from and to integers.
//!
//! An integer becomes the nearest number. A number becomes an integer by dropping its fraction, as
//! in C. C does not define the result for a number that the integer cannot hold: here it is the
//! nearest integer, and 0 for NaN.

use super::format::{infinity, nan, round, unpack, zero, Exact, Number};
use super::Format;

/// Converts `number` to the format `G`.
pub fn convert<F: Format, G: Format>(number: F) -> G {
    match unpack(number) {
        Number::Nan => nan(),
        Number::Infinite(negative) => infinity(negative),
        Number::Zero(negative) => zero(negative),
        Number::Finite(finite) => round(finite.into()),
    }
}

/// Returns the number that is nearest to `value`.
pub fn from_u64<F: Format>(value: u64) -> F {
    from_magnitude(false, value)
}

/// Returns the number that is nearest to `value`.
pub fn from_i64<F: Format>(value: i64) -> F {
    from_magnitude(value < 0, value.unsigned_abs())
}

fn from_magnitude<F: Format>(negative: bool, magnitude: u64) -> F {
    Exact::normal(negative, 63, u128::from(magnitude) << 64).map_or(zero(false), round)
}

/// Returns the integer part of `number`, limited to the range of `i64`; 0 for NaN.
pub fn to_i64<F: Format>(number: F) -> i64 {
    let number = unpack(number);
    let magnitude = integer_part(number);
    match (number.is_negative(), i64::try_from(magnitude)) {
        (true, Ok(value)) => -value,
        (true, Err(_)) => i64::MIN,
        (false, value) => value.unwrap_or(i64::MAX),
    }
}

/// Returns the integer part of `number`, limited to the range of `u64`: 0 if the number is
/// negative. NaN gives 0.
pub fn to_u64<F: Format>(number: F) -> u64 {
    let number = unpack(number);
    match number.is_negative() {
        true => 0,
        false => integer_part(number),
    }
}

/// Returns the integer part of a number's magnitude, limited to `u64::MAX`.
fn integer_part(number: Number) -> u64 {
    match number {
        Number::Nan | Number::Zero(_) => 0,
        Number::Infinite(_) => u64::MAX,
        Number::Finite(finite) => match finite.exponent {
            ..0 => 0,
            0..64 => finite.significand >> (63 - finite.exponent),
            64.. => u64::MAX,
        },
    }
}
