// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! From a clause to bytes in a buffer.

mod common;

use common::asm::{array, asm, asm_with, bytes, int, string, var};
use common::machine::TestMachine;
use common::{
    action, bare, clause, config, cpu, str_at, u32_at, u64_at, Bench, Steps, BEGIN, END, ERROR,
    PROBE,
};
use dtrace_engine::dof::ActionSpec;
use dtrace_engine::{Activity, Consumer, Errno, Which};
use dtrace_uapi::action::Action;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::option::{Opt, BUFPOLICY_FILL, BUFPOLICY_SWITCH};

const PID: &str = "ldgs pid, %r1\n ret %r1";

#[test]
fn an_empty_clause_records_its_header() {
    let b = Bench::new(vec![clause(None, vec![])]);
    assert_eq!(b.fire(), [None]);
    let (data, drops) = b.read(Which::Principal);
    assert_eq!((data.len(), drops), (12, 0));
    assert_eq!(u32_at(&data, 0), 1);
    assert_eq!((u32_at(&data, 4), u32_at(&data, 8)), (1, 1));
    b.consumer
        .eprobe(1, |desc, recs| {
            assert_eq!((desc.size, recs.len(), desc.probeid), (12, 0, PROBE))
        })
        .unwrap();
}

#[test]
fn trace_records_values_strings_and_memory() {
    let mut b = Bench::new(vec![clause(
        None,
        vec![
            action(Action::Difexpr, asm_with(PID, int(4), &[])),
            action(Action::Difexpr, asm("ldgs arg1, %r1\n ret %r1")),
            action(
                Action::Difexpr,
                asm_with("ldgs execname, %r1\n ret %r1", string(), &[]),
            ),
            action(
                Action::Tracemem,
                asm_with("ldgs arg0, %r1\n ret %r1", bytes(6), &[]),
            ),
        ],
    )]);
    b.m.kernel.insert(100, b"kernel memory".to_vec());
    assert_eq!(b.fire(), [None]);
    let (data, _) = b.read(Which::Principal);
    let offsets = b
        .consumer
        .eprobe(1, |_, recs| {
            recs.iter().map(|r| (r.offset, r.size)).collect::<Vec<_>>()
        })
        .unwrap();
    assert_eq!(offsets, [(12, 4), (16, 8), (24, 256), (280, 6)]);
    assert_eq!((u32_at(&data, 12), u64_at(&data, 16)), (1234, 101));
    assert_eq!(str_at(&data, 24), "tester");
    assert_eq!(&data[280..286], b"kernel");
}

#[test]
fn a_predicate_decides() {
    let predicate = |n: u64| {
        asm(&format!(
            "ldgs pid, %r1\n setx {n}, %r2\n cmp %r1, %r2\n be yes\n setx 0, %r1\n ba out\n\
             yes: setx 1, %r1\n out: ret %r1"
        ))
    };
    let b = Bench::new(vec![
        clause(Some(predicate(1234)), vec![]),
        clause(Some(predicate(1235)), vec![]),
    ]);
    b.fire();
    b.fire();
    let (data, _) = b.read(Which::Principal);
    assert_eq!(data.len(), 24);
    assert_eq!((u32_at(&data, 0), u32_at(&data, 12)), (1, 1));
}

#[test]
fn clauses_that_record_nothing_take_no_room() {
    let set = asm_with(
        "setx 5, %r1\n stgs %r1, 0x500\n ret %r1",
        int(0),
        &[var(0x500, 0, int(8))],
    );
    let get = asm_with(
        "ldgs 0x500, %r1\n ret %r1",
        int(8),
        &[var(0x500, 0, int(8))],
    );
    let b = Bench::new(vec![
        clause(None, vec![action(Action::Difexpr, set)]),
        clause(None, vec![action(Action::Difexpr, get)]),
    ]);
    b.fire();
    let (data, _) = b.read(Which::Principal);
    assert_eq!(
        (data.len(), u32_at(&data, 0), u64_at(&data, 16)),
        (24, 2, 5)
    );
}

fn varid(id: u32) -> ActionSpec {
    action(
        Action::Difexpr,
        asm_with(&format!("setx {id}, %r1\n ret %r1"), int(4), &[]),
    )
}

