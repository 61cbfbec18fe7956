// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The aggregating functions: size, initial value and update of their data.
// Arithmetic on offsets within an entry, which the builder has laid out.
#![allow(clippy::arithmetic_side_effects)]

use super::float::Float;
use crate::budget::{FLOAT, MAGNITUDE};
use crate::buf::{add_word, set_word, word};
use crate::error::Reason;
use dtrace_uapi::action::{quantize_bucket, Action, Llquantize, Lquantize, QUANTIZE_NBUCKETS};

/// An aggregating function with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Number of calls.
    Count,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Count and total.
    Avg,
    /// Total.
    Sum,
    /// Count, total, and a sum of squares of 128 bits.
    Stddev,
    /// Distribution by powers of two.
    Quantize,
    /// Distribution by equal steps.
    Lquantize(Lquantize),
    /// Distribution by equal steps within orders of magnitude.
    Llquantize(Llquantize),
    /// A function of floating-point numbers.
    Float(Float),
}

impl Function {
    /// Returns the function of an aggregating action. `EINVAL` for other actions, and for bad
    /// parameters.
    pub fn new(action: Action, arg: u64) -> Result<Self, Reason> {
        let bad = |name| Err(Reason::invalid("bad parameters").about(name));
        Ok(match action {
            Action::Count => Self::Count,
            Action::Min => Self::Min,
            Action::Max => Self::Max,
            Action::Avg => Self::Avg,
            Action::Sum => Self::Sum,
            Action::Stddev => Self::Stddev,
            Action::Quantize => Self::Quantize,
            Action::Lquantize => {
                let parameters = Lquantize::unpack(arg);
                if parameters.step == 0 || parameters.levels == 0 {
                    return bad("lquantize");
                }
                Self::Lquantize(parameters)
            }
            Action::Llquantize => {
                let parameters = Llquantize::unpack(arg);
                if !parameters.is_valid() {
                    return bad("llquantize");
                }
                Self::Llquantize(parameters)
            }
            _ => {
                let float = Float::new(action);
                Self::Float(float.ok_or(Reason::invalid("not an aggregating function"))?)
            }
        })
    }

    /// Returns the size of the data, in bytes.
    pub fn size(self) -> usize {
        8 * match self {
            Self::Count | Self::Min | Self::Max | Self::Sum => 1,
            Self::Avg => 2,
            Self::Stddev => 4,
            Self::Quantize => QUANTIZE_NBUCKETS,
            Self::Lquantize(parameters) => parameters.words(),
            Self::Llquantize(parameters) => parameters.words(),
            Self::Float(float) => float.words(),
        }
    }

    /// Initialises the data at `at`.
    pub fn init(self, mem: &mut [u8], at: usize) {
        let first = match self {
            Self::Min => i64::MAX as u64,
            Self::Max => i64::MIN as u64,
            Self::Lquantize(parameters) => parameters.pack(),
            Self::Llquantize(parameters) => parameters.pack(),
            Self::Float(float) => float.first(),
            _ => 0,
        };
        if let Some(data) = mem.get_mut(at..at + self.size()) {
            data.fill(0);
        }
        set_word(mem, at, first);
    }

    /// Whether the function is a distribution, which can count a value more than once.
    pub fn is_distribution(self) -> bool {
        matches!(
            self,
            Self::Quantize | Self::Lquantize(_) | Self::Llquantize(_)
        )
    }

    /// Returns the units that an update takes from the budget, beyond those of its instructions.
    #[inline(always)]
    pub fn cost(self) -> usize {
        match self {
            Self::Float(float) => float.operations() * FLOAT,
            Self::Llquantize(parameters) => parameters.magnitudes() * MAGNITUDE,
            _ => 0,
        }
    }

    /// Adds `value` to the data at `at`; in a distribution, `increment` times.
    #[inline(always)]
    pub fn update(&self, mem: &mut [u8], at: usize, value: u64, increment: u64) {
        match *self {
            Self::Count => add_word(mem, at, 1),
            Self::Sum => add_word(mem, at, value),
            Self::Min => {
                let least = (word(mem, at) as i64).min(value as i64);
                set_word(mem, at, least as u64);
            }
            Self::Max => {
                let greatest = (word(mem, at) as i64).max(value as i64);
                set_word(mem, at, greatest as u64);
            }
            Self::Avg => {
                add_word(mem, at, 1);
                add_word(mem, at + 8, value);
            }
            Self::Quantize => add_word(mem, at + 8 * quantize_bucket(value as i64), increment),
            _ => self.update_rarer(mem, at, value, increment),
        }
    }

