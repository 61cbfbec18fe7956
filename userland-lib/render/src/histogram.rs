// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Distributions: `quantize()`, `lquantize()` and `llquantize()` as bars.
//!
//! The three differ only in the values that their buckets stand for. Each is converted to a list of
//! [`Bucket`]s, and one function prints such lists. Empty buckets at both ends are omitted, except
//! one as a margin. Counts may be negative, because increments may be; their bars grow to the left
//! of a line.
//!
//! The lengths of bars are computed in integers, rounding halves up, so that they are the same
//! everywhere. With `encoding=utf8`, bars end in eighths of a character, unless some bar grows to
//! the left.

use std::iter;

use super::Style;
use dtrace_uapi::action::{
    quantize_value, Action, Llquantize, Lquantize, QUANTIZE_NBUCKETS, QUANTIZE_ZEROBUCKET,
};

/// Width of the column of a bar, characters.
const BAR: u128 = 40;
/// Last characters of a UTF-8 bar: one to seven eighths of a character.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
/// Length of the longest bar under `aggzoom`, in percent of the column.
const ZOOM_PERCENT: u128 = 95;

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

/// Returns the buckets to print: from the first to the last that is not zero, and one more at each
/// end. If all are zero, a few around zero (`quantize()`), from zero up (`llquantize()`) or at the
/// beginning (`lquantize()`).
fn trim(func: Action, buckets: &[Bucket]) -> &[Bucket] {
    let is_used = |bucket: &Bucket| bucket.count != 0;
    let (first, last) = match (
        buckets.iter().position(is_used),
        buckets.iter().rposition(is_used),
    ) {
        (Some(first), Some(last)) => (first.saturating_sub(1), last + 1),
        _ => match func {
            Action::Quantize => (QUANTIZE_ZEROBUCKET - 1, QUANTIZE_ZEROBUCKET + 1),
            Action::Llquantize => (buckets.len() / 2, buckets.len() / 2 + 2),
            _ => (0, 2),
        },
    };
    let end = (last + 1).min(buckets.len());
    buckets.get(first..end).unwrap_or(buckets)
}

/// The scale of the bars: a count of `total` / 100 fills the column.
pub struct Scale {
    total: u128,
    positive: bool,
    negative: bool,
}

impl Scale {
    /// Computes the scale of `buckets`. With `zoom` the greatest count takes [`ZOOM_PERCENT`] of
    /// the column; otherwise the sum of the counts fills it.
    pub fn new(buckets: &[Bucket], zoom: bool) -> Self {
        let magnitudes = buckets.iter().map(|b| u128::from(b.count.unsigned_abs()));
        let total = if zoom {
            magnitudes.max().unwrap_or(0) * 100 * 100 / ZOOM_PERCENT
        } else {
            magnitudes.sum::<u128>() * 100
        };
        Self {
            total,
            positive: buckets.iter().any(|b| b.count > 0),
            negative: buckets.iter().any(|b| b.count < 0),
        }
    }

    /// Returns the length of the bar for `count`, in parts of which `width` fill the column.
    fn bar(&self, count: i64, width: u128) -> usize {
        if self.total == 0 {
            return 0;
        }
        let scaled = u128::from(count.unsigned_abs()) * 100 * width;
        ((2 * scaled + self.total) / (2 * self.total)).min(width) as usize
    }
}

/// Appends a distribution, beginning with the newline before its header; nothing if [`buckets`]
/// rejects the data.
pub fn print(out: &mut Vec<u8>, func: Action, words: &[u64], normal: u64, style: &Style) {
    let Some(buckets) = buckets(func, words) else {
        return;
    };
    let buckets = trim(func, &buckets);
    let scale = Scale::new(buckets, style.aggzoom);
    put!(
        out,
        "\n{:>16} {:>41} {:<9}\n",
        "value",
        "------------- Distribution -------------",
        "count"
    );
    for (i, bucket) in buckets.iter().enumerate() {
        let label = match bucket.label {
            // No negative buckets are shown, so "abs()" would be misleading.
            Label::Within(value @ 2..) if i == 0 => format!("< {value}"),
            other => label(other),
        };
        let count = super::aggregate::divide(bucket.count, normal);
        put!(
            out,
            "{label:>16} {} {count:<9}\n",
            bar(&scale, bucket.count, style.eighths)
        );
    }
}

/// Returns the text of a bucket's label.
pub fn label(label: Label) -> String {
    match label {
        Label::Value(value) => value.to_string(),
        Label::Below(value) => format!("< {value}"),
        Label::AtLeast(value) => format!(">= {value}"),
        Label::AtMost(value) => format!("<= {value}"),
        Label::Within(1) => "0".into(),
        Label::Within(value) => format!("abs() < {value}"),
    }
}

/// Returns the column of a bar. Bars grow to the right of a line; to its left if no count is
/// positive and some are negative; to either side if there are both. With `eighths` a bar that
/// grows only to the right is drawn with UTF-8 blocks.
pub fn bar(scale: &Scale, count: i64, eighths: bool) -> String {
    let ats = |n| "@".repeat(n);
    let width = BAR as usize;
    let half = width / 2;
    match (scale.negative, scale.positive) {
        (false, _) if eighths => {
            let parts = scale.bar(count, BAR * 8);
            let rest = (parts % 8).checked_sub(1).map(|rest| EIGHTHS[rest]);
            let bar: String = iter::repeat_n('█', parts / 8).chain(rest).collect();
            format!("|{bar:<width$}")
        }
        (false, _) => format!("|{:<width$}", ats(scale.bar(count, BAR))),
        (true, false) => format!("{:>width$}|", ats(scale.bar(count, BAR))),
        (true, true) => {
            let bar = ats(scale.bar(count, BAR / 2));
            let (left, right) = if count <= 0 {
                (bar, String::new())
            } else {
                (String::new(), bar)
            };
            format!("{left:>half$}|{right:<half$}")
        }
    }
}

#[cfg(test)]
mod tests;
