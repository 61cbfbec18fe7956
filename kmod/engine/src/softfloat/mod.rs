// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Floating-point arithmetic without a floating-point unit.
//!
//! A probe may fire in the middle of any computation, when the unit's registers belong to the
//! interrupted code. So programs compute in integers (INV-8). A number is unpacked ([`format`])
//! into a sign, an exponent and a significand of 64 bits, which can hold the significand of every
//! format. An operation computes from them a result that is exact, or whose lowest bit says that it
//! is not ("sticky"). One function rounds that result to the required format: to the nearest
//! number, and if two are equally near, to the even one. So `float`, `double` and x87's `long
//! double` differ in three constants, and every result is the one that IEEE 754 defines.
//!
//! There is only one NaN, the quiet one without a sign; the standard lets an operation choose which
//! NaN it returns. There are no exceptions and no flags: an invalid operation returns NaN, and a
//! division of a nonzero number by zero infinity.
//!
//! Invariant: this module contains no `f32` or `f64`, nothing in it panics, and every function ends
//! after a fixed number of steps.
// Exponents stay within a few times 2^14 of zero; significands are shifted by less than their
// width.
#![allow(clippy::arithmetic_side_effects)]

#[cfg(test)]
mod apfloat;
mod convert;
mod format;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod x87;

pub use convert::{convert, from_i64, from_u64, to_i64, to_u64};
pub use format::{Double, Extended, Format, Single};

use core::cmp::Ordering;
use format::{infinity, nan, round, unpack, zero, Exact, Finite, Number};

/// Returns `a + b`.
pub fn add<F: Format>(a: F, b: F) -> F {
    use Number::*;
    match (unpack(a), unpack(b)) {
        (Nan, _) | (_, Nan) => nan(),
        (Infinite(x), Infinite(y)) if x != y => nan(),
        (Infinite(negative), _) | (_, Infinite(negative)) => infinity(negative),
        (Zero(x), Zero(y)) => zero(x && y),
        (Zero(_), Finite(x)) | (Finite(x), Zero(_)) => round(x.into()),
        (Finite(x), Finite(y)) => match sum(x, y) {
            Some(sum) => round(sum),
            None => zero(false),
        },
    }
}

/// Returns `a - b`.
pub fn sub<F: Format>(a: F, b: F) -> F {
    add(a, b.negated())
}

/// Returns the sum of two numbers; `None` if it is zero.
fn sum(x: Finite, y: Finite) -> Option<Exact> {
    let (large, small) = match x.magnitude() < y.magnitude() {
        true => (y, x),
        false => (x, y),
    };
    // The top bit is left free for the carry. Bits that are shifted out at the bottom are at least
    // 62 bits below the last one that any format keeps, so one sticky bit can stand for all of
    // them, in a difference too.
    let top = u128::from(large.significand) << 63;
    let distance = large.exponent.abs_diff(small.exponent);
    let low = shift_sticky(u128::from(small.significand) << 63, distance);
    let significand = match large.negative == small.negative {
        true => top + low,
        false => top - low,
    };
    Exact::normal(large.negative, large.exponent + 1, significand)
}

/// Returns `value` shifted right; its lowest bit is set if any bit that was shifted out was.
fn shift_sticky(value: u128, by: u32) -> u128 {
    match value.checked_shr(by) {
        Some(kept) => kept | u128::from(kept << by != value),
        None => u128::from(value != 0),
    }
}

/// Returns `a * b`.
pub fn mul<F: Format>(a: F, b: F) -> F {
    use Number::*;
    let (x, y) = (unpack(a), unpack(b));
    let negative = x.is_negative() != y.is_negative();
    match (x, y) {
        (Nan, _) | (_, Nan) | (Infinite(_), Zero(_)) | (Zero(_), Infinite(_)) => nan(),
        (Infinite(_), _) | (_, Infinite(_)) => infinity(negative),
        (Zero(_), _) | (_, Zero(_)) => zero(negative),
        (Finite(x), Finite(y)) => {
            let product = u128::from(x.significand) * u128::from(y.significand);
            let exponent = x.exponent + y.exponent + 1;
            Exact::normal(negative, exponent, product).map_or(zero(negative), round)
        }
    }
}

/// Returns `a / b`.
pub fn div<F: Format>(a: F, b: F) -> F {
    use Number::*;
    let (x, y) = (unpack(a), unpack(b));
    let negative = x.is_negative() != y.is_negative();
    match (x, y) {
        (Nan, _) | (_, Nan) | (Infinite(_), Infinite(_)) | (Zero(_), Zero(_)) => nan(),
        (Infinite(_), _) | (_, Zero(_)) => infinity(negative),
        (Zero(_), _) | (_, Infinite(_)) => zero(negative),
        (Finite(x), Finite(y)) => {
            let quotient = quotient(x.significand, y.significand);
            let exponent = x.exponent - y.exponent;
            Exact::normal(negative, exponent, quotient).map_or(zero(negative), round)
        }
    }
}

/// Returns `dividend / divisor` with 127 bits after the binary point, the last of which is sticky.
/// The top bit of both must be set.
fn quotient(dividend: u64, divisor: u64) -> u128 {
    let (mut quotient, mut rest) = match dividend.checked_sub(divisor) {
        Some(rest) => (1, rest),
        None => (0, dividend),
    };
    // Three digits give 96 bits, which is more than any format has. The kernel has no division of
    // wider numbers.
    for _ in 0..3 {
        let digit;
        (digit, rest) = next_digit(rest, divisor);
        quotient = quotient << 32 | u128::from(digit);
    }
    quotient << 31 | u128::from(rest != 0)
}

/// Returns the next digit of `rest / divisor` in base 2^32, and the remainder. `rest` must be less
/// than `divisor`.
///
/// The divisor's upper half alone determines the digit up to an excess of at most two (Knuth, The
/// Art of Computer Programming, vol. 2, 4.3.1, theorem B), because the divisor's top bit is set.
fn next_digit(rest: u64, divisor: u64) -> (u64, u64) {
    let estimate = rest.checked_div(divisor >> 32).unwrap_or(0);
    let mut digit = estimate.min(u64::from(u32::MAX));
    let rest = u128::from(rest) << 32;
    let mut product = u128::from(digit) * u128::from(divisor);
    for _ in 0..2 {
        if product > rest {
            digit -= 1;
            product -= u128::from(divisor);
        }
    }
    (digit, (rest - product) as u64)
}

/// Compares `a` with `b`; `None` if either is NaN.
pub fn compare<F: Format>(a: F, b: F) -> Option<Ordering> {
    use Number::*;
    let (x, y) = (unpack(a), unpack(b));
    match (x, y) {
        (Nan, _) | (_, Nan) => None,
        (Zero(_), Zero(_)) => Some(Ordering::Equal),
        _ if x.is_negative() != y.is_negative() => Some(y.is_negative().cmp(&x.is_negative())),
        _ if x.is_negative() => Some(y.magnitude().cmp(&x.magnitude())),
        _ => Some(x.magnitude().cmp(&y.magnitude())),
    }
}
