// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Programs that the verifier refuses, and the location that it reports.

mod common;

use common::asm::{array, asm, asm_with, bytes, int, string, var};
use common::cx;
use dtrace_engine::dif::verify::{verify, Context, Facts};
use dtrace_engine::dof::Difo;
use dtrace_engine::error::Place;
use dtrace_engine::{Features, Reason};
use dtrace_uapi::dif::{Instr, Op};
use dtrace_uapi::types::{DifType, DIF_TF_BYREF, DIF_TF_BYUREF, DIF_TYPE_STRING};

fn refused(difo: &Difo) -> Reason {
    verify(difo, &cx()).unwrap_err()
}

/// Checks that `text` is refused for the reason `want` at instruction `pc`.
fn at(text: &str, want: &str, pc: u32) {
    let r = refused(&asm(text));
    assert_eq!((r.text, r.place), (want, Place::Pc(pc)), "{text}");
}

fn words(words: &[Instr]) -> Difo {
    let mut difo = asm("ret %r0");
    difo.text = common::copy(words);
    difo
}

#[test]
fn operands() {
    for i in [
        Instr::fmt(Op::Add, 8, 0, 1),
        Instr::fmt(Op::Add, 0, 8, 1),
        Instr::fmt(Op::Add, 0, 0, 8),
        Instr::fmt(Op::Mov, 255, 0, 1),
        Instr::fmt(Op::Cmp, 0, 9, 0),
        Instr::fmt(Op::Stgs, 5, 0, 9),
        Instr::fmt(Op::Fadd, 8, 0, 1),
        Instr::fmt(Op::Fle, 0, 8, 1),
        Instr::fmt(Op::Fdtos, 1, 0, 8),
    ] {
        let r = refused(&words(&[i, Instr::fmt(Op::Ret, 0, 0, 0)]));
        assert_eq!((r.text, r.place), ("no such register", Place::Pc(0)));
    }
    at(
        "add %r1, %r1, %r0\n ret %r0",
        "register 0 cannot be written",
        0,
    );
    at(
        "ldx [%r1], %r0\n ret %r0",
        "register 0 cannot be written",
        0,
    );
    at("ldgs pid, %r0\n ret %r0", "register 0 cannot be written", 0);
    at(
        "call rand, %r0\n ret %r0",
        "register 0 cannot be written",
        0,
    );
    for i in [
        Instr::fmt(Op::Mov, 1, 1, 1),
        Instr::fmt(Op::Cmp, 1, 1, 1),
        Instr::fmt(Op::Tst, 1, 1, 0),
        Instr::fmt(Op::Nop, 0, 0, 1),
        Instr::fmt(Op::Flushts, 1, 0, 0),
        Instr::fmt(Op::Ldx, 1, 1, 1),
        Instr::fmt(Op::Ret, 0, 1, 0),
    ] {
        let r = refused(&words(&[i, Instr::fmt(Op::Ret, 0, 0, 0)]));
        assert_eq!(r.text, "unused operand is not zero");
    }
    let unknown = refused(&words(&[Instr(0), Instr::fmt(Op::Ret, 0, 0, 0)]));
    assert_eq!(
        (unknown.text, unknown.place),
        ("unknown operation", Place::Pc(0))
    );
    let unknown = refused(&words(&[Instr(0x5000_0000), Instr::fmt(Op::Ret, 0, 0, 0)]));
    assert_eq!(unknown.text, "unknown operation");
    let xlate = refused(&words(&[
        Instr::fmt(Op::Xlate, 0, 0, 1),
        Instr::fmt(Op::Ret, 0, 0, 0),
    ]));
    assert_eq!(xlate.text, "translators are to be resolved by the consumer");
}

#[test]
fn tables() {
    let setx = |n| words(&[Instr::indexed(Op::Setx, n, 1), Instr::fmt(Op::Ret, 0, 0, 1)]);
    assert_eq!(refused(&setx(0)).text, "integer out of the table");
    let sets = |n| words(&[Instr::indexed(Op::Sets, n, 1), Instr::fmt(Op::Ret, 0, 0, 1)]);
    verify(&sets(0), &cx()).unwrap();
    assert_eq!(refused(&sets(1)).text, "string out of the table");
    let mut difo = asm("ret %r0");
    difo.strings = common::copy(b"abc");
    assert_eq!(refused(&difo).text, "unterminated string table");
}

