// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! If a program has computed a location in memory, the machine is asked to wait for the access
//! before anything depends on it (INV-38).

mod common;

use common::asm::{asm, asm_with, int, string, var};
use common::{action, bare, clause, config, cpu, Bench, Steps};
use dtrace_engine::dof::ActionSpec;
use dtrace_engine::Consumer;
use dtrace_uapi::action::Action;
use dtrace_uapi::option::Opt;

/// Returns how often the machine was asked to wait in a firing.
fn settled(actions: Vec<ActionSpec>) -> u32 {
    let consumer = Consumer::new(config()).unwrap();
    let b = Bench::with(consumer, vec![clause(None, actions)]);
    b.m.settled.set(0);
    b.fire();
    b.m.settled.get()
}

fn value(text: &str) -> Vec<ActionSpec> {
    vec![action(Action::Difexpr, asm(text))]
}

#[test]
fn accesses_at_computed_places_are_waited_for() {
    let scratch = "setx 8, %r1\n allocs %r1, %r2\n ldgs pid, %r3\n add %r2, %r3, %r2\n";
    for size in ["ldub", "ldsh", "lduw", "ldx"] {
        // Beyond the allocated memory, or within it.
        let at = |and: &str| value(&format!("{scratch} {and}\n {size} [%r2], %r4\n ret %r4"));
        assert!(settled(at("")) > 0, "{size}");
        assert!(settled(at("sub %r2, %r3, %r2")) > 0, "{size}");
    }
    let stored = value(&format!(
        "{scratch} sub %r2, %r3, %r2\n stb %r1, [%r2]\n ret %r0"
    ));
    assert!(settled(stored) > 0);
    let array = value("ldgs pid, %r1\n ldga args, %r1, %r2\n ret %r2");
    assert!(settled(array) > 0);
    let compared = "sets \"one\", %r1\n sets \"another\", %r2\n scmp %r1, %r2\n ret %r0";
    assert!(settled(value(compared)) > 0);
}

#[test]
fn keys_by_reference_are_waited_for() {
    let key = asm_with("sets \"key\", %r1\n ret %r1", string(), &[]);
    assert!(
        settled(vec![
            action(Action::Difexpr, key),
            bare(Action::Count, 1, 0)
        ]) > 0
    );
}

/// What is copied in is stored at an offset and with a size that the program has chosen.
#[test]
fn copies_from_the_user_are_waited_for() {
    let copied = |subr: &str, args: &str| {
        let text = format!(
            "setx 8, %r1\n allocs %r1, %r2\n ldgs arg0, %r3\n flushts\n pushtv ctf, %r0, %r3\n {args} call {subr}, %r4\n ret %r4"
        );
        settled(value(&text))
    };
    let size = "pushtv ctf, %r0, %r1\n";
    let place = "pushtv ctf, %r0, %r2\n";
    // One wait for the choice of the subroutine, one for the check of the rights, and one for the store.
    assert_eq!(copied("copyin", size), 3);
    assert_eq!(copied("copyinto", &format!("{size} {place}")), 3);
}

/// The result of a subroutine may depend on bytes at a computed location.
#[test]
fn answers_of_subroutines_are_waited_for() {
    let text = "flushts\n sets \"one\", %r1\n pushtv ctf, %r0, %r1\n pushtv ctf, %r0, %r1\n call index, %r2\n ret %r2";
    assert!(settled(value(text)) > 2);
    let numbers = "flushts\n ldgs pid, %r1\n pushtv ctf, %r0, %r1\n call htons, %r2\n ret %r2";
    assert!(settled(value(numbers)) > 0);
}

#[test]
fn numbers_of_speculations_are_waited_for() {
    let id = || asm("ldgs arg0, %r1\n ret %r1");
    for kind in [Action::Speculate, Action::Commit, Action::Discard] {
        let consumer = Consumer::new(config()).unwrap();
        consumer.set_option(Opt::Nspec, 2).unwrap();
        consumer.set_option(Opt::Specsize, 4096).unwrap();
        let mut b = Bench::with(consumer, vec![clause(None, vec![action(kind, id())])]);
        // For ids of speculations that do not exist nothing is looked up.
        for (number, waits) in [(0, 0), (1, 1), (2, 1), (3, 0), (u64::MAX, 0)] {
            b.m.args[0] = number;
            b.m.settled.set(0);
            let _ = b.consumer.fire(&cpu(0), b.ecbs[0], &b.m);
            assert_eq!(b.m.settled.get(), waits, "{kind:?} of {number}");
        }
    }
}

/// Accesses to locations that the program cannot choose need no wait.
#[test]
fn nothing_else_is() {
    assert_eq!(settled(value("ldgs timestamp, %r1\n ret %r1")), 0);
    let text = "ldgs pid, %r1\n stts %r1, 0x501\n ldts 0x501, %r2\n ret %r2";
    let local = asm_with(text, int(8), &[var(0x501, 1, int(8))]);
    assert_eq!(settled(vec![action(Action::Difexpr, local)]), 0);
}
