// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The buckets of distributions. `quantize()`, `lquantize()` and `llquantize()` differ only in the
//! values that their buckets stand for.

use dtrace_uapi::action::{quantize_value, Action, Llquantize, Lquantize, QUANTIZE_NBUCKETS};

/// The values that a bucket stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// The values from here up to the next bucket. For buckets below zero of `quantize()` and
    /// `llquantize()`: from here down to the previous bucket.
    Value(i64),
    /// The values less than this.
    Below(i64),
    /// The values from here up.
    AtLeast(i64),
    /// The values from here down.
    AtMost(i64),
    /// The values that are nearer to zero than this.
    Within(i64),
}

impl Label {
    /// The value that is named, if it belongs to the bucket.
    fn first(self) -> Option<i64> {
        match self {
            Self::Value(value) | Self::AtLeast(value) | Self::AtMost(value) => Some(value),
            Self::Below(_) | Self::Within(_) => None,
        }
    }
}

/// A bucket of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The values that it stands for.
    pub label: Label,
    /// The sum of its increments.
    pub count: i64,
}

impl Bucket {
    /// Returns the value that represents the bucket when values are summed.
    pub fn value(&self) -> i128 {
        match self.label {
            Label::Value(value) => value.into(),
            Label::Below(value) => i128::from(value) - 1,
            Label::AtLeast(value) => i128::from(value) + 1,
            Label::AtMost(value) => i128::from(value) - 1,
            Label::Within(_) => 0,
        }
    }
}

/// A bucket of a distribution by the values that it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least value; `None` if the bucket holds all that are less than the greatest.
    pub min: Option<i64>,
    /// The greatest value; `None` if the bucket holds all that are greater than the least.
    pub max: Option<i64>,
    /// The sum of its increments.
    pub count: i64,
}

/// Returns the buckets of an aggregation's data by the values that they hold; `None` as
/// [`buckets`].
pub fn ranges(func: Action, words: &[u64]) -> Option<Vec<Range>> {
    let buckets = buckets(func, words)?;
    let is_mirrored = func != Action::Lquantize;
    let range = |(at, bucket): (usize, &Bucket)| {
        let before = at.checked_sub(1).and_then(|at| buckets.get(at));
        let (min, max) = match bucket.label {
            Label::Below(value) => (None, Some(value - 1)),
            Label::AtMost(value) => (None, Some(value)),
            Label::AtLeast(value) => (Some(value), None),
            Label::Within(value) => (Some(1 - value), Some(value - 1)),
            Label::Value(value) if value < 0 && is_mirrored => {
                let above = before.and_then(|bucket| bucket.label.first());
                (Some(above.map_or(i64::MIN, |above| above + 1)), Some(value))
            }
            Label::Value(value) => {
                let next = buckets.get(at + 1).and_then(|next| next.label.first());
                (Some(value), Some(next.map_or(i64::MAX, |next| next - 1)))
            }
        };
        Range {
            min,
            max,
            count: bucket.count,
        }
    };
    Some(buckets.iter().enumerate().map(range).collect())
}

/// Returns the buckets of an aggregation's data; `None` if it is not a distribution, or size or
/// parameters are wrong.
pub fn buckets(func: Action, words: &[u64]) -> Option<Vec<Bucket>> {
    let (labels, counts): (Vec<Label>, &[u64]) = match func {
        Action::Quantize => {
            let labels = (0..QUANTIZE_NBUCKETS).map(|i| Label::Value(quantize_value(i)));
            (labels.collect(), words)
        }
        Action::Lquantize => {
            let (&arg, counts) = words.split_first()?;
            (lquantize_labels(Lquantize::unpack(arg)), counts)
        }
        Action::Llquantize => {
            let (&arg, counts) = words.split_first()?;
            let parameters = Llquantize::unpack(arg);
            if !parameters.is_valid() {
                return None;
            }
            (llquantize_labels(parameters), counts)
        }
        _ => return None,
    };
    if labels.len() != counts.len() {
        return None;
    }
    let bucket = |(label, &count): (Label, &u64)| Bucket {
        label,
        count: count as i64,
    };
    Some(labels.into_iter().zip(counts).map(bucket).collect())
}

