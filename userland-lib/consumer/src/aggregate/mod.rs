// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The consumer's aggregations: the sums of the snapshots of all CPUs.
//!
//! A snapshot empties the kernel's buffer, so its rows are increments. Each is merged into the row
//! with the same key, and the rows here are the only copy of the totals. Addresses that stand for a
//! symbol or a module are replaced by one address for the whole symbol or module before the lookup,
//! so that `@[sym(arg0)]` has one row for each symbol.
//!
//! `clear()` and `trunc()` apply to the rows that exist when they are called. `normalize()` applies
//! to all rows until the next call.
//!
//! Values are kept by CPU only on request ([`Aggregations::from_cpu`]). Then a row holds the total
//! and the values of the CPUs that have any.

use std::collections::{btree_map, hash_map::Entry, BTreeMap, HashMap};

use dtrace_uapi::action::Action;
use thiserror::Error;

use crate::symbolizer::Symbolizer;
use crate::value::{words, Datum, Kind};
use dtrace_compiler::statement::AggVarId;

pub mod buckets;
mod float;
mod sort;
mod value;

use float::value as float_value;
pub use sort::Sort;
pub use sort::{joined, sorted};
pub use value::divide;
use value::{average, stddev};
pub use value::{precise_average, precise_stddev, sum_of_squares};

/// The error for a row that cannot be merged.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("aggregation {id} has a row of {size} bytes that does not fit its function")]
pub struct Misfit {
    /// The aggregation.
    pub id: AggVarId,
    /// The size of its value, bytes.
    pub size: usize,
}

/// One value of a row's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    kind: Kind,
    data: Box<[u8]>,
}

impl Key {
    /// Returns the key as a value that can be printed.
    pub fn datum(&self) -> Datum<'_> {
        Datum::new(self.kind, &self.data)
    }
}

/// A row without its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The aggregating function's data.
    pub words: Vec<u64>,
    /// The data of each CPU, if it is kept by CPU.
    pub cpus: BTreeMap<u32, Vec<u64>>,
    /// Whether nothing was aggregated since the row was made or cleared. The zeros in `words` must
    /// not be merged then, because `min()` would take them for a value.
    cleared: bool,
}

/// The result of a row's data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// A number.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A distribution, which has [`buckets`].
    Distribution,
}

/// One aggregation.
#[derive(Clone, Debug)]
pub struct Aggregation {
    func: Action,
    arg: u64,
    rows: HashMap<Vec<Key>, Row>,
    normal: u64,
    printed: bool,
    name: String,
    keys: Vec<String>,
}

impl Aggregation {
    fn new(func: Action, arg: u64) -> Self {
        Self {
            func,
            arg,
            rows: HashMap::new(),
            normal: 1,
            printed: false,
            name: String::new(),
            keys: Vec::new(),
        }
    }

    /// Returns the variable's name, without `@`; `_` for the anonymous aggregation. Empty if it is
    /// not known.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the expressions of the keys, as the program has them. None if they are not known.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Returns the aggregating function.
    pub fn func(&self) -> Action {
        self.func
    }

    /// Returns the factor of `normalize()`, by which values are divided when they are printed.
    pub fn normal(&self) -> u64 {
        self.normal
    }

    /// Returns the rows, in no particular order.
    pub fn rows(&self) -> impl Iterator<Item = (&[Key], &Row)> {
        self.rows.iter().map(|(key, row)| (key.as_slice(), row))
    }

    /// Returns the result of `words`, the data of a row or of one of its CPUs, normalised.
    pub fn outcome(&self, words: &[u64]) -> Outcome {
        let normal = self.normal;
        let first = || words.first().map_or(0, |&word| word as i64);
        match self.func {
            Action::Avg => Outcome::Int(average(words, normal)),
            Action::Stddev => Outcome::Int(stddev(words, normal) as i64),
            Action::Quantize | Action::Lquantize | Action::Llquantize => Outcome::Distribution,
            func if func.is_float() => Outcome::Float(float_value(func, words, normal)),
            _ => Outcome::Int(divide(first(), normal)),
        }
    }

    /// Returns the row of a key that was never aggregated.
    fn zero(&self) -> Row {
        Row {
            words: value::zero(self.func, self.arg),
            cpus: BTreeMap::new(),
            cleared: true,
        }
    }
}

