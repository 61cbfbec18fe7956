// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Formats of floating-point numbers: taking them apart, and rounding to them.
//!
//! What IEEE 754 and x87 call a format is a precision, a greatest exponent, and where the bits lie. An exponent field of
//! zero has the least exponent and no integer bit (a subnormal number, or zero); one of all ones has infinity and NaN. Where
//! x87 has its integer bit written out, numbers without one that should have it are invalid to it, and are NaN here.

/// A format of floating-point numbers, and a number of it as bits.
pub trait Format: Copy {
    /// Bits of the significand, the integer bit counted.
    const PRECISION: u32;
    /// Greatest exponent; the least of a normal number is 1 less it.
    const MAX_EXPONENT: i32;

    /// Sign, exponent field, and significand with its integer bit.
    fn fields(self) -> (bool, i32, u64);

    /// The number of these fields.
    fn from_fields(negative: bool, exponent: i32, significand: u64) -> Self;

    /// The same with the other sign.
    fn negated(self) -> Self;
}

/// IEEE 754 binary32: C's `float`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Single(pub u32);

/// IEEE 754 binary64: C's `double`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Double(pub u64);

/// x87's extended format, whose integer bit is written out: C's `long double` on x86.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    /// Sign and exponent.
    pub high: u16,
    /// Significand.
    pub significand: u64,
}

/// The integer bit of a significand of format `F`.
const fn integer_bit<F: Format>() -> u64 {
    1 << (F::PRECISION - 1)
}

/// The exponent field of infinity and NaN.
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

/// A number taken apart. What is not `Nan` has its sign: whether it is negative.
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
    /// Of the significand's top bit.
    pub exponent: i32,
    /// Its top bit is set.
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

    /// What numbers of one sign are ordered by.
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

/// A result before it is rounded: exact, but for its lowest bit, which is set as well if anything below it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    negative: bool,
    /// Of the significand's top bit.
    exponent: i32,
    /// Its top bit is set.
    significand: u128,
}

impl Exact {
    /// The number whose significand has its top bit at `exponent`, set or not; `None` if it is zero.
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

/// Takes a number apart.
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

/// The number of format `F` that is nearest to `exact`, of two equally near ones the even one.
pub(super) fn round<F: Format>(exact: Exact) -> F {
    const HALF: u128 = 1 << 127;
    let least = 1 - F::MAX_EXPONENT;
    let mut exponent = exact.exponent.max(least);
    // Below the least exponent bits of the significand are lost.
    let lost = (exponent - exact.exponent) as u32 + 128 - F::PRECISION;
    let (kept, rest) = match lost {
        ..128 => (
            (exact.significand >> lost) as u64,
            exact.significand << (128 - lost),
        ),
        128 => (0, exact.significand),
        // Less than half of the least number.
        _ => (0, 1),
    };
    let up = rest > HALF || rest == HALF && kept & 1 != 0;
    let significand = match kept.checked_add(u64::from(up)) {
        Some(sum) if sum >> (F::PRECISION - 1) <= 1 => sum,
        // All bits were set: the next number is a power of two.
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
