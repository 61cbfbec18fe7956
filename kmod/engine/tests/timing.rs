// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Clauses that cannot fault, compared with equivalent clauses that are interpreted step by step.
//! Values, aggregations and drops must be the same, whatever threads do on whatever CPUs.

mod common;

use common::asm::{asm_with, int, var};
use common::{action, bare, clause, config, cpu, Bench, Steps};
use dtrace_engine::dof::{ActionSpec, Difo};
use dtrace_engine::{Clause, Consumer, Which};
use dtrace_uapi::action::Action;
use dtrace_uapi::option::Opt;
use proptest::prelude::*;

/// Thread-locals, of which the first and the last share an entry of
/// [`Recent`](dtrace_engine::var::dynamic::Recent).
const LOCALS: [u32; 3] = [0x500, 0x501, 0x508];

/// Room for four of them, because a number counts as an `int`.
const SMALL: u64 = 4 * 4;

/// Makes an object that takes a fast path, or is interpreted if `round`.
fn difo(text: &str, round: bool, size: u32) -> Difo {
    let vars = LOCALS.map(|id| var(id, 1, int(8)));
    // An instruction without effect before the object's own.
    let text = match round {
        true => format!("mov %r0, %r7\n {text}"),
        false => text.to_owned(),
    };
    asm_with(&text, int(size), &vars)
}

/// Everything that can be done to a thread-local, one clause each.
fn clauses(id: u32, round: bool) -> Vec<Clause> {
    let load = format!("ldts {id:#x}, %r1\n ret %r1");
    let effect = |text: &str| action(Action::Difexpr, difo(text, round, 0));
    let set = |from: &str| effect(&format!("ldgs {from}, %r1\n stts %r1, {id:#x}\n ret %r0"));
    let clear = || effect(&format!("stts %r0, {id:#x}\n ret %r0"));
    let aggregate = |kind, text: &str| ActionSpec {
        difo: action(Action::None, difo(text, round, 8)).difo,
        ..bare(kind, 0, 0)
    };
    let since = format!("ldgs arg1, %r1\n ldts {id:#x}, %r2\n sub %r1, %r2, %r1\n ret %r1");
    let when = || Some(difo(&load, round, 8));
    vec![
        clause(None, vec![set("arg0")]),
        clause(None, vec![set("timestamp")]),
        clause(None, vec![clear()]),
        clause(when(), vec![aggregate(Action::Quantize, &since), clear()]),
        clause(when(), vec![aggregate(Action::Avg, &since), set("arg0")]),
        clause(
            None,
            vec![
                aggregate(Action::Max, &load),
                clear(),
                aggregate(Action::Stddev, &load),
                set("arg1"),
                aggregate(Action::Sum, "ldgs arg1, %r1\n ret %r1"),
                bare(Action::Count, 0, 0),
            ],
        ),
    ]
}

/// Makes a consumer with these clauses, and at the end one that records the values.
fn tracing(round: bool, size: u64) -> Bench {
    let consumer = Consumer::new(config()).unwrap();
    consumer.set_option(Opt::Dynvarsize, size).unwrap();
    let values = LOCALS.map(|id| {
        let text = format!("ldts {id:#x}, %r1\n ret %r1");
        action(Action::Difexpr, difo(&text, true, 8))
    });
    let all = LOCALS.iter().flat_map(|id| clauses(*id, round));
    let last = clause(None, values.into());
    Bench::with(consumer, all.chain([last]).collect())
}

/// A firing: index of the clause, CPU, thread, and argument.
type Firing = (usize, usize, u64, u64);

/// Returns the data after the firings, and the drops by kind and the errors.
fn run(mut b: Bench, firings: &[Firing]) -> (Vec<Vec<u8>>, [u64; 4]) {
    let threads = b.m.thread;
    for (n, (which, at, thread, arg)) in firings.iter().enumerate() {
        b.m.thread = threads + thread * 64;
        b.m.args[0] = *arg;
        b.m.args[1] = n as u64 * 100;
        let ecb = b.ecbs[which % b.ecbs.len()];
        assert_eq!(b.consumer.fire(&cpu(*at), ecb, &b.m), None);
        if arg % 16 == 3 {
            b.consumer.clean(|| {});
        }
    }
    let mut data = Vec::new();
    for at in 0..2 {
        for which in [Which::Principal, Which::Aggregation] {
            b.consumer.switch(&cpu(at), which, 1).unwrap();
            let bytes = b.consumer.snapshot(at, which, |snap| snap.data.to_vec());
            data.push(bytes.unwrap());
        }
    }
    let status = b.consumer.status().unwrap();
    let drops = [
        status.dyndrops,
        status.dyndrops_dirty,
        status.dyndrops_rinsing,
        status.errors,
    ];
    (data, drops)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn brief_clauses_do_what_their_steps_do(
        firings in prop::collection::vec((0..19usize, 0..2usize, 0..3u64, 0..9u64), 1..120),
        ample in any::<bool>(),
    ) {
        // Enough room that a variable may be kept aside, or very little.
        let size = if ample { 1 << 18 } else { SMALL };
        let (timed, steps) = (tracing(false, size), tracing(true, size));
        prop_assert_eq!(run(timed, &firings), run(steps, &firings));
    }
}

#[test]
fn variables_without_room_are_counted() {
    // Each of five threads assigns a variable, and there is room for four.
    let firings: Vec<Firing> = (0..5).map(|thread| (0, 0, thread, 1)).collect();
    for round in [false, true] {
        let (_, [full, ..]) = run(tracing(round, SMALL), &firings);
        assert_eq!(full, 1);
    }
}
