// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A member's clause is limited by time as well as by work, whichever way it spends the time; and a
//! pause never ends a clause.

mod common;

use common::asm::{asm, asm_with, int, var};
use common::machine::TestMachine;
use common::{action, bare, clause, config, cpu, Bench, Steps};
use dtrace_engine::budget::{Budget, Spent, FIRING_OF_USERS, LIGHT, PORTION, UNITS};
use dtrace_engine::dof::{ActionSpec, Difo};
use dtrace_engine::mem::Vec as EVec;
use dtrace_engine::{Clause, Consumer};
use dtrace_uapi::action::Action;
use dtrace_uapi::dif::Instr;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::option::{Opt, BUFPOLICY_RING};
use std::cell::Cell;

const USER: u64 = 0x40_0000;
const KERNEL: u64 = 0xffff_8880_0000_0000;

/// Nominal time of a load of user memory in ns: that of its 32 units.
const MEANT: u64 = 64;
/// Factor by which a load takes longer if caches do not help.
const SLOW: u64 = 50;

/// Returns `text` with the instructions after the first `from`, except the last, repeated `n`
/// times.
fn repeated(text: &str, from: usize, n: usize) -> Difo {
    let mut difo = asm(text);
    let words: Vec<Instr> = difo.text.to_vec();
    let (first, rest) = words.split_at(from);
    let (last, body) = rest.split_last().unwrap();
    let all = [first, &body.repeat(n), &[*last]].concat();
    difo.text = EVec::copy_of(&all).unwrap();
    difo
}

fn evaluates(difo: Difo) -> ActionSpec {
    action(Action::Difexpr, difo)
}

/// Makes `n` actions that evaluate the same program.
fn times(n: usize, difo: &Difo) -> Vec<ActionSpec> {
    let again = || Difo {
        text: EVec::copy_of(&difo.text).unwrap(),
        ints: EVec::copy_of(&difo.ints).unwrap(),
        strings: EVec::copy_of(&difo.strings).unwrap(),
        vars: EVec::copy_of(&difo.vars).unwrap(),
        rtype: difo.rtype,
    };
    std::iter::repeat_with(|| evaluates(again()))
        .take(n)
        .collect()
}

/// A program with 60,000 loads.
fn long_program() -> Vec<ActionSpec> {
    let text = "ldgs arg0, %r1\n uldub [%r1], %r2\n ret %r2";
    vec![evaluates(repeated(text, 1, 60_000))]
}

/// A loop that loads 20,000 times.
fn short_loop() -> Vec<ActionSpec> {
    let text = "ldgs arg0, %r1\n setx 20000, %r3\n setx 1, %r4\n\
                top: uldub [%r1], %r2\n sub %r3, %r4, %r3\n tst %r3\n be 8\n loop top\n ret %r2";
    vec![evaluates(asm(text))]
}

/// A loop of 4,000 loads, executed 20 times.
fn long_loop() -> Vec<ActionSpec> {
    let text = "ldgs arg0, %r1\n setx 20, %r3\n setx 1, %r4\n uldub [%r1], %r2\n ret %r2";
    let mut difo = repeated(text, 3, 4000);
    let end = "nop\n nop\n nop\n sub %r3, %r4, %r3\n tst %r3\n be 4007\n loop 3\n ret %r2";
    let mut words = difo.text.to_vec();
    words.pop();
    words.extend(asm_tail(end));
    difo.text = EVec::copy_of(&words).unwrap();
    vec![evaluates(difo)]
}

/// Returns the instructions of `text` after its first three.
fn asm_tail(text: &str) -> Vec<Instr> {
    asm(text).text[3..].to_vec()
}

/// 4,000 programs with 12 loads each.
fn many_programs() -> Vec<ActionSpec> {
    let text = format!(
        "ldgs arg0, %r1\n {} ret %r2",
        "uldub [%r1], %r2\n".repeat(12)
    );
    times(4000, &asm(&text))
}

/// 14,000 assignments to a thread-local.
fn many_assignments() -> Vec<ActionSpec> {
    let text = "ldgs timestamp, %r1\n stts %r1, 0x501\n ret %r0";
    let vars = [var(0x501, 1, int(8))];
    times(14_000, &asm_with(text, int(0), &vars))
}

/// A key of 8,000 thread-locals.
fn long_key() -> Vec<ActionSpec> {
    let vars = [var(0x501, 1, int(8))];
    let value = asm_with("ldts 0x501, %r1\n ret %r1", int(8), &vars);
    let mut all = times(8000, &value);
    all.push(bare(Action::Count, 8000, 0));
    all
}

