// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A tracing whose firings are numbered, so that a test can determine which of them a buffer kept,
//! and the guarantees of each buffer policy.
//!
//! A firing is given as a pair: the index of the ECB, and whether the buffer is read after it.

use super::asm::{asm, asm_with, bytes};
use super::machine::TestMachine;
use super::{action, clause, config, cpu, u32_at, Steps, END, PROBE};
use dtrace_engine::dof::ActionSpec;
use dtrace_engine::{Clause, Consumer, Ecb, Errno, Which};
use dtrace_uapi::action::Action;
use dtrace_uapi::option::{Opt, BUFPOLICY_FILL, BUFPOLICY_RING, BUFPOLICY_SWITCH};

/// Makes an action that records `n` bytes of memory.
fn memory(n: u32) -> ActionSpec {
    let difo = asm_with("ldgs arg0, %r1\n ret %r1", bytes(n), &[]);
    action(Action::Tracemem, difo)
}

/// Makes a clause that records `arg1`, which identifies the firing, and `more` bytes.
pub fn numbered(more: u32) -> Clause {
    let number = action(Action::Difexpr, asm("ldgs arg1, %r1\n ret %r1"));
    clause(None, vec![number, memory(more)])
}

/// A tracing with a buffer of a given size and policy, one ECB each for records of several sizes,
/// and one at `END`.
pub struct Tracing {
    pub consumer: Consumer,
    pub ecbs: Vec<Ecb>,
    pub end: Ecb,
    m: TestMachine,
    pub fired: u64,
}

impl Tracing {
    /// Starts a tracing. `None` if the engine refuses the buffer because it is too small for a
    /// record, or for that of `END` wherever it is placed.
    pub fn new(policy: u64, size: u64, extra: &[u32]) -> Option<Self> {
        let consumer = Consumer::new(config()).unwrap();
        consumer.set_option(Opt::Bufpolicy, policy).unwrap();
        consumer.set_option(Opt::Bufsize, size).unwrap();
        let mut ecbs = Vec::new();
        for more in extra {
            let id = consumer.add_clause(&numbered(*more)).unwrap();
            ecbs.push(consumer.bind(id, PROBE).unwrap());
        }
        let id = consumer.add_clause(&numbered(8)).unwrap();
        let end = consumer.bind(id, END).unwrap();
        // EPID, padding, a number; the record of `END` need not be aligned.
        let most = extra.iter().max().map_or(24, |more| 16 + more).max(24);
        let charged = u64::from(most.next_multiple_of(4));
        match consumer.go() {
            Ok(()) => assert!(charged <= size && (policy != BUFPOLICY_FILL || 32 <= size)),
            Err(reason) if policy == BUFPOLICY_FILL && size < 32 => {
                assert_eq!(reason.errno, Errno::ENOSPC);
                return None;
            }
            Err(reason) => {
                assert_eq!(reason.errno, Errno::E2BIG);
                assert!(size < charged, "{size} for {charged}");
                return None;
            }
        }
        consumer.activate();
        let mut m = TestMachine::default();
        m.kernel.insert(100, vec![0xa5; 4096]);
        Some(Self {
            consumer,
            ecbs,
            end,
            m,
            fired: 0,
        })
    }

    /// Fires an ECB on CPU 0.
    pub fn fire(&mut self, ecb: Ecb) {
        self.fired += 1;
        self.m.args[1] = self.fired;
        assert_eq!(self.consumer.fire(&cpu(0), ecb, &self.m), None);
    }

    /// Returns the numbers of the recorded firings, oldest first, and the number of drops.
    pub fn read(&self) -> (Vec<u64>, u64) {
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
            // A rest that is shorter than an EPID is no record.
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

/// Policy `switch`: every firing that is not recorded is counted, and records are in order.
pub fn switched(size: u64, extra: &[u32], firings: &[(usize, bool)]) {
    let Some(mut t) = Tracing::new(BUFPOLICY_SWITCH, size, extra) else {
        return;
    };
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
        t.fire(t.ecbs[*n]);
        if *read {
            take(&t);
        }
    }
    take(&t);
    assert_eq!(seen + dropped, t.fired);
}

/// Policy `fill`: the first firings are recorded, up to the one that did not fit, and `END`, for
/// which room is reserved.
pub fn filled(size: u64, extra: &[u32], firings: &[(usize, bool)]) {
    let Some(mut t) = Tracing::new(BUFPOLICY_FILL, size, extra) else {
        return;
    };
    for (n, _) in firings {
        t.fire(t.ecbs[*n]);
    }
    let before = t.fired;
    let refused = t.consumer.switch(&cpu(0), Which::Principal, 1);
    assert_eq!(refused.unwrap_err().errno, Errno::EBUSY);
    let full = t.consumer.status().unwrap().filled == 1;
    t.consumer.cool_down();
    t.fire(t.end);
    t.consumer.stop();
    let (mut numbers, drops) = t.read();
    // The end of recording is no drop.
    assert_eq!(drops, 0);
    assert_eq!(numbers.pop(), Some(t.fired));
    let kept = numbers.len() as u64;
    assert_eq!(numbers, (1..=kept).collect::<Vec<_>>());
    assert_eq!(full, kept < before);
}

/// Policy `ring`: the newest firings are recorded, at least the last one, and nothing is dropped.
pub fn ring(size: u64, extra: &[u32], firings: &[(usize, bool)]) {
    let Some(mut t) = Tracing::new(BUFPOLICY_RING, size, extra) else {
        return;
    };
    for (n, _) in firings {
        t.fire(t.ecbs[*n]);
    }
    t.consumer.stop();
    let (numbers, drops) = t.read();
    assert_eq!(drops, 0);
    let oldest = t.fired + 1 - numbers.len() as u64;
    assert_eq!(numbers, (oldest..=t.fired).collect::<Vec<_>>());
    assert!(!numbers.is_empty() || firings.is_empty());
}
