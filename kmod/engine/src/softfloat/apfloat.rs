// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Every operation compared with LLVM's software floating point (`rustc_apfloat`).
//!
//! The host's unit ([`super::tests`]) cannot be asked about x87's format, for which Rust has no
//! type, nor about numbers that the format has no meaning for. LLVM's code can, and it shares
//! nothing with ours: neither the way a number is unpacked nor the way it is rounded. All pairs of
//! edges are compared, and random operands.

use super::tests::{doubles, singles};
use super::{
    add, compare, convert, div, from_i64, from_u64, mul, sub, to_i64, to_u64, Double, Extended,
    Format, Single,
};
use proptest::prelude::*;
use rustc_apfloat::{ieee, Float, FloatConvert};
use std::fmt::Debug;

/// A format that LLVM has too.
trait Both: Format + Debug {
    /// LLVM's type of the format.
    type Llvm: Float
        + FloatConvert<ieee::Single>
        + FloatConvert<ieee::Double>
        + FloatConvert<ieee::X87DoubleExtended>;

    /// Returns the number's bits, as they are in memory.
    fn bits(self) -> u128;
}

impl Both for Single {
    type Llvm = ieee::Single;

    fn bits(self) -> u128 {
        self.0.into()
    }
}

impl Both for Double {
    type Llvm = ieee::Double;

    fn bits(self) -> u128 {
        self.0.into()
    }
}

impl Both for Extended {
    type Llvm = ieee::X87DoubleExtended;

    fn bits(self) -> u128 {
        u128::from(self.high) << 64 | u128::from(self.significand)
    }
}

fn llvm<F: Both>(number: F) -> F::Llvm {
    F::Llvm::from_bits(number.bits())
}

/// Whether two numbers are the same: equal in all bits, or both NaN.
fn same<F: Both>(ours: F, theirs: F::Llvm) -> bool {
    if theirs.is_nan() {
        return llvm(ours).is_nan();
    }
    ours.bits() == theirs.to_bits()
}

/// Compares the operations on two numbers.
fn operations_agree<F: Both>(a: F, b: F) -> Result<(), TestCaseError> {
    let (x, y) = (llvm(a), llvm(b));
    for (name, ours, theirs) in [
        ("+", add(a, b), x + y),
        ("-", sub(a, b), x - y),
        ("*", mul(a, b), x * y),
        ("/", div(a, b), x / y),
    ] {
        let theirs = theirs.value;
        prop_assert!(
            same(ours, theirs),
            "{a:x?} {name} {b:x?}: {ours:x?}, not {:#x}",
            theirs.to_bits()
        );
    }
    prop_assert_eq!(compare(a, b), x.partial_cmp(&y), "{:x?} and {:x?}", a, b);
    Ok(())
}

/// Compares the conversion of a number to format `G`.
fn conversion_agrees<F: Both, G: Both>(a: F) -> Result<(), TestCaseError>
where
    F::Llvm: FloatConvert<G::Llvm>,
{
    let ours: G = convert(a);
    let theirs: G::Llvm = llvm(a).convert(&mut false).value;
    prop_assert!(same(ours, theirs), "{a:x?}: {ours:x?}");
    Ok(())
}

/// Compares the conversions of a number to the other formats and to integers.
fn conversions_agree<F: Both>(a: F) -> Result<(), TestCaseError> {
    conversion_agrees::<F, Single>(a)?;
    conversion_agrees::<F, Double>(a)?;
    conversion_agrees::<F, Extended>(a)?;
    let (signed, unsigned) = (llvm(a).to_i128(64).value, llvm(a).to_u128(64).value);
    prop_assert_eq!(i128::from(to_i64(a)), signed, "{:x?}", a);
    prop_assert_eq!(u128::from(to_u64(a)), unsigned, "{:x?}", a);
    Ok(())
}

/// Compares the numbers of format `F` that are nearest to an integer.
fn integers_agree<F: Both>(n: u64) -> Result<(), TestCaseError> {
    let unsigned = F::Llvm::from_u128(n.into()).value;
    prop_assert!(same(from_u64::<F>(n), unsigned), "{n}");
    let signed = F::Llvm::from_i128((n as i64).into()).value;
    prop_assert!(same(from_i64::<F>(n as i64), signed), "{}", n as i64);
    Ok(())
}