fn execname_key() -> ActionSpec {
    action(
        Action::Difexpr,
        asm_with("ldgs execname, %r1\n ret %r1", string(), &[]),
    )
}

#[test]
fn counts_by_execname() {
    let mut b = Bench::new(vec![clause(
        None,
        vec![varid(9), execname_key(), bare(Action::Count, 2, 0)],
    )]);
    for (n, comm) in [(3, "bash"), (2, "ls"), (1, "a-long-name-xyz")] {
        b.m.comm = comm;
        for _ in 0..n {
            assert_eq!(b.fire(), [None]);
        }
    }
    let (data, drops) = b.read(Which::Aggregation);
    let (size, recs) = b
        .consumer
        .aggdesc(1, |desc, recs| {
            assert_eq!((desc.epid, desc.nrecs), (1, 3));
            (
                desc.size as usize,
                recs.iter().map(|r| (r.offset, r.size)).collect::<Vec<_>>(),
            )
        })
        .unwrap();
    assert_eq!((size, drops), (272, 0));
    assert_eq!(recs, [(4, 4), (8, 256), (264, 8)]);
    assert_eq!(data.len(), 3 * size);
    let got: Vec<_> = data
        .chunks(size)
        .map(|e| {
            (
                u32_at(e, 0),
                u32_at(e, 4),
                str_at(e, 8).to_string(),
                u64_at(e, 264),
            )
        })
        .collect();
    let want = |s: &str, n| (1, 9, s.to_string(), n);
    assert_eq!(
        got,
        [want("bash", 3), want("ls", 2), want("a-long-name-xyz", 1)]
    );
    // Nothing else was recorded, and the next half starts empty.
    assert_eq!(b.read(Which::Principal).0.len(), 0);
    assert_eq!(b.read(Which::Aggregation).0.len(), 0);
}

#[test]
fn a_condition_is_asked_at_every_firing() {
    let both = "ldgs arg0, %r1\n ldgs arg1, %r2\n and %r1, %r2, %r1\n ret %r1";
    let one = "ldgs arg0, %r1\n ret %r1";
    for (condition, keys) in [(both, 0), (both, 1), (one, 0), (one, 1)] {
        let mut actions = vec![bare(Action::Count, keys, 0)];
        if keys == 1 {
            actions.insert(0, execname_key());
        }
        let mut b = Bench::new(vec![clause(Some(asm(condition)), actions)]);
        for arg in [1, 0, 1, 0, 0, 0] {
            b.m.args[0] = arg;
            b.m.args[1] = 1;
            assert_eq!(b.fire(), [None]);
        }
        let (data, _) = b.read(Which::Aggregation);
        assert_eq!(u64_at(&data, data.len() - 8), 2, "{condition} {keys}");
    }
}

/// Counts by one key, while `set` sets it to each of `values` in turn, several times. Returns the
/// counts in the order in which the keys appeared.
fn counts_by<T: Copy>(key: ActionSpec, set: fn(&mut TestMachine, T), values: &[T]) -> Vec<u64> {
    let mut b = Bench::new(vec![clause(None, vec![key, bare(Action::Count, 1, 0)])]);
    for round in 0..3 {
        for (n, value) in values.iter().enumerate() {
            set(&mut b.m, *value);
            for _ in 0..=n + round {
                assert_eq!(b.fire(), [None]);
            }
        }
    }
    let (data, drops) = b.read(Which::Aggregation);
    let size = b.consumer.aggdesc(1, |desc, _| desc.size as usize).unwrap();
    assert_eq!(drops, 0);
    data.chunks(size).map(|e| u64_at(e, e.len() - 8)).collect()
}

