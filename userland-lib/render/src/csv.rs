// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Aggregations as comma-separated values, and nothing else: records are not written.
//!
//! Each aggregation begins with a line of its columns' names: `aggregation`, the expressions of its
//! keys, and those of its value. Then follows a line for each key, whose first column is the
//! aggregation's name. A distribution has a line for each bucket that is not empty, with the least
//! and the greatest value in it; where there is none, the column is empty. Fields are quoted as in
//! RFC 4180; lines end in a newline alone. Bytes of strings are written unchanged.
//!
//! A stack is one field: its frames, innermost first, with `;` between.

use crate::output::Output;
use crate::text::Text;
use crate::{Renderer, Sink};
use dtrace_compiler::options::Options;
use dtrace_compiler::sema::function_name;
use dtrace_compiler::statement::AggVarId;
use dtrace_consumer::aggregate::buckets::ranges;
use dtrace_consumer::aggregate::{
    divide, precise_average, precise_stddev, sorted, Aggregation, Aggregations, Key, Outcome, Row,
};
use dtrace_consumer::consume::{
    End, Event, Head, Receiver, Refused, Spoken, Start, Surroundings, Value,
};
use dtrace_consumer::value::{Datum, Kind};
use dtrace_uapi::action::Action;
use std::io;

/// The state of an output of comma-separated values.
pub struct Csv {
    /// Has the form of values.
    text: Text,
}

impl Csv {
    /// Makes the state of an output to which nothing was written.
    pub fn new(text: Text) -> Self {
        Self { text }
    }

    /// Returns a receiver that writes to `out`, and passes events to `event`.
    pub fn to<'a>(
        &'a mut self,
        out: &'a mut dyn Output,
        event: &'a mut dyn FnMut(Event),
    ) -> Table<'a> {
        Table {
            csv: self,
            out,
            event,
        }
    }
}

/// Writes the aggregations that a consumer yields.
pub struct Table<'a> {
    csv: &'a mut Csv,
    out: &'a mut dyn Output,
    event: &'a mut dyn FnMut(Event),
}

impl Table<'_> {
    fn write(&mut self, aggregation: &Aggregation, around: Surroundings<'_>) -> io::Result<()> {
        let renderer = self.csv.text.renderer(around);
        self.out.write_all(&table(&renderer, aggregation))
    }

    fn printa(
        &mut self,
        aggregations: &Aggregations,
        vars: &[AggVarId],
        around: Surroundings<'_>,
    ) -> io::Result<()> {
        let known = vars.iter().filter_map(|var| aggregations.get(*var));
        for aggregation in known {
            self.write(aggregation, around)?;
        }
        Ok(())
    }
}

impl Receiver for Table<'_> {
    fn start(&mut self, _start: &Start<'_>) -> io::Result<()> {
        Ok(())
    }

    fn options(&mut self, options: &Options) {
        self.csv.text.set(options);
    }

    fn begin(&mut self, _head: &Head<'_>) -> io::Result<()> {
        Ok(())
    }

    fn value(&mut self, value: Value<'_>, around: Surroundings<'_>) -> Result<(), Refused> {
        match value {
            Value::Printa {
                vars, aggregations, ..
            } => {
                let written = self.printa(aggregations, vars, around);
                written.map_err(Refused::Output)
            }
            Value::System(format, args) => {
                let command = self.csv.text.formatted(around, format, args)?;
                self.out.flush().map_err(Refused::Output)?;
                let ran = around.run(&command, Spoken::Errors);
                ran.map_err(Refused::Value)
            }
            Value::Datum(_)
            | Value::Printf(..)
            | Value::Object(..)
            | Value::Pointee { .. }
            | Value::Freopen(..)
            | Value::Ftruncate
            | Value::Exit(_) => Ok(()),
        }
    }

    fn end(&mut self, _head: &Head<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Writes the aggregations that no `printa()` has written.
    fn aggregations(
        &mut self,
        aggregations: &Aggregations,
        around: Surroundings<'_>,
    ) -> io::Result<()> {
        let all = self.csv.text.renderer(around).unprinted(aggregations);
        for aggregation in all {
            self.write(aggregation, around)?;
        }
        Ok(())
    }

    fn finish(&mut self, _end: &End) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, event: Event) {
        (self.event)(event);
    }
}