fn lquantize_labels(parameters: Lquantize) -> Vec<Label> {
    let at =
        |level: u16| i64::from(parameters.base) + i64::from(level) * i64::from(parameters.step);
    let mut labels = vec![Label::Below(at(0))];
    labels.extend((0..parameters.levels).map(|level| Label::Value(at(level))));
    labels.push(Label::AtLeast(at(parameters.levels)));
    labels
}

/// The parameters must be valid.
fn llquantize_labels(parameters: Llquantize) -> Vec<Label> {
    let bounds: Vec<i64> = parameters.bounds().collect();
    let (Some(&first), Some((&last, inner))) = (bounds.first(), bounds.split_last()) else {
        return Vec::new();
    };
    let mut labels = vec![Label::AtMost(-last)];
    labels.extend(inner.iter().rev().map(|&bound| Label::Value(-bound)));
    labels.push(Label::Within(first));
    labels.extend(inner.iter().map(|&bound| Label::Value(bound)));
    labels.push(Label::AtLeast(last));
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_uapi::action::quantize_bucket;

    /// Checks that the ranges of buckets follow one another, and that both ends of each are in the
    /// bucket.
    fn check(func: Action, words: &[u64], bucket: impl Fn(i64) -> usize) {
        let ranges = ranges(func, words).expect("buckets");
        for (at, range) in ranges.iter().enumerate() {
            let (min, max) = (range.min.unwrap_or(i64::MIN), range.max.unwrap_or(i64::MAX));
            assert!(min <= max, "{at} {range:?}");
            assert_eq!((bucket(min), bucket(max)), (at, at), "{range:?}");
            if let Some(next) = ranges.get(at + 1) {
                assert_eq!(next.min, Some(max + 1), "{range:?} {next:?}");
            }
        }
    }

    #[test]
    fn ranges_hold_what_the_kernel_counts_in_them() {
        check(Action::Quantize, &[0; QUANTIZE_NBUCKETS], quantize_bucket);
        for (base, step, levels) in [(0, 10, 5), (-100, 7, 20), (i32::MIN, u16::MAX, 1)] {
            let parameters = Lquantize { base, step, levels };
            let mut words = vec![0; parameters.words()];
            words[0] = parameters.pack();
            check(Action::Lquantize, &words, |value| parameters.bucket(value));
        }
        for (factor, low, high, nsteps) in [(10, 0, 6, 20), (2, 3, 20, 8), (10, 2, 17, 10)] {
            let parameters = Llquantize {
                factor,
                low,
                high,
                nsteps,
            };
            let mut words = vec![0; parameters.words()];
            words[0] = parameters.pack();
            check(Action::Llquantize, &words, |value| parameters.bucket(value));
        }
        assert_eq!(ranges(Action::Count, &[1]), None);
    }

    #[test]
    fn the_labels_of_llquantize_agree_with_its_buckets() {
        for (factor, low, high, nsteps) in [
            (10, 0, 6, 20),
            (2, 3, 20, 8),
            (10, 2, 17, 10),
            (3, 0, 4, 9),
            (4, 0, 1, 2),
        ] {
            let parameters = Llquantize {
                factor,
                low,
                high,
                nsteps,
            };
            let labels = llquantize_labels(parameters);
            assert_eq!(labels.len() + 1, parameters.words(), "{parameters:?}");
            for (i, label) in labels.iter().enumerate() {
                let value = match *label {
                    Label::Below(value) | Label::Within(value) => value - 1,
                    Label::Value(value) | Label::AtLeast(value) | Label::AtMost(value) => value,
                };
                assert_eq!(parameters.bucket(value), i, "{parameters:?} {label:?}");
            }
        }
    }
}
