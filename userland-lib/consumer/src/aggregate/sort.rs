// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The order in which rows are printed.
//!
//! Rows are sorted by value, and rows of equal values by key, so that the order is total and the
//! output repeatable. `avg()` and `stddev()` are compared by their results, distributions by the
//! sum of their values and then by the count of their zero bucket. Keys of different sizes are
//! compared by size. Otherwise keys are compared as unsigned numbers, as in other DTraces; strings
//! are always compared as bytes, and floating-point numbers by value.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
};

use dtrace_uapi::action::Action;

use super::{average, buckets, float, stddev, Aggregation, Key, Row};
use crate::value::{to_f64, words, Kind};

/// Options for the order of aggregations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sort {
    /// `aggsortkey`: sort by key instead of by value.
    pub by_key: bool,
    /// `aggsortrev`: reverse the order.
    pub reverse: bool,
    /// `aggsortpos`: the index of the aggregation, among several, by which to sort.
    pub position: usize,
    /// `aggsortkeypos`: the index of the key's value that is compared first.
    pub key_position: usize,
}

impl Sort {
    fn direct(&self, ordering: Ordering) -> Ordering {
        if self.reverse {
            ordering.reverse()
        } else {
            ordering
        }
    }
}

/// The quantity by which a row's value is compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A number.
    Number(i128),
    /// The sum of a distribution's values, and the count of its zero bucket.
    Distribution(i128, i64),
}

impl Rank {
    fn new(func: Action, words: &[u64]) -> Self {
        if let Some(buckets) = buckets::buckets(func, words) {
            let weight =
                |bucket: &buckets::Bucket| bucket.value().saturating_mul(bucket.count.into());
            let sum = buckets.iter().map(weight).fold(0, i128::saturating_add);
            let zeros = buckets.iter().find(|bucket| bucket.value() == 0);
            return Self::Distribution(sum, zeros.map_or(0, |bucket| bucket.count));
        }
        Self::Number(match func {
            Action::Avg => average(words, 1).into(),
            Action::Stddev => stddev(words, 1).into(),
            _ if func.is_float() => ordinal(float::value(func, words, 1)).into(),
            _ => words.first().map_or(0, |&word| i128::from(word as i64)),
        })
    }
}

/// Maps `value` to an integer in the same order. A positive NaN is beyond infinity, a negative one
/// beyond negative infinity.
fn ordinal(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    if bits < 0 {
        bits ^ i64::MAX
    } else {
        bits
    }
}

/// Compares one value of two keys.
fn compare_value(a: &Key, b: &Key) -> Ordering {
    if a.kind == Kind::Float && b.kind == Kind::Float {
        let value = |key: &Key| to_f64(&key.data).map(ordinal);
        return value(a).cmp(&value(b)).then_with(|| a.data.cmp(&b.data));
    }
    if matches!(a.kind, Kind::Str | Kind::Chars) && a.kind == b.kind {
        return a.data.cmp(&b.data);
    }
    let by_size = a.data.len().cmp(&b.data.len());
    by_size.then_with(|| match (a.kind, a.datum().unsigned()) {
        (_, Some(value)) => Some(value).cmp(&b.datum().unsigned()),
        (Kind::Usym | Kind::Umod | Kind::Uaddr, _) => words(&a.data).cmp(words(&b.data)),
        _ => a.data.cmp(&b.data),
    })
}

/// Compares two keys by all their values, starting at `order.key_position` and wrapping around.
fn compare_keys(a: &[Key], b: &[Key], order: &Sort) -> Ordering {
    let position = if order.key_position < a.len() {
        order.key_position
    } else {
        0
    };
    let rotated = |i: usize| (i + position) % a.len().max(1);
    a.len().cmp(&b.len()).then_with(|| {
        (0..a.len())
            .map(rotated)
            .filter_map(|i| Some(compare_value(a.get(i)?, b.get(i)?)))
            .find(|ordering| ordering.is_ne())
            .unwrap_or(Ordering::Equal)
    })
}