#[test]
fn a_counter_is_that_of_its_key() {
    let names = [
        "sh",
        "a-long-name-xyz",
        "a-long-name-xyy",
        "a-long-n",
        "",
        "s",
    ];
    let want: Vec<u64> = (0..6).map(|n| 3 * n + 6).collect();
    let by_name = counts_by(execname_key(), |m, comm| m.comm = comm, &names);
    assert_eq!(by_name, want);
    for size in [4, 8] {
        let arg = asm_with("ldgs arg0, %r1\n ret %r1", int(size), &[]);
        let key = action(Action::Difexpr, arg);
        let values = [0, 1, 1 << 31, 0x7fff_ffff, 7, 0xffff_ffff];
        let by_value = counts_by(key, |m, value| m.args[0] = value, &values);
        assert_eq!(by_value, want, "{size} bytes");
    }
}

#[test]
fn probes_that_share_a_clause_share_its_aggregation() {
    let c = Consumer::new(config()).unwrap();
    let id = c
        .add_clause(&clause(None, vec![varid(1), bare(Action::Count, 1, 0)]))
        .unwrap();
    let ecbs: Vec<_> = (0..1000)
        .map(|probe| c.bind(id, 10 + probe).unwrap())
        .collect();
    assert_eq!(
        ecbs.iter().map(|e| e.epid).collect::<Vec<_>>(),
        (1..=1000).collect::<Vec<_>>()
    );
    c.go().unwrap();
    c.activate();
    let m = common::machine::TestMachine::default();
    for ecb in &ecbs {
        assert_eq!(c.fire(&cpu(1), *ecb, &m), None);
    }
    c.switch(&cpu(1), Which::Aggregation, 0).unwrap();
    let n = c
        .snapshot(1, Which::Aggregation, |s| (s.data.len(), u64_at(s.data, 8)))
        .unwrap();
    assert_eq!(n, (16, 1000));
}

#[test]
fn values_are_aggregated_by_stack() {
    let arg0 = || asm_with("ldgs arg0, %r1\n ret %r1", int(0), &[]);
    let b = Bench::new(vec![clause(
        None,
        vec![
            varid(1),
            bare(Action::Stack, 0, 5),
            action(Action::Difexpr, arg0()),
            bare(Action::Sum, 3, 0),
            varid(2),
            action(Action::Difexpr, arg0()),
            bare(Action::Quantize, 2, 0),
        ],
    )]);
    b.fire();
    b.fire();
    let (data, _) = b.read(Which::Aggregation);
    // EPID, variable, five frames, sum.
    assert_eq!(
        (
            u32_at(&data, 0),
            u64_at(&data, 8),
            u64_at(&data, 24),
            u64_at(&data, 32)
        ),
        (1, 11, 13, 0)
    );
    assert_eq!(u64_at(&data, 48), 200);
    assert_eq!(u32_at(&data, 56), 2);
    // 100 is in the bucket of 64.
    assert_eq!(u64_at(&data, 64 + 8 * (64 + 6)), 2);
}

/// A key keeps nothing of a deeper stack before it, and each stack is one key.
#[test]
fn what_a_stack_does_not_have_is_zero() {
    let key = bare(Action::Stack, 0, 5);
    let mut b = Bench::new(vec![clause(None, vec![key, bare(Action::Count, 1, 0)])]);
    for depth in [3, 1, 3, 1, 2] {
        b.m.depth = depth;
        assert_eq!(b.fire(), [None]);
    }
    let (data, _) = b.read(Which::Aggregation);
    let words: Vec<u64> = (0..data.len() / 8).map(|n| u64_at(&data, n * 8)).collect();
    let entries: Vec<&[u64]> = words.chunks_exact(words.len() / 3).collect();
    for (entry, stack, count) in [
        (0, [11, 12, 13, 0, 0], 2),
        (1, [11, 0, 0, 0, 0], 2),
        (2, [11, 12, 0, 0, 0], 1),
    ] {
        assert!(entries[entry].ends_with(&[&stack[..], &[count]].concat()));
    }
}

#[test]
fn aggregations_that_do_not_fit_are_counted() {
    let c = Consumer::new(config()).unwrap();
    c.set_option(Opt::Aggsize, 4096).unwrap();
    let arg0 = action(Action::Difexpr, asm("ldgs arg0, %r1\n ret %r1"));
    let mut b = Bench::with(c, vec![clause(None, vec![arg0, bare(Action::Count, 1, 0)])]);
    for n in 0..1000 {
        b.m.args[0] = n;
        b.fire();
    }
    let (data, drops) = b.read(Which::Aggregation);
    assert_eq!(data.len() as u64 / 24 + drops, 1000);
    assert!(drops > 800);
}