/// All aggregations of a consumer, by the ids that the compiler assigned.
#[derive(Clone, Debug, Default)]
pub struct Aggregations {
    by_id: BTreeMap<AggVarId, Aggregation>,
    /// The CPU whose rows are being merged, if values are kept by CPU.
    cpu: Option<u32>,
    /// The address that represents an object, by process (`None`: the kernel) and object.
    objects: HashMap<(Option<u32>, String), u64>,
}

impl Aggregations {
    /// Declares an aggregation, so that one without rows is printed as zero beside others.
    pub fn declare(&mut self, id: AggVarId, func: Action, arg: u64) {
        self.by_id
            .entry(id)
            .or_insert_with(|| Aggregation::new(func, arg));
    }

    /// Names an aggregation that was declared, and describes its keys.
    pub fn describe(&mut self, id: AggVarId, name: &str, keys: &[String]) {
        if let Some(aggregation) = self.by_id.get_mut(&id) {
            name.clone_into(&mut aggregation.name);
            aggregation.keys = keys.to_vec();
        }
    }

    /// Returns all aggregations, in the order of their ids.
    pub fn all(&self) -> impl Iterator<Item = &Aggregation> {
        self.by_id.values()
    }

    /// Returns all aggregations with their ids, in the order of these.
    pub fn named(&self) -> impl Iterator<Item = (AggVarId, &Aggregation)> {
        self.by_id.iter().map(|(id, known)| (*id, known))
    }

    /// Returns the aggregation `id`.
    pub fn get(&self, id: AggVarId) -> Option<&Aggregation> {
        self.by_id.get(&id)
    }

    /// Sets the CPU of the rows that are merged next, whose values are then also kept by CPU; with
    /// `None` only totals are kept.
    pub fn from_cpu(&mut self, cpu: Option<u32>) {
        self.cpu = cpu;
    }

