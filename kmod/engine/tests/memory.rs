// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The memory that is paid for is about the memory that is taken, whatever programs and options
//! request.

mod common;

use common::asm::{asm, asm_with, bytes, int, string, var};
use common::dof::Image;
use common::{action, bare, clause, config, Steps};
use dtrace_engine::dof::{ActionSpec, Difo};
use dtrace_engine::mem::alloc;
use dtrace_engine::{Clause, Config, Consumer, Enabling, Errno};
use dtrace_uapi::action::Action;
use dtrace_uapi::dof::{ActDesc, SecType, SECIDX_NONE};
use dtrace_uapi::option::{Opt, BUFPOLICY_RING, BUFRESIZE_MANUAL};
use dtrace_uapi::types::{DifVar, DIFV_KIND_ARRAY};
use std::cell::{Cell, RefCell};

/// Returns the memory that an image takes with its clauses prepared, and the memory that it claims
/// to take.
fn taken(image: &Image) -> (usize, usize) {
    let bytes = image.write();
    let consumer = Consumer::new(config()).unwrap();
    let before = alloc::live();
    let enabling = Enabling::parse(&bytes).unwrap();
    let pending = consumer
        .prepare(enabling.options(), enabling.clauses())
        .unwrap();
    pending.commit();
    (alloc::live() - before, enabling.memory())
}

/// Makes an image with a clause of `n` actions that share one program.
fn shared(n: usize, kind: Action, difo: Option<&Difo>) -> Image {
    let mut image = Image::default();
    let difo = difo.map_or(SECIDX_NONE, |difo| image.difo(difo));
    let desc = ActDesc {
        difo,
        strtab: SECIDX_NONE,
        kind: kind as u32,
        ntuple: 0,
        arg: 0,
        uarg: 0,
    };
    let ecb = image.clause("p", "n", None, &[(Action::Difexpr, None, 0, None)]);
    let actions = image.table(SecType::ActDesc, &vec![desc; n]);
    let (_, data) = &mut image.secs[ecb as usize];
    data[8..12].copy_from_slice(&actions.to_ne_bytes());
    image
}

#[test]
fn programs_take_no_more_than_was_paid() {
    let long = |line: &str, n: usize| asm(&(line.repeat(n) + " ret %r1"));
    let many = |n: u32| -> Difo {
        let vars: Vec<_> = (0..n).map(|n| var(0x500 + n, 0, int(8))).collect();
        let text: String = (0..n)
            .map(|n| format!("stgs %r1, {:#x}\n", 0x500 + n))
            .collect();
        asm_with(&(text + " ret %r1"), int(8), &vars)
    };
    let named = asm_with("sets \"a string\", %r1\n ret %r1", string(), &[]);
    let images = [
        ("nothing", shared(16_384, Action::Count, None)),
        (
            "a value",
            shared(
                16_384,
                Action::Difexpr,
                Some(&asm("ldgs pid, %r1\n ret %r1")),
            ),
        ),
        ("a string", shared(16_384, Action::Difexpr, Some(&named))),
        (
            "loads",
            shared(16, Action::Difexpr, Some(&long("ldx [%r1], %r1\n", 60_000))),
        ),
        (
            "constants",
            shared(
                16,
                Action::Difexpr,
                Some(&long("setx 77777777, %r1\n", 60_000)),
            ),
        ),
        (
            "sums",
            shared(
                16,
                Action::Difexpr,
                Some(&long("add %r1, %r2, %r1\n", 60_000)),
            ),
        ),
        (
            "calls",
            shared(
                16,
                Action::Difexpr,
                Some(&long(
                    "flushts\n pushtv ctf, %r0, %r1\n call strlen, %r1\n",
                    10_000,
                )),
            ),
        ),
        ("variables", shared(16, Action::Difexpr, Some(&many(3000)))),
    ];
    for (what, image) in images {
        let (took, paid) = taken(&image);
        assert!(took <= paid, "{what}: {took} of {paid}");
        assert!(paid <= 64 * took, "{what}: {took} of {paid}");
    }
}

fn value(text: &str) -> ActionSpec {
    action(Action::Difexpr, asm(text))
}

/// Returns clauses that need every kind of buffer.
fn clauses() -> Vec<Clause> {
    let assign = "call speculation, %r1\n stts %r1, 0x501\n ret %r0";
    let assign = asm_with(
        &format!("flushts\n {assign}"),
        int(8),
        &[var(0x501, 1, int(8))],
    );
    vec![
        clause(None, vec![value("ret %r0"), bare(Action::Count, 1, 0)]),
        clause(None, vec![action(Action::Difexpr, assign)]),
    ]
}

fn consumer(options: &[(Opt, u64)]) -> Consumer {
    let c = Consumer::new(config()).unwrap();
    for (option, value) in options {
        c.set_option(*option, *value).unwrap();
    }
    for clause in clauses() {
        c.add_clause(&clause).unwrap();
    }
    c
}