/// A program with 12,000 calls that read a string.
fn many_calls() -> Vec<ActionSpec> {
    let text =
        format!("setx {KERNEL}, %r1\n flushts\n pushtv ctf, %r0, %r1\n call strlen, %r2\n ret %r2");
    vec![evaluates(repeated(&text, 1, 12_000))]
}

/// Two copies of 1 MiB.
fn large_copies() -> Vec<ActionSpec> {
    let text = "ldgs arg0, %r1\n setx 0x100000, %r2\n flushts\n pushtv ctf, %r0, %r1\n\
                pushtv ctf, %r0, %r2\n call copyin, %r3\n ret %r3";
    times(2, &asm(text))
}

/// A way to take long: its units, and its actions.
type Way = (u64, fn() -> Vec<ActionSpec>);

const WAYS: [Way; 8] = [
    (1_920_021, long_program),
    (3_199_899, short_loop),
    (2_562_459, long_loop),
    (1_612_002, many_programs),
    (4_046_000, many_assignments),
    (2_121_259, long_key),
    (3_468_006, many_calls),
    (2_097_264, large_copies),
];

fn bench(clause: Clause) -> Bench {
    let consumer = Consumer::new(config()).unwrap();
    let sizes = [
        (Opt::Bufpolicy, BUFPOLICY_RING),
        (Opt::Bufsize, 1 << 20),
        (Opt::Aggsize, 1 << 20),
        (Opt::Scratchsize, 4 << 20),
    ];
    for (option, value) in sizes {
        consumer.set_option(option, value).unwrap();
    }
    let mut b = Bench::with(consumer, vec![clause]);
    b.m.args[0] = USER;
    b.m.user.get_mut().insert(USER, vec![7; 1 << 20]);
    b.m.kernel.insert(KERNEL, vec![b'k'; 256]);
    b
}

/// Makes a bench for this way as a member's clause, on a machine whose loads take `slow` times the
/// nominal time.
fn of_user(way: &Way, slow: u64) -> Bench {
    let mut b = bench(clause(None, way.1()));
    b.m.time.load = slow * MEANT;
    b.m.time.looked = Some(Cell::new(0));
    b
}

fn fire(b: &Bench) -> Option<Fault> {
    b.consumer
        .fire(&cpu(0), b.ecbs[0], &b.m)
        .map(|report| report.fault)
}

#[test]
fn what_takes_long_is_ended_when_it_has() {
    // Time counts as at most eight times the work. A portion is started before it is known that
    // nothing is left.
    let most = (FIRING_OF_USERS / 8 + 2 * PORTION) * 2 * SLOW;
    for (n, way) in WAYS.iter().enumerate() {
        let b = of_user(way, SLOW);
        assert_eq!(fire(&b), Some(Fault::Overrun), "{n}");
        assert!(b.m.time.now.get() < most, "{n}: {}", b.m.time.now.get());
        let toil = b.m.toil.get();
        assert!(
            toil > FIRING_OF_USERS && toil <= FIRING_OF_USERS + 9 * PORTION,
            "{n}: {toil}"
        );
        // A rehearsal cannot be used to evade the limit.
        let b = of_user(way, SLOW);
        b.consumer.rehearse(&cpu(0), b.ecbs[0], &b.m);
        assert!(b.m.time.now.get() < most, "{n}: {}", b.m.time.now.get());
    }
}

#[test]
fn a_pause_ends_nobody() {
    for (n, way) in WAYS.iter().enumerate() {
        let loads = {
            let b = of_user(way, 1);
            assert_eq!(fire(&b), None, "{n}");
            b.m.time.loads.get()
        };
        // A pause in each portion.
        let step = (loads * PORTION / way.0).max(1);
        let mut b = of_user(way, 1);
        for load in (1..=loads).step_by(step as usize) {
            b.m.now.set(load);
            b.m.time.pause = Some(load);
            b.m.time.loads.set(0);
            b.m.toil.set(0);
            assert_eq!(fire(&b), None, "{n}, stopped in load {load}");
            assert_eq!(b.m.time.loads.get(), loads);
            assert!(
                b.m.toil.get() <= way.0 + 8 * PORTION,
                "{n}: {}",
                b.m.toil.get()
            );
        }
    }
}