    /// Merges a row of a snapshot. `value` is the function's data as the kernel wrote it.
    ///
    /// Fails if that is not well-formed, or if function or size differ from those of earlier rows.
    pub fn merge(
        &mut self,
        id: AggVarId,
        func: Action,
        keys: &[Datum<'_>],
        value: &[u8],
        symbols: &dyn Symbolizer,
    ) -> Result<(), Misfit> {
        let misfit = Misfit {
            id,
            size: value.len(),
        };
        let words: Vec<u64> = words(value).collect();
        if value.len() % 8 != 0 || !value::is_well_formed(func, &words) {
            return Err(misfit);
        }
        let arg = words.first().copied().unwrap_or(0);
        let key: Vec<Key> = keys.iter().map(|k| self.canonical(k, symbols)).collect();
        let aggregation = self
            .by_id
            .entry(id)
            .or_insert_with(|| Aggregation::new(func, arg));
        if aggregation.func != func {
            return Err(misfit);
        }
        let row = match aggregation.rows.entry(key) {
            Entry::Occupied(row) if row.get().words.len() != words.len() => return Err(misfit),
            Entry::Occupied(row) => row.into_mut(),
            Entry::Vacant(row) => row.insert(Row {
                words: Vec::new(),
                cpus: BTreeMap::new(),
                cleared: true,
            }),
        };
        if let Some(cpu) = self.cpu {
            match row.cpus.entry(cpu) {
                btree_map::Entry::Occupied(of) => value::merge(func, of.into_mut(), &words),
                btree_map::Entry::Vacant(of) => drop(of.insert(words.clone())),
            }
        }
        if std::mem::take(&mut row.cleared) {
            row.words = words;
        } else {
            value::merge(func, &mut row.words, &words);
        }
        Ok(())
    }

    /// Returns a key in the form used for the lookup: strings end before their NUL, and each symbol
    /// or object has one address.
    fn canonical(&mut self, datum: &Datum<'_>, symbols: &dyn Symbolizer) -> Key {
        let mut data: Box<[u8]> = match datum.kind {
            Kind::Str => datum.text().into(),
            _ => datum.data.into(),
        };
        let is_symbol = matches!(datum.kind, Kind::Sym | Kind::Usym);
        let is_object = matches!(datum.kind, Kind::Mod | Kind::Umod);
        if let (true, Some((pid, pc))) = (is_symbol || is_object, datum.address()) {
            let location = match pid {
                Some(_) => symbols.user(pid, pc),
                None => symbols.kernel(pc),
            };
            let start = match location {
                Some(location) if is_object => {
                    *self.objects.entry((pid, location.object)).or_insert(pc)
                }
                Some(location) => pc.wrapping_sub(location.symbol.map_or(0, |(_, offset)| offset)),
                None => pc,
            };
            // The address is the last word; user addresses have the process id before it.
            if let Some(word) = data.last_chunk_mut::<8>() {
                *word = start.to_ne_bytes();
            }
        }
        Key {
            kind: datum.kind,
            data,
        }
    }

    /// `clear()`: resets the values to zero and keeps the keys.
    pub fn clear(&mut self, id: AggVarId) {
        if let Some(aggregation) = self.by_id.get_mut(&id) {
            let zero = aggregation.zero().words;
            for row in aggregation.rows.values_mut() {
                row.words.clone_from(&zero);
                row.cpus.clear();
                row.cleared = true;
            }
        }
    }

    /// `trunc()`: keeps the `keep` rows with the greatest values, or for a negative number the
    /// `-keep` rows with the least.
    pub fn trunc(&mut self, id: AggVarId, keep: i64) {
        let Some(aggregation) = self.by_id.get_mut(&id) else {
            return;
        };
        let order = Sort {
            reverse: keep >= 0,
            ..Sort::default()
        };
        let limit = usize::try_from(keep.unsigned_abs()).unwrap_or(usize::MAX);
        let doomed: Vec<Vec<Key>> = sorted(aggregation, &order)
            .into_iter()
            .skip(limit)
            .map(|(key, _)| key.to_vec())
            .collect();
        for key in doomed {
            aggregation.rows.remove(&key);
        }
    }

    /// `normalize()`: sets the factor by which values are divided when they are printed.
    pub fn normalize(&mut self, id: AggVarId, factor: u64) {
        if let Some(aggregation) = self.by_id.get_mut(&id) {
            aggregation.normal = factor;
        }
    }

    /// `denormalize()`: undoes `normalize()`.
    pub fn denormalize(&mut self, id: AggVarId) {
        self.normalize(id, 1);
    }

    /// Returns the aggregations that no `printa()` has printed, in the order of their ids.
    pub fn unprinted(&self) -> impl DoubleEndedIterator<Item = &Aggregation> {
        self.by_id.values().filter(|a| !a.printed)
    }

    /// Marks an aggregation as printed if it has rows.
    pub fn note_printed(&mut self, id: AggVarId) {
        if let Some(aggregation) = self.by_id.get_mut(&id) {
            aggregation.printed |= !aggregation.rows.is_empty();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolizer::{Location, NoSymbols};
    use dtrace_uapi::action::Lquantize;

    const INT: Kind = Kind::Int { signed: true };

    /// Knows two functions of one module, and that an address is in another one.
    struct Fixture;

    impl Symbolizer for Fixture {
        fn kernel(&self, pc: u64) -> Option<Location> {
            match pc {
                0x2000..=0x20ff => Some(Location::symbol("ext4", "ext4_map_blocks", pc - 0x2000)),
                0x3000..=0x30ff => Some(Location::object("ext4")),
                _ => None,
            }
        }

        fn user(&self, _pid: Option<u32>, _pc: u64) -> Option<Location> {
            None
        }
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    fn add(aggs: &mut Aggregations, func: Action, key: u64, words: &[u64]) {
        let key = key.to_ne_bytes();
        aggs.merge(1, func, &[Datum::new(INT, &key)], &bytes(words), &NoSymbols)
            .unwrap();
    }

    /// The first word of each row, sorted.
    fn firsts(aggs: &Aggregations) -> Vec<i64> {
        let rows = aggs.get(1).unwrap().rows();
        let mut firsts: Vec<_> = rows.map(|(_, row)| row.words[0] as i64).collect();
        firsts.sort_unstable();
        firsts
    }

    #[test]
    fn what_was_declared_gets_a_name() {
        let mut aggs = Aggregations::default();
        aggs.describe(1, "gone", &[]);
        aggs.declare(1, Action::Count, 0);
        assert_eq!(aggs.get(1).unwrap().name(), "");
        aggs.describe(1, "a", &["pid".to_owned()]);
        add(&mut aggs, Action::Count, 1, &[2]);
        let all: Vec<_> = aggs.all().map(|agg| (agg.name(), agg.keys())).collect();
        assert_eq!(all, [("a", &["pid".to_owned()][..])]);
    }

    #[test]
    fn rows_of_a_key_are_merged() {
        let mut aggs = Aggregations::default();
        add(&mut aggs, Action::Count, 1, &[2]);
        add(&mut aggs, Action::Count, 1, &[3]);
        add(&mut aggs, Action::Count, 2, &[4]);
        assert_eq!(firsts(&aggs), [4, 5]);
    }

    #[test]
    fn clear_keeps_keys_and_forgets_values() {
        let mut aggs = Aggregations::default();
        add(&mut aggs, Action::Min, 1, &[5]);
        aggs.clear(1);
        assert_eq!(firsts(&aggs), [0]);
        add(&mut aggs, Action::Min, 1, &[9]);
        assert_eq!(firsts(&aggs), [9]);
        let arg = Lquantize {
            base: 0,
            step: 1,
            levels: 1,
        };
        let mut aggs = Aggregations::default();
        add(&mut aggs, Action::Lquantize, 1, &[arg.pack(), 1, 2, 3]);
        aggs.clear(1);
        let (_, row) = aggs.get(1).unwrap().rows().next().unwrap();
        assert_eq!(row.words, [arg.pack(), 0, 0, 0]);
    }

    #[test]
    fn trunc_keeps_the_top_or_the_bottom() {
        let mut all = Aggregations::default();
        for (key, value) in [(1, 10), (2, -5i64 as u64), (3, 20), (4, 0)] {
            add(&mut all, Action::Sum, key, &[value]);
        }
        for (keep, expected) in [
            (2, &[10, 20][..]),
            (-2, &[-5, 0]),
            (0, &[]),
            (9, &[-5, 0, 10, 20]),
            (i64::MIN, &[-5, 0, 10, 20]),
        ] {
            let mut aggs = all.clone();
            aggs.trunc(1, keep);
            assert_eq!(firsts(&aggs), expected, "{keep}");
        }
    }

    #[test]
    fn normalize_holds_until_the_next() {
        let mut aggs = Aggregations::default();
        let normal = |aggs: &Aggregations| aggs.get(1).unwrap().normal();
        add(&mut aggs, Action::Count, 1, &[1]);
        assert_eq!(normal(&aggs), 1);
        aggs.normalize(1, 10);
        aggs.normalize(1, 20);
        aggs.clear(1);
        assert_eq!(normal(&aggs), 20);
        aggs.denormalize(1);
        assert_eq!(normal(&aggs), 1);
        aggs.normalize(99, 2);
    }

    #[test]
    fn addresses_of_a_symbol_or_object_share_a_row() {
        let mut aggs = Aggregations::default();
        let mut merge = |id, kind, pc: u64| {
            let key = pc.to_ne_bytes();
            aggs.merge(
                id,
                Action::Count,
                &[Datum::new(kind, &key)],
                &bytes(&[1]),
                &Fixture,
            )
            .unwrap();
        };
        merge(1, Kind::Sym, 0x2004);
        merge(1, Kind::Sym, 0x2008);
        merge(1, Kind::Sym, 0x9000);
        merge(2, Kind::Mod, 0x2004);
        merge(2, Kind::Mod, 0x3008);
        merge(3, INT, 0x2004);
        merge(3, INT, 0x2008);
        assert_eq!(
            [1, 2, 3].map(|id| aggs.get(id).unwrap().rows().count()),
            [2, 1, 2]
        );
    }

    #[test]
    fn strings_are_equal_up_to_their_end() {
        let mut aggs = Aggregations::default();
        for text in [&b"sh\0\0"[..], b"sh\0x", b"sh"] {
            aggs.merge(
                1,
                Action::Count,
                &[Datum::new(Kind::Str, text)],
                &bytes(&[1]),
                &NoSymbols,
            )
            .unwrap();
        }
        assert_eq!(firsts(&aggs), [3]);
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let mut aggs = Aggregations::default();
        add(&mut aggs, Action::Count, 1, &[1]);
        for (func, value) in [
            (Action::Count, vec![0; 7]),
            (Action::Count, vec![0; 16]),
            (Action::Count, vec![]),
            (Action::Sum, vec![0; 8]),
            (Action::Quantize, vec![0; 8]),
            (Action::Lquantize, vec![0; 16]),
            (Action::Llquantize, vec![0xff; 16]),
            (Action::Printf, vec![0; 8]),
        ] {
            let result = aggs.merge(1, func, &[], &value, &NoSymbols);
            let size = value.len();
            assert_eq!(result, Err(Misfit { id: 1, size }), "{func:?}");
        }
    }
}
