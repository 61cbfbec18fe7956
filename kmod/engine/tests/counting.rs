// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Counts by one number or by a stack, compared with the same counts by clauses that are
//! interpreted step by step. Entries, counts and drops must be the same, however keys change and
//! buffers are switched.

mod common;

use common::asm::{asm_with, int};
use common::{action, bare, clause, config, cpu, Bench, Steps};
use dtrace_engine::{Clause, Consumer, Which};
use dtrace_uapi::action::{ustack_arg, Action};
use dtrace_uapi::option::Opt;
use proptest::prelude::*;

/// Room for a few entries.
const SMALL: u64 = 256;

/// Returns the text of a program that returns a variable. With `round`, no fast path applies to it.
fn value(variable: &str, round: bool) -> String {
    let or = match round {
        true => format!("ldgs {variable}, %r2\n or %r1, %r2, %r1\n"),
        false => String::new(),
    };
    format!("ldgs {variable}, %r1\n {or} ret %r1")
}

/// Makes a clause that counts by a variable; the key has `size` bytes.
fn counts(variable: &str, size: u32, round: bool) -> Clause {
    let key = asm_with(&value(variable, round), int(size), &[]);
    let actions = vec![action(Action::Difexpr, key), bare(Action::Count, 1, 0)];
    clause(None, actions)
}

fn tracing(round: bool, size: u64) -> Bench {
    let consumer = Consumer::new(config()).unwrap();
    consumer.set_option(Opt::Aggsize, size).unwrap();
    let all = [("arg0", 8), ("arg0", 4), ("pid", 4), ("arg1", 8)];
    let all = all.map(|(variable, size)| counts(variable, size, round));
    Bench::with(consumer, all.into())
}

/// Makes clauses that count by stacks. With `round` they have a condition that always holds and
/// must be interpreted.
fn tracing_stacks(round: bool, size: u64) -> Bench {
    let consumer = Consumer::new(config()).unwrap();
    consumer.set_option(Opt::Aggsize, size).unwrap();
    let all = [
        (Action::Stack, 4),
        (Action::Ustack, ustack_arg(4, 0)),
        (Action::Ustack, ustack_arg(2, 0)),
        (Action::Ustack, ustack_arg(4, 64)),
    ];
    let all = all.map(|(kind, arg)| {
        let holds = || asm_with(&value("pid", true), int(8), &[]);
        let actions = vec![bare(kind, 0, arg), bare(Action::Count, 1, 0)];
        clause(round.then(holds), actions)
    });
    Bench::with(consumer, all.into())
}

/// A firing: index of the clause, argument, and whether the buffers are switched after it.
type Firing = (usize, u64, bool);

fn run(mut b: Bench, firings: &[Firing]) -> Vec<(Vec<u8>, u64)> {
    let mut data = Vec::new();
    for (n, (which, arg, is_last)) in firings.iter().enumerate() {
        // Different arguments have equal keys of four bytes.
        b.m.args = [arg % 3 | (arg / 3) << 32; 10];
        b.m.pid = 1 + (*arg % 12) as u32;
        b.m.depth = (*arg % 4) as usize;
        b.m.ustack = (1..=*arg % 6).map(|n| n * (1 + arg % 13)).collect();
        assert_eq!(b.consumer.fire(&cpu(0), b.ecbs[*which], &b.m), None);
        if *is_last || n == firings.len() - 1 {
            let which = Which::Aggregation;
            b.consumer.switch(&cpu(0), which, n as u64).unwrap();
            let seen = b
                .consumer
                .snapshot(0, which, |snap| (snap.data.to_vec(), snap.drops));
            data.push(seen.unwrap());
        }
    }
    data
}

/// Clears the gap between the id of an entry and a key of eight bytes. In interpreted clauses it
/// keeps bytes of the key that was looked up before.
fn clear_gaps(mut data: Vec<u8>) -> Vec<u8> {
    let mut rest = &mut data[..];
    while let [id, _, _, _, gap @ ..] = rest {
        let is_long = matches!(*id, 1 | 4);
        if is_long {
            gap[..4].fill(0);
        }
        rest = &mut gap[if is_long { 20 } else { 12 }..];
    }
    data
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_are_counted_as_their_steps_count_them(
        firings in prop::collection::vec((0..4usize, 0..12u64, prop::bool::weighted(0.05)), 1..200),
        ample in any::<bool>(),
    ) {
        let size = if ample { 1 << 18 } else { SMALL };
        let (counts, steps) = (tracing(false, size), tracing(true, size));
        let whole = |bench| run(bench, &firings).into_iter().map(|(data, drops)| (clear_gaps(data), drops));
        prop_assert!(whole(counts).eq(whole(steps)));
    }

    #[test]
    fn stacks_are_counted_as_their_steps_count_them(
        firings in prop::collection::vec((0..4usize, 0..100u64, prop::bool::weighted(0.02)), 1..400),
        ample in any::<bool>(),
    ) {
        let size = if ample { 1 << 18 } else { SMALL };
        let (counts, steps) = (tracing_stacks(false, size), tracing_stacks(true, size));
        prop_assert_eq!(run(counts, &firings), run(steps, &firings));
    }
}
