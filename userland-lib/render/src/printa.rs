// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `printa()`, and the aggregations that are printed at the end of tracing.
//!
//! By default a row consists of its keys in columns, its values, and a newline. A `printa()`
//! without a format prints an empty line before its rows. With a format, the rows are the output of
//! the format and nothing else. Several aggregations are joined: there is a row for each key that
//! any of them has.

use super::{
    compact, float, histogram,
    pad::{self, Radix, Spec},
    printf::Unfit,
    RenderError, Renderer,
};
use dtrace_compiler::{
    format::{Conversion, Format},
    statement::AggVarId,
};
use dtrace_consumer::aggregate::{self, Aggregation, Aggregations, Key, Outcome, Row};
use dtrace_consumer::value::{Datum, Kind};

impl Renderer<'_> {
    /// Appends every aggregation that no `printa()` has printed, as the consumer does at its end.
    pub fn aggregations(&self, out: &mut Vec<u8>, aggregations: &Aggregations) {
        for aggregation in self.unprinted(aggregations) {
            self.whole(out, aggregation);
        }
    }

    /// Returns the aggregations that no `printa()` has printed, in the order that the options say.
    pub(super) fn unprinted<'a>(&self, aggregations: &'a Aggregations) -> Vec<&'a Aggregation> {
        let all = aggregations.unprinted();
        match self.style.sort.reverse {
            true => all.rev().collect(),
            false => all.collect(),
        }
    }

    /// Appends the rows of one aggregation in the form that the options select.
    fn whole(&self, out: &mut Vec<u8>, aggregation: &Aggregation) {
        let rows = aggregate::sorted(aggregation, &self.style.sort);
        if self.style.agghist && compact::has_bars(aggregation.func()) {
            self.bars(out, aggregation, &rows);
        } else if self.style.aggpack && compact::has_buckets(aggregation.func()) {
            self.packed(out, aggregation, &rows);
        } else {
            for (key, row) in rows {
                self.row(out, key, &[(aggregation, row)]);
            }
        }
    }

    /// Appends the output of `printa()` of the aggregations `ids`; unknown ids are ignored.
    ///
    /// Fails if the format needs more keys than there are or a value does not fit its conversion.
    /// Rows before that one stay in `out`.
    pub fn printa(
        &self,
        out: &mut Vec<u8>,
        aggregations: &Aggregations,
        ids: &[AggVarId],
        format: Option<&Format>,
    ) -> Result<(), RenderError> {
        if format.is_none() {
            out.push(b'\n');
        }
        let chosen: Vec<&Aggregation> = ids.iter().filter_map(|&id| aggregations.get(id)).collect();
        if let ([aggregation], None) = (&chosen[..], format) {
            self.whole(out, aggregation);
            return Ok(());
        }
        for joined in aggregate::joined(&chosen, &self.style.sort) {
            let rows = joined.rows.iter().map(AsRef::as_ref);
            let values: Vec<(&Aggregation, &Row)> = chosen.iter().copied().zip(rows).collect();
            match format {
                None => self.row(out, joined.key, &values),
                Some(format) => self.formatted_row(out, format, joined.key, &values)?,
            }
        }
        Ok(())
    }

    /// Appends a row in its default form.
    fn row(&self, out: &mut Vec<u8>, key: &[Key], values: &[(&Aggregation, &Row)]) {
        for key in key {
            self.key(out, &key.datum());
        }
        for &(aggregation, row) in values {
            self.value(out, aggregation, &row.words);
            for (cpu, words) in &row.cpus {
                put!(out, "\n    [CPU {cpu}]");
                self.value(out, aggregation, words);
            }
        }
        out.push(b'\n');
    }

    /// Appends a value in its default form.
    fn value(&self, out: &mut Vec<u8>, aggregation: &Aggregation, words: &[u64]) {
        match aggregation.outcome(words) {
            Outcome::Int(value) => put!(out, " {value:16}"),
            Outcome::Float(value) => put!(out, " {:>16}", float::shortest(value)),
            Outcome::Distribution => self.distribution(out, aggregation, words),
        }
    }

    /// Appends a row by a format. Plain conversions take the keys in turn, those with `@` the
    /// values. After the last value the first is used again.
    fn formatted_row(
        &self,
        out: &mut Vec<u8>,
        format: &Format,
        key: &[Key],
        values: &[(&Aggregation, &Row)],
    ) -> Result<(), RenderError> {
        let keys: Vec<Datum<'_>> = key.iter().map(Key::datum).collect();
        let mut keys = keys.iter();
        let mut values = values.iter().cycle();
        self.format(out, format, |_, spec, conv, out| {
            let spec = spec.resolve(&mut keys)?;
            if conv.agg {
                let &(aggregation, row) = values.next().ok_or(None)?;
                return self
                    .aggregated(out, conv, &spec, aggregation, row)
                    .map_err(|_| Some(size_of::<u64>()));
            }
            let datum = keys.next().ok_or(None)?;
            self.convert(out, conv.kind, conv.size, &spec, datum)
                .map_err(|_| Some(datum.data.len()))
        })
    }

    /// Appends a value by a conversion. A distribution has the same form in every conversion.
    fn aggregated(
        &self,
        out: &mut Vec<u8>,
        conv: &Conversion,
        spec: &Spec,
        aggregation: &Aggregation,
        row: &Row,
    ) -> Result<(), Unfit> {
        let value = match aggregation.outcome(&row.words) {
            Outcome::Int(value) => value,
            Outcome::Float(value) => {
                let data = value.to_ne_bytes();
                let datum = Datum::new(Kind::Float, &data);
                return self.convert(out, conv.kind, conv.size, spec, &datum);
            }
            Outcome::Distribution => {
                self.distribution(out, aggregation, &row.words);
                return Ok(());
            }
        };
        let radix = match conv.kind {
            'u' => Radix::Dec,
            'o' | 'O' => Radix::Oct,
            'x' | 'p' => Radix::Hex,
            'X' => Radix::HexUpper,
            // Times and addresses are unsigned.
            'Y' | 'T' | 'a' | 'A' => {
                let data = value.to_ne_bytes();
                let datum = Datum::new(Kind::Int { signed: false }, &data);
                return self.convert(out, conv.kind, conv.size, spec, &datum);
            }
            _ => {
                pad::signed(out, spec, value);
                return Ok(());
            }
        };
        pad::unsigned(out, spec, value as u64, radix);
        Ok(())
    }

    fn distribution(&self, out: &mut Vec<u8>, aggregation: &Aggregation, words: &[u64]) {
        let (func, normal) = (aggregation.func(), aggregation.normal());
        histogram::print(out, func, words, normal, self.style);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        testing::{render, visible, Fixture},
        Style,
    };
    use super::*;
    use dtrace_consumer::aggregate::Sort;
    use dtrace_uapi::action::{quantize_bucket, Action, QUANTIZE_NBUCKETS};
    use expect_test::{expect, Expect};

    const INT: Kind = Kind::Int { signed: true };

    fn merge(
        aggs: &mut Aggregations,
        id: AggVarId,
        func: Action,
        keys: &[(Kind, &[u8])],
        words: &[u64],
    ) {
        let keys: Vec<_> = keys.iter().map(|&(k, d)| Datum::new(k, d)).collect();
        let value: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        aggs.merge(id, func, &keys, &value, &Fixture).unwrap();
    }

    /// Two aggregations with keys of name and number. Each has a key that the other lacks.
    fn two() -> Aggregations {
        let mut aggs = Aggregations::default();
        for (id, func, name, number, words) in [
            (1, Action::Count, "sh", 7u64, vec![3]),
            (1, Action::Count, "ls", 8, vec![12]),
            (2, Action::Avg, "sh", 7, vec![2, -5i64 as u64]),
            (2, Action::Avg, "cc", 9, vec![3, 300]),
        ] {
            let number = number.to_ne_bytes();
            let keys = [(Kind::Str, name.as_bytes()), (INT, &number[..])];
            merge(&mut aggs, id, func, &keys, &words);
        }
        aggs
    }

    fn printa(aggs: &Aggregations, ids: &[AggVarId], format: Option<&str>, expected: Expect) {
        let format = format.map(|f| Format::parse(f).unwrap());
        let text = render(&Style::default(), |r, out| {
            r.printa(out, aggs, ids, format.as_ref()).unwrap();
        });
        expected.assert_eq(&visible(&text));
    }

    #[test]
    fn default_rows_stand_in_columns() {
        printa(
            &two(),
            &[1],
            None,
            expect![[r#"
                |$
                |  sh                                                                7                3$
                |  ls                                                                8               12$
            "#]],
        );
        printa(
            &two(),
            &[1, 2],
            None,
            expect![[r#"
                |$
                |  cc                                                                9                0              100$
                |  sh                                                                7                3               -2$
                |  ls                                                                8               12                0$
            "#]],
        );
        printa(
            &two(),
            &[9],
            None,
            expect![[r#"
            |$
        "#]],
        );
    }

    #[test]
    fn values_of_single_cpus_stand_below_the_total() {
        let mut aggs = Aggregations::default();
        for (cpu, words) in [(Some(0), [1, 10]), (Some(3), [1, 20]), (Some(0), [1, 60])] {
            aggs.from_cpu(cpu);
            merge(&mut aggs, 1, Action::Avg, &[(Kind::Str, b"a")], &words);
        }
        printa(
            &aggs,
            &[1],
            None,
            expect![[r#"
                |$
                |  a                                                                30$
                |    [CPU 0]               35$
                |    [CPU 3]               20$
            "#]],
        );
        aggs.clear(1);
        printa(
            &aggs,
            &[1],
            None,
            expect![[r#"
                |$
                |  a                                                                 0$
            "#]],
        );
    }

    #[test]
    fn formats_choose_keys_and_values() {
        printa(
            &two(),
            &[1],
            Some("%s:%d %@d\n"),
            expect![[r#"
                |sh:7 3$
                |ls:8 12$
            "#]],
        );
        printa(
            &two(),
            &[1, 2],
            Some("%@5d|%@-5d|%@5u %-4s|\n"),
            expect![[r#"
                |    0|100  |    0 cc  |$
                |    3|-2   |    3 sh  |$
                |   12|0    |   12 ls  |$
            "#]],
        );
        printa(&two(), &[1], Some("%@#x "), expect!["|0x3 0xc "]);
        let mut times = Aggregations::default();
        let moment = 951_782_400_000_000_000;
        merge(&mut times, 1, Action::Max, &[], &[moment]);
        printa(
            &times,
            &[1],
            Some("%@Y|%@T"),
            expect!["|2000 Feb 29 00:00:00|Tue, 29 Feb 2000 00:00:00 UTC"],
        );
        printa(&two(), &[9], Some("%@d\n"), expect![""]);
    }

    #[test]
    fn formats_that_want_too_many_keys_are_errors() {
        let format = Format::parse("%s %d %d %@d").unwrap();
        let text = render(&Style::default(), |r, out| {
            let error = r.printa(out, &two(), &[1], Some(&format));
            assert_eq!(error, Err(RenderError::Missing(3)));
        });
        assert_eq!(text, "");
    }

    #[test]
    fn the_end_prints_what_was_not_printed() {
        let mut aggs = two();
        let text = render(&Style::default(), |r, out| {
            let mut printed = Vec::new();
            r.printa(&mut printed, &aggs, &[1], None).unwrap();
            aggs.note_printed(1);
            r.aggregations(out, &aggs);
        });
        expect![[r#"
            |  sh                                                                7               -2$
            |  cc                                                                9              100$
        "#]]
        .assert_eq(&visible(&text));
        let style = Style {
            sort: Sort {
                reverse: true,
                ..Sort::default()
            },
            ..Style::default()
        };
        let text = render(&style, |r, out| r.aggregations(out, &two()));
        expect![[r#"
            |  cc                                                                9              100$
            |  sh                                                                7               -2$
            |  ls                                                                8               12$
            |  sh                                                                7                3$
        "#]]
        .assert_eq(&visible(&text));
    }

    #[test]
    fn values_are_normalised() {
        let mut aggs = Aggregations::default();
        merge(&mut aggs, 1, Action::Sum, &[], &[-1000i64 as u64]);
        merge(&mut aggs, 2, Action::Stddev, &[], &[2, 0, 800, 0]);
        merge(&mut aggs, 3, Action::Max, &[], &[i64::MIN as u64]);
        aggs.normalize(1, 300);
        aggs.normalize(2, 10);
        let text = render(&Style::default(), |r, out| r.aggregations(out, &aggs));
        expect![[r#"
            |               -3$
            |                2$
            | -9223372036854775808$
        "#]]
        .assert_eq(&visible(&text));
    }

    #[test]
    fn distributions_follow_their_key() {
        let mut aggs = Aggregations::default();
        let mut words = vec![0; QUANTIZE_NBUCKETS];
        words[quantize_bucket(3)] = 2;
        merge(
            &mut aggs,
            1,
            Action::Quantize,
            &[(Kind::Str, b"sh")],
            &words,
        );
        printa(
            &aggs,
            &[1],
            None,
            expect![[r#"
                |$
                |  sh                                                $
                |           value  ------------- Distribution ------------- count    $
                |               1 |                                         0        $
                |               2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 2        $
                |               4 |                                         0        $
                |$
            "#]],
        );
        printa(
            &aggs,
            &[1],
            Some("%s%@d"),
            expect![[r#"
                |sh$
                |           value  ------------- Distribution ------------- count    $
                |               1 |                                         0        $
                |               2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 2        $
                |               4 |                                         0        $
            "#]],
        );
    }

    #[test]
    fn stacks_and_symbols_are_keys() {
        let mut aggs = Aggregations::default();
        let stack = [0x1010u64, 0x2000, 0].map(u64::to_ne_bytes).concat();
        let symbol = 0x2008u64.to_ne_bytes();
        let keys = [(Kind::Stack, &stack[..]), (Kind::Sym, &symbol[..])];
        merge(&mut aggs, 1, Action::Count, &keys, &[1]);
        printa(
            &aggs,
            &[1],
            None,
            expect![[r#"
                |$
                |$
                |              vmlinux`vfs_read+0x10$
                |              ext4`ext4_map_blocks$
                |  ext4`ext4_map_blocks                                              1$
            "#]],
        );
        printa(
            &aggs,
            &[1],
            Some("%k%a %@d\n"),
            expect![[r#"
                |$
                |vmlinux`vfs_read+0x10$
                |ext4`ext4_map_blocks$
                |ext4`ext4_map_blocks 1$
            "#]],
        );
    }
}
