// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The arithmetic of aggregating functions' data.
//!
//! Integer sums wrap, as in the kernel. The data of `avg()` is count and sum. That of `stddev()` is
//! count, sum, and the sum of the squares as a 128-bit number, low word first. Functions over
//! floating-point numbers have other data ([`super::float`]).

use super::float;
use dtrace_uapi::action::{Action, Llquantize, Lquantize, QUANTIZE_NBUCKETS};

/// Whether `words` has the size and the parameters of data of `func`.
pub fn is_well_formed(func: Action, words: &[u64]) -> bool {
    let arg = words.first().copied();
    let expected = match func {
        Action::Count | Action::Sum | Action::Min | Action::Max => 1,
        Action::Avg => 2,
        Action::Stddev => 4,
        Action::Quantize => QUANTIZE_NBUCKETS,
        Action::Lquantize => arg.map_or(0, |arg| Lquantize::unpack(arg).words()),
        Action::Llquantize => match arg.map(Llquantize::unpack) {
            Some(parameters) if parameters.is_valid() => parameters.words(),
            _ => 0,
        },
        _ => float::words(func).unwrap_or(0),
    };
    expected != 0 && words.len() == expected
}

/// Returns the data of `func` before anything is aggregated. `arg` holds the parameters of
/// `lquantize()` and `llquantize()`; other functions ignore it.
pub fn zero(func: Action, arg: u64) -> Vec<u64> {
    let (words, arg) = match func {
        Action::Avg => (2, 0),
        Action::Stddev => (4, 0),
        Action::Quantize => (QUANTIZE_NBUCKETS, 0),
        Action::Lquantize => (Lquantize::unpack(arg).words(), arg),
        Action::Llquantize if Llquantize::unpack(arg).is_valid() => {
            (Llquantize::unpack(arg).words(), arg)
        }
        _ => (float::words(func).unwrap_or(1), 0),
    };
    let mut zero = vec![0; words];
    zero[0] = arg;
    zero
}

/// Merges `new` into `words`, both well-formed data of `func` and of equal length.
pub fn merge(func: Action, words: &mut [u64], new: &[u64]) {
    if func.is_float() {
        return float::merge(func, words, new);
    }
    // The first word of these holds the parameters, which are not summed.
    let skip = usize::from(matches!(func, Action::Lquantize | Action::Llquantize));
    for (word, &new) in words.iter_mut().zip(new).skip(skip) {
        *word = match func {
            Action::Min => (*word as i64).min(new as i64) as u64,
            Action::Max => (*word as i64).max(new as i64) as u64,
            Action::Stddev => continue,
            _ => word.wrapping_add(new),
        };
    }
    if let (Action::Stddev, [count, sum, low, high], [c, s, l, h]) = (func, words, new) {
        let squares = wide(*low, *high).wrapping_add(wide(*l, *h));
        *count = count.wrapping_add(*c);
        *sum = sum.wrapping_add(*s);
        *low = squares as u64;
        *high = (squares >> 64) as u64;
    }
}

