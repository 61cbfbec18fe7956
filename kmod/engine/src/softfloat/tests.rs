// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Every operation compared with the host's floating-point unit, on random numbers, many of them
//! special.

use super::*;
use proptest::prelude::*;

/// Bits of doubles, many of them special or close to special ones.
pub(super) fn doubles() -> impl Strategy<Value = u64> {
    const EXPONENTS: &[u64] = &[
        0, 1, 2, 51, 52, 53, 969, 970, 1021, 1022, 1023, 1024, 1074, 1075, 1085, 1086, 1087, 2045,
        2046, 2047,
    ];
    const FRACTIONS: &[u64] = &[
        0,
        1,
        2,
        3,
        1 << 28,
        1 << 29,
        3 << 28,
        1 << 51,
        (1 << 51) - 1,
        (1 << 51) + 1,
        (1 << 52) - 2,
        (1 << 52) - 1,
    ];
    let special = (
        any::<bool>(),
        prop::sample::select(EXPONENTS),
        prop::sample::select(FRACTIONS),
    );
    let special = special
        .prop_map(|(sign, exponent, fraction)| u64::from(sign) << 63 | exponent << 52 | fraction);
    let near = (any::<bool>(), 1020u64..1028, any::<u64>());
    let near = near.prop_map(|(sign, exponent, fraction)| {
        u64::from(sign) << 63 | exponent << 52 | fraction >> 12
    });
    let integer = any::<i64>().prop_map(|value| (value as f64).to_bits());
    let single = any::<u32>().prop_map(|bits| f64::from(f32::from_bits(bits)).to_bits());
    prop_oneof![any::<u64>(), special, near, integer, single]
}

pub(super) fn singles() -> impl Strategy<Value = u32> {
    const SPECIAL: &[u32] = &[
        0,
        1,
        2,
        0x7f_ffff,
        0x80_0000,
        0x80_0001,
        0x3f80_0000,
        0x3f80_0001,
        0x3f7f_ffff,
        0x4b00_0000,
        0x4b7f_ffff,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7f80_0001,
        0x7fc0_0000,
        0x0b80_0000,
        0x3380_0000,
        0x3400_0000,
    ];
    let signed = (any::<bool>(), prop::sample::select(SPECIAL));
    let signed = signed.prop_map(|(sign, bits)| u32::from(sign) << 31 | bits);
    let near = (any::<bool>(), 120u32..135, any::<u32>());
    let near = near.prop_map(|(sign, exponent, fraction)| {
        u32::from(sign) << 31 | exponent << 23 | fraction >> 9
    });
    prop_oneof![any::<u32>(), signed, near]
}

/// Whether two doubles are the same: equal in all bits, or both NaN.
fn same(ours: Double, host: f64) -> bool {
    ours.0 == host.to_bits() || host.is_nan() && f64::from_bits(ours.0).is_nan()
}

fn same_single(ours: Single, host: f32) -> bool {
    ours.0 == host.to_bits() || host.is_nan() && f32::from_bits(ours.0).is_nan()
}

