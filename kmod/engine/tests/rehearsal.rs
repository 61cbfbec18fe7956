// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Rehearsals report the user memory that a clause will miss, and have no other effect (INV-47).

mod common;

use common::asm::{asm, asm_with, int, string, var};
use common::{action, bare, clause, config, cpu, str_at, u64_at, Bench, Steps};
use dtrace_engine::dof::ActionSpec;
use dtrace_engine::{Clause, Consumer, Missing, Which};
use dtrace_uapi::action::Action;
use dtrace_uapi::option::Opt;

/// Address of the memory of the test's program.
const AT: u64 = 0x2000;
const GLOBAL: u32 = 0x500;
const LOCAL: u32 = 0x501;
const THREAD: u32 = 0x502;

/// The scopes of variables, as DIF numbers them.
const OF_ALL: u8 = 0;
const OF_THREAD: u8 = 1;
const OF_CLAUSE: u8 = 2;

fn copyinstr(from: &str) -> ActionSpec {
    let text = format!("{from}\n flushts\n pushtv ctf, %r0, %r1\n call copyinstr, %r2\n ret %r2");
    let vars = [
        var(LOCAL, OF_CLAUSE, int(8)),
        var(THREAD, OF_THREAD, int(8)),
    ];
    action(Action::Difexpr, asm_with(&text, string(), &vars))
}

/// Makes an action that adds 1 to the global and records nothing.
fn add() -> ActionSpec {
    let text = format!(
        "ldgs {GLOBAL:#x}, %r1\n setx 1, %r2\n add %r1, %r2, %r1\n stgs %r1, {GLOBAL:#x}\n ret %r1"
    );
    let vars = [var(GLOBAL, OF_ALL, int(8))];
    action(Action::Difexpr, asm_with(&text, int(0), &vars))
}

fn set(kind: &str, id: u32, scope: u8) -> ActionSpec {
    let text = format!("setx {AT}, %r1\n {kind} %r1, {id:#x}\n ret %r1");
    let vars = [var(id, scope, int(8))];
    action(Action::Difexpr, asm_with(&text, int(0), &vars))
}

fn get() -> Clause {
    let vars = [var(GLOBAL, OF_ALL, int(8))];
    let text = format!("ldgs {GLOBAL:#x}, %r1\n ret %r1");
    let read = action(Action::Difexpr, asm_with(&text, int(8), &vars));
    clause(None, vec![read])
}

fn bench(clauses: Vec<Clause>) -> Bench {
    let consumer = Consumer::new(config()).unwrap();
    consumer.set_option(Opt::Destructive, 1).unwrap();
    Bench::with(consumer, clauses)
}

impl Bench {
    fn rehearse(&self, clause: usize) -> Option<Missing> {
        self.consumer.rehearse(&cpu(0), self.ecbs[clause], &self.m)
    }

    fn bring(&mut self) {
        self.m.user.get_mut().insert(AT, b"text\0".to_vec());
    }
}

#[test]
fn what_comes_before_the_load_happens_once() {
    let raise = action(Action::Raise, asm("setx 9, %r1\n ret %r1"));
    let key = action(Action::Difexpr, asm("ldgs pid, %r1\n ret %r1"));
    let id = asm_with("setx 1, %r1\n ret %r1", int(4), &[]);
    let count = [action(Action::Difexpr, id), key, bare(Action::Count, 2, 0)];
    let mut actions = vec![add(), raise];
    actions.extend(count);
    actions.push(copyinstr(&format!("setx {AT}, %r1")));
    let mut b = bench(vec![clause(None, actions), get()]);
    let missing = Missing {
        addr: AT,
        size: 255,
    };
    for _ in 0..3 {
        assert_eq!(b.rehearse(0), Some(missing));
    }
    assert!(b.m.log.borrow().is_empty());
    assert_eq!(b.read(Which::Aggregation).0.len(), 0);
    assert_eq!(b.read(Which::Principal), (vec![], 0));
    b.bring();
    assert_eq!(b.rehearse(0), None);
    assert_eq!(b.fire(), [None; 2]);
    assert_eq!(*b.m.log.borrow(), ["raise 9"]);
    let (data, _) = b.read(Which::Principal);
    assert_eq!(str_at(&data, 16), "text");
    assert_eq!(u64_at(&data, data.len() - 8), 1);
}

#[test]
fn an_address_may_come_by_way_of_a_clause_local() {
    let through = |load: &str, id: u32| copyinstr(&format!("{load} {id:#x}, %r1"));
    let mut b = bench(vec![
        clause(None, vec![set("stls", LOCAL, OF_CLAUSE)]),
        clause(None, vec![through("ldls", LOCAL)]),
        clause(
            None,
            vec![set("stts", THREAD, OF_THREAD), through("ldts", THREAD)],
        ),
    ]);
    assert_eq!(b.rehearse(0), None);
    assert_eq!(b.rehearse(1).map(|missing| missing.addr), Some(AT));
    // A rehearsal does not assign variables that outlive the firing.
    assert_eq!(b.rehearse(2).map(|missing| missing.addr), Some(0));
    b.bring();
    assert_eq!(b.fire(), [None; 3]);
    assert_eq!(b.rehearse(2), None);
}

#[test]
fn a_clause_that_does_not_run_misses_nothing() {
    let never = asm("ret %r0");
    let reads = || copyinstr(&format!("setx {AT}, %r1"));
    let mut b = bench(vec![
        clause(Some(never), vec![reads()]),
        clause(None, vec![reads()]),
        get(),
    ]);
    assert_eq!(b.rehearse(0), None);
    assert!(b.rehearse(1).is_some());
    let reads: Vec<_> = (b.ecbs.iter())
        .map(|ecb| b.consumer.reads_user(ecb.clause, false))
        .collect();
    assert_eq!(reads, [true, true, false]);
    b.consumer.stop();
    assert_eq!(b.rehearse(1), None);
    b.bring();
}

/// If the arguments of a probe are in user memory, the provider brings them for clauses that read
/// one.
#[test]
fn an_argument_may_lie_in_user_memory() {
    let record = |text: &str| vec![action(Action::Difexpr, asm_with(text, int(8), &[]))];
    let test = asm("ldgs arg0, %r1\n ret %r1");
    let sum = action(
        Action::Sum,
        asm_with("ldgs arg2, %r1\n ret %r1", int(8), &[]),
    );
    let b = bench(vec![
        clause(Some(test), record("ldgs pid, %r1\n ret %r1")),
        clause(None, record("ldgs arg9, %r1\n ret %r1")),
        clause(None, record("setx 3, %r1\n ldga args, %r1, %r2\n ret %r2")),
        clause(
            None,
            record("ldgs arg1, %r1\n ldgs arg2, %r2\n sub %r1, %r2, %r1\n ret %r1"),
        ),
        clause(None, vec![sum]),
        clause(None, record("ldgs pid, %r1\n ret %r1")),
    ]);
    let reads = |args_in_memory: bool| -> Vec<_> {
        let ecbs = b.ecbs.iter();
        ecbs.map(|ecb| b.consumer.reads_user(ecb.clause, args_in_memory))
            .collect()
    };
    assert_eq!(reads(true), [true, true, true, true, true, false]);
    assert_eq!(reads(false), [false; 6]);
}