impl Sink for Table<'_> {
    fn receiver(&mut self) -> &mut dyn Receiver {
        self
    }

    fn gap(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the lines of an aggregation; none if it has no rows.
fn table(renderer: &Renderer<'_>, aggregation: &Aggregation) -> Vec<u8> {
    let mut out = Vec::new();
    let rows = sorted(aggregation, &renderer.style.sort);
    let Some((keys, _)) = rows.first() else {
        return out;
    };
    let mut header: Vec<Vec<u8>> = vec![b"aggregation".to_vec()];
    header.extend((0..keys.len()).map(|at| match aggregation.keys().get(at) {
        Some(key) => key.clone().into_bytes(),
        None => format!("key{at}").into_bytes(),
    }));
    let names = columns(aggregation.func());
    header.extend(names.iter().map(|name| name.as_bytes().to_vec()));
    line(&mut out, &header);
    for row in rows {
        lines(renderer, &mut out, aggregation, row);
    }
    out
}

/// Returns the names of the columns of a value.
fn columns(func: Action) -> Vec<&'static str> {
    match func {
        Action::Quantize | Action::Lquantize | Action::Llquantize => vec!["min", "max", "count"],
        Action::Avg | Action::FloatAvg => vec!["avg", "count", "sum"],
        Action::Stddev | Action::FloatStddev => vec!["stddev", "count"],
        func => vec![function_name(func)],
    }
}

/// Appends the lines of a row.
fn lines(
    renderer: &Renderer<'_>,
    out: &mut Vec<u8>,
    aggregation: &Aggregation,
    (keys, row): (&[Key], &Row),
) {
    let name = aggregation.name().as_bytes().to_vec();
    let keys = keys.iter().map(|key| field(renderer, &key.datum()));
    let keys: Vec<Vec<u8>> = std::iter::once(name).chain(keys).collect();
    for value in values(aggregation, &row.words) {
        let value = value.into_iter().map(String::into_bytes);
        let fields: Vec<Vec<u8>> = keys.iter().cloned().chain(value).collect();
        line(out, &fields);
    }
}

/// Returns the columns of a value, for each line that it has.
fn values(aggregation: &Aggregation, words: &[u64]) -> Vec<Vec<String>> {
    let (func, normal) = (aggregation.func(), aggregation.normal());
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    let columns = match (func, aggregation.outcome(words)) {
        (_, Outcome::Distribution) => {
            let ranges = ranges(func, words).unwrap_or_default();
            let ranges = ranges.iter().filter(|range| range.count != 0);
            let end = |end: Option<i64>| end.map_or_else(String::new, |end| end.to_string());
            let columns = ranges.map(|range| {
                let count = divide(range.count, normal).to_string();
                vec![end(range.min), end(range.max), count]
            });
            return columns.collect();
        }
        (Action::Avg, _) => {
            let average = precise_average(words, normal).unwrap_or(0.0);
            let sum = word(1) as i64;
            vec![average.to_string(), word(0).to_string(), sum.to_string()]
        }
        (Action::Stddev, _) => {
            let deviation = precise_stddev(words, normal).unwrap_or(0.0);
            vec![deviation.to_string(), word(0).to_string()]
        }
        (Action::FloatAvg, Outcome::Float(average)) => {
            let sum = f64::from_bits(word(1));
            vec![average.to_string(), word(0).to_string(), sum.to_string()]
        }
        (Action::FloatStddev, Outcome::Float(deviation)) => {
            vec![deviation.to_string(), word(0).to_string()]
        }
        (_, Outcome::Float(number)) => vec![number.to_string()],
        (_, Outcome::Int(number)) => vec![number.to_string()],
    };
    vec![columns]
}

/// Returns a key as a field.
fn field(renderer: &Renderer<'_>, datum: &Datum<'_>) -> Vec<u8> {
    match (datum.kind, datum.signed(), datum.unsigned()) {
        (Kind::Int { signed: true }, Some(number), _) => number.to_string().into_bytes(),
        (Kind::Int { .. }, _, Some(number)) => number.to_string().into_bytes(),
        (Kind::Str, ..) => datum.text().to_vec(),
        (Kind::Stack | Kind::Ustack | Kind::StackValue, ..) => {
            let mut text = Vec::new();
            renderer.stack(&mut text, datum, None);
            let frames = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
            let frames: Vec<&[u8]> = frames.filter(|frame| !frame.is_empty()).collect();
            frames.join(&b';')
        }
        (Kind::Sym | Kind::Mod | Kind::Usym | Kind::Umod | Kind::Uaddr, ..) => {
            renderer.location(datum).unwrap_or_default().into_bytes()
        }
        (Kind::Float, ..) => crate::float::text(datum.data)
            .unwrap_or_default()
            .into_bytes(),
        (Kind::Chars, ..) if crate::bytes::as_string(datum.data).is_some() => datum.text().to_vec(),
        (Kind::Int { .. } | Kind::Chars | Kind::Bytes | Kind::Memory, ..) => {
            let digits = datum.data.iter().map(|byte| format!("{byte:02x}"));
            digits.collect::<String>().into_bytes()
        }
    }
}