#[test]
fn faults_name_action_offset_and_address() {
    let load = asm("setx 0x10, %r1\n ldx [%r1], %r2\n ret %r2");
    let b = Bench::new(vec![
        clause(
            None,
            vec![
                action(Action::Difexpr, asm(PID)),
                action(Action::Difexpr, load),
            ],
        ),
        clause(
            Some(asm("setx 1, %r1\n sdiv %r1, %r0, %r2\n ret %r2")),
            vec![],
        ),
    ]);
    let faults = b.fire();
    let f = faults[0].unwrap();
    assert_eq!(
        (f.epid, f.action, f.offset, f.fault, f.value),
        (1, 2, 4, Fault::BadAddr, 0x10)
    );
    let f = faults[1].unwrap();
    assert_eq!(
        (f.epid, f.action, f.offset, f.fault),
        (2, 0, 4, Fault::DivZero)
    );
    let (data, drops) = b.read(Which::Principal);
    assert_eq!((data.len(), drops), (0, 0));
    assert_eq!(b.consumer.status().unwrap().errors, 2);
}

#[test]
fn exit_drains_and_end_still_fires() {
    let c = Consumer::new(config()).unwrap();
    let exit = action(Action::Exit, asm_with("setx 3, %r1\n ret %r1", int(4), &[]));
    let exit = c.add_clause(&clause(None, vec![exit])).unwrap();
    let plain = c.add_clause(&clause(None, vec![])).unwrap();
    let [b1, b2] = [c.bind(exit, BEGIN).unwrap(), c.bind(plain, BEGIN).unwrap()];
    let [p, e] = [c.bind(plain, PROBE).unwrap(), c.bind(plain, END).unwrap()];
    let m = common::machine::TestMachine::default();
    assert_eq!(c.fire(&cpu(0), p, &m), None);
    assert_eq!(c.status().unwrap_err().errno, Errno::ENOENT);
    c.go().unwrap();
    for ecb in [p, b1, b2, p] {
        assert_eq!(c.fire(&cpu(0), ecb, &m), None);
    }
    c.activate();
    assert_eq!(
        (c.activity(), c.status().unwrap().exiting),
        (Activity::Draining, 1)
    );
    assert_eq!(c.fire(&cpu(0), e, &m), None);
    c.cool_down();
    for ecb in [p, e] {
        assert_eq!(c.fire(&cpu(0), ecb, &m), None);
    }
    c.stop();
    assert_eq!(c.fire(&cpu(0), e, &m), None);
    c.switch(&cpu(0), Which::Principal, 0).unwrap();
    let epids: Vec<u32> = c
        .snapshot(0, Which::Principal, |s| {
            assert_eq!(u32_at(s.data, 12), 3);
            vec![u32_at(s.data, 0), u32_at(s.data, 16)]
        })
        .unwrap();
    assert_eq!(epids, [b1.epid, e.epid]);
    assert_eq!(
        c.add_clause(&clause(None, vec![])).unwrap_err().errno,
        Errno::EBUSY
    );
}

#[test]
fn of_several_exits_the_first_is_recorded_and_ends() {
    let c = Consumer::new(config()).unwrap();
    let exit = |status: u32| {
        let code = format!("setx {status}, %r1\n ret %r1");
        action(Action::Exit, asm_with(&code, int(4), &[]))
    };
    let bad = action(Action::Difexpr, asm("ldx [%r0], %r1\n ret %r1"));
    let faults = c.add_clause(&clause(None, vec![exit(3), bad])).unwrap();
    let again = c.add_clause(&clause(None, vec![exit(4)])).unwrap();
    let [p, error] = [c.bind(faults, PROBE), c.bind(again, ERROR)].map(Result::unwrap);
    let end = c.bind(again, END).unwrap();
    c.go().unwrap();
    c.activate();
    let m = common::machine::TestMachine::default();
    // The fault discards the record, but the exit remains in effect.
    assert!(c.fire(&cpu(0), p, &m).is_some());
    assert_eq!(c.activity(), Activity::Draining);
    assert_eq!(c.fire(&cpu(1), error, &m), None);
    c.cool_down();
    assert_eq!(c.fire(&cpu(0), end, &m), None);
    c.stop();
    let records = |n: usize| {
        c.switch(&cpu(n), Which::Principal, 0).unwrap();
        let read = |s: dtrace_engine::Snapshot<'_>| s.data.to_vec();
        c.snapshot(n, Which::Principal, read).unwrap()
    };
    assert_eq!(records(1), []);
    let data = records(0);
    assert_eq!((data.len(), u32_at(&data, 0)), (16, end.epid));
}

