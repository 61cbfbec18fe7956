// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Buffers of any size and policy: each firing is recorded once or counted as dropped, and a ring has the newest.

mod common;

use common::asm::{asm, asm_with, bytes};
use common::machine::TestMachine;
use common::{action, clause, config, cpu, u32_at, Steps, END, PROBE};
use dtrace_engine::dof::ActionSpec;
use dtrace_engine::mem::alloc::{limit, live};
use dtrace_engine::{Clause, Consumer, Ecb, Errno, Which};
use dtrace_uapi::action::Action;
use dtrace_uapi::option::{Opt, BUFPOLICY_FILL, BUFPOLICY_RING, BUFPOLICY_SWITCH};
use proptest::prelude::*;

/// `n` bytes of memory.
fn memory(n: u32) -> ActionSpec {
    let difo = asm_with("ldgs arg0, %r1\n ret %r1", bytes(n), &[]);
    action(Action::Tracemem, difo)
}

/// Traces `arg1`, by which firings are told apart, and `more` bytes.
fn tracing(more: u32) -> Clause {
    let number = action(Action::Difexpr, asm("ldgs arg1, %r1\n ret %r1"));
    clause(None, vec![number, memory(more)])
}

/// A tracing with a buffer of this size and policy; an ECB each for records of several sizes, and one at `END`.
struct Tracing {
    consumer: Consumer,
    ecbs: Vec<Ecb>,
    end: Ecb,
    m: TestMachine,
    fired: u64,
}

impl Tracing {
    fn new(policy: u64, size: u64, extra: &[u32]) -> Self {
        let consumer = Consumer::new(config()).unwrap();
        consumer.set_option(Opt::Bufpolicy, policy).unwrap();
        consumer.set_option(Opt::Bufsize, size).unwrap();
        let mut ecbs = Vec::new();
        for more in extra {
            let id = consumer.add_clause(&tracing(*more)).unwrap();
            ecbs.push(consumer.bind(id, PROBE).unwrap());
        }
        let id = consumer.add_clause(&tracing(8)).unwrap();
        let end = consumer.bind(id, END).unwrap();
        consumer.go().unwrap();
        consumer.activate();
        let mut m = TestMachine::default();
        m.kernel.insert(100, vec![0xa5; 4096]);
        Self {
            consumer,
            ecbs,
            end,
            m,
            fired: 0,
        }
    }

    fn fire(&mut self, ecb: Ecb) {
        self.fired += 1;
        self.m.args[1] = self.fired;
        assert_eq!(self.consumer.fire(&cpu(0), ecb, &self.m), None);
    }

    /// The numbers of the recorded firings, oldest first, and how many were dropped.
    fn read(&self) -> (Vec<u64>, u64) {
        let c = &self.consumer;
        c.switch(&cpu(0), Which::Principal, 1)
            .unwrap_or_else(|r| panic!("{r}"));
        let (data, oldest, drops) = c
            .snapshot(0, Which::Principal, |s| {
                (s.data.to_vec(), s.oldest as usize, s.drops)
            })
            .unwrap();
        let mut numbers = Vec::new();
        for part in [&data[oldest..], &data[..oldest]] {
            let mut rest = part;
            // What is shorter than an EPID is no record.
            while rest.len() >= 4 {
                let epid = u32_at(rest, 0);
                if epid == 0 {
                    rest = &rest[4..];
                    continue;
                }
                let (size, at) = c
                    .eprobe(epid, |desc, recs| {
                        (desc.size as usize, recs[0].offset as usize)
                    })
                    .unwrap();
                numbers.push(u64::from_ne_bytes(rest[at..at + 8].try_into().unwrap()));
                rest = &rest[size..];
            }
        }
        (numbers, drops)
    }
}