#[test]
fn control_flow() {
    at("ba 0\n ret %r0", "branch does not go forward", 0);
    at("nop\n be 0\n ret %r0", "branch does not go forward", 1);
    at("ba 9\n ret %r0", "branch out of the text", 0);
    at("ba 2\n ret %r0", "branch out of the text", 0);
    at("nop\n nop", "last instruction is not ret", 1);
    at(
        "ret %r0\n be 3\n nop\n ret %r0\n nop",
        "last instruction is not ret",
        4,
    );
    assert_eq!(refused(&words(&[])).text, "DIF object without instructions");
    verify(&asm("tst %r0\n be 3\n ret %r0\n ret %r0"), &cx()).unwrap();
}

#[test]
fn loops() {
    at("nop\n loop 2\n ret %r0", "loop does not go back", 1);
    at(
        "pushtv ctf, %r0, %r1\n loop 0\n ret %r0",
        "loop ends with a tuple",
        1,
    );
    at(
        "pushtv ctf, %r0, %r1\n flushts\n pushtv ctf, %r0, %r1\n flushts\n loop 3\n ret %r0",
        "loop begins with a tuple",
        3,
    );
    // Code after a loop can be reached by branches only.
    at("nop\n loop 0\n nop", "last instruction is not ret", 2);
    // A size that is constant before the loop may change within it.
    let key = |again: &str| {
        let text = format!(
            "setx 8, %r1\n flushts\n again: pushtr ctf, %r1, %r2\n ldgaa 0x500, %r3\n flushts\n\
             setx 64, %r1\n {again} ret %r0"
        );
        let difo = asm_with(&text, int(8), &[array(0x500, 0, int(8))]);
        verify(&difo, &cx()).map(|facts| facts.key_size).unwrap()
    };
    assert_eq!(key(""), 16);
    assert_eq!(key("tst %r3\n be 8\n loop again\n"), 264);
    let good = asm("nop\n loop 0\n ret %r0");
    verify(&good, &cx()).unwrap();
    let refused = verify(
        &good,
        &Context {
            loops: false,
            ..cx()
        },
    )
    .unwrap_err();
    assert_eq!(refused.text, "loops are not allowed");
}

#[test]
fn variables() {
    at("ldgs 0x500, %r1\n ret %r1", "variable is not declared", 0);
    at("ldgs 0x1ff, %r1\n ret %r1", "no such built-in variable", 0);
    at(
        "stgs %r1, 0x116\n ret %r1",
        "built-in variable cannot be used so",
        0,
    );
    at(
        "ldts 0x116, %r1\n ret %r1",
        "built-in variable cannot be used so",
        0,
    );
    at("ldgs 0x10, %r1\n ret %r1", "array is used as a scalar", 0);
    at("ldta 0, %r0, %r1\n ret %r1", "no such array", 0);
    at("ldga 9, %r0, %r1\n ret %r1", "no such array", 0);
    at("ldga 0x85, %r0, %r1\n ret %r1", "no such array", 0);
    let with =
        |text: &str, vars: &[_]| verify(&asm_with(text, int(8), vars), &cx()).map_err(|r| r.text);
    let load = "ldgs 0x500, %r1\n ret %r1";
    assert!(with(load, &[var(0x500, 0, int(8))]).is_ok());
    assert_eq!(
        with(load, &[var(0x500, 1, int(8))]),
        Err("variable is not declared")
    );
    assert_eq!(
        with(load, &[array(0x500, 0, int(8))]),
        Err("variable is not of this kind")
    );
    let index = "flushts\n pushtv ctf, %r0, %r0\n ldgaa 0x500, %r1\n ret %r1";
    assert!(with(index, &[array(0x500, 0, int(8))]).is_ok());
    let keyless = "flushts\n ldgaa 0x500, %r1\n ret %r1";
    assert_eq!(
        with(keyless, &[array(0x500, 0, int(8))]),
        Err("associative array without a key")
    );
    for (v, want) in [
        (var(0x500, 3, int(8)), "unknown scope of a variable"),
        (
            var(0x500, 0, int(16)),
            "variable by value has more than 8 bytes",
        ),
        (var(0x500, 0, bytes(0)), "variable has no size"),
        (var(0x500, 0, bytes(17 << 10)), "variable is too big"),
        (
            array(0x500, 2, int(8)),
            "clause-local variable cannot be an associative array",
        ),
        (var(0x10000, 0, int(8)), "variable id out of range"),
        (
            var(0x500, 0, DifType { kind: 2, ..int(8) }),
            "unknown kind of type",
        ),
        (
            var(0x500, 0, DifType { flags: 4, ..int(8) }),
            "unknown flags of a type",
        ),
        (
            var(
                0x500,
                0,
                DifType {
                    kind: DIF_TYPE_STRING,
                    ..int(8)
                },
            ),
            "string variable is not by reference",
        ),
        (
            var(
                0x500,
                0,
                DifType {
                    flags: DIF_TF_BYUREF,
                    ..int(8)
                },
            ),
            "variable cannot be by user reference",
        ),
    ] {
        assert_eq!(with(load, &[v]), Err(want));
    }
    let twice = [var(0x500, 0, int(8)), var(0x500, 0, string())];
    assert_eq!(
        with(load, &twice),
        Err("variable is declared twice, in different ways")
    );
}