fn wide(low: u64, high: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

/// Divides `value` by a factor of `normalize()`, rounding towards zero. A factor of 0 counts as 1.
pub fn divide(value: i64, normal: u64) -> i64 {
    let quotient = i128::from(value) / i128::from(normal.max(1));
    // Cannot truncate: the quotient's magnitude is at most that of `value`.
    quotient as i64
}

/// Returns the mean of data of `avg()` or `stddev()`, normalised; 0 without values.
pub fn average(words: &[u64], normal: u64) -> i64 {
    match *words {
        [count, sum, ..] if count != 0 => divide(divide(sum as i64, normal), count),
        _ => 0,
    }
}

/// Returns the standard deviation, normalised: the square root of the mean square minus the square
/// of the mean; 0 without values.
pub fn stddev(words: &[u64], normal: u64) -> u64 {
    let [count, _, low, high] = *words else {
        return 0;
    };
    if count == 0 {
        return 0;
    }
    let normal = u128::from(normal.max(1));
    let mean_square = wide(low, high) / normal / normal / u128::from(count);
    let mean = u128::from(average(words, normal as u64).unsigned_abs());
    // The mean is rounded towards zero, so its square exceeds the mean square only if sums wrapped.
    mean_square.saturating_sub(mean * mean).isqrt() as u64
}

/// Returns the mean of data of `avg()` or `stddev()`, normalised and not rounded; `None` without
/// values.
pub fn precise_average(words: &[u64], normal: u64) -> Option<f64> {
    match *words {
        [count, sum, ..] if count != 0 => {
            Some(sum as i64 as f64 / count as f64 / normal.max(1) as f64)
        }
        _ => None,
    }
}

/// Returns the standard deviation of data of `stddev()`, normalised and not rounded; `None` without
/// values.
pub fn precise_stddev(words: &[u64], normal: u64) -> Option<f64> {
    let [count, sum, low, high] = *words else {
        return None;
    };
    if count == 0 {
        return None;
    }
    let (squares, sum) = (wide(low, high), u128::from((sum as i64).unsigned_abs()));
    // count² × the variance, exactly unless it exceeds 128 bits.
    let exact = squares.checked_mul(count.into()).zip(sum.checked_pow(2));
    let deviation = match exact {
        Some((squares, sum)) => (squares.saturating_sub(sum) as f64).sqrt() / count as f64,
        None => {
            let mean = sum as f64 / count as f64;
            let variance = squares as f64 / count as f64 - mean * mean;
            variance.max(0.0).sqrt()
        }
    };
    Some(deviation / normal.max(1) as f64)
}

/// Returns the sum of the squares in data of `stddev()`.
pub fn sum_of_squares(words: &[u64]) -> Option<u128> {
    match *words {
        [_, _, low, high] => Some(wide(low, high)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `stddev()` of `values`, merged one by one.
    fn stddev_of(values: &[i64], normal: u64) -> u64 {
        let mut total = zero(Action::Stddev, 0);
        for value in values {
            let square = u128::from(value.unsigned_abs()).pow(2);
            let new = [1, *value as u64, square as u64, (square >> 64) as u64];
            merge(Action::Stddev, &mut total, &new);
        }
        assert!(is_well_formed(Action::Stddev, &total));
        stddev(&total, normal)
    }

    #[test]
    fn standard_deviations() {
        assert_eq!(stddev_of(&[], 1), 0);
        assert_eq!(stddev_of(&[5], 1), 0);
        assert_eq!(stddev_of(&[2, 4, 4, 4, 5, 5, 7, 9], 1), 2);
        assert_eq!(stddev_of(&[-20, 20], 1), 20);
        assert_eq!(stddev_of(&[-20, 20], 10), 2);
        assert_eq!(stddev_of(&[i64::MIN], 1), 0);
        assert_eq!(stddev_of(&[i64::MAX, -i64::MAX], 1), i64::MAX as u64);
    }

    #[test]
    fn precise_results_are_not_rounded() {
        assert_eq!(precise_average(&[4, 50], 1), Some(12.5));
        assert_eq!(precise_average(&[4, -50i64 as u64], 5), Some(-2.5));
        assert_eq!(precise_average(&[0, 7], 1), None);
        // 1 and 2: the variance is a quarter.
        assert_eq!(precise_stddev(&[2, 3, 5, 0], 1), Some(0.5));
        assert_eq!(precise_stddev(&[2, 3, 5, 0], 5), Some(0.1));
        assert_eq!(precise_stddev(&[0, 0, 0, 0], 1), None);
        assert_eq!(precise_stddev(&[1], 1), None);
        let square = u128::from(i64::MAX as u64).pow(2);
        let words = [u64::MAX, 0, square as u64, (square >> 64) as u64];
        assert!(precise_stddev(&words, 1).is_some_and(f64::is_finite));
        assert_eq!(sum_of_squares(&words), Some(square));
    }

    #[test]
    fn means_round_towards_zero() {
        for (count, sum, normal, expected) in [
            (0, 5, 1, 0),
            (2, 5, 1, 2),
            (2, -5, 1, -2),
            (2, 1000, 10, 50),
            (1, i64::MIN, 1, i64::MIN),
            (u64::MAX, i64::MIN, u64::MAX, 0),
        ] {
            assert_eq!(average(&[count, sum as u64], normal), expected);
        }
    }

    #[test]
    fn division_never_fails() {
        assert_eq!(divide(i64::MIN, 0), i64::MIN);
        assert_eq!(divide(i64::MIN, 1), i64::MIN);
        assert_eq!(divide(-7, 2), -3);
        assert_eq!(divide(-1, u64::MAX), 0);
    }

    #[test]
    fn merging_follows_the_function() {
        let check = |func, a: &[i64], b: &[i64], expected: &[i64]| {
            let mut words: Vec<u64> = a.iter().map(|&w| w as u64).collect();
            let new: Vec<u64> = b.iter().map(|&w| w as u64).collect();
            merge(func, &mut words, &new);
            let words: Vec<i64> = words.iter().map(|&w| w as i64).collect();
            assert_eq!(words, expected, "{func:?}");
        };
        check(Action::Count, &[2], &[3], &[5]);
        check(Action::Sum, &[i64::MAX], &[1], &[i64::MIN]);
        check(Action::Min, &[-3], &[2], &[-3]);
        check(Action::Max, &[-3], &[2], &[2]);
        check(Action::Avg, &[1, 10], &[2, -4], &[3, 6]);
        let arg = Lquantize {
            base: 0,
            step: 1,
            levels: 1,
        }
        .pack() as i64;
        check(
            Action::Lquantize,
            &[arg, 1, 2, 3],
            &[arg, 1, 1, 1],
            &[arg, 2, 3, 4],
        );
        // The sum of squares carries into its high word.
        check(Action::Stddev, &[1, 1, -1, 0], &[1, 1, 1, 0], &[2, 2, 0, 1]);
    }
}
