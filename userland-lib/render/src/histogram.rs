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
use dtrace_consumer::aggregate::buckets::{buckets, Bucket, Label};
use dtrace_uapi::action::{Action, QUANTIZE_ZEROBUCKET};

/// Width of the column of a bar, characters.
const BAR: u128 = 40;
/// Last characters of a UTF-8 bar: one to seven eighths of a character.
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
/// Length of the longest bar under `aggzoom`, in percent of the column.
const ZOOM_PERCENT: u128 = 95;

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
        let count = dtrace_consumer::aggregate::divide(bucket.count, normal);
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