#[test]
fn calls() {
    let wrong = refused(&asm("call strlen, %r1\n ret %r1"));
    assert_eq!(
        wrong.to_string(),
        "DIF instruction 0: strlen: wrong number of arguments"
    );
    let push = "flushts\n pushtv ctf, %r0, %r0\n";
    assert!(verify(&asm(&format!("{push} call strlen, %r1\n ret %r1")), &cx()).is_ok());
    assert!(verify(
        &asm(&format!("{push} popts\n call rand, %r1\n ret %r1")),
        &cx()
    )
    .is_ok());
    let r = refused(&asm(&format!("{push} call strjoin, %r1\n ret %r1")));
    assert_eq!((r.text, r.name), ("wrong number of arguments", "strjoin"));
    let either = "flushts\n tst %r0\n be 4\n pushtv ctf, %r0, %r0\n call strlen, %r1\n ret %r1";
    assert_eq!(
        refused(&asm(either)).text,
        "number of arguments depends on the path"
    );
    at("call 99, %r1\n ret %r1", "no such subroutine", 0);
    // Every subroutine can be called with its minimum number of arguments.
    for (subr, name) in dtrace_uapi::subr::NAMES {
        let cx = Context {
            destructive: true,
            walker: subr.is_walkers(),
            ..cx()
        };
        let least = dtrace_engine::subr::spec(*subr).min;
        let push = "pushtv ctf, %r0, %r0\n".repeat(least.into());
        let text = format!("flushts\n {push} call {name}, %r1\n ret %r1");
        assert!(verify(&asm(&text), &cx).is_ok(), "{name}");
    }
    let copyout = asm(&format!(
        "flushts\n {} call copyout, %r1\n ret %r1",
        "pushtv ctf, %r0, %r0\n".repeat(3)
    ));
    assert_eq!(
        refused(&copyout).text,
        "needs destructive actions to be enabled"
    );
    let facts = verify(
        &copyout,
        &Context {
            destructive: true,
            ..cx()
        },
    )
    .unwrap();
    assert!(facts.destructive);
    let cx = Context {
        destructive: true,
        features: Features::default(),
        ..cx()
    };
    let ustack = asm(&format!(
        "flushts\n {} call {}, %r1\n ret %r1",
        "pushtv ctf, %r0, %r0\n".repeat(2),
        dtrace_uapi::subr::Subr::Ustack as u16
    ));
    for missing in [&copyout, &ustack] {
        assert_eq!(
            verify(missing, &cx).unwrap_err().text,
            "not available on this platform"
        );
    }
}

#[test]
fn results() {
    for (rtype, want) in [
        (int(3), "bad size of the result"),
        (int(16), "bad size of the result"),
        (
            DifType {
                kind: DIF_TYPE_STRING,
                ..int(8)
            },
            "string result is not by reference",
        ),
        (DifType { kind: 9, ..int(8) }, "unknown kind of type"),
        (
            DifType {
                flags: DIF_TF_BYREF | DIF_TF_BYUREF,
                ..int(8)
            },
            "type is by kernel and by user reference",
        ),
    ] {
        assert_eq!(refused(&asm_with("ret %r0", rtype, &[])).text, want);
    }
    for rtype in [int(0), int(1), int(2), int(4), int(8), string(), bytes(3)] {
        verify(&asm_with("ret %r0", rtype, &[]), &cx()).unwrap();
    }
}

#[test]
fn keys_are_measured() {
    let v = [array(0x500, 0, int(8))];
    let key = |text: &str| -> Facts {
        let text = format!("flushts\n {text}\n stgaa %r0, 0x500\n ret %r0");
        verify(&asm_with(&text, int(8), &v), &cx()).unwrap()
    };
    assert_eq!(
        key("pushtv ctf, %r0, %r0\n pushtv ctf, %r0, %r0").key_size,
        16
    );
    assert_eq!(key("setx 20, %r1\n pushtr ctf, %r1, %r0").key_size, 8 + 24);
    assert_eq!(key("pushtr string, %r0, %r0").key_size, 8 + 256);
}
