// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Aggregations with one line per row: `agghist` draws counts and sums as bars, `aggpack` draws
//! each distribution as a line of characters.
//!
//! Rows are comparable because they share a scale. Bars are relative to the sum of all rows (under
//! `aggzoom` to the greatest), and packed distributions begin and end with the same buckets. Within
//! a packed distribution, characters are relative to its own sum (under `aggzoom` to its greatest
//! count).

use dtrace_uapi::action::Action;

use super::histogram::{self, Scale};
use super::{Renderer, Style};
use dtrace_consumer::aggregate::buckets::{buckets, Bucket, Label};
use dtrace_consumer::aggregate::{divide, Aggregation, Key, Row};

/// Minimum width of the keys, columns.
const KEYS: usize = 17;
/// Maximum width of the keys, columns; longer keys exceed it.
const KEYS_MAX: usize = 120;
/// Characters for a bucket's share of the whole, in ascending order.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same for terminals that have only ASCII.
const ASCII: [char; 8] = ['.', ':', '-', '=', '+', '*', '%', '@'];

/// A row with its key.
type Entry<'a> = (&'a [Key], &'a Row);

/// Whether the function's values can be shown as bars.
pub fn has_bars(func: Action) -> bool {
    matches!(func, Action::Count | Action::Sum)
}

/// Whether the function's values are distributions.
pub fn has_buckets(func: Action) -> bool {
    matches!(
        func,
        Action::Quantize | Action::Lquantize | Action::Llquantize
    )
}

