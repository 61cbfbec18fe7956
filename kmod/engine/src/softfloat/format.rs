// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Formats of floating-point numbers: unpacking, and rounding to a format.
//!
//! A format of IEEE 754 or x87 is defined by a precision, a maximum exponent, and a layout of bits.
//! An exponent field of zero means the minimum exponent and no integer bit (a subnormal number, or
//! zero); a field of all ones means infinity or NaN. x87's format stores the integer bit. A number
//! that lacks an integer bit that it must have is invalid there, and is NaN here.

/// A format of floating-point numbers. A value of the type is the bits of a number.
pub trait Format: Copy {
    /// Bits of the significand, including the integer bit.
    const PRECISION: u32;
    /// Maximum exponent. The minimum exponent of a normal number is 1 minus it.
    const MAX_EXPONENT: i32;

    /// Returns sign, exponent field, and significand with its integer bit.
    fn fields(self) -> (bool, i32, u64);

    /// Makes the number with these fields.
    fn from_fields(negative: bool, exponent: i32, significand: u64) -> Self;

    /// Returns the number with the opposite sign.
    fn negated(self) -> Self;
}

/// IEEE 754 binary32: C's `float`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Single(pub u32);

/// IEEE 754 binary64: C's `double`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Double(pub u64);

/// x87's extended format, which stores the integer bit: C's `long double` on x86.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    /// Sign and exponent.
    pub high: u16,
    /// Significand.
    pub significand: u64,
}

/// Returns the integer bit of a significand of format `F`.
const fn integer_bit<F: Format>() -> u64 {
    1 << (F::PRECISION - 1)
}

/// Returns the exponent field of infinity and NaN.
const fn all_ones<F: Format>() -> i32 {
    2 * F::MAX_EXPONENT + 1
}

impl Format for Single {
    const PRECISION: u32 = 24;
    const MAX_EXPONENT: i32 = 127;

    fn fields(self) -> (bool, i32, u64) {
        let field = (self.0 >> 23 & 0xff) as i32;
        let integer = u64::from(field != 0) << 23;
        (
            self.0 >> 31 != 0,
            field,
            integer | u64::from(self.0 & 0x7f_ffff),
        )
    }

    fn from_fields(negative: bool, exponent: i32, significand: u64) -> Self {
        let sign = u32::from(negative) << 31;
        Self(sign | (exponent as u32) << 23 | significand as u32 & 0x7f_ffff)
    }

    fn negated(self) -> Self {
        Self(self.0 ^ (1 << 31))
    }
}

impl Format for Double {
    const PRECISION: u32 = 53;
    const MAX_EXPONENT: i32 = 1023;

    fn fields(self) -> (bool, i32, u64) {
        let field = (self.0 >> 52 & 0x7ff) as i32;
        let integer = u64::from(field != 0) << 52;
        (
            self.0 >> 63 != 0,
            field,
            integer | (self.0 & ((1 << 52) - 1)),
        )
    }

    fn from_fields(negative: bool, exponent: i32, significand: u64) -> Self {
        let sign = u64::from(negative) << 63;
        Self(sign | (exponent as u64) << 52 | (significand & ((1 << 52) - 1)))
    }

    fn negated(self) -> Self {
        Self(self.0 ^ (1 << 63))
    }
}

impl Format for Extended {
    const PRECISION: u32 = 64;
    const MAX_EXPONENT: i32 = 16383;

    fn fields(self) -> (bool, i32, u64) {
        let field = i32::from(self.high & 0x7fff);
        (self.high >> 15 != 0, field, self.significand)
    }

    fn from_fields(negative: bool, exponent: i32, significand: u64) -> Self {
        Self {
            high: u16::from(negative) << 15 | exponent as u16,
            significand,
        }
    }

    fn negated(self) -> Self {
        Self {
            high: self.high ^ (1 << 15),
            ..self
        }
    }
}

/// An unpacked number. The `bool` is whether it is negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Nan,
    Infinite(bool),
    Zero(bool),
    Finite(Finite),
}

/// A number that is neither zero nor infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Finite {
    pub negative: bool,
    /// Exponent of the significand's top bit.
    pub exponent: i32,
    /// The significand, with its top bit set.
    pub significand: u64,
}