#[test]
fn faults_in_error_are_counted_apart() {
    let c = Consumer::new(config()).unwrap();
    let bad = action(Action::Difexpr, asm("ldx [%r0], %r1\n ret %r1"));
    let id = c.add_clause(&clause(None, vec![bad])).unwrap();
    let ecb = c.bind(id, ERROR).unwrap();
    c.go().unwrap();
    let m = common::machine::TestMachine::default();
    assert_eq!(c.fire(&cpu(0), ecb, &m), None);
    let status = c.status().unwrap();
    assert_eq!((status.errors, status.dblerrors), (0, 1));
}

#[test]
fn thread_locals_and_arrays_keep_their_values_apart() {
    let v = [var(0x500, 1, int(8)), array(0x501, 0, int(8))];
    let add = "ldts 0x500, %r1\n setx 1, %r2\n add %r1, %r2, %r1\n stts %r1, 0x500\n ret %r1";
    let by_pid = "flushts\n ldgs pid, %r3\n setx 8, %r2\n pushtv ctf, %r2, %r3\n\
                  ldgaa 0x501, %r1\n setx 10, %r2\n add %r1, %r2, %r1\n stgaa %r1, 0x501\n ret %r1";
    let mut b = Bench::new(vec![
        clause(
            None,
            vec![action(Action::Difexpr, asm_with(add, int(8), &v))],
        ),
        clause(
            None,
            vec![action(Action::Difexpr, asm_with(by_pid, int(8), &v))],
        ),
    ]);
    b.fire();
    b.fire();
    b.m.thread += 64;
    b.fire();
    b.m.pid = 99;
    b.fire();
    let (data, _) = b.read(Which::Principal);
    let got: Vec<u64> = data.chunks(24).map(|rec| u64_at(rec, 16)).collect();
    assert_eq!(got, [1, 10, 2, 20, 1, 30, 2, 10]);
}

#[test]
fn strings_are_kept_by_value_in_every_kind_of_variable() {
    for (store, load, v) in [
        ("stgs", "ldgs", var(0x500, 0, string())),
        ("stls", "ldls", var(0x500, 2, string())),
        ("stts", "ldts", var(0x500, 1, string())),
    ] {
        let set = format!("ldgs arg0, %r1\n {store} %r1, 0x500\n ret %r1");
        let get = format!("{load} 0x500, %r1\n ret %r1");
        let mut b = Bench::new(vec![
            clause(
                None,
                vec![action(Action::Difexpr, asm_with(&set, int(0), &[v]))],
            ),
            clause(
                None,
                vec![action(Action::Difexpr, asm_with(&get, string(), &[v]))],
            ),
        ]);
        b.m.kernel.insert(100, b"first\0".to_vec());
        assert_eq!(b.fire(), [None, None]);
        b.m.kernel.insert(100, b"2nd\0".to_vec());
        assert_eq!(b.fire(), [None, None]);
        b.m.args[0] = 0;
        let null = b.fire();
        assert_eq!(null[1].unwrap().fault, Fault::BadAddr, "{store}");
        let (data, _) = b.read(Which::Principal);
        assert_eq!(
            (str_at(&data, 16), str_at(&data, 288)),
            ("first", "2nd"),
            "{store}"
        );
    }
}

