// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Speculations, from actions to bytes in the principal buffers.

mod common;

use common::asm::{asm, asm_with, int, string};
use common::{action, bare, clause, config, cpu, u32_at, u64_at, Bench, Steps};
use dtrace_engine::dof::ActionSpec;
use dtrace_engine::mem::alloc;
use dtrace_engine::{Clause, Consumer, Errno, FaultReport, Which};
use dtrace_uapi::action::Action;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::ioctl::Status;
use dtrace_uapi::option::{
    Opt, BUFPOLICY_FILL, BUFPOLICY_RING, BUFPOLICY_SWITCH, BUFRESIZE_MANUAL,
};
use std::cell::RefCell;

/// Makes an action on the speculation `id`.
fn on(kind: Action, id: u64) -> ActionSpec {
    let text = format!("setx {id}, %r1\n ret %r1");
    action(kind, asm_with(&text, int(0), &[]))
}

/// Makes an action that records `arg1`, which is 101 on the test machine: 8 bytes, after a header
/// of 12 bytes and padding.
fn trace() -> ActionSpec {
    action(Action::Difexpr, asm("ldgs arg1, %r1\n ret %r1"))
}

/// Makes a clause that records the result of `speculation()`.
fn open() -> Clause {
    let call = asm("call speculation, %r1\n ret %r1");
    clause(None, vec![action(Action::Difexpr, call)])
}

const OPEN: usize = 0;
const SPECULATE: usize = 1;
const COMMIT: usize = 2;
const DISCARD: usize = 3;
const TRACE: usize = 4;
const RECORD: usize = 24;

struct Speculating(Bench);

impl Speculating {
    fn new(options: &[(Opt, u64)]) -> Self {
        let consumer = Consumer::new(config()).unwrap();
        for (option, value) in options {
            consumer.set_option(*option, *value).unwrap();
        }
        Self(Bench::with(
            consumer,
            vec![
                open(),
                clause(None, vec![on(Action::Speculate, 1), trace()]),
                clause(None, vec![on(Action::Commit, 1)]),
                clause(None, vec![on(Action::Discard, 1)]),
                clause(None, vec![trace()]),
            ],
        ))
    }

    fn fire(&self, on: usize, clause: usize) -> Option<FaultReport> {
        let Bench { consumer, ecbs, m } = &self.0;
        m.now.set(m.now.get() + 1);
        consumer.fire(&cpu(on), ecbs[clause], m)
    }

    fn clean(&self, reached: impl Fn(usize) -> bool) {
        self.0.consumer.clean_speculations(
            || 1 << 40,
            |index, visit| {
                if reached(index) {
                    visit(&cpu(index));
                }
                reached(index)
            },
        );
    }

    /// Returns EPID and time of each record of a CPU, and its drops.
    fn read(&self, on: usize) -> (Vec<(u32, u64)>, u64) {
        let consumer = &self.0.consumer;
        consumer.switch(&cpu(on), Which::Principal, 1).unwrap();
        let read = |snap: dtrace_engine::Snapshot<'_>| (snap.data.to_vec(), snap.drops);
        let (data, drops) = consumer.snapshot(on, Which::Principal, read).unwrap();
        let (mut at, mut out) = (0, Vec::new());
        while at < data.len() {
            match u32_at(&data, at) {
                0 => at += 4,
                epid => {
                    let time =
                        u64::from(u32_at(&data, at + 4)) << 32 | u64::from(u32_at(&data, at + 8));
                    assert!(epid == 1 || u64_at(&data, at + 16) == 101);
                    out.push((epid, time));
                    at += RECORD;
                }
            }
        }
        (out, drops)
    }

    fn epids(&self, on: usize) -> Vec<u32> {
        self.read(on).0.into_iter().map(|(epid, _)| epid).collect()
    }

    fn status(&self) -> Status {
        self.0.consumer.status().unwrap()
    }
}

