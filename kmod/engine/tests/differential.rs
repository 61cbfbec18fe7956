// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Prepared programs compared with the reference interpreter: result, fault, instruction and memory
//! must be the same for every program.

mod common;

use common::asm::{asm_with, int, Object};
use common::differ::{both, program, vars, Seed, STRSIZE};
use dtrace_engine::dif::prepare::{prepare, Context};
use dtrace_engine::dif::program::{Cond, Program, Quick, Test};
use dtrace_engine::var::statics::Table;
use dtrace_uapi::asm::assemble;
use dtrace_uapi::dif::{Instr, Op};
use dtrace_uapi::fault::Fault;
use proptest::prelude::*;

fn seeds(max: usize) -> impl Strategy<Value = Vec<Seed>> {
    let seed = (
        any::<u8>(),
        any::<u8>(),
        any::<u8>(),
        any::<u8>(),
        any::<u16>(),
    )
        .prop_map(|(kind, a, b, c, n)| Seed { kind, a, b, c, n });
    prop::collection::vec(seed, 1..max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn prepared_programs_do_what_the_reference_does(seeds in seeds(40), kernel in any::<bool>()) {
        if let Some((a, b)) = both(&program(&seeds), kernel) {
            prop_assert_eq!(a, b);
        }
    }

    #[test]
    fn random_words_are_refused_or_run(words in prop::collection::vec(any::<u32>(), 1..30)) {
        let mut difo = program(&[]);
        let mut text: Vec<Instr> = words.into_iter().map(Instr).collect();
        text.push(Instr::fmt(Op::Ret, 0, 0, 1));
        difo.text = common::copy(&text);
        if let Some((a, b)) = both(&difo, true) {
            prop_assert_eq!(a, b);
        }
        let object = Object {
            text,
            ints: difo.ints.to_vec(),
            strings: difo.strings.to_vec(),
            vars: difo.vars.to_vec(),
            rtype: difo.rtype,
        };
        let written = object.to_string();
        prop_assert_eq!(assemble(&written), Ok(object), "{}", written);
    }
}

#[test]
fn most_generated_programs_are_accepted_and_many_end_well() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut accepted, mut well) = (0, 0);
    for _ in 0..500 {
        let seeds = seeds(40).new_tree(&mut runner).unwrap().current();
        if let Some((a, _)) = both(&program(&seeds), true) {
            accepted += 1;
            well += u32::from(a.result.is_ok());
        }
    }
    assert!(accepted > 350, "{accepted} accepted");
    assert!(well > 50, "{well} ended well");
}

fn shape(text: &str) -> Program {
    let difo = asm_with(text, int(8), &vars());
    let mut table = Table::default();
    for var in difo.vars.iter() {
        table.declare(var, STRSIZE).unwrap();
    }
    let (a, b) = both(&difo, true).unwrap();
    assert_eq!(a, b);
    prepare(
        &difo,
        &Context {
            table: &table,
            strings: 0,
            kernel: true,
        },
    )
    .unwrap()
}

#[test]
fn loops_end() {
    let run = |text: &str| {
        let (a, b) = both(&asm_with(text, int(8), &vars()), true).unwrap();
        assert_eq!(a, b);
        a.result
    };
    // 100 + 99 + … + 1; then the same within another loop, ten times.
    let sum = "setx 100, %r1\n setx 1, %r3\n again: add %r2, %r1, %r2\n sub %r1, %r3, %r1\n tst %r1\n be out\n\
               loop again\n out: ret %r2";
    assert_eq!(run(sum), Ok(5050));
    let twice = "setx 1, %r3\n setx 10, %r4\n outer: setx 100, %r1\n again: add %r2, %r1, %r2\n sub %r1, %r3, %r1\n\
                 tst %r1\n be out\n loop again\n out: sub %r4, %r3, %r4\n tst %r4\n be end\n loop outer\n end: ret %r2";
    assert_eq!(run(twice), Ok(50_500));
    let endless = "nop\n again: loop again\n ret %r0";
    let stopped = run(endless).unwrap_err();
    assert_eq!((stopped.trap.fault, stopped.pc), (Fault::Overrun, 1));
}

