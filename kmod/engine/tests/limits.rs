// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Sizes requested by options: too small, too large, just enough.

mod common;

use common::asm::{asm_with, int, var};
use common::{action, bare, clause, config, Bench, Steps, END, ERROR, PROBE};
use dtrace_engine::dof::ActionSpec;
use dtrace_engine::mem::alloc;
use dtrace_engine::{Clause, Consumer, Errno, FaultReport, Reason};
use dtrace_uapi::action::{Action, Llquantize};
use dtrace_uapi::fault::Fault;
use dtrace_uapi::option::{Opt, BUFPOLICY_FILL, BUFRESIZE_MANUAL};

const USTR: u64 = 0x40_0000;

fn evaluates(text: &str) -> Clause {
    // An array of words, and a thread-local word.
    let vars = [
        dtrace_uapi::types::DifVar {
            kind: dtrace_uapi::types::DIFV_KIND_ARRAY,
            ..var(0x500, 0, int(8))
        },
        var(0x501, 1, int(4)),
    ];
    clause(
        None,
        vec![action(Action::Difexpr, asm_with(text, int(8), &vars))],
    )
}

fn consumer(options: &[(Opt, u64)]) -> Consumer {
    let c = Consumer::new(config()).unwrap();
    for (option, value) in options {
        c.set_option(*option, *value).unwrap();
    }
    c
}

fn faults(options: &[(Opt, u64)], text: &str) -> Vec<Option<Fault>> {
    let text = format!("{text}\n ret %r0");
    let mut b = Bench::with(consumer(options), vec![evaluates(&text), evaluates(&text)]);
    b.m.user.get_mut().insert(USTR, vec![b'u'; 4096]);
    let fault = |report: &Option<FaultReport>| report.map(|report| report.fault);
    b.fire().iter().map(fault).collect()
}

fn refusal(options: &[(Opt, u64)], clauses: &[Clause]) -> Reason {
    let c = consumer(options);
    for clause in clauses {
        c.add_clause(clause).unwrap();
    }
    c.go().unwrap_err()
}

#[test]
fn scratchsize_is_what_a_clause_may_ask_for() {
    let alloca = |size: u32| format!("setx {size}, %r1\n allocs %r1, %r2\n");
    let copy = |subr: &str, size: u32| {
        format!(
            "setx {USTR}, %r1\n setx {size}, %r2\n flushts\n pushtv ctf, %r0, %r1\n\
             pushtv ctf, %r0, %r2\n call {subr}, %r3\n"
        )
    };
    let with = |size: u64, text: &str| faults(&[(Opt::Scratchsize, size)], text);
    let (fits, none) = ([None, None], [Some(Fault::NoScratch); 2]);
    assert_eq!(with(64, &alloca(64)), fits);
    assert_eq!(with(64, &alloca(65)), none);
    assert_eq!(with(64, &(alloca(32) + &copy("copyin", 32))), fits);
    assert_eq!(with(64, &(alloca(32) + &copy("copyin", 33))), none);
    assert_eq!(with(64, &copy("copyinstr", 64)), fits);
    assert_eq!(with(64, &copy("copyinstr", 65)), none);
    assert_eq!(with(0, &alloca(0)), fits);
    // Memory for intermediate strings does not count as requested memory.
    let join = "sets \"abc\", %r1\n flushts\n pushtv ctf, %r0, %r1\n pushtv ctf, %r0, %r1\n\
                call strjoin, %r2\n";
    assert_eq!(with(8, &(join.repeat(5) + &alloca(8))), fits);
    // More than exists unless the option requests it.
    assert_eq!(faults(&[], &alloca(1 << 20)), none);
    assert_eq!(with(1 << 20, &alloca(1 << 20)), fits);
}

#[test]
fn a_firing_of_too_many_distributions_faults() {
    let widest = Llquantize {
        factor: 2,
        low: 0,
        high: 61,
        nsteps: 1,
    };
    assert!(widest.is_valid());
    let value = || {
        action(
            Action::None,
            asm_with("ldgs arg0, %r1\n ret %r1", int(8), &[]),
        )
        .difo
    };
    let distribution = || ActionSpec {
        difo: value(),
        ..bare(Action::Llquantize, 0, widest.pack())
    };
    let fault = |count: usize| {
        let actions = std::iter::repeat_with(distribution).take(count);
        let b = Bench::with(consumer(&[]), vec![clause(None, actions.collect())]);
        b.fire()[0].map(|report| report.fault)
    };
    assert_eq!(fault(1700), None);
    assert_eq!(fault(2200), Some(Fault::Overrun));
}