/// Returns the number in x87's format, which can represent every double.
fn extended(bits: u64) -> Extended {
    convert(Double(bits))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn doubles_are_computed_as_by_the_host(a in doubles(), b in doubles()) {
        let (x, y, p, q) = (Double(a), Double(b), f64::from_bits(a), f64::from_bits(b));
        prop_assert!(same(add(x, y), p + q), "{p:e} + {q:e}");
        prop_assert!(same(sub(x, y), p - q), "{p:e} - {q:e}");
        prop_assert!(same(mul(x, y), p * q), "{p:e} * {q:e}");
        prop_assert!(same(div(x, y), p / q), "{p:e} / {q:e}");
        prop_assert_eq!(compare(x, y), p.partial_cmp(&q), "{:e} and {:e}", p, q);
        prop_assert_eq!(compare(x, x), p.partial_cmp(&p), "{:e} with itself", p);
    }

    #[test]
    fn singles_are_computed_as_by_the_host(a in singles(), b in singles()) {
        let (x, y, p, q) = (Single(a), Single(b), f32::from_bits(a), f32::from_bits(b));
        prop_assert!(same_single(add(x, y), p + q), "{p:e} + {q:e}");
        prop_assert!(same_single(sub(x, y), p - q), "{p:e} - {q:e}");
        prop_assert!(same_single(mul(x, y), p * q), "{p:e} * {q:e}");
        prop_assert!(same_single(div(x, y), p / q), "{p:e} / {q:e}");
        prop_assert_eq!(compare(x, y), p.partial_cmp(&q), "{:e} and {:e}", p, q);
    }

    /// The DIF machine has no operations for singles: it computes in doubles and rounds once more.
    #[test]
    fn singles_may_be_computed_in_doubles(a in singles(), b in singles()) {
        let (x, y): (Double, Double) = (convert(Single(a)), convert(Single(b)));
        let (p, q) = (f32::from_bits(a), f32::from_bits(b));
        for (ours, host) in [(add(x, y), p + q), (sub(x, y), p - q), (mul(x, y), p * q), (div(x, y), p / q)] {
            prop_assert!(same_single(convert(ours), host), "{p:e} {q:e}");
        }
    }

    #[test]
    fn conversions_are_the_hosts(a in doubles(), b in singles(), n in any::<u64>(), cut in 0u32..64) {
        let (p, q, n) = (f64::from_bits(a), f32::from_bits(b), n >> cut);
        prop_assert!(same_single(convert(Double(a)), p as f32), "{p:e} as f32");
        prop_assert!(same(convert(Single(b)), f64::from(q)), "{q:e} as f64");
        prop_assert!(same(from_u64(n), n as f64), "{n}");
        prop_assert!(same(from_i64(n as i64), n as i64 as f64), "{}", n as i64);
        prop_assert!(same_single(from_u64(n), n as f32), "{n}");
        prop_assert!(same_single(from_i64(n as i64), n as i64 as f32), "{}", n as i64);
        prop_assert_eq!(to_i64(Double(a)), p as i64, "{:e}", p);
        prop_assert_eq!(to_u64(Double(a)), p as u64, "{:e}", p);
        prop_assert_eq!(to_i64(Single(b)), q as i64, "{:e}", q);
        prop_assert_eq!(to_u64(Single(b)), q as u64, "{:e}", q);
    }

    /// x87's format holds the sum and the product of singles exactly, so rounding once gives the
    /// host's result.
    #[test]
    fn extended_numbers_hold_more(a in singles(), b in singles(), c in doubles()) {
        let (x, y): (Extended, Extended) = (convert(Single(a)), convert(Single(b)));
        let (p, q) = (f64::from(f32::from_bits(a)), f64::from(f32::from_bits(b)));
        prop_assert!(same(convert(mul(x, y)), p * q), "{p:e} * {q:e}");
        prop_assert_eq!(compare(x, y), p.partial_cmp(&q));
        prop_assert!(same(convert(extended(c)), f64::from_bits(c)));
        prop_assert_eq!(to_i64(extended(c)), f64::from_bits(c) as i64);
    }

    #[test]
    fn extended_arithmetic_is_within_half_a_unit(a in 1u64.., b in 1u64..) {
        // The operands are integers of 64 bits, so the exact result is known in 128 bits.
        let (x, y): (Extended, Extended) = (from_u64(a), from_u64(b));
        let exact = u128::from(a) * u128::from(b);
        let product = mul(x, y);
        let exponent = i32::from(product.high) - 16383;
        let shift = exponent - 63;
        let rounded = if shift > 0 { u128::from(product.significand) << shift } else { u128::from(product.significand) >> -shift };
        let unit = if shift > 0 { 1u128 << shift } else { 0 };
        let (error, half) = (rounded.abs_diff(exact), unit / 2);
        prop_assert!(error < half || error == half && (unit < 2 || product.significand & 1 == 0), "{a} * {b}");
        // A product divided by a factor gives the other factor if the product was exact, and a
        // number close to it otherwise.
        let back = to_u64(div(product, y));
        prop_assert!(back.abs_diff(a) <= 1 || error != 0, "{a} * {b} / {b}");
        let total: Extended = add(x, y);
        let sum = u128::from(a) + u128::from(b);
        let shift = i32::from(total.high) - 16383 - 63;
        let rounded = if shift > 0 { u128::from(total.significand) << shift } else { u128::from(total.significand) >> -shift };
        prop_assert!(rounded.abs_diff(sum) <= 1);
        prop_assert_eq!(to_u64(sub(total, y)).abs_diff(a) <= 1, true);
    }
}