#[test]
fn buffers_take_what_was_paid() {
    const MIB: u64 = 1 << 20;
    for options in [
        &[][..],
        &[(Opt::Bufsize, 9 * MIB), (Opt::Bufpolicy, BUFPOLICY_RING)],
        &[(Opt::Aggsize, 16 * MIB + 8)],
        &[(Opt::Nspec, 100), (Opt::Specsize, 100_001)],
        &[(Opt::Nspec, 4000), (Opt::Specsize, 8)],
        &[(Opt::Dynvarsize, 16 * MIB)],
        &[(Opt::Strsize, 64 << 10)],
        &[(Opt::Scratchsize, 4 * MIB)],
    ] {
        let c = consumer(options);
        let before = alloc::live();
        let paid = RefCell::new(vec![]);
        let pay = |bytes| {
            paid.borrow_mut().push(bytes as usize);
            true
        };
        // One CPU comes online later.
        c.go_on(&|cpu| cpu != 1, &pay).unwrap();
        let first = alloc::live() - before;
        c.admit(1, &pay).unwrap();
        let all = alloc::live() - before;
        let paid = paid.borrow();
        assert_eq!(paid.len(), 2);
        for (took, paid) in [first, all].into_iter().zip(paid.iter()) {
            let near = took.abs_diff(*paid) < took / 8 + (128 << 10);
            assert!(near, "{options:?}: {took} of {paid}");
        }
    }
}

/// Each CPU has room for the largest key of a dynamic variable.
#[test]
fn keys_are_paid_for() {
    const KEY: u64 = 256 << 10;
    const PARTS: usize = 7;
    let push = "pushtr ctf, %r2, %r1\n".repeat(PARTS);
    let text =
        format!("setx 4096, %r1\n setx {KEY}, %r2\n flushts\n {push} ldgaa 0x500, %r1\n ret %r1");
    let array = DifVar {
        kind: DIFV_KIND_ARRAY,
        ..var(0x500, 0, int(8))
    };
    let paid = |ncpus| {
        let c = Consumer::new(Config { ncpus, ..config() }).unwrap();
        for (option, size) in [
            (Opt::Dynvarsize, 4 << 20),
            (Opt::Bufsize, 4096),
            (Opt::Aggsize, 4096),
        ] {
            c.set_option(option, size).unwrap();
        }
        let load = action(Action::Difexpr, asm_with(&text, int(8), &[array]));
        c.add_clause(&clause(None, vec![load])).unwrap();
        let paid = Cell::new(0);
        let pay = |bytes| {
            paid.set(bytes);
            true
        };
        c.go_on(&|_| true, &pay).unwrap();
        paid.get()
    };
    assert!(paid(3) - paid(2) > PARTS as u64 * KEY);
}

/// A clause with many large global variables, whose memory no option limits.
#[test]
fn variables_are_paid_for() {
    let vars: Vec<_> = (0..500)
        .map(|n| var(0x500 + n, 0, bytes(16 << 10)))
        .collect();
    let text = "ldgs 0x500, %r1\n ret %r0";
    let action = action(Action::Difexpr, asm_with(text, int(8), &vars));
    let c = Consumer::new(config()).unwrap();
    c.add_clause(&clause(None, vec![action])).unwrap();
    let (before, paid) = (alloc::live(), Cell::new(0));
    let pay = |bytes| {
        paid.set(bytes as usize);
        true
    };
    c.go_on(&|_| true, &pay).unwrap();
    let took = alloc::live() - before;
    assert!(
        took > 8 << 20 && took <= paid.get() + (128 << 10),
        "{took} of {}",
        paid.get()
    );
}

#[test]
fn who_may_not_have_it_has_less_or_nothing() {
    let most = |most: u64| move |bytes: u64| bytes <= most;
    let before = alloc::live();
    let c = consumer(&[(Opt::Bufsize, 16 << 20), (Opt::Aggsize, 1 << 20)]);
    c.go_on(&|cpu| cpu == 0, &most(12 << 20)).unwrap();
    // Half of the requested size for each of the two halves, so that both are paid for.
    assert_eq!(c.option(Opt::Bufsize), 4 << 20);
    // Another CPU exceeds the limit, and does so again at the next try.
    let took = alloc::live();
    for _ in 0..2 {
        let refused = c.admit(1, &most(12 << 20)).unwrap_err();
        assert_eq!(refused.errno, Errno::ENOMEM);
        assert_eq!(alloc::live(), took);
    }
    c.admit(1, &most(1 << 30)).unwrap();
    drop(c);
    let manual = consumer(&[(Opt::Bufsize, 16 << 20), (Opt::Bufresize, BUFRESIZE_MANUAL)]);
    let refused = manual.go_on(&|cpu| cpu == 0, &most(12 << 20));
    assert_eq!(refused.unwrap_err().errno, Errno::ENOMEM);
    let little = consumer(&[]);
    let refused = little.go_on(&|cpu| cpu == 0, &most(1000));
    assert_eq!(refused.unwrap_err().errno, Errno::ENOMEM);
    drop((manual, little));
    assert_eq!(alloc::live(), before);
}

/// If there is no memory for a CPU, the payment for it is returned.
#[test]
fn what_was_not_given_is_not_paid() {
    let c = consumer(&[]);
    let paid = RefCell::new(vec![]);
    let pay = |bytes: u64| {
        paid.borrow_mut().push(bytes);
        true
    };
    c.go_on(&|cpu| cpu == 0, &pay).unwrap();
    alloc::limit(alloc::live() + 4096);
    let refused = c.admit(1, &pay);
    alloc::limit(usize::MAX);
    assert_eq!(refused.unwrap_err().errno, Errno::ENOMEM);
    c.admit(1, &pay).unwrap();
    let paid = paid.borrow();
    assert_eq!(paid[2], paid[0]);
    assert_eq!(paid[3], paid[1]);
}