#[test]
fn committed_records_come_in_order_and_have_the_time_of_the_commit() {
    let s = Speculating::new(&[]);
    for step in [OPEN, SPECULATE, TRACE, SPECULATE, COMMIT, TRACE, COMMIT] {
        assert_eq!(s.fire(0, step), None);
    }
    let (records, drops) = s.read(0);
    let epids: Vec<u32> = records.iter().map(|record| record.0).collect();
    assert_eq!((epids, drops), (vec![1, 5, 2, 2, 5], 0));
    assert!(records.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    assert_eq!(records[2].1, records[3].1);
}

#[test]
fn other_cpus_wait_for_the_cleaner() {
    for (end, left) in [(COMMIT, vec![2]), (DISCARD, vec![])] {
        let s = Speculating::new(&[]);
        for (on, step) in [(0, OPEN), (0, SPECULATE), (1, SPECULATE), (1, end)] {
            assert_eq!(s.fire(on, step), None);
        }
        assert_eq!((s.epids(0), s.epids(1)), (vec![1], left.clone()));
        // The speculation is being ended: it is not free, and accepts no records.
        s.fire(0, SPECULATE);
        s.fire(0, OPEN);
        assert_eq!(s.status().specdrops_busy, 1);
        // It remains in that state while a CPU cannot be reached.
        s.clean(|cpu| cpu == 1);
        s.fire(0, OPEN);
        assert_eq!(s.status().specdrops_busy, 2);
        s.clean(|_| true);
        s.fire(1, SPECULATE);
        let (records, _) = s.read(0);
        let committed: Vec<_> = records.iter().filter(|(epid, _)| *epid == 2).collect();
        assert_eq!(committed.len(), left.len());
        assert!(committed.iter().all(|(_, time)| *time == 1 << 40));
        assert!(s.epids(1).is_empty());
        assert_eq!(s.fire(0, TRACE), None);
        assert_eq!(s.status().specdrops_unavail, 0);
    }
}

/// During a visit of the cleaner, interrupts are off on the CPU. So a visit moves 1 MiB and at most
/// one more speculation, and the cleaner visits the CPU again for the rest.
#[test]
fn a_visit_of_the_cleaner_moves_no_more_than_a_part() {
    const LIMIT: usize = 1 << 20;
    const SPECULATION: usize = 384 << 10;
    const STRING: usize = 32 << 10;
    const COUNT: u64 = 7;
    let consumer = Consumer::new(config()).unwrap();
    for (option, value) in [
        (Opt::Nspec, COUNT),
        (Opt::Specsize, SPECULATION as u64),
        (Opt::Strsize, STRING as u64),
        (Opt::Bufsize, 4 << 20),
    ] {
        consumer.set_option(option, value).unwrap();
    }
    let text = || asm_with("sets \"text\", %r1\n ret %r1", string(), &[]);
    let mut clauses = vec![open()];
    for id in 1..=COUNT {
        let record = action(Action::Difexpr, text());
        clauses.push(clause(None, vec![on(Action::Speculate, id), record]));
        clauses.push(clause(None, vec![on(Action::Commit, id)]));
    }
    let Bench { consumer, ecbs, m } = Bench::with(consumer, clauses);
    let fire =
        |on: usize, clause: usize| assert_eq!(consumer.fire(&cpu(on), ecbs[clause], &m), None);
    let read = |on: usize| {
        consumer.switch(&cpu(on), Which::Principal, 1).unwrap();
        let size = |snap: dtrace_engine::Snapshot<'_>| snap.data.len();
        consumer.snapshot(on, Which::Principal, size).unwrap()
    };
    // CPU 0 fills its pieces. CPU 1 has a record in each of them too, so that the cleaner must end
    // them all.
    let records = SPECULATION / (STRING + 16);
    for clause in (1..).step_by(2).take(COUNT as usize) {
        fire(0, 0);
        (0..records).for_each(|_| fire(0, clause));
        fire(1, clause);
        fire(1, clause + 1);
    }
    let (opened, _) = (read(0), read(1));
    let visits = RefCell::new([vec![], vec![]]);
    consumer.clean_speculations(
        || 1 << 40,
        |index, visit| {
            visit(&cpu(index));
            visits.borrow_mut()[index].push(read(index));
            true
        },
    );
    let [full, other] = visits.into_inner();
    let piece = records * (STRING + 16);
    assert!(full.iter().all(|moved| *moved < LIMIT + piece), "{full:?}");
    // Each visit moved something, nothing was left behind, and a CPU with nothing to move is
    // visited once.
    assert_eq!(full, [3 * piece, 3 * piece, piece]);
    assert_eq!(other, [0]);
    fire(0, 0);
    assert_eq!(read(0) as u64, opened as u64 / COUNT);
    assert_eq!(consumer.status().unwrap().specdrops_busy, 0);
}

#[test]
fn records_without_room_are_counted_when_the_rest_is_committed() {
    let s = Speculating::new(&[(Opt::Specsize, 2 * RECORD as u64 + 8)]);
    for end in [DISCARD, COMMIT] {
        for step in [OPEN, SPECULATE, SPECULATE, SPECULATE, SPECULATE, end] {
            assert_eq!(s.fire(0, step), None);
        }
    }
    assert_eq!(s.status().specdrops, 2);
    assert_eq!(s.epids(0), [1, 1, 2, 2]);
    // A speculation in which nothing fits is ended by the cleaner, and its drop is counted too.
    let s = Speculating::new(&[(Opt::Specsize, 8)]);
    for step in [OPEN, SPECULATE, COMMIT] {
        s.fire(0, step);
    }
    assert_eq!((s.status().specdrops, s.epids(0)), (1, vec![1]));
    s.clean(|_| true);
    s.fire(0, OPEN);
    assert_eq!((s.epids(0), s.status().specdrops_busy), (vec![1], 0));
}

#[test]
fn speculations_that_do_not_fit_the_principal_buffer_are_drops() {
    let s = Speculating::new(&[(Opt::Bufsize, 2 * RECORD as u64)]);
    for step in [OPEN, SPECULATE, SPECULATE, SPECULATE, COMMIT, TRACE] {
        s.fire(0, step);
    }
    assert_eq!(s.0.consumer.status().unwrap().specdrops, 0);
    let (records, drops) = s.read(0);
    // Each of the three speculated records is a drop.
    assert_eq!((records.len(), drops), (2, 3));
    // A ring drops the oldest records instead.
    let s = Speculating::new(&[
        (Opt::Bufsize, 4 * RECORD as u64),
        (Opt::Bufpolicy, BUFPOLICY_RING),
    ]);
    for step in [OPEN, SPECULATE, SPECULATE, TRACE, TRACE, COMMIT] {
        s.fire(0, step);
    }
    s.0.consumer.stop();
    let read = |snap: dtrace_engine::Snapshot<'_>| {
        let at = snap.oldest as usize;
        [&snap.data[at..], &snap.data[..at]].concat()
    };
    s.0.consumer.switch(&cpu(0), Which::Principal, 1).unwrap();
    let data = s.0.consumer.snapshot(0, Which::Principal, read).unwrap();
    let epids: Vec<u32> = data
        .chunks_exact(4)
        .enumerate()
        .filter(|(n, _)| n % (RECORD / 4) == 0)
        .map(|(_, word)| u32::from_ne_bytes(word.try_into().unwrap()))
        .collect();
    assert_eq!(epids[epids.len() - 2..], [2, 2]);
}

