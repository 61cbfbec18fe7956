// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The aggregating functions of floating-point numbers (INV-8).
//!
//! Values and data are binary64. A sum is rounded at every addition, so its last bits depend on the
//! order of the values and on their distribution over CPUs. Minimum and maximum ignore NaN, unless
//! there is nothing else. The standard deviation keeps a mean and the sum of the squared distances
//! from it (Welford's method): a sum of squares would lose all of a deviation that is small
//! compared with the mean.
// Arithmetic on offsets within an entry, which the builder has laid out.
#![allow(clippy::arithmetic_side_effects)]

use crate::buf::{add_word, set_word, word};
use crate::softfloat::{add, compare, div, from_u64, mul, sub, Double};
use core::cmp::Ordering;
use dtrace_uapi::action::Action;

/// Bits of NaN, which stands for no value yet.
const NOTHING: u64 = 0x7ff8_0000_0000_0000;

/// An aggregating function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Float {
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Count and sum.
    Avg,
    /// Sum.
    Sum,
    /// Count, mean, and sum of the squared distances from it.
    Stddev,
}

impl Float {
    /// Returns the function of an action, if it is one.
    pub(super) fn new(action: Action) -> Option<Self> {
        Some(match action {
            Action::FloatMin => Self::Min,
            Action::FloatMax => Self::Max,
            Action::FloatAvg => Self::Avg,
            Action::FloatSum => Self::Sum,
            Action::FloatStddev => Self::Stddev,
            _ => return None,
        })
    }

    /// Returns the number of words of the data.
    pub(super) fn words(self) -> usize {
        match self {
            Self::Min | Self::Max | Self::Sum => 1,
            Self::Avg => 2,
            Self::Stddev => 3,
        }
    }

    /// Returns the first word of the data before any value; the others are zero.
    pub(super) fn first(self) -> u64 {
        match self {
            Self::Min | Self::Max => NOTHING,
            _ => 0,
        }
    }

    /// Returns the number of floating-point operations of an update.
    pub(super) fn operations(self) -> usize {
        match self {
            Self::Stddev => 7,
            _ => 1,
        }
    }

    /// Adds `value` to the data at `at`.
    pub(super) fn update(self, mem: &mut [u8], at: usize, value: u64) {
        let value = Double(value);
        let number = |mem: &[u8], at: usize| Double(word(mem, at));
        let accumulate = |mem: &mut [u8], at: usize| {
            let Double(sum) = add(number(mem, at), value);
            set_word(mem, at, sum);
        };
        match self {
            Self::Min => replace(mem, at, value, Ordering::Less),
            Self::Max => replace(mem, at, value, Ordering::Greater),
            Self::Sum => accumulate(mem, at),
            Self::Avg => {
                add_word(mem, at, 1);
                accumulate(mem, at + 8);
            }
            Self::Stddev => {
                add_word(mem, at, 1);
                let (count, mean) = (from_u64(word(mem, at)), number(mem, at + 8));
                let before = sub(value, mean);
                let mean = add(mean, div(before, count));
                let square = mul(before, sub(value, mean));
                let squares = add(number(mem, at + 16), square);
                set_word(mem, at + 8, mean.0);
                set_word(mem, at + 16, squares.0);
            }
        }
    }
}

/// Stores `value` at `at` if it compares as `order` with the number there, or if that is NaN.
fn replace(mem: &mut [u8], at: usize, value: Double, order: Ordering) {
    let there = Double(word(mem, at));
    let wins = compare(value, there) == Some(order) || compare(there, there).is_none();
    if wins {
        set_word(mem, at, value.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::aggregation::{tests::after, Function};
    use super::*;

    fn run(action: Action, values: &[f64]) -> std::vec::Vec<u64> {
        let function = Function::new(action, 0).unwrap();
        after(function, values.iter().map(|value| value.to_bits()))
    }

    #[test]
    fn scalars() {
        let values = [0.5, -3.25, 1e10];
        assert_eq!(run(Action::FloatSum, &values), [(1e10 - 2.75f64).to_bits()]);
        assert_eq!(run(Action::FloatMin, &values), [(-3.25f64).to_bits()]);
        assert_eq!(run(Action::FloatMax, &values), [1e10f64.to_bits()]);
        assert_eq!(
            run(Action::FloatAvg, &values),
            [3, (1e10 - 2.75f64).to_bits()]
        );
        assert_eq!(
            run(Action::FloatSum, &[0.1, 0.2]),
            [(0.1f64 + 0.2).to_bits()]
        );
    }

    #[test]
    fn nan_is_neither_least_nor_greatest() {
        for action in [Action::FloatMin, Action::FloatMax] {
            assert_eq!(run(action, &[]), [NOTHING]);
            assert_eq!(run(action, &[f64::NAN]), [NOTHING]);
            assert_eq!(run(action, &[f64::NAN, 2.5, f64::NAN]), [2.5f64.to_bits()]);
        }
        assert_eq!(run(Action::FloatSum, &[1.0, f64::NAN]), [NOTHING]);
    }

    #[test]
    fn a_small_deviation_from_a_great_mean_is_kept() {
        let mean = 1e12;
        let got = run(Action::FloatStddev, &[mean - 1.0, mean, mean + 1.0, mean]);
        assert_eq!(got, [4, mean.to_bits(), 2f64.to_bits()]);
        assert_eq!(run(Action::FloatStddev, &[]), [0, 0, 0]);
        assert_eq!(
            run(Action::FloatStddev, &[-2.5]),
            [1, (-2.5f64).to_bits(), 0]
        );
    }
}
