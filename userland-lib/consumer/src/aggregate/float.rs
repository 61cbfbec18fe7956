// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The arithmetic of aggregating functions over floating-point numbers.
//!
//! The words of their data are binary64, except counts. Every addition to a sum is rounded, here
//! and in the kernel, so the last bits of a sum depend on the order in which the CPUs are read. The
//! data of `stddev()` is the count, the mean, and the sum of the squared distances from the mean.
//! Two of these are combined by the difference of their means (Chan, Golub and LeVeque), which
//! stays accurate if the deviation is small compared with the mean. `min()` and `max()` ignore NaN
//! unless all values are NaN.

use dtrace_uapi::action::Action;

/// Returns the number of words in the data of `func`; `None` if it is not a floating-point
/// function.
pub fn words(func: Action) -> Option<usize> {
    Some(match func {
        Action::FloatMin | Action::FloatMax | Action::FloatSum => 1,
        Action::FloatAvg => 2,
        Action::FloatStddev => 3,
        _ => return None,
    })
}

/// Merges `new` into `words`, both well-formed data of `func`.
pub fn merge(func: Action, words: &mut [u64], new: &[u64]) {
    let wins = |new: f64, old: f64| match func {
        Action::FloatMin => new < old || old.is_nan(),
        _ => new > old || old.is_nan(),
    };
    match (func, words, new) {
        (Action::FloatSum, [sum], [new]) => add(sum, *new),
        (Action::FloatAvg, [count, sum], [n, new]) => {
            *count = count.wrapping_add(*n);
            add(sum, *new);
        }
        (Action::FloatStddev, [count, mean, squares], [n, m, s]) => {
            let (before, more) = (*count, *n);
            *count = before.wrapping_add(more);
            if more == 0 {
                return;
            }
            let apart = f64::from_bits(*m) - f64::from_bits(*mean);
            let share = more as f64 / *count as f64;
            // Without earlier values the mean is exactly the new one; the formula would round.
            let middle = if before == 0 {
                f64::from_bits(*m)
            } else {
                f64::from_bits(*mean) + apart * share
            };
            let between = apart * apart * before as f64 * share;
            add(squares, *s);
            add(squares, between.to_bits());
            *mean = middle.to_bits();
        }
        (_, [old], [new]) if wins(f64::from_bits(*new), f64::from_bits(*old)) => *old = *new,
        _ => {}
    }
}

fn add(sum: &mut u64, new: u64) {
    *sum = (f64::from_bits(*sum) + f64::from_bits(new)).to_bits();
}

/// Returns the result of data of `func`, divided by a factor of `normalize()`; 0 without values.
pub fn value(func: Action, words: &[u64], normal: u64) -> f64 {
    let number = match (func, words) {
        (Action::FloatAvg, [count, sum]) if *count != 0 => f64::from_bits(*sum) / *count as f64,
        (Action::FloatStddev, [count, _, squares]) if *count != 0 => {
            (f64::from_bits(*squares) / *count as f64).sqrt()
        }
        (Action::FloatAvg | Action::FloatStddev, _) => 0.0,
        _ => words.first().map_or(0.0, |word| f64::from_bits(*word)),
    };
    match normal {
        // A factor of zero does not divide.
        0 | 1 => number,
        _ => number / normal as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::{is_well_formed, zero};
    use super::*;

    /// The data of `func` after one value.
    fn one(func: Action, value: f64) -> Vec<u64> {
        match func {
            Action::FloatAvg => vec![1, value.to_bits()],
            Action::FloatStddev => vec![1, value.to_bits(), 0],
            _ => vec![value.to_bits()],
        }
    }

    /// The result of `values`, merged one by one.
    fn all(func: Action, values: &[f64], normal: u64) -> f64 {
        let mut values = values.iter().map(|value| one(func, *value));
        let mut total = values.next().unwrap_or_else(|| zero(func, 0));
        values.for_each(|new| merge(func, &mut total, &new));
        assert!(is_well_formed(func, &total));
        value(func, &total, normal)
    }

    #[test]
    fn values_add_up() {
        use Action::*;
        for (func, values, normal, expected) in [
            (FloatSum, &[0.5, 0.25, -2.0][..], 1, -1.25),
            (FloatSum, &[3.0], 2, 1.5),
            (FloatMin, &[0.5, -0.25, f64::NAN], 1, -0.25),
            (FloatMax, &[f64::NAN, 0.5, -0.25], 1, 0.5),
            (FloatMax, &[f64::NEG_INFINITY], 1, f64::NEG_INFINITY),
            (FloatAvg, &[1.0, 2.0, 4.5], 1, 2.5),
            (FloatAvg, &[1.0, 2.0, 4.5], 10, 0.25),
            (FloatAvg, &[], 1, 0.0),
            (
                FloatStddev,
                &[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0],
                1,
                2.0,
            ),
            (
                FloatStddev,
                &[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0],
                0,
                2.0,
            ),
            (FloatStddev, &[-0.5, 0.5], 1, 0.5),
            (FloatStddev, &[5.25], 1, 0.0),
            (
                FloatStddev,
                &[1e15, 1e15 + 1.0, 1e15 + 2.0, 1e15 + 1.0],
                1,
                0.5f64.sqrt(),
            ),
            (FloatStddev, &[], 1, 0.0),
        ] {
            assert_eq!(all(func, values, normal), expected, "{func:?} {values:?}");
        }
        assert!(all(FloatMin, &[f64::NAN], 1).is_nan());
    }

    #[test]
    fn parts_of_a_deviation_are_those_of_the_whole() {
        let mut left = vec![2, 3.0f64.to_bits(), 2.0f64.to_bits()];
        // 2, 4 and 10, 12, 14: mean 8.4, sum of squared distances 107.2.
        merge(
            Action::FloatStddev,
            &mut left,
            &[3, 12.0f64.to_bits(), 8.0f64.to_bits()],
        );
        assert_eq!(left[0], 5);
        assert!((f64::from_bits(left[1]) - 8.4).abs() < 1e-14);
        assert!((f64::from_bits(left[2]) - 107.2).abs() < 1e-12);
        let mut none = zero(Action::FloatStddev, 0);
        merge(Action::FloatStddev, &mut none, &left);
        assert_eq!(none, left);
        merge(
            Action::FloatStddev,
            &mut left,
            &zero(Action::FloatStddev, 0),
        );
        assert_eq!(none, left);
    }
}