/// Returns the rows of an aggregation in `order`.
pub fn sorted<'a>(aggregation: &'a Aggregation, order: &Sort) -> Vec<(&'a [Key], &'a Row)> {
    let mut rows: Vec<_> = aggregation
        .rows()
        .map(|(key, row)| (Rank::new(aggregation.func, &row.words), key, row))
        .collect();
    rows.sort_unstable_by(|a, b| {
        let by_key = || compare_keys(a.1, b.1, order);
        order.direct(if order.by_key {
            by_key()
        } else {
            a.0.cmp(&b.0).then_with(by_key)
        })
    });
    rows.into_iter().map(|(_, key, row)| (key, row)).collect()
}

/// A key and its rows in several aggregations. An aggregation without the key has a row of zeros.
pub struct Joined<'a> {
    /// The key.
    pub key: &'a [Key],
    /// One row for each aggregation.
    pub rows: Vec<std::borrow::Cow<'a, Row>>,
}

/// Returns the keys of all `aggregations`, each with its row in every aggregation, in `order`.
pub fn joined<'a>(aggregations: &[&'a Aggregation], order: &Sort) -> Vec<Joined<'a>> {
    let mut by_key: HashMap<&'a [Key], BTreeMap<usize, &'a Row>> = HashMap::new();
    for (i, aggregation) in aggregations.iter().enumerate() {
        for (key, row) in aggregation.rows() {
            by_key.entry(key).or_default().insert(i, row);
        }
    }
    let mut all: Vec<(Vec<Rank>, Joined<'a>)> = by_key
        .into_iter()
        .map(|(key, found)| {
            let rows: Vec<_> = aggregations
                .iter()
                .enumerate()
                .map(|(i, aggregation)| match found.get(&i) {
                    Some(&row) => std::borrow::Cow::Borrowed(row),
                    None => std::borrow::Cow::Owned(aggregation.zero()),
                })
                .collect();
            let ranks = aggregations
                .iter()
                .zip(&rows)
                .map(|(aggregation, row)| Rank::new(aggregation.func, &row.words))
                .collect();
            (ranks, Joined { key, rows })
        })
        .collect();
    all.sort_unstable_by(|(a, left), (b, right)| {
        let by_key = || compare_keys(left.key, right.key, order);
        // By the aggregation at `order.position`, then by all of them from the first on.
        let by_value = || {
            let decisive = a.get(order.position).cmp(&b.get(order.position));
            decisive.then_with(|| a.cmp(b))
        };
        order.direct(if order.by_key {
            by_key()
        } else {
            by_value().then_with(by_key)
        })
    });
    all.into_iter().map(|(_, joined)| joined).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Aggregations;
    use super::*;
    use crate::symbolizer::NoSymbols;
    use crate::value::Datum;
    use dtrace_uapi::action::{quantize_bucket, QUANTIZE_NBUCKETS};

    const INT: Kind = Kind::Int { signed: true };

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    /// Merges rows `(name, number, data)` into an aggregation; returns the names in `order`.
    fn names(func: Action, rows: &[(&str, i32, Vec<u64>)], order: Sort) -> String {
        let mut aggs = Aggregations::default();
        for (name, number, data) in rows {
            let number = number.to_ne_bytes();
            let keys = [
                Datum::new(Kind::Str, name.as_bytes()),
                Datum::new(INT, &number),
            ];
            aggs.merge(1, func, &keys, &bytes(data), &NoSymbols)
                .unwrap();
        }
        let rows = sorted(aggs.get(1).unwrap(), &order);
        let name = |(key, _): &(&[Key], &Row)| String::from_utf8_lossy(&key[0].data).into_owned();
        rows.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn by_value_then_by_key() {
        let rows = [
            ("d", 1, vec![5]),
            ("a", 2, vec![9]),
            ("b", 3, vec![-1i64 as u64]),
            ("c", 4, vec![5]),
        ];
        let with = |by_key, reverse, key_position| {
            let order = Sort {
                by_key,
                reverse,
                key_position,
                ..Sort::default()
            };
            names(Action::Sum, &rows, order)
        };
        assert_eq!(with(false, false, 0), "b c d a");
        assert_eq!(with(false, true, 0), "a d c b");
        assert_eq!(with(true, false, 0), "a b c d");
        assert_eq!(with(true, true, 0), "d c b a");
        assert_eq!(with(true, false, 1), "d a b c");
        assert_eq!(with(false, false, 1), "b d c a");
        assert_eq!(with(true, false, 99), "a b c d");
    }

    #[test]
    fn means_deviations_and_distributions_have_values_of_their_own() {
        let avg = [("low", 0, vec![10, 20]), ("high", 0, vec![1, 15])];
        assert_eq!(names(Action::Avg, &avg, Sort::default()), "low high");
        let stddev = [
            ("wide", 0, vec![2, 0, 800, 0]),
            ("none", 0, vec![9, 90, 900, 0]),
        ];
        assert_eq!(names(Action::Stddev, &stddev, Sort::default()), "none wide");
        let quantize = |values: &[i64]| {
            let mut words = vec![0; QUANTIZE_NBUCKETS];
            for &value in values {
                words[quantize_bucket(value)] += 1;
            }
            words
        };
        let distributions = [
            ("eight", 0, quantize(&[8])),
            ("four", 0, quantize(&[1, 1, 1, 1])),
            ("zeros", 0, quantize(&[8, 0, 0])),
            ("less", 0, quantize(&[-16, 1])),
        ];
        assert_eq!(
            names(Action::Quantize, &distributions, Sort::default()),
            "less four eight zeros"
        );
    }

    #[test]
    fn keys_are_unsigned() {
        let key = |n: i64| Key {
            kind: INT,
            data: n.to_ne_bytes().into(),
        };
        assert_eq!(compare_value(&key(-1), &key(1)), Ordering::Greater);
        assert_eq!(compare_value(&key(0x100), &key(1)), Ordering::Greater);
        let short = Key {
            kind: INT,
            data: [0xff].into(),
        };
        assert_eq!(compare_value(&short, &key(1)), Ordering::Less);
        let text = |t: &str| Key {
            kind: Kind::Str,
            data: t.as_bytes().into(),
        };
        assert_eq!(compare_value(&text("ab"), &text("b")), Ordering::Less);
        assert_eq!(compare_value(&text("a"), &text("ab")), Ordering::Less);
    }

    #[test]
    fn floating_point_numbers_are_ordered_by_value() {
        let key = |value: f64| Key {
            kind: Kind::Float,
            data: value.to_ne_bytes().into(),
        };
        let ascending = [
            f64::NEG_INFINITY,
            -2.0,
            -0.5,
            0.0,
            1e-300,
            0.5,
            f64::INFINITY,
            f64::NAN,
        ];
        for pair in ascending.windows(2) {
            assert_eq!(
                compare_value(&key(pair[0]), &key(pair[1])),
                Ordering::Less,
                "{pair:?}"
            );
        }
        let rows = [
            ("half", 0, vec![0.5f64.to_bits()]),
            ("less", 0, vec![(-1e10f64).to_bits()]),
            ("minus", 0, vec![(-2.0f64).to_bits()]),
            ("more", 0, vec![3f64.to_bits()]),
        ];
        assert_eq!(
            names(Action::FloatSum, &rows, Sort::default()),
            "less minus half more"
        );
    }

    #[test]
    fn joined_rows_fill_gaps_and_sort_by_position() {
        let mut aggs = Aggregations::default();
        for (id, func, key, data) in [
            (1, Action::Count, 1u64, vec![1]),
            (1, Action::Count, 2, vec![2]),
            (2, Action::Avg, 2, vec![1, 7]),
            (2, Action::Avg, 3, vec![1, 5]),
        ] {
            let key = key.to_ne_bytes();
            aggs.merge(
                id,
                func,
                &[Datum::new(INT, &key)],
                &bytes(&data),
                &NoSymbols,
            )
            .unwrap();
        }
        let both = [1, 2].map(|id| aggs.get(id).unwrap());
        let keys = |position| {
            let order = Sort {
                position,
                ..Sort::default()
            };
            let rows = joined(&both, &order);
            assert!(rows.iter().all(|row| row.rows.len() == 2));
            rows.iter()
                .filter_map(|row| row.key[0].datum().unsigned())
                .collect::<Vec<_>>()
        };
        assert_eq!(keys(0), [3, 1, 2]);
        assert_eq!(keys(1), [1, 3, 2]);
        assert_eq!(keys(9), [3, 1, 2]);
    }
}