#[test]
fn a_small_dynvarsize_counts_only_what_the_program_stores() {
    let store = |keys: &[u32]| {
        let one = |key: &u32| {
            format!("flushts\n setx {key}, %r1\n pushtv ctf, %r0, %r1\n setx 9, %r2\n stgaa %r2, 0x500\n")
        };
        keys.iter().map(one).collect::<String>()
    };
    let delete =
        |key: u32| format!("flushts\n setx {key}, %r1\n pushtv ctf, %r0, %r1\n stgaa %r0, 0x500\n");
    let drops = |size: u64, text: &str| {
        let text = format!("{text} ret %r0");
        let b = Bench::with(consumer(&[(Opt::Dynvarsize, size)]), vec![evaluates(&text)]);
        assert_eq!(b.fire(), [None]);
        let status = b.consumer.status().unwrap();
        status.dyndrops + status.dyndrops_dirty + status.dyndrops_rinsing
    };
    // A number counts as an `int`, its key as a word, and so does the array: 20 bytes.
    assert_eq!(drops(60, &store(&[1, 2, 3])), 0);
    assert_eq!(drops(59, &store(&[1, 2, 3])), 1);
    assert_eq!(drops(20, &store(&[1, 1, 1])), 0);
    // A deleted element makes room at once; assigning 0 to an element that does not exist takes no
    // room.
    let again = store(&[1]) + &delete(1) + &store(&[2]) + &delete(7) + &delete(2) + &store(&[3]);
    assert_eq!(drops(20, &again), 0);
    let none = refusal(
        &[(Opt::Dynvarsize, 19)],
        &[evaluates(&(store(&[1]) + "ret %r0"))],
    );
    assert_eq!(none.errno, Errno::E2BIG);
    assert_eq!(none.to_string(), "Enabling exceeds size of buffer");
    // Without such variables the size does not matter.
    let c = consumer(&[(Opt::Dynvarsize, 1)]);
    let plain = action(Action::Difexpr, common::asm::asm("ret %r0"));
    c.add_clause(&clause(None, vec![plain])).unwrap();
    c.go().unwrap();
}

/// If a buffer has no room for the largest record, tracing does not start. The messages are those
/// that DTrace users know.
#[test]
fn what_fits_no_buffer_is_refused() {
    let go = |options: &[(Opt, u64)], probe, actions: Vec<ActionSpec>| {
        let c = Consumer::new(config()).unwrap();
        for (option, value) in options {
            c.set_option(*option, *value).unwrap();
        }
        let id = c.add_clause(&clause(None, actions)).unwrap();
        c.bind(id, probe).unwrap();
        c.go().map_err(|reason| (reason.errno, reason.to_string()))
    };
    let refused = |errno, text: &str| Err((errno, text.to_owned()));
    let small = || refused(Errno::E2BIG, "Enabling exceeds size of buffer");
    let word = || {
        action(
            Action::Difexpr,
            common::asm::asm("ldgs arg1, %r1\n ret %r1"),
        )
    };
    let count = || vec![bare(Action::Count, 0, 0)];
    for policy in 0..3 {
        let size = |size| [(Opt::Bufsize, size), (Opt::Bufpolicy, policy)];
        for least in [(4, vec![]), (16, vec![word()])] {
            assert_eq!(go(&size(least.0), PROBE, least.1), Ok(()));
        }
        assert_eq!(go(&size(3), PROBE, vec![]), small());
        assert_eq!(go(&size(0), PROBE, vec![]), small());
        assert_eq!(go(&size(15), PROBE, vec![word()]), small());
        assert_eq!(go(&size(0), PROBE, count()), Ok(()));
        // The library enables a clause of its own there, so records of `ERROR` do not count.
        assert_eq!(go(&size(15), ERROR, vec![word()]), Ok(()));
    }
    // An entry and its hash table.
    assert_eq!(go(&[(Opt::Aggsize, 32)], PROBE, count()), Ok(()));
    for size in [31, 8, 0] {
        assert_eq!(go(&[(Opt::Aggsize, size)], PROBE, count()), small());
    }
    // The record of `END` must fit wherever it is placed.
    let fill = |size| [(Opt::Bufsize, size), (Opt::Bufpolicy, BUFPOLICY_FILL)];
    let end = refused(
        Errno::ENOSPC,
        "END enablings exceed size of principal buffer",
    );
    assert_eq!(go(&fill(7), END, vec![]), end);
    assert_eq!(go(&fill(8), END, vec![]), Ok(()));
    assert_eq!(go(&fill(0), END, count()), Ok(()));
}