/// Numbers of clauses that fire; every so often the buffer is read.
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
        let mut t = Tracing::new(BUFPOLICY_SWITCH, size, &extra);
        let (mut seen, mut dropped, mut last) = (0, 0, 0);
        let mut take = |t: &Tracing| {
            let (numbers, drops) = t.read();
            for n in &numbers {
                assert!(*n > last, "{n} after {last}");
                last = *n;
            }
            seen += numbers.len() as u64;
            dropped += drops;
        };
        for (n, read) in firings {
            t.fire(t.ecbs[n]);
            if read {
                take(&t);
            }
        }
        take(&t);
        prop_assert_eq!(seen + dropped, t.fired);
    }

    #[test]
    fn filled_buffers_keep_the_oldest_and_the_end(size in 0u64..500, extra in extra(), firings in firings()) {
        let mut t = Tracing::new(BUFPOLICY_FILL, size, &extra);
        for (n, _) in firings {
            t.fire(t.ecbs[n]);
        }
        let before = t.fired;
        prop_assert_eq!(t.consumer.switch(&cpu(0), Which::Principal, 1).unwrap_err().errno, Errno::EBUSY);
        let full = t.consumer.status().unwrap().filled == 1;
        t.consumer.drain();
        t.fire(t.end);
        t.consumer.stop();
        let (mut numbers, drops) = t.read();
        prop_assert_eq!(numbers.len() as u64 + drops, t.fired);
        // Room for END's 32 bytes is kept before any other.
        if size >= 32 {
            prop_assert_eq!(numbers.pop(), Some(t.fired));
        }
        let kept = numbers.len() as u64;
        prop_assert_eq!(&numbers, &(1..=kept).collect::<Vec<_>>());
        prop_assert_eq!(full, kept < before);
    }

    #[test]
    fn rings_keep_the_newest(size in 0u64..500, extra in extra(), firings in firings()) {
        let mut t = Tracing::new(BUFPOLICY_RING, size, &extra);
        let mut fitting = Vec::new();
        for (n, _) in &firings {
            t.fire(t.ecbs[*n]);
            let needs = t.consumer.eprobe(t.ecbs[*n].epid, |desc, _| u64::from(desc.size)).unwrap();
            if needs <= size {
                fitting.push(t.fired);
            }
        }
        t.consumer.stop();
        let (numbers, drops) = t.read();
        // What is too big for the whole buffer is dropped; of the rest the newest are there, the very last one at least.
        prop_assert_eq!(drops, t.fired - fitting.len() as u64);
        prop_assert!(fitting.ends_with(&numbers), "{numbers:?} of {fitting:?}");
        prop_assert!(!numbers.is_empty() || fitting.is_empty());
    }
}

#[test]
fn sizes_beyond_any_memory_are_refused() {
    let c = Consumer::new(config()).unwrap();
    for option in [Opt::Bufsize, Opt::Aggsize, Opt::Dynvarsize, Opt::Specsize] {
        for size in [u64::MAX, 1 << 63, 1 << 40, (2 << 30) + 1] {
            let reason = c.set_option(option, size).unwrap_err();
            assert_eq!(reason.errno, Errno::E2BIG, "{} {size}", option.name());
        }
        c.set_option(option, 2 << 30).unwrap();
    }
    for policy in [3, u64::MAX] {
        assert_eq!(
            c.set_option(Opt::Bufpolicy, policy).unwrap_err().errno,
            Errno::EINVAL
        );
    }
    // A CPU that there is not is refused when tracing begins.
    c.set_option(Opt::Cpu, 2).unwrap();
    assert_eq!(c.go().unwrap_err().errno, Errno::EINVAL);
}

/// What was asked for is not there: less is taken if that is allowed, and it is told how much.
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
        let id = c.add_clause(&tracing(8)).unwrap();
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

/// One CPU is traced, another has nothing.
#[test]
fn a_single_cpu_is_traced() {
    let c = Consumer::new(config()).unwrap();
    c.set_option(Opt::Cpu, 1).unwrap();
    let id = c.add_clause(&tracing(8)).unwrap();
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
