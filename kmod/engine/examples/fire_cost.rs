// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Fires one clause many times, for counting instructions: `fire_cost SCENARIO COUNT`. Run it with
//! two counts: the difference of their instruction totals, divided by the difference of the counts,
//! is the cost of one firing without the start-up of the program. `valgrind --tool=none -v` or
//! `perf stat -e instructions:u` show the totals.

#[path = "../tests/common/mod.rs"]
mod common;

use common::asm::{asm, asm_with, int, string, var};
use common::{action, bare, clause, cpu, Bench};
use dtrace_engine::{Clause, Cpu, Ecb};
use dtrace_uapi::action::Action;

const NAMES: &str = "empty count execname predicate printf tls";

fn scenario(name: &str) -> Option<Vec<Clause>> {
    let execname = || {
        action(
            Action::Difexpr,
            asm_with("ldgs execname, %r1\n ret %r1", string(), &[]),
        )
    };
    let ts = [var(0x500, 1, int(8))];
    Some(match name {
        "empty" => vec![clause(None, vec![])],
        "count" => vec![clause(None, vec![bare(Action::Count, 0, 0)])],
        "execname" => vec![clause(None, vec![execname(), bare(Action::Count, 1, 0)])],
        "predicate" => {
            let false_one = "ldgs pid, %r1\n setx 1, %r2\n cmp %r1, %r2\n be 6\n\
                             mov %r0, %r1\n ba 7\n setx 1, %r1\n ret %r1";
            vec![clause(
                Some(asm(false_one)),
                vec![bare(Action::Count, 0, 0)],
            )]
        }
        "printf" => {
            let arg = |n| {
                action(
                    Action::Printf,
                    asm_with(&format!("ldgs arg{n}, %r1\n ret %r1"), int(4), &[]),
                )
            };
            vec![clause(None, vec![arg(0), arg(1), arg(2), execname()])]
        }
        "tls" => {
            let set = "ldgs timestamp, %r1\n stts %r1, 0x500\n ret %r0";
            let diff = "ldgs timestamp, %r1\n ldts 0x500, %r2\n sub %r1, %r2, %r1\n ret %r1";
            let mut quantize = bare(Action::Quantize, 0, 0);
            quantize.difo = action(Action::None, asm_with(diff, int(0), &ts)).difo;
            let clear = "stts %r0, 0x500\n ret %r0";
            let test = "ldts 0x500, %r1\n ret %r1";
            vec![
                clause(
                    None,
                    vec![action(Action::Difexpr, asm_with(set, int(0), &ts))],
                ),
                clause(
                    Some(asm_with(test, int(8), &ts)),
                    vec![
                        quantize,
                        action(Action::Difexpr, asm_with(clear, int(0), &ts)),
                    ],
                ),
            ]
        }
        _ => return None,
    })
}

/// Fires all clauses once. Not inlined, so that its machine code can be inspected.
#[inline(never)]
fn fire(bench: &Bench, cpu: &Cpu) -> bool {
    let one = |ecb: &Ecb| bench.consumer.fire(cpu, *ecb, &bench.m).is_none();
    bench.ecbs.iter().all(one)
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (Some(clauses), Some(count)) = (
        args.get(1).and_then(|name| scenario(name)),
        args.get(2).and_then(|count| count.parse::<u64>().ok()),
    ) else {
        eprintln!("usage: fire_cost SCENARIO COUNT\nscenarios: {NAMES}");
        std::process::exit(2);
    };
    let bench = Bench::new(clauses);
    let cpu = cpu(0);
    for n in 0..count {
        assert!(fire(&bench, &cpu));
        if n % 1000 == 999 {
            bench.consumer.clean(|| {});
        }
    }
}
