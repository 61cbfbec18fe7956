// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Floating-point arithmetic without a floating-point unit.
//!
//! A probe fires in the middle of anything, and the unit's registers belong to whoever was interrupted, so programs compute in
//! integers. A number is taken apart ([`format`]) into a sign, an exponent and a significand of 64 bits, which holds
//! those of all formats; an operation makes of them a result that is exact, or whose lowest bit tells that it is not ("sticky");
//! and one function rounds that to the format asked for: to the nearest, of two equally near ones to the even one.
//! So `float`, `double` and x87's `long double` differ in three constants, and every result is what IEEE 754 says it is.
//!
//! There is one NaN, the quiet one without a sign: which of its operands' an operation hands on is left to it by the
//! standard. There are no exceptions and no flags: what is invalid gives NaN, a division by zero infinity.
//!
//! Invariant: no `f32` or `f64` stands in this module, nothing in it panics, and all of it ends after a fixed number of
//! steps.
// Exponents stay within a few times 2^14 of zero; significands are shifted by less than their width.
#![allow(clippy::arithmetic_side_effects)]

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

/// `a + b`.
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

/// `a - b`.
pub fn sub<F: Format>(a: F, b: F) -> F {
    add(a, b.negated())
}

/// The sum of two numbers; `None` is zero.
fn sum(x: Finite, y: Finite) -> Option<Exact> {
    let (large, small) = match x.magnitude() < y.magnitude() {
        true => (y, x),
        false => (x, y),
    };
    // A bit above is left for the carry; what is shifted out below has at least 62 bits between itself and the last
    // one that any format keeps, so that one sticky bit stands for all of it, in a difference as well.
    let top = u128::from(large.significand) << 63;
    let distance = large.exponent.abs_diff(small.exponent);
    let low = shift_sticky(u128::from(small.significand) << 63, distance);
    let significand = match large.negative == small.negative {
        true => top + low,
        false => top - low,
    };
    Exact::normal(large.negative, large.exponent + 1, significand)
}

/// `value` shifted right, its lowest bit set if any that is lost was.
fn shift_sticky(value: u128, by: u32) -> u128 {
    match value.checked_shr(by) {
        Some(kept) => kept | u128::from(kept << by != value),
        None => u128::from(value != 0),
    }
}

/// `a * b`.
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

/// `a / b`.
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

/// `dividend / divisor` with 127 bits behind the point, the last of which is sticky. The top bit of both is set.
fn quotient(dividend: u64, divisor: u64) -> u128 {
    let (mut quotient, mut rest) = match dividend.checked_sub(divisor) {
        Some(rest) => (1, rest),
        None => (0, dividend),
    };
    // Three digits make 96 bits: more than any format has, and the kernel has no division of wider numbers.
    for _ in 0..3 {
        let digit;
        (digit, rest) = next_digit(rest, divisor);
        quotient = quotient << 32 | u128::from(digit);
    }
    quotient << 31 | u128::from(rest != 0)
}

/// The next digit of `rest / divisor` in base 2^32, and what is left then; `rest` is less than `divisor`.
///
/// The divisor's upper half alone says what the digit is, or one or two more (Knuth, The Art of Computer Programming,
/// vol. 2, 4.3.1, theorem B): its top bit is set.
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

/// How `a` compares with `b`; `None` if either is no number.
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