    /// The rest of [`update`](Self::update): functions that are used less often, or cost more than
    /// a call.
    #[inline(never)]
    fn update_rarer(&self, mem: &mut [u8], at: usize, value: u64, increment: u64) {
        match *self {
            Self::Stddev => {
                add_word(mem, at, 1);
                add_word(mem, at + 8, value);
                let size = u128::from((value as i64).unsigned_abs());
                let sum = u128::from(word(mem, at + 16)) | u128::from(word(mem, at + 24)) << 64;
                let sum = sum.wrapping_add(size * size);
                set_word(mem, at + 16, sum as u64);
                set_word(mem, at + 24, (sum >> 64) as u64);
            }
            Self::Lquantize(parameters) => {
                let bucket = parameters.bucket(value as i64);
                add_word(mem, at + 8 * (1 + bucket), increment);
            }
            Self::Llquantize(parameters) => {
                let bucket = parameters.bucket(value as i64);
                add_word(mem, at + 8 * (1 + bucket), increment);
            }
            Self::Float(float) => float.update(mem, at, value),
            // `update` does the others.
            _ => {}
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the data after `values`. Checks that the words on both sides stay as they are.
    pub fn after(function: Function, values: impl Iterator<Item = u64>) -> std::vec::Vec<u64> {
        let mut mem = std::vec![0xaa; function.size() + 16];
        function.init(&mut mem, 8);
        for value in values {
            function.update(&mut mem, 8, value, 1);
        }
        assert_eq!(mem[..8], [0xaa; 8]);
        assert_eq!(mem[mem.len() - 8..], [0xaa; 8]);
        (0..function.size() / 8)
            .map(|i| word(&mem, 8 + 8 * i))
            .collect()
    }

    fn run(function: Function, values: &[i64]) -> std::vec::Vec<u64> {
        after(function, values.iter().map(|value| *value as u64))
    }

    #[test]
    fn scalars() {
        let values = [5, -3, 100];
        assert_eq!(run(Function::Count, &values), [3]);
        assert_eq!(run(Function::Sum, &values), [102]);
        assert_eq!(run(Function::Min, &values), [-3i64 as u64]);
        assert_eq!(run(Function::Max, &values), [100]);
        assert_eq!(run(Function::Avg, &values), [3, 102]);
        assert_eq!(run(Function::Stddev, &values), [3, 102, 25 + 9 + 10000, 0]);
        assert_eq!(run(Function::Max, &[i64::MIN]), [i64::MIN as u64]);
    }

    #[test]
    fn squares_have_128_bits() {
        let got = run(Function::Stddev, &[i64::MIN, i64::MIN, i64::MAX]);
        let want = 2 * (1u128 << 126) + (i64::MAX as u128).pow(2);
        assert_eq!((got[2], got[3]), (want as u64, (want >> 64) as u64));
    }

    #[test]
    fn distributions() {
        let q = run(Function::Quantize, &[0, 1, -1, i64::MAX, i64::MIN]);
        assert_eq!((q[63], q[64], q[62], q[126], q[0]), (1, 1, 1, 1, 1));
        let parameters = Lquantize {
            base: -5,
            step: 10,
            levels: 3,
        };
        let function = Function::Lquantize(parameters);
        let q = run(function, &[-6, -5, 4, 5, 24, 25, i64::MAX, i64::MIN]);
        assert_eq!(q, [parameters.pack(), 2, 2, 1, 1, 2]);
        let parameters = Llquantize {
            factor: 10,
            low: 0,
            high: 2,
            nsteps: 10,
        };
        let q = run(Function::Llquantize(parameters), &[0, 1, 99, 5000]);
        assert_eq!(q.len(), parameters.words());
        assert_eq!(q.iter().skip(1).sum::<u64>(), 4);
    }

    #[test]
    fn distributions_take_an_increment() {
        let mut mem = [0; 8 * QUANTIZE_NBUCKETS];
        Function::Quantize.update(&mut mem, 0, 1, 5);
        Function::Quantize.update(&mut mem, 0, 1, -2i64 as u64);
        assert_eq!(word(&mem, 8 * 64), 3);
    }

    #[test]
    fn bad_parameters_are_refused() {
        assert!(Function::new(Action::Lquantize, 0).is_err());
        assert!(Function::new(Action::Llquantize, 0).is_err());
        assert!(Function::new(Action::Printf, 0).is_err());
    }
}