/// Returns all numbers whose exponent field and fraction are at an edge: zeros, subnormal numbers
/// and their neighbours, one, numbers about the end of the integers, the greatest, infinity, NaN.
/// `exponents` is the width of the exponent field, `fractions` that of the rest without the sign.
fn edges(exponents: u32, fractions: u32) -> Vec<u128> {
    let (ones, one) = ((1u128 << exponents) - 1, (1u128 << (exponents - 1)) - 1);
    let all = (1u128 << fractions) - 1;
    let top = 1u128 << (fractions - 1);
    let mut found = Vec::new();
    let near_one = [
        one - 1,
        one,
        one + 1,
        one + 31,
        one + 62,
        one + 63,
        one + 64,
    ];
    let fields = [0, 1, 2, ones - 2, ones - 1, ones]
        .into_iter()
        .chain(near_one);
    for field in fields.filter(|field| *field <= ones) {
        for fraction in [0, 1, 2, top - 1, top, top + 1, top | top >> 1, all - 1, all] {
            for sign in [0, 1] {
                found.push((sign << exponents | field) << fractions | fraction);
            }
        }
    }
    found
}

fn all_edges_agree<F: Both>(numbers: Vec<F>) {
    for a in &numbers {
        conversions_agree(*a).unwrap();
        for b in &numbers {
            operations_agree(*a, *b).unwrap();
        }
    }
}

fn extended(bits: u128) -> Extended {
    Extended {
        high: (bits >> 64) as u16,
        significand: bits as u64,
    }
}

/// Numbers of x87's format: any bits, numbers close to each other, edges, and integers.
fn extendeds() -> impl Strategy<Value = Extended> {
    let any_bits = (any::<u16>(), any::<u64>());
    let near = (any::<bool>(), 16_380u16..16_388, any::<u64>());
    let near = near.prop_map(|(sign, exponent, significand)| {
        (u16::from(sign) << 15 | exponent, significand | 1 << 63)
    });
    // A product or quotient of numbers at the lower end is subnormal or lost.
    let small = (0u16..130, any::<u64>()).prop_map(|(exponent, significand)| {
        let integer = u64::from(exponent != 0) << 63;
        (exponent * 64, significand | integer)
    });
    let sparse = (any::<u16>(), 0u32..64, 0u32..64)
        .prop_map(|(high, a, b)| (high, 1 << 63 | 1 << a | 1u64 << b));
    let pairs = prop_oneof![any_bits, near, small, sparse];
    let pairs = pairs.prop_map(|(high, significand)| Extended { high, significand });
    let integers = any::<i64>().prop_map(from_i64);
    let edge = prop::sample::select(edges(15, 64)).prop_map(extended);
    prop_oneof![3 => pairs, 1 => integers, 1 => edge]
}

#[test]
fn singles_agree_at_the_edges() {
    let numbers = edges(8, 23).into_iter().map(|bits| Single(bits as u32));
    all_edges_agree(numbers.collect());
}

#[test]
fn doubles_agree_at_the_edges() {
    let numbers = edges(11, 52).into_iter().map(|bits| Double(bits as u64));
    all_edges_agree(numbers.collect());
}

/// Among them are the bits that x87 has no meaning for, which are NaN to both.
#[test]
fn extended_numbers_agree_at_the_edges() {
    all_edges_agree(edges(15, 64).into_iter().map(extended).collect());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn singles_agree(a in singles(), b in singles()) {
        operations_agree(Single(a), Single(b))?;
        conversions_agree(Single(a))?;
    }

    #[test]
    fn doubles_agree(a in doubles(), b in doubles()) {
        operations_agree(Double(a), Double(b))?;
        conversions_agree(Double(a))?;
    }

    #[test]
    fn extended_numbers_agree(a in extendeds(), b in extendeds()) {
        operations_agree(a, b)?;
        conversions_agree(a)?;
    }

    #[test]
    fn integers_become_the_same_numbers(n in any::<u64>(), cut in 0u32..64) {
        integers_agree::<Single>(n >> cut)?;
        integers_agree::<Double>(n >> cut)?;
        integers_agree::<Extended>(n >> cut)?;
    }
}