impl Number {
    pub fn is_negative(self) -> bool {
        match self {
            Self::Nan => false,
            Self::Infinite(negative) | Self::Zero(negative) => negative,
            Self::Finite(finite) => finite.negative,
        }
    }

    /// Returns a key that orders numbers of the same sign.
    pub fn magnitude(self) -> (i32, u64) {
        match self {
            Self::Zero(_) => (i32::MIN, 0),
            Self::Finite(finite) => finite.magnitude(),
            Self::Infinite(_) | Self::Nan => (i32::MAX, 0),
        }
    }
}

impl Finite {
    pub fn magnitude(self) -> (i32, u64) {
        (self.exponent, self.significand)
    }
}

/// A result before rounding. It is exact except for its lowest bit, which is also set if any bit
/// below it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    negative: bool,
    /// Exponent of the significand's top bit.
    exponent: i32,
    /// The significand, with its top bit set.
    significand: u128,
}

impl Exact {
    /// Normalises a number; `exponent` is that of the significand's top bit, set or not. `None` if
    /// it is zero.
    pub fn normal(negative: bool, exponent: i32, significand: u128) -> Option<Self> {
        let zeros = significand.leading_zeros();
        Some(Self {
            negative,
            exponent: exponent - zeros as i32,
            significand: significand.checked_shl(zeros)?,
        })
    }
}

impl From<Finite> for Exact {
    fn from(finite: Finite) -> Self {
        Self {
            negative: finite.negative,
            exponent: finite.exponent,
            significand: u128::from(finite.significand) << 64,
        }
    }
}

pub(super) fn nan<F: Format>() -> F {
    let quiet = integer_bit::<F>() >> 1;
    F::from_fields(false, all_ones::<F>(), integer_bit::<F>() | quiet)
}

pub(super) fn infinity<F: Format>(negative: bool) -> F {
    F::from_fields(negative, all_ones::<F>(), integer_bit::<F>())
}

pub(super) fn zero<F: Format>(negative: bool) -> F {
    F::from_fields(negative, 0, 0)
}

/// Unpacks a number.
pub(super) fn unpack<F: Format>(number: F) -> Number {
    let (negative, field, significand) = number.fields();
    if field != 0 && significand & integer_bit::<F>() == 0 {
        return Number::Nan;
    }
    if field == all_ones::<F>() {
        return match significand == integer_bit::<F>() {
            true => Number::Infinite(negative),
            false => Number::Nan,
        };
    }
    let zeros = significand.leading_zeros();
    let Some(normal) = significand.checked_shl(zeros) else {
        return Number::Zero(negative);
    };
    let missing = zeros as i32 - (64 - F::PRECISION as i32);
    Number::Finite(Finite {
        negative,
        exponent: field.max(1) - F::MAX_EXPONENT - missing,
        significand: normal,
    })
}

/// Returns the number of format `F` that is nearest to `exact`; if two are equally near, the even
/// one.
pub(super) fn round<F: Format>(exact: Exact) -> F {
    const HALF: u128 = 1 << 127;
    let least = 1 - F::MAX_EXPONENT;
    let mut exponent = exact.exponent.max(least);
    // Below the minimum exponent more bits of the significand are lost.
    let lost = (exponent - exact.exponent) as u32 + 128 - F::PRECISION;
    let (kept, rest) = match lost {
        ..128 => (
            (exact.significand >> lost) as u64,
            exact.significand << (128 - lost),
        ),
        128 => (0, exact.significand),
        // Less than half of the smallest number.
        _ => (0, 1),
    };
    let up = rest > HALF || rest == HALF && kept & 1 != 0;
    let significand = match kept.checked_add(u64::from(up)) {
        Some(sum) if sum >> (F::PRECISION - 1) <= 1 => sum,
        // All bits were set, so the next number is a power of two.
        _ => {
            exponent += 1;
            integer_bit::<F>()
        }
    };
    if exponent > F::MAX_EXPONENT {
        return infinity(exact.negative);
    }
    let field = match significand & integer_bit::<F>() {
        0 => 0,
        _ => exponent - least + 1,
    };
    F::from_fields(exact.negative, field, significand)
}