#[test]
fn destructive_actions_need_privilege_and_option() {
    let stop = || clause(None, vec![bare(Action::Stop, 0, 0)]);
    let c = Consumer::new(config()).unwrap();
    assert_eq!(c.add_clause(&stop()).unwrap_err().errno, Errno::EACCES);
    c.set_option(Opt::Destructive, 1).unwrap();
    let raise = action(Action::Raise, asm("setx 9, %r1\n ret %r1"));
    let out = asm(
        "setx 0x1000, %r1\n ldgs arg0, %r2\n setx 4, %r3\n flushts\n pushtv ctf, %r3, %r2\n\
         pushtv ctf, %r3, %r1\n pushtv ctf, %r3, %r3\n call copyout, %r1\n ret %r1",
    );
    let mut b = Bench::with(
        c,
        vec![
            stop(),
            clause(None, vec![raise]),
            clause(None, vec![action(Action::Difexpr, out)]),
        ],
    );
    b.m.kernel.insert(100, b"data".to_vec());
    b.m.user.get_mut().insert(0x1000, vec![0; 8]);
    assert_eq!(b.fire(), [None; 3]);
    assert_eq!(*b.m.log.borrow(), ["stop", "raise 9"]);
    assert_eq!(b.m.user.borrow()[&0x1000], b"data\0\0\0\0");
}

#[test]
fn a_signal_that_is_not_sent_is_a_fault() {
    let c = Consumer::new(config()).unwrap();
    c.set_option(Opt::Destructive, 1).unwrap();
    let raise = action(Action::Raise, asm("setx 65, %r1\n ret %r1"));
    let b = Bench::with(c, vec![clause(None, vec![raise])]);
    assert_eq!(b.fire()[0].unwrap().fault, Fault::IllOp);
}

#[test]
fn principal_drops_are_exact_and_switching_makes_room() {
    let c = Consumer::new(config()).unwrap();
    // EPIDs count towards the size, times do not.
    c.set_option(Opt::Bufsize, 40).unwrap();
    let b = Bench::with(c, vec![clause(None, vec![])]);
    for _ in 0..25 {
        b.fire();
    }
    let (data, drops) = b.read(Which::Principal);
    assert_eq!((data.len(), drops), (120, 15));
    b.fire();
    let (data, drops) = b.read(Which::Principal);
    assert_eq!((data.len(), drops), (12, 0));
}

#[test]
fn ring_and_fill_are_read_when_stopped() {
    for (policy, first) in [(0u64, 31u32), (1, 1)] {
        let c = Consumer::new(config()).unwrap();
        c.set_option(Opt::Bufsize, 40).unwrap();
        c.set_option(Opt::Bufpolicy, policy).unwrap();
        let id = c.add_clause(&clause(None, vec![])).unwrap();
        let ecbs: Vec<_> = (0..40).map(|n| c.bind(id, 10 + n).unwrap()).collect();
        c.go().unwrap();
        c.activate();
        let m = common::machine::TestMachine::default();
        for ecb in &ecbs {
            c.fire(&cpu(0), *ecb, &m);
        }
        assert_eq!(
            c.switch(&cpu(0), Which::Principal, 0).unwrap_err().errno,
            Errno::EBUSY
        );
        c.stop();
        c.switch(&cpu(0), Which::Principal, 0).unwrap();
        let epids: Vec<u32> = c
            .snapshot(0, Which::Principal, |s| {
                let mut data = s.data.to_vec();
                data.rotate_left(s.oldest as usize);
                data.chunks(12).map(|r| u32_at(r, 0)).collect()
            })
            .unwrap();
        assert_eq!(epids, (first..first + 10).collect::<Vec<_>>());
        assert_eq!(c.status().unwrap().filled, policy);
    }
}

#[test]
fn sizes_are_halved_or_refused_when_memory_is_short() {
    use dtrace_engine::mem::alloc::{fail_after, live};
    let before = live();
    {
        let c = Consumer::new(config()).unwrap();
        let id = c
            .add_clause(&clause(
                None,
                vec![execname_key(), bare(Action::Count, 1, 0)],
            ))
            .unwrap();
        c.bind(id, PROBE).unwrap();
        c.set_option(Opt::Bufresize, 1).unwrap();
        let idle = live();
        let mut n = 0;
        loop {
            fail_after(Some(n));
            let result = c.go();
            fail_after(None);
            match result {
                Ok(()) => break,
                Err(reason) => {
                    assert_eq!(reason.errno, Errno::ENOMEM);
                    assert_eq!(live(), idle, "after {n} allocations");
                }
            }
            n += 1;
        }
        assert!(n > 10);
        c.activate();
        let m = common::machine::TestMachine::default();
        let ecb = c.bind(id, PROBE).unwrap();
        assert_eq!(c.fire(&cpu(0), ecb, &m), None);
    }
    assert_eq!(live(), before);
}

