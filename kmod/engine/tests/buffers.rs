// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Buffers of any size and policy: each firing is recorded once or counted as dropped, and a ring
//! keeps the newest.

mod common;

use common::asm::asm;
use common::machine::TestMachine;
use common::{clause, config, cpu, tracing, Steps, PROBE};
use dtrace_engine::mem::alloc::{fail_after, limit, live};
use dtrace_engine::{Consumer, Errno, Which};
use dtrace_uapi::option::{Opt, BUFPOLICY_RING, BUFPOLICY_SWITCH};
use proptest::prelude::*;
use std::cell::Cell;

/// Indexes of clauses that fire; now and then the buffer is read after a firing.
fn firings() -> impl Strategy<Value = Vec<(usize, bool)>> {
    prop::collection::vec((0usize..3, prop::bool::weighted(0.1)), 0..150)
}

fn extra() -> impl Strategy<Value = [u32; 3]> {
    [1u32..70, 1u32..70, 1u32..70]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn switched_buffers_lose_nothing_uncounted(size in 0u64..500, extra in extra(), firings in firings()) {
        tracing::switched(size, &extra, &firings);
    }

    #[test]
    fn filled_buffers_keep_the_oldest_and_the_end(size in 0u64..500, extra in extra(), firings in firings()) {
        tracing::filled(size, &extra, &firings);
    }

    #[test]
    fn rings_keep_the_newest(size in 0u64..500, extra in extra(), firings in firings()) {
        tracing::ring(size, &extra, &firings);
    }
}

#[test]
fn what_no_option_can_be_is_refused() {
    let c = Consumer::new(config()).unwrap();
    for policy in [3, u64::MAX] {
        assert_eq!(
            c.set_option(Opt::Bufpolicy, policy).unwrap_err().errno,
            Errno::EINVAL
        );
    }
    // A CPU that does not exist is refused when tracing begins.
    c.set_option(Opt::Cpu, 2).unwrap();
    assert_eq!(c.go().unwrap_err().errno, Errno::EINVAL);
}

/// If there is no memory for the requested size, a smaller buffer is used where that is allowed,
/// and its size is reported.
#[test]
fn buffers_are_halved_until_there_is_memory() {
    for (policy, manual) in [
        (BUFPOLICY_SWITCH, false),
        (BUFPOLICY_RING, false),
        (BUFPOLICY_RING, true),
    ] {
        let c = Consumer::new(config()).unwrap();
        c.set_option(Opt::Bufpolicy, policy).unwrap();
        c.set_option(Opt::Bufresize, u64::from(manual)).unwrap();
        c.set_option(Opt::Bufsize, 3 << 20).unwrap();
        let id = c.add_clause(&tracing::numbered(8)).unwrap();
        let ecb = c.bind(id, PROBE).unwrap();
        // Two CPUs with two halves each, and scratch memory.
        let before = live();
        limit(before + (4 << 20));
        let result = c.go();
        limit(usize::MAX);
        if manual {
            assert_eq!(result.unwrap_err().errno, Errno::ENOMEM);
            assert_eq!((live(), c.option(Opt::Bufsize)), (before, 3 << 20));
            continue;
        }
        result.unwrap();
        assert_eq!(c.option(Opt::Bufsize), 3 << 18);
        c.activate();
        let mut m = TestMachine::default();
        m.kernel.insert(100, vec![1; 8]);
        for _ in 0..1000 {
            assert_eq!(c.fire(&cpu(0), ecb, &m), None);
        }
        c.stop();
        c.switch(&cpu(0), Which::Principal, 1).unwrap();
        c.snapshot(0, Which::Principal, |s| assert_eq!(s.data.len(), 32_000))
            .unwrap();
    }
}

/// If one CPU is traced, another one has no buffer.
#[test]
fn a_single_cpu_is_traced() {
    let c = Consumer::new(config()).unwrap();
    c.set_option(Opt::Cpu, 1).unwrap();
    let id = c.add_clause(&tracing::numbered(8)).unwrap();
    let ecb = c.bind(id, PROBE).unwrap();
    c.go().unwrap();
    c.activate();
    let mut m = TestMachine::default();
    m.kernel.insert(100, vec![1; 8]);
    for index in [0, 1, 2] {
        assert_eq!(c.fire(&cpu(index), ecb, &m), None);
    }
    let switched = [0, 1, 2].map(|index| c.switch(&cpu(index), Which::Principal, 1));
    assert_eq!(switched[0].unwrap_err().errno, Errno::ENOENT);
    assert_eq!(switched[2].unwrap_err().errno, Errno::EINVAL);
    c.snapshot(1, Which::Principal, |s| {
        assert_eq!((s.data.len(), s.drops), (32, 0))
    })
    .unwrap();
}