#[test]
fn simple_programs_need_no_steps() {
    assert!(matches!(
        shape("setx 7, %r1\n mov %r1, %r2\n ret %r2"),
        Program::Const(7)
    ));
    assert!(matches!(shape("ret %r0"), Program::Const(0)));
    assert!(matches!(
        shape("ldgs arg0, %r1\n ret %r1"),
        Program::Quick(Quick::Arg(0))
    ));
    let select = "ldgs pid, %r1\n setx 5, %r2\n cmp %r1, %r2\n bne no\n setx 1, %r1\n ba out\n\
                  no: setx 0, %r1\n out: ret %r1";
    assert!(matches!(
        shape(select),
        Program::Select {
            test,
            yes: 0,
            no: 1,
            ..
        } if Some(test) == Test::new(Cond::Ne, 5)
    ));
    let tst = "ldgs pid, %r1\n tst %r1\n be no\n setx 1, %r1\n ret %r1\n no: ret %r0";
    assert!(matches!(
        shape(tst),
        Program::Select {
            test,
            yes: 0,
            no: 1,
            ..
        } if Some(test) == Test::new(Cond::E, 0)
    ));
    let name = shape("ldgs execname, %r1\n ret %r1");
    assert!(matches!(name, Program::Builtin { pc: 0, .. }));
    for (text, is) in [
        ("ldts 0x500, %r1\n ret %r1", "Load"),
        ("stts %r0, 0x500\n ret %r0", "Assign"),
        ("ldgs pid, %r2\n stts %r2, 0x500\n ret %r0", "Assign"),
        (
            "ldgs pid, %r1\n ldts 0x500, %r2\n sub %r1, %r2, %r1\n ret %r1",
            "Since",
        ),
        // A string is not treated as a number, and other instructions do not match these patterns.
        ("ldgs execname, %r2\n stts %r2, 0x501\n ret %r0", "Steps"),
        (
            "ldgs pid, %r1\n ldts 0x500, %r2\n sub %r2, %r1, %r1\n ret %r1",
            "Steps",
        ),
        (
            "ldgs pid, %r1\n ldts 0x500, %r1\n sub %r1, %r1, %r1\n ret %r1",
            "Steps",
        ),
        (
            "ldgs pid, %r1\n ldts 0x500, %r2\n add %r1, %r2, %r1\n ret %r1",
            "Steps",
        ),
        ("ldgs pid, %r2\n stts %r2, 0x500\n ret %r2", "Steps"),
    ] {
        let shape = format!("{:?}", shape(text));
        assert!(shape.starts_with(is), "{text}: {shape}");
    }
    // All other programs keep their steps.
    for text in [
        "ldgs execname, %r1\n tst %r1\n be 4\n ret %r1\n ret %r0",
        "ldgs pid, %r1\n ldgs tid, %r2\n ret %r1",
        "ldgs pid, %r1\n tst %r1\n be 4\n ret %r1\n ret %r0",
        "ldgs 0x500, %r1\n ret %r1",
    ] {
        assert!(matches!(shape(text), Program::Steps { .. }), "{text}");
    }
}

#[test]
fn signed_comparisons_are_right_at_the_ends() {
    for (a, b) in [(i64::MIN, 1), (i64::MAX, -1), (0, 0), (-1, 1), (5, 5)] {
        for (op, want) in [
            ("bl", a < b),
            ("bg", a > b),
            ("ble", a <= b),
            ("bge", a >= b),
        ] {
            let text = format!(
                "setx {a}, %r1\n setx {b}, %r2\n cmp %r1, %r2\n {op} yes\n ret %r0\n yes: setx 1, %r3\n ret %r3"
            );
            let (x, y) = both(&asm_with(&text, int(8), &[]), true).unwrap();
            assert_eq!(x, y);
            assert_eq!(x.result, Ok(u64::from(want)), "{a} {op} {b}");
        }
    }
}