#[test]
fn what_is_fast_takes_what_it_took() {
    for (n, way) in WAYS.iter().enumerate() {
        for limited in [false, true] {
            let mut b = bench(clause(None, way.1()));
            b.m.time.looked = limited.then(Cell::default);
            assert_eq!(fire(&b), None, "{n}");
            assert_eq!(b.m.toil.get(), way.0, "{n}");
            assert_eq!(b.consumer.work(&cpu(0), &b.m), way.0, "{n}");
        }
    }
}

/// Even if others have used up the common limit, a clause runs for a portion.
#[test]
fn less_than_a_portion_is_not_asked_about() {
    let loads = |n: u64| {
        let text = "ldgs arg0, %r1\n uldub [%r1], %r2\n ret %r2";
        let mut b = bench(clause(None, vec![evaluates(repeated(text, 1, n as usize))]));
        b.m.time.looked = Some(Cell::new(0));
        b.m.toil.set(2 * FIRING_OF_USERS);
        let fault = fire(&b);
        (fault, b.m.time.loads.get(), b.m.time.asked.get())
    };
    let portion = PORTION / 32;
    assert_eq!(loads(portion - 2), (None, portion - 2, 0));
    // In a long program the machine is asked after a certain number of instructions.
    let (fault, some, asked) = loads(4 * portion);
    assert_eq!((fault, asked), (Some(Fault::Overrun), 1));
    assert!(some >= portion - 1 && some < portion + 256, "{some}");
    // For short clauses the machine is never asked, however many there are.
    let b = bench(clause(None, times(100, &asm("ldgs pid, %r1\n ret %r1"))));
    for _ in 0..10_000 {
        assert_eq!(fire(&b), None);
    }
    assert_eq!(b.m.time.asked.get(), 0);
}

#[test]
fn a_budget_is_asked_about_by_portions() {
    let m = TestMachine::default();
    let asked = || (m.toil.replace(0), m.time.asked.replace(0));
    let mut b = Budget::full();
    b.spend(LIGHT as usize).unwrap();
    assert_eq!((b.toil(&m), asked()), (None, (0, 0)));
    b.spend(1).unwrap();
    assert_eq!((b.toil(&m), asked()), (Some(LIGHT + 1), (LIGHT + 1, 0)));
    // Units that were taken without the machine are reported at the next occasion.
    b.spend(3 * PORTION as usize).unwrap();
    assert_eq!(asked(), (0, 0));
    b.pay(&m, 5).unwrap();
    assert_eq!(asked(), (3 * PORTION + 5, 1));
    b.pay(&m, PORTION as usize - 1).unwrap();
    assert_eq!(asked(), (0, 0));
    b.pay(&m, 1).unwrap();
    assert_eq!(asked(), (PORTION, 1));
    assert_eq!(b.toil(&m), Some(LIGHT + 1 + 4 * PORTION + 5));
    assert_eq!(asked(), (0, 0));
}

#[test]
fn what_is_paid_ahead_counts_as_it_is_done() {
    let m = TestMachine::default();
    let asked = || (m.toil.replace(0), m.time.asked.replace(0));
    let mut b = Budget::full();
    let outer = b.begin(10 * PORTION as usize).unwrap();
    b.did(&m, || PORTION as usize - 1).unwrap();
    assert_eq!(asked(), (0, 0));
    // Nested work that is paid ahead, half of which is done.
    let inner = b.begin(4 * PORTION as usize).unwrap();
    b.did(&m, || 2 * PORTION as usize).unwrap();
    assert_eq!(asked(), (3 * PORTION - 1, 1));
    b.finish(inner);
    b.pay(&m, 0).unwrap();
    assert_eq!(asked(), (2 * PORTION, 1));
    // And a separate budget.
    let whole = b.lend(PORTION);
    assert_eq!(b.pay(&m, PORTION as usize - 7), Ok(()));
    assert_eq!((b.pay(&m, 8), b.pay(&m, 1)), (Err(Spent), Err(Spent)));
    b.take_back(whole, PORTION);
    assert_eq!(asked(), (0, 0));
    b.pay(&m, 0).unwrap();
    assert_eq!(asked(), (PORTION, 1));
    b.finish(outer);
    assert_eq!(b.toil(&m), Some(15 * PORTION - 1 + 1));
    assert_eq!(asked(), (9 * PORTION + 1, 0));
    assert_eq!(b.spend((UNITS - 15 * PORTION) as usize + 1), Err(Spent));
}
