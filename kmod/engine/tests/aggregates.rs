// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Aggregating functions compared with their definitions, for all values and parameters.

use dtrace_engine::ecb::aggregation::Function;
use dtrace_uapi::action::{Llquantize, Lquantize};
use proptest::prelude::*;

fn run(function: Function, values: &[i64]) -> Vec<u64> {
    let mut mem = vec![0; function.size()];
    function.init(&mut mem, 0);
    for value in values {
        function.update(&mut mem, 0, *value as u64, 1);
    }
    let words = mem.chunks_exact(8);
    words
        .map(|w| u64::from_ne_bytes(w.try_into().unwrap()))
        .collect()
}

/// Values of every magnitude, including the extremes.
fn value() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        (any::<i64>(), 0..64u32).prop_map(|(n, by)| n >> by),
        prop::sample::select(vec![i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX]),
    ]
}

fn values() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(value(), 1..40)
}

/// Parameters for which the steps are whole numbers.
fn llquantize() -> impl Strategy<Value = Llquantize> {
    let any = (2..40u16, 0..6u16, 0..6u16, 1..200u16);
    let parameters = any.prop_map(|(factor, low, more, nsteps)| Llquantize {
        factor,
        low,
        high: low + more,
        nsteps,
    });
    parameters.prop_filter("whole steps", |p| p.is_valid())
}

/// Returns the lower bounds of the buckets away from zero, computed one after the other.
fn edges(p: Llquantize) -> Vec<u128> {
    let (factor, nsteps) = (u128::from(p.factor), u128::from(p.nsteps));
    let mut edges = Vec::new();
    for order in p.low..=p.high {
        let (start, end) = (factor.pow(order.into()), factor.pow(u32::from(order) + 1));
        let step = (end / nsteps).max(1);
        edges.push(start);
        edges.extend(
            (1..)
                .map(|n| n * step)
                .skip_while(|e| *e <= start)
                .take_while(|e| *e < end),
        );
    }
    edges.push(factor.pow(u32::from(p.high) + 1));
    edges
}

proptest! {
    #[test]
    fn llquantize_counts_in_the_bucket_that_begins_last_before_the_value(
        p in llquantize(), values in values(),
    ) {
        let edges = edges(p);
        let mut expected = vec![0; 2 * edges.len() + 2];
        expected[0] = p.pack();
        for value in &values {
            let size = u128::from(value.unsigned_abs());
            let distance = edges.iter().filter(|edge| **edge <= size).count();
            let zero = 1 + edges.len();
            expected[if *value < 0 { zero - distance } else { zero + distance }] += 1;
        }
        prop_assert_eq!(run(Function::Llquantize(p), &values), expected);
    }

    #[test]
    fn lquantize_counts_in_equal_steps(
        base in any::<i32>(), step in 1..u16::MAX, levels in 1..200u16, values in values(),
    ) {
        let p = Lquantize { base, step, levels };
        let mut expected = vec![0; usize::from(levels) + 3];
        expected[0] = p.pack();
        for value in &values {
            let above = i128::from(*value) - i128::from(base);
            let bucket = above.div_euclid(step.into()).clamp(-1, levels.into());
            expected[(bucket + 2) as usize] += 1;
        }
        prop_assert_eq!(run(Function::Lquantize(p), &values), expected);
    }

    #[test]
    fn quantize_counts_in_powers_of_two(values in values()) {
        let mut expected = vec![0; 127];
        for value in &values {
            let size = u128::from(value.unsigned_abs());
            // Bucket 64 starts at 1, and each further one at twice the bound of the one before. The
            // last has no upper bound.
            let distance = (0..63).filter(|n| 1u128 << n <= size).count();
            expected[if *value < 0 { 63 - distance } else { 63 + distance }] += 1;
        }
        prop_assert_eq!(run(Function::Quantize, &values), expected);
    }

    #[test]
    fn squares_are_summed_in_128_bits(values in values()) {
        let squares = values.iter().fold(0u128, |sum, value| {
            let size = u128::from(value.unsigned_abs());
            sum.wrapping_add(size * size)
        });
        let total = values.iter().fold(0i64, |sum, value| sum.wrapping_add(*value)) as u64;
        let n = values.len() as u64;
        prop_assert_eq!(
            run(Function::Stddev, &values),
            [n, total, squares as u64, (squares >> 64) as u64]
        );
        prop_assert_eq!(run(Function::Avg, &values), [n, total]);
        prop_assert_eq!(run(Function::Sum, &values), [total]);
        prop_assert_eq!(run(Function::Count, &values), [n]);
        prop_assert_eq!(run(Function::Min, &values), [*values.iter().min().unwrap() as u64]);
        prop_assert_eq!(run(Function::Max, &values), [*values.iter().max().unwrap() as u64]);
    }
}