impl Renderer<'_> {
    /// Appends counts or sums as bars beside their keys.
    pub(super) fn bars(&self, out: &mut Vec<u8>, aggregation: &Aggregation, rows: &[Entry<'_>]) {
        let names = self.names(rows);
        let width = names_width(&names);
        let counts: Vec<i64> = rows
            .iter()
            .map(|(_, row)| row.words.first().map_or(0, |&word| word as i64))
            .collect();
        put!(
            out,
            "\n{:>width$}  {} {}\n",
            "key",
            "------------- Distribution -------------",
            "count"
        );
        let bars = bars(&counts, self.style);
        for ((name, bar), count) in names.iter().zip(bars).zip(counts) {
            let count = divide(count, aggregation.normal());
            put!(out, "{name:>width$} {bar} {count:<9}\n");
        }
    }

    /// Appends distributions, one per line; nothing if all their buckets are zero.
    pub(super) fn packed(&self, out: &mut Vec<u8>, aggregation: &Aggregation, rows: &[Entry<'_>]) {
        let names = self.names(rows);
        let width = names_width(&names);
        let rows: Vec<Vec<Bucket>> = rows
            .iter()
            .filter_map(|(_, row)| buckets(aggregation.func(), &row.words))
            .collect();
        let used = |at: usize| rows.iter().any(|row| row[at].count != 0);
        let buckets = rows.first().map_or(0, Vec::len);
        let Some(first) = (0..buckets).find(|&at| used(at)) else {
            return;
        };
        let last = (0..buckets).rfind(|&at| used(at)).unwrap_or(first);
        put!(
            out,
            "\n{:>width$} {:>8} .{}. {:<8} | {}\n",
            "key",
            "min",
            "-".repeat(last + 1 - first),
            "max",
            "count"
        );
        for (name, row) in names.iter().zip(&rows) {
            let total: i64 = row
                .iter()
                .fold(0, |sum, bucket| sum.wrapping_add(bucket.count));
            let total = divide(total, aggregation.normal());
            let cells = self.cells(&row[first..=last]);
            let (min, max) = (row[first].label, row[last].label);
            put!(
                out,
                "{name:>width$} {:>8} :{cells}: {:<8} | {total}\n",
                histogram::label(min),
                histogram::label(max)
            );
        }
    }

    /// Returns a character for each bucket. Rounds up, so that only buckets of zero are blank.
    fn cells(&self, buckets: &[Bucket]) -> String {
        let levels = if self.style.utf8 { BLOCKS } else { ASCII };
        let counts = buckets.iter().map(|b| u128::from(b.count.unsigned_abs()));
        let whole = if self.style.aggzoom {
            counts.max().unwrap_or(0)
        } else {
            counts.sum()
        };
        let cell = |bucket: &Bucket| {
            let count = u128::from(bucket.count.unsigned_abs());
            match (count * levels.len() as u128).div_ceil(whole.max(1)) {
                0 => ' ',
                level => levels[(level as usize - 1).min(levels.len() - 1)],
            }
        };
        buckets.iter().map(cell).collect()
    }

    /// Returns the keys of each row as one text.
    fn names(&self, rows: &[Entry<'_>]) -> Vec<String> {
        let name = |(keys, _): &Entry<'_>| {
            let texts = keys.iter().map(|key| {
                let mut text = Vec::new();
                self.key(&mut text, &key.datum());
                String::from_utf8_lossy(&text).trim().to_owned()
            });
            texts.collect::<Vec<_>>().join(" ")
        };
        rows.iter().map(name).collect()
    }
}

/// Returns the bars for `counts`, scaled as if these were the buckets of one distribution.
fn bars(counts: &[i64], style: &Style) -> Vec<String> {
    let bucket = |&count: &i64| Bucket {
        label: Label::Value(0),
        count,
    };
    let buckets: Vec<Bucket> = counts.iter().map(bucket).collect();
    let scale = Scale::new(&buckets, style.aggzoom);
    counts
        .iter()
        .map(|&count| histogram::bar(&scale, count, style.eighths))
        .collect()
}

fn names_width(names: &[String]) -> usize {
    let longest = names.iter().map(|name| name.chars().count()).max();
    longest.unwrap_or(0).clamp(KEYS, KEYS_MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{
        testing::{render, visible, Fixture},
        Style,
    };
    use super::*;
    use dtrace_consumer::aggregate::Aggregations;
    use dtrace_consumer::value::{Datum, Kind};
    use dtrace_uapi::action::{quantize_bucket, QUANTIZE_NBUCKETS};
    use expect_test::{expect, Expect};

    /// Checks the text of an aggregation of `func` with `rows`, printed with `style`.
    fn check(style: &Style, func: Action, rows: &[(&str, Vec<u64>)], expected: Expect) {
        let mut aggregations = Aggregations::default();
        for (name, words) in rows {
            let data: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let key = Datum::new(Kind::Str, name.as_bytes());
            aggregations
                .merge(1, func, &[key], &data, &Fixture)
                .expect("a row");
        }
        let text = render(style, |renderer, out| {
            renderer.printa(out, &aggregations, &[1], None).unwrap();
        });
        expected.assert_eq(&visible(&text));
    }

    fn counts() -> [(&'static str, Vec<u64>); 3] {
        [("sh", vec![1]), ("make", vec![30]), ("cc1", vec![69])]
    }

    fn quantized(values: &[i64]) -> Vec<u64> {
        let mut words = vec![0; QUANTIZE_NBUCKETS];
        for value in values {
            words[quantize_bucket(*value)] += 1;
        }
        words
    }

    #[test]
    fn counts_are_parts_of_their_sum_or_of_the_greatest() {
        let mut style = Style {
            agghist: true,
            ..Style::default()
        };
        check(
            &style,
            Action::Count,
            &counts(),
            expect![[r#"
            |$
            |$
            |              key  ------------- Distribution ------------- count$
            |               sh |                                         1        $
            |             make |@@@@@@@@@@@@                             30       $
            |              cc1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@             69       $
        "#]],
        );
        style.aggzoom = true;
        check(
            &style,
            Action::Sum,
            &counts(),
            expect![[r#"
            |$
            |$
            |              key  ------------- Distribution ------------- count$
            |               sh |@                                        1        $
            |             make |@@@@@@@@@@@@@@@@@                        30       $
            |              cc1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@   69       $
        "#]],
        );
        // Functions other than counts and sums have no bars.
        check(
            &style,
            Action::Max,
            &counts()[..1],
            expect![[r#"
            |$
            |  sh                                                                1$
        "#]],
        );
    }

    #[test]
    fn distributions_share_their_range() {
        let mut style = Style {
            aggpack: true,
            ..Style::default()
        };
        let rows = [
            ("read", quantized(&[1, 2, 2, 3, 4, 4, 4, 4])),
            ("write", quantized(&[4, 64])),
        ];
        check(
            &style,
            Action::Quantize,
            &rows,
            expect![[r#"
            |$
            |$
            |              key      min .-------. max      | count$
            |             read        1 :.-=    : 64       | 8$
            |            write        1 :  =   =: 64       | 2$
        "#]],
        );
        style.utf8 = true;
        style.aggzoom = true;
        check(
            &style,
            Action::Quantize,
            &rows,
            expect![[r#"
            |$
            |$
            |              key      min .-------. max      | count$
            |             read        1 :▂▆█    : 64       | 8$
            |            write        1 :  █   █: 64       | 2$
        "#]],
        );
    }
}
