// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! An argument that lies in unreadable memory: a clause that reads it faults, whichever path it
//! takes through the engine, and has no effect.

mod common;

use common::asm::{asm_with, int};
use common::{action, bare, clause, Bench};
use dtrace_engine::dof::{ActionSpec, Difo};
use dtrace_engine::{Clause, Which};
use dtrace_uapi::action::Action;
use dtrace_uapi::fault::Fault;

/// The address of the argument.
const AT: u64 = 0x10;

fn arg(n: u32, round: bool) -> Difo {
    // An instruction without effect prevents the fast paths, so the object is interpreted.
    let first = if round { "mov %r0, %r7\n " } else { "" };
    asm_with(&format!("{first}ldgs arg{n}, %r1\n ret %r1"), int(8), &[])
}

/// Makes a clause of each kind that reads argument `n`; the numbers are those of the actions that
/// fault.
fn clauses(n: u32, round: bool) -> Vec<(u32, Clause)> {
    let record = || action(Action::Difexpr, arg(n, round));
    let sum = ActionSpec {
        difo: action(Action::None, arg(n, round)).difo,
        ..bare(Action::Sum, 0, 0)
    };
    let other = action(Action::Difexpr, arg(n + 1, round));
    vec![
        (0, clause(Some(arg(n, round)), vec![record()])),
        (2, clause(None, vec![other, record()])),
        (1, clause(None, vec![record(), bare(Action::Count, 1, 0)])),
        (1, clause(None, vec![sum])),
    ]
}

#[test]
fn what_is_not_there_is_a_fault() {
    for round in [false, true] {
        let (actions, all): (Vec<_>, Vec<_>) = clauses(1, round).into_iter().unzip();
        let mut b = Bench::new(all);
        b.m.missing = Some((1, AT));
        for (action, fault) in actions.iter().zip(b.fire()) {
            let fault = fault.unwrap();
            let got = (fault.action, fault.fault, fault.value);
            assert_eq!(got, (*action, Fault::BadAddr, AT));
        }
        for which in [Which::Principal, Which::Aggregation] {
            assert_eq!(b.read(which).0, []);
        }
        b.m.missing = Some((3, AT));
        assert!(b.fire().iter().all(Option::is_none));
        assert!(!b.read(Which::Aggregation).0.is_empty());
    }
}