#[test]
fn a_fill_buffer_that_speculations_fill_is_full() {
    let filled = |s: &Speculating| s.status().filled;
    let new = || {
        Speculating::new(&[
            (Opt::Bufsize, 2 * RECORD as u64),
            (Opt::Bufpolicy, BUFPOLICY_FILL),
        ])
    };
    let s = new();
    for step in [OPEN, SPECULATE, TRACE, TRACE] {
        s.fire(0, step);
    }
    assert_eq!(filled(&s), 0);
    s.fire(0, COMMIT);
    assert_eq!(filled(&s), 1);
    // The same if the cleaner finds the buffer full.
    let s = new();
    for (cpu, step) in [(0, OPEN), (0, SPECULATE), (1, SPECULATE)] {
        s.fire(cpu, step);
    }
    for step in [TRACE; 3] {
        s.fire(1, step);
    }
    s.fire(0, COMMIT);
    assert_eq!(filled(&s), 0);
    s.clean(|_| true);
    assert_eq!(filled(&s), 1);
}

#[test]
fn committed_records_are_charged_like_others() {
    // A record counts as 16 bytes, without its time.
    let charged = RECORD as u64 - 8;
    for policy in [BUFPOLICY_SWITCH, BUFPOLICY_FILL] {
        let s = Speculating::new(&[(Opt::Bufsize, 4 * charged), (Opt::Bufpolicy, policy)]);
        for step in [OPEN, SPECULATE, SPECULATE, COMMIT, TRACE, TRACE] {
            s.fire(0, step);
        }
        if policy == BUFPOLICY_FILL {
            s.0.consumer.cool_down();
            s.0.consumer.stop();
        }
        // There is no room for the last one.
        let drops = u64::from(policy == BUFPOLICY_SWITCH);
        let (records, dropped) = s.read(0);
        let epids: Vec<u32> = records.iter().map(|(epid, _)| *epid).collect();
        assert_eq!((epids, dropped), (vec![1, 2, 2, 5], drops));
    }
}

