// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Aggregations: a line for each key.
//!
//! A value is that which text shows, divided by the factor of `normalize()`, which is a member of
//! its own. `avg()` and `stddev()` are not rounded, and have with them what the kernel keeps, so
//! that values of several runs can be joined. Buckets without a count are left out.

use super::put::{Object, Put};
use super::value;
use crate::Renderer;
use dtrace_compiler::sema::function_name;
use dtrace_consumer::aggregate::buckets::ranges;
use dtrace_consumer::aggregate::{
    divide, precise_average, precise_stddev, sorted, sum_of_squares, Aggregation, Key, Outcome, Row,
};
use dtrace_uapi::action::Action;

/// Appends a line for each key of an aggregation, in the order that the options say. `time` is when
/// its record was made, ns, if a `printa()` asks for it. Returns the number of lines.
pub fn lines(
    renderer: &Renderer<'_>,
    out: &mut Vec<u8>,
    aggregation: &Aggregation,
    time: Option<u64>,
    quote64: bool,
) -> u64 {
    let rows = sorted(aggregation, &renderer.style.sort);
    let count = rows.len() as u64;
    for row in rows {
        line(renderer, &mut Put::to(out, quote64), aggregation, row, time);
        out.push(b'\n');
    }
    count
}

fn line(
    renderer: &Renderer<'_>,
    put: &mut Put<'_>,
    aggregation: &Aggregation,
    (keys, row): (&[Key], &Row),
    time: Option<u64>,
) {
    put.object(|object| {
        object.member("type").text("aggregation");
        if let Some(time) = time {
            object.member("timestamp").integer(time);
        }
        object.member("name").text(aggregation.name());
        let func = function_name(aggregation.func());
        object.member("func").text(func);
        object.member("keys").array(|array| {
            for key in keys {
                value::value(renderer, array.item(), &key.datum());
            }
        });
        result(object, aggregation, &row.words);
        object.member("normal").integer(aggregation.normal());
        if row.cpus.is_empty() {
            return;
        }
        object.member("cpus").array(|array| {
            for (cpu, words) in &row.cpus {
                array.item().object(|object| {
                    object.member("cpu").integer(*cpu);
                    result(object, aggregation, words);
                });
            }
        });
    });
}

/// Puts the members for the data of a row, or of one of its CPUs.
fn result(object: &mut Object<'_, '_>, aggregation: &Aggregation, words: &[u64]) {
    let (func, normal) = (aggregation.func(), aggregation.normal());
    let word = |at: usize| words.get(at).copied().unwrap_or(0);
    match (func, aggregation.outcome(words)) {
        (_, Outcome::Distribution) => object.member("buckets").array(|array| {
            let ranges = ranges(func, words).unwrap_or_default();
            for range in ranges.iter().filter(|range| range.count != 0) {
                array.item().object(|object| {
                    for (name, end) in [("min", range.min), ("max", range.max)] {
                        if let Some(end) = end {
                            object.member(name).integer(end);
                        }
                    }
                    object.member("count").integer(divide(range.count, normal));
                });
            }
        }),
        (Action::Avg, _) => {
            let average = precise_average(words, normal);
            object.member("value").float(average.unwrap_or(0.0));
            object.member("count").integer(word(0));
            object.member("sum").integer(word(1) as i64);
        }
        (Action::Stddev, _) => {
            let deviation = precise_stddev(words, normal);
            object.member("value").float(deviation.unwrap_or(0.0));
            object.member("count").integer(word(0));
            object.member("sum").integer(word(1) as i64);
            let squares = sum_of_squares(words).unwrap_or(0);
            object.member("sum_squares").text(&squares.to_string());
        }
        (_, Outcome::Float(number)) => {
            object.member("value").float(number);
            let second = f64::from_bits(word(1));
            match func {
                Action::FloatAvg => {
                    object.member("count").integer(word(0));
                    object.member("sum").float(second);
                }
                Action::FloatStddev => {
                    object.member("count").integer(word(0));
                    object.member("mean").float(second);
                }
                _ => {}
            }
        }
        (_, Outcome::Int(number)) => {
            object.member("value").integer(number);
            if normal != 1 {
                object.member("raw").integer(word(0) as i64);
            }
        }
    }
}