/// Results of `long double` arithmetic as compiled by a C compiler.
#[test]
fn extended_numbers_are_those_of_c() {
    let one: Extended = from_u64(1);
    let three: Extended = from_u64(3);
    let third = Extended {
        high: 0x3ffd,
        significand: 0xaaaa_aaaa_aaaa_aaab,
    };
    assert_eq!(div(one, three), third);
    assert_eq!(mul(third, three), one);
    let tenth: Extended = div(one, from_u64(10));
    assert_eq!(
        tenth,
        Extended {
            high: 0x3ffb,
            significand: 0xcccc_cccc_cccc_cccd
        }
    );
    assert_eq!(
        sub(one, tenth),
        Extended {
            high: 0x3ffe,
            significand: 0xe666_6666_6666_6666
        }
    );
    assert_eq!(
        from_i64::<Extended>(-2),
        Extended {
            high: 0xc000,
            significand: 1 << 63
        }
    );
}

#[test]
fn ends_of_the_extended_range() {
    let largest = Extended {
        high: 0x7ffe,
        significand: u64::MAX,
    };
    let infinite = Extended {
        high: 0x7fff,
        significand: 1 << 63,
    };
    let least = Extended {
        high: 0,
        significand: 1,
    };
    let two: Extended = from_u64(2);
    assert_eq!(add(largest, largest), infinite);
    assert_eq!(
        div(least, two),
        Extended {
            high: 0,
            significand: 0
        }
    );
    assert_eq!(
        mul(least, two),
        Extended {
            high: 0,
            significand: 2
        }
    );
    // The smallest normal number and the largest subnormal one are neighbours.
    let normal = Extended {
        high: 1,
        significand: 1 << 63,
    };
    assert_eq!(
        sub(normal, least),
        Extended {
            high: 0,
            significand: (1 << 63) - 1
        }
    );
    assert_eq!(
        add(
            Extended {
                high: 0,
                significand: (1 << 63) - 1
            },
            least
        ),
        normal
    );
    assert_eq!(
        convert::<_, Double>(largest),
        Double(f64::INFINITY.to_bits())
    );
    assert_eq!(convert::<_, Double>(least), Double(0));
    assert_eq!(compare(least, normal), Some(Ordering::Less));
}

#[test]
fn what_x87_has_no_meaning_for_is_no_number() {
    for (high, significand) in [(0x7fff, 0), (0x7fff, 1 << 62), (0x3fff, 1 << 62), (1, 0)] {
        let invalid = Extended { high, significand };
        assert_eq!(compare(invalid, invalid), None, "{invalid:x?}");
        assert_eq!(to_i64(invalid), 0);
    }
    // A significand with its integer bit has the minimum exponent, whether the field is 0 or 1.
    let (written, meant) = (
        Extended {
            high: 0,
            significand: 1 << 63,
        },
        Extended {
            high: 1,
            significand: 1 << 63,
        },
    );
    assert_eq!(compare(written, meant), Some(Ordering::Equal));
}