#[test]
fn ids_out_of_range_fault_where_they_would_end_something() {
    let illegal = |id: u64| {
        let consumer = Consumer::new(config()).unwrap();
        consumer.set_option(Opt::Nspec, 3).unwrap();
        let kinds = [Action::Speculate, Action::Commit, Action::Discard];
        let clauses = kinds.map(|kind| clause(None, vec![on(kind, id)]));
        let b = Bench::with(consumer, clauses.into());
        b.fire()
            .into_iter()
            .map(|report| report.map(|report| (report.fault, report.action)))
            .collect::<Vec<_>>()
    };
    let fault = Some((Fault::IllOp, 1));
    assert_eq!(illegal(0), [None; 3]);
    assert_eq!(illegal(3), [None; 3]);
    assert_eq!(illegal(4), [None, fault, fault]);
    assert_eq!(illegal(u64::MAX), [None, fault, fault]);
}

#[test]
fn a_fault_leaves_nothing_in_the_speculation() {
    let fault = action(
        Action::Difexpr,
        asm("setx 1, %r1\n udiv %r1, %r0, %r1\n ret %r1"),
    );
    let b = Bench::new(vec![
        open(),
        clause(None, vec![on(Action::Speculate, 1), trace(), fault]),
        clause(None, vec![on(Action::Speculate, 1), trace()]),
        clause(None, vec![on(Action::Commit, 1)]),
    ]);
    let faults: Vec<_> = b
        .fire()
        .iter()
        .map(|r| r.map(|r| (r.fault, r.action)))
        .collect();
    assert_eq!(faults, [None, Some((Fault::DivZero, 3)), None, None]);
    // The second attempt found an empty piece of an active speculation, whose records may be on
    // another CPU.
    b.consumer.clean_speculations(
        || 0,
        |index, visit| {
            visit(&cpu(index));
            true
        },
    );
    let (data, _) = b.read(Which::Principal);
    assert_eq!((u32_at(&data, 0), u32_at(&data, RECORD)), (1, 3));
    assert_eq!(data.len(), 2 * RECORD);
}

#[test]
fn what_discards_its_own_speculation_keeps_nothing() {
    let b = Bench::new(vec![
        open(),
        clause(None, vec![on(Action::Speculate, 1), trace()]),
        clause(
            None,
            vec![on(Action::Speculate, 1), trace(), on(Action::Discard, 1)],
        ),
        open(),
        clause(None, vec![on(Action::Commit, 1)]),
    ]);
    assert!(b.fire().iter().all(Option::is_none));
    let (data, _) = b.read(Which::Principal);
    let epids = [u32_at(&data, 0), u32_at(&data, RECORD)];
    assert_eq!((data.len(), epids), (2 * RECORD, [1, 4]));
}