/// Appends a line. Fields are quoted if they need to be.
fn line(out: &mut Vec<u8>, fields: &[Vec<u8>]) {
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let is_plain = !field.iter().any(|byte| b",\"\r\n".contains(byte));
        if is_plain {
            out.extend_from_slice(field);
            continue;
        }
        out.push(b'"');
        for byte in field {
            if *byte == b'"' {
                out.push(b'"');
            }
            out.push(*byte);
        }
        out.push(b'"');
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;
    use crate::{Style, Zone};
    use dtrace_uapi::action::{quantize_bucket, QUANTIZE_NBUCKETS};
    use expect_test::expect;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    /// The lines of all aggregations.
    fn csv(aggregations: &Aggregations) -> String {
        let (style, zone) = (Style::default(), Zone::utc());
        let renderer = Renderer {
            style: &style,
            symbols: &Fixture,
            zone: &zone,
        };
        let tables = aggregations.all().map(|agg| table(&renderer, agg));
        String::from_utf8_lossy(&tables.collect::<Vec<_>>().concat()).into_owned()
    }

    #[test]
    fn each_aggregation_has_a_header_and_a_line_for_each_key() {
        let mut aggs = Aggregations::default();
        let key = 7i32.to_ne_bytes();
        let keys = [
            Datum::new(Kind::Str, b"a,\"b\"\n\0"),
            Datum::new(Kind::Int { signed: true }, &key),
        ];
        let stack = bytes(&[42, 0x400008, 0x500000, 0]);
        let stack = [Datum::new(Kind::Ustack, &stack)];
        for (id, func, name, keys, words) in [
            (1, Action::Sum, "n", &keys[..], vec![-3i64 as u64]),
            (2, Action::Avg, "mean", &stack, vec![4, 50]),
            (3, Action::FloatMax, "f", &[], vec![0.5f64.to_bits()]),
            (4, Action::Stddev, "d", &[], vec![2, 3, 5, 0]),
            (
                6,
                Action::Count,
                "raw",
                &[Datum::new(Kind::Str, b"\xff\0")],
                vec![1],
            ),
        ] {
            aggs.declare(id, func, 0);
            let written = ["execname", "args[0]->a, \"b\""].map(str::to_owned);
            aggs.describe(id, name, if id == 1 { &written } else { &[] });
            aggs.merge(id, func, keys, &bytes(&words), &Fixture)
                .unwrap();
        }
        aggs.declare(7, Action::Count, 0);
        expect![[r#"
            aggregation,execname,"args[0]->a, ""b""",sum
            n,"a,""b""
            ",7,-3
            aggregation,key0,avg,count,sum
            mean,libc.so.6`malloc+0x8;a.out`0x500000,12.5,4,50
            aggregation,max
            f,0.5
            aggregation,stddev,count
            d,0.5,2
            aggregation,key0,count
            raw,�,1
        "#]]
        .assert_eq(&csv(&aggs));
    }

    #[test]
    fn a_distribution_has_a_line_for_each_bucket() {
        let mut aggs = Aggregations::default();
        let mut words = vec![0; QUANTIZE_NBUCKETS];
        for (value, count) in [(-5, 1), (0, 2), (4096, 30)] {
            words[quantize_bucket(value)] = count;
        }
        aggs.declare(1, Action::Quantize, 0);
        aggs.describe(1, "sizes", &[]);
        aggs.merge(1, Action::Quantize, &[], &bytes(&words), &Fixture)
            .unwrap();
        expect![[r#"
            aggregation,min,max,count
            sizes,-7,-4,1
            sizes,0,0,2
            sizes,4096,8191,30
        "#]]
        .assert_eq(&csv(&aggs));
    }
}