/// Returns clauses that need every kind of buffer.
fn every_buffer() -> [Clause; 2] {
    let count = clause(
        None,
        vec![
            action(Action::Difexpr, common::asm::asm("ret %r0")),
            bare(Action::Count, 1, 0),
        ],
    );
    [
        count,
        evaluates("flushts\n call speculation, %r1\n stts %r1, 0x501\n ret %r0"),
    ]
}

/// No buffer has more than 2 GiB, however much memory there is. With `auto` a larger size counts as
/// a lack of memory, with `manual` as an error.
#[test]
fn sizes_beyond_any_memory_are_halved() {
    let clauses = every_buffer();
    let limited = |options: &[(Opt, u64)]| {
        let c = consumer(options);
        for clause in &clauses {
            c.add_clause(clause).unwrap();
        }
        alloc::limit(alloc::live() + (8 << 20));
        let gone = c.go();
        alloc::limit(usize::MAX);
        (c, gone)
    };
    let manual = (Opt::Bufresize, BUFRESIZE_MANUAL);
    let small = [Opt::Bufsize, Opt::Aggsize].map(|option| (option, 1 << 16));
    for option in [Opt::Bufsize, Opt::Aggsize, Opt::Specsize, Opt::Dynvarsize] {
        for size in [u64::MAX - 7, 1 << 63, 1 << 40, (2 << 30) + 8] {
            let asked = [&small[..], &[(option, size)]].concat();
            let (c, gone) = limited(&asked);
            assert_eq!(gone, Ok(()), "{} {size}", option.name());
            let got = c.option(option);
            assert!(
                (64 << 10..8 << 20).contains(&got),
                "{}: {got}",
                option.name()
            );
            // Other sizes remain as they were.
            let others = small.iter().filter(|(other, _)| *other != option);
            others.for_each(|(other, size)| assert_eq!(c.option(*other), *size));
            let reason = limited(&[&asked[..], &[manual]].concat()).1.unwrap_err();
            let text = format!("{}: size is too big", option.name());
            assert_eq!((reason.errno, reason.to_string()), (Errno::E2BIG, text));
        }
    }
    // Many speculations of moderate size.
    let many = [&small[..], &[(Opt::Specsize, 1 << 22), (Opt::Nspec, 4096)]].concat();
    let (c, gone) = limited(&many);
    assert_eq!(gone, Ok(()));
    assert!(
        c.option(Opt::Specsize) < 4096,
        "{}",
        c.option(Opt::Specsize)
    );
}

/// A buffer that was made smaller still has room for the records of `END` when it is full.
#[test]
fn halving_leaves_room_for_the_end() {
    let text = "setx 4194304, %r1\n ret %r1";
    let bytes = common::asm::asm_with(text, common::asm::bytes(4000), &[]);
    let end = clause(None, vec![action(Action::Difexpr, bytes)]);
    let mut room = 64 << 10;
    let (c, least) = loop {
        let c = consumer(&[(Opt::Bufsize, 1 << 22), (Opt::Bufpolicy, BUFPOLICY_FILL)]);
        for _ in 0..4 {
            let id = c.add_clause(&end).unwrap();
            c.bind(id, END).unwrap();
        }
        alloc::limit(alloc::live() + room);
        let gone = c.go();
        alloc::limit(usize::MAX);
        match gone {
            Ok(()) => break (c, 4 * 4000),
            Err(reason) => assert_eq!(reason.errno, Errno::ENOMEM),
        }
        room += 4 << 10;
    };
    assert!(
        c.option(Opt::Bufsize) >= least,
        "{}",
        c.option(Opt::Bufsize)
    );
}

#[test]
fn who_asks_for_too_much_is_told_for_what() {
    let clauses = every_buffer();
    let manual = (Opt::Bufresize, BUFRESIZE_MANUAL);
    alloc::limit(alloc::live() + (8 << 20));
    for option in [
        Opt::Bufsize,
        Opt::Aggsize,
        Opt::Specsize,
        Opt::Dynvarsize,
        Opt::Scratchsize,
    ] {
        let size = if option == Opt::Scratchsize { 4 } else { 32 };
        let small = [Opt::Bufsize, Opt::Aggsize].map(|option| (option, 1 << 20));
        let asked = [&[manual][..], &small, &[(option, size << 20)]].concat();
        let r = refusal(&asked, &clauses);
        assert_eq!(r.errno, Errno::ENOMEM, "{option:?}");
        assert_eq!(r.to_string(), format!("{}: out of memory", option.name()));
    }
    alloc::limit(usize::MAX);
}