#[test]
fn actions_out_of_order_are_refused() {
    let speculate = || on(Action::Speculate, 1);
    let commit = || on(Action::Commit, 1);
    let count = || bare(Action::Count, 0, 0);
    let exit = || action(Action::Exit, asm_with("ret %r0", int(4), &[]));
    let store = "setx 1, %r1\n pushtv 0, %r0, %r1\n pushtv 0, %r0, %r1\n pushtv 0, %r0, %r1\n\
                 call copyout, %r1\n ret %r1";
    let copyout = || action(Action::Difexpr, asm_with(store, int(0), &[]));
    let consumer = Consumer::new(config()).unwrap();
    consumer.set_option(Opt::Destructive, 1).unwrap();
    for bad in [
        vec![trace(), speculate()],
        vec![speculate(), speculate()],
        vec![commit(), speculate()],
        vec![trace(), commit()],
        vec![speculate(), commit()],
        vec![commit(), trace()],
        vec![commit(), count()],
        vec![speculate(), count()],
        vec![speculate(), exit()],
        vec![speculate(), bare(Action::Stop, 0, 0)],
        vec![speculate(), copyout()],
        vec![bare(Action::Speculate, 0, 0)],
    ] {
        let refused = consumer.add_clause(&clause(None, bad)).unwrap_err();
        assert_eq!(refused.errno, Errno::EINVAL, "{refused}");
    }
    for good in [
        vec![copyout(), speculate(), trace()],
        vec![commit(), commit(), copyout()],
        vec![on(Action::Discard, 1), trace(), exit(), count()],
    ] {
        consumer.add_clause(&clause(None, good)).unwrap();
    }
}

#[test]
fn only_clauses_that_only_speculate_record_their_probe() {
    let b = Bench::new(vec![
        clause(None, vec![on(Action::Speculate, 1)]),
        clause(
            None,
            vec![
                action(Action::Difexpr, asm_with("ret %r0", int(0), &[])),
                on(Action::Speculate, 1),
            ],
        ),
        clause(None, vec![on(Action::Commit, 1)]),
    ]);
    let sizes = [1, 2, 3].map(|epid| b.consumer.eprobe(epid, |desc, _| desc.size).unwrap());
    assert_eq!(sizes, [12, 0, 0]);
}

#[test]
fn memory_that_is_short_is_halved_or_refused() {
    let go = |options: &[(Opt, u64)]| {
        let consumer = Consumer::new(config()).unwrap();
        for (option, value) in options {
            consumer.set_option(*option, *value).unwrap();
        }
        let id = consumer
            .add_clause(&clause(None, vec![on(Action::Commit, 1)]))
            .unwrap();
        consumer.bind(id, common::PROBE).unwrap();
        consumer.go().map(|()| consumer.option(Opt::Specsize))
    };
    assert_eq!(go(&[(Opt::Specsize, 4096)]), Ok(4096));
    let before = alloc::live();
    // More than 2 GiB of memory on a CPU is refused.
    for (count, size) in [(4096, (512 << 10) + 1), (2, (1 << 30) + 1)] {
        let auto = [(Opt::Nspec, count), (Opt::Specsize, size)];
        let manual = [&auto[..], &[(Opt::Bufresize, BUFRESIZE_MANUAL)]].concat();
        assert_eq!(go(&manual).unwrap_err().errno, Errno::E2BIG);
        alloc::limit(before + (64 << 20));
        let got = go(&auto);
        alloc::limit(usize::MAX);
        assert!(
            got.is_ok_and(|got| got < size && got * count * 2 < 64 << 20),
            "{got:?}"
        );
    }
    assert_eq!(alloc::live(), before);
}