/// A CPU that comes online later is admitted and gets its buffers. If there is no memory for them,
/// its firings are counted.
#[test]
fn cpus_come_later() {
    let c = Consumer::new(config()).unwrap();
    let id = c.add_clause(&tracing::numbered(8)).unwrap();
    let ecb = c.bind(id, PROBE).unwrap();
    assert_eq!(c.admit(1, &|_| true).unwrap_err().errno, Errno::ENOENT);
    let before = live();
    // The other CPU comes online while the tracing begins: it is offline at the first question
    // only.
    let asked = Cell::new(0);
    c.go_on(
        &|cpu| cpu == 0 || asked.replace(asked.get() + 1) > 0,
        &|_| true,
    )
    .unwrap();
    let one = live() - before;
    c.activate();
    let mut m = TestMachine::default();
    m.kernel.insert(100, vec![1; 8]);
    let fire = || [0, 1].map(|index| c.fire(&cpu(index), ecb, &m));
    let records = |index| {
        c.switch(&cpu(index), Which::Principal, 1)?;
        c.snapshot(index, Which::Principal, |s| (s.data.len() / 32, s.drops))
    };
    let unbuffered = || c.status().unwrap().unbuffered;
    assert_eq!(fire(), [None, None]);
    assert_eq!((records(0).unwrap(), unbuffered()), ((1, 0), 1));
    assert_eq!(records(1).unwrap_err().errno, Errno::ENOENT);
    assert!(c.has_buffers(0) && !c.has_buffers(1));
    // Whichever allocation fails, no memory remains allocated.
    let small = live();
    for n in 0.. {
        fail_after(Some(n));
        let admitted = c.admit(1, &|_| true);
        fail_after(None);
        if admitted.is_ok() {
            assert!(n > 4);
            break;
        }
        assert_eq!(admitted.unwrap_err().errno, Errno::ENOMEM);
        assert_eq!(
            (live(), c.switch(&cpu(1), Which::Principal, 1).is_err()),
            (small, true)
        );
        assert_eq!(c.fire(&cpu(1), ecb, &m), None);
        assert_eq!(unbuffered(), n as u64 + 2);
    }
    assert_eq!([0, 1, 2].map(|cpu| c.has_buffers(cpu)), [true, true, false]);
    let missed = unbuffered();
    // The part that the CPUs share is small.
    assert!(live() - small > one / 5 * 4);
    assert_eq!(fire(), [None, None]);
    assert_eq!((records(0).unwrap(), records(1).unwrap()), ((1, 0), (1, 0)));
    // Admitting a CPU again, or one that does not exist, has no effect.
    let large = live();
    c.admit(1, &|_| true).unwrap();
    c.admit(2, &|_| true).unwrap();
    assert_eq!((live(), unbuffered()), (large, missed));
    // A tracing of one CPU does not get buffers for others, and counts nothing there.
    let c = Consumer::new(config()).unwrap();
    c.set_option(Opt::Cpu, 1).unwrap();
    let id = c.add_clause(&tracing::numbered(8)).unwrap();
    let ecb = c.bind(id, PROBE).unwrap();
    c.go_on(&|cpu| cpu == 0, &|_| true).unwrap();
    c.admit(0, &|_| true).unwrap();
    c.activate();
    assert_eq!(c.fire(&cpu(0), ecb, &m), None);
    assert_eq!(c.status().unwrap().unbuffered, 0);
    let switched = [0, 1].map(|index| c.switch(&cpu(index), Which::Principal, 1).is_ok());
    assert_eq!(switched, [false, true]);
    // Nor does a consumer that has ended.
    let c = Consumer::new(config()).unwrap();
    c.go_on(&|cpu| cpu == 0, &|_| true).unwrap();
    c.kill();
    c.admit(1, &|_| true).unwrap();
    assert!(!c.has_buffers(1));
}

/// Firings for which there is no time, or whose condition cannot be tested, are counted also on a
/// CPU that has no buffers.
#[test]
fn firings_without_buffers_are_counted_however_they_end() {
    let c = Consumer::new(config()).unwrap();
    let condition = asm("ldgs arg0, %r1\n ret %r1");
    let id = c.add_clause(&clause(Some(condition), vec![])).unwrap();
    let ecb = c.bind(id, PROBE).unwrap();
    c.go_on(&|cpu| cpu == 0, &|_| true).unwrap();
    c.activate();
    let mut m = TestMachine::default();
    let unbuffered = || c.status().unwrap().unbuffered;
    c.drop_firings(&cpu(1), &m, 3);
    assert_eq!(unbuffered(), 3);
    m.missing = Some((0, 0x1234));
    assert_eq!(c.fire(&cpu(1), ecb, &m), None);
    assert_eq!(unbuffered(), 4);
}