#[test]
fn every_event_of_every_cpu_is_recorded_or_counted_as_dropped() {
    const EVENTS: u64 = 20_000;
    let c = Consumer::new(config()).unwrap();
    c.set_option(Opt::Bufsize, 4096).unwrap();
    let v = [var(0x500, 0, int(8)), var(0x501, 1, string())];
    let text = "ldgs 0x500, %r1\n setx 1, %r2\n add %r1, %r2, %r1\n stgs %r1, 0x500\n\
                ldgs execname, %r3\n stts %r3, 0x501\n ldts 0x501, %r3\n ret %r3";
    let traced = action(Action::Difexpr, asm_with(text, string(), &v));
    let id = c
        .add_clause(&clause(None, vec![traced, bare(Action::Count, 0, 0)]))
        .unwrap();
    let ecb = c.bind(id, PROBE).unwrap();
    c.go().unwrap();
    c.activate();
    let work = |index: usize| {
        let m = common::machine::TestMachine {
            thread: 0x1000 * (index as u64 + 1),
            comm: ["first", "second"][index],
            ..Default::default()
        };
        // SAFETY: each thread has a CPU of its own.
        let cpu = unsafe { dtrace_engine::Cpu::claim(index) };
        let (mut seen, mut counted) = (0, 0);
        for n in 1..=EVENTS {
            assert_eq!(c.fire(&cpu, ecb, &m), None);
            if n % 97 == 0 || n == EVENTS {
                c.switch(&cpu, Which::Principal, n).unwrap();
                seen += c
                    .snapshot(index, Which::Principal, |s| {
                        for rec in s.data.chunks(272) {
                            assert_eq!((u32_at(rec, 0), str_at(rec, 16)), (ecb.epid, m.comm));
                        }
                        s.data.len() as u64 / 272 + s.drops
                    })
                    .unwrap();
                c.switch(&cpu, Which::Aggregation, n).unwrap();
                counted += c
                    .snapshot(index, Which::Aggregation, |s| u64_at(s.data, 8))
                    .unwrap();
            }
        }
        (seen, counted)
    };
    let totals = std::thread::scope(|scope| {
        let threads = [0, 1].map(|index| scope.spawn(move || work(index)));
        threads.map(|thread| thread.join().unwrap())
    });
    for (seen, counted) in totals {
        assert_eq!(seen, EVENTS);
        // A dropped record ends its clause, so that firing was not aggregated either.
        assert!(counted <= EVENTS && counted > EVENTS / 10);
    }
}

#[test]
fn only_fill_buffers_keep_room_for_the_end() {
    for (policy, recorded) in [(BUFPOLICY_SWITCH, 4), (BUFPOLICY_FILL, 2)] {
        let c = Consumer::new(config()).unwrap();
        c.set_option(Opt::Bufsize, 4 * 4).unwrap();
        c.set_option(Opt::Bufpolicy, policy).unwrap();
        let id = c.add_clause(&clause(None, vec![])).unwrap();
        let ecb = c.bind(id, PROBE).unwrap();
        c.bind(id, END).unwrap();
        c.go().unwrap();
        c.activate();
        let m = common::machine::TestMachine::default();
        for _ in 0..4 {
            assert!(c.fire(&cpu(0), ecb, &m).is_none());
        }
        c.stop();
        c.switch(&cpu(0), Which::Principal, 1).unwrap();
        let read = |snap: dtrace_engine::Snapshot<'_>| snap.data.len() / 12;
        assert_eq!(c.snapshot(0, Which::Principal, read), Ok(recorded));
    }
}
