// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Shared parts of the tests of the whole engine: a machine with plain memory, an assembler of DIF
//! text, and builders of clauses and DOF images.
#![allow(dead_code)]

pub mod asm;
pub mod differ;
pub mod dof;
pub mod images;
pub mod machine;
pub mod tracing;

use dtrace_engine::consumer::Config;
use dtrace_engine::dif::verify::Context;
use dtrace_engine::dof::{ActionSpec, Difo};
use dtrace_engine::mem::{Boxed, Vec as EVec};
use dtrace_engine::{
    Activity, Clause, ClauseId, Consumer, Cpu, Ecb, Enabling, FaultReport, Features, Pending,
    Privileges, Reason, Which,
};
use dtrace_uapi::action::Action;
use dtrace_uapi::ioctl::ProbeDesc;
use dtrace_uapi::option::Opt;
use machine::TestMachine;
use zerocopy::FromZeros;

pub const BEGIN: u32 = 1;
pub const END: u32 = 2;
pub const ERROR: u32 = 3;
pub const PROBE: u32 = 10;

pub fn config() -> Config {
    Config {
        ncpus: 2,
        privileges: Privileges::ALL,
        features: Features {
            signals: true,
            ustack: true,
            breakpoint: true,
            panic: true,
            chill: true,
            user_store: true,
            regs: true,
            uregs: true,
        },
        begin: BEGIN,
        end: END,
        error: ERROR,
        seed: 42,
        secret: 1,
        is_killed: || false,
    }
}

/// Returns a context for verifying objects, for tests that do not depend on it: everything is
/// allowed except destructive actions.
pub fn cx() -> Context {
    Context {
        privileges: Privileges::ALL,
        features: config().features,
        destructive: false,
        strsize: 256,
        loops: true,
        walker: false,
    }
}

pub fn copy<T: Copy>(from: &[T]) -> EVec<T> {
    EVec::copy_of(from).unwrap()
}

/// Makes an action with an expression.
pub fn action(kind: Action, difo: Difo) -> ActionSpec {
    ActionSpec {
        kind,
        difo: Some(Boxed::new(difo).unwrap()),
        ntuple: 0,
        arg: 0,
        uarg: 0,
        format: None,
    }
}

/// Makes an action without an expression.
pub fn bare(kind: Action, ntuple: u32, arg: u64) -> ActionSpec {
    ActionSpec {
        kind,
        difo: None,
        ntuple,
        arg,
        uarg: 0,
        format: None,
    }
}

pub fn clause(predicate: Option<Difo>, actions: Vec<ActionSpec>) -> Clause {
    let mut list = EVec::new();
    for action in actions {
        list.push(action).unwrap();
    }
    Clause {
        probe: ProbeDesc::new_zeroed(),
        predicate: predicate.map(|difo| Boxed::new(difo).unwrap()),
        actions: list,
        uarg: 0,
    }
}

/// The steps of adding an image to a consumer, one at a time.
pub trait Steps {
    fn set_option(&self, option: Opt, value: u64) -> Result<(), Reason>;
    fn add_clause(&self, clause: &Clause) -> Result<ClauseId, Reason>;
    fn add_enabling(&self, enabling: &Enabling) -> Result<Vec<ClauseId>, Reason>;
    fn bind(&self, clause: ClauseId, probe: u32) -> Result<Ecb, Reason>;
}

impl Steps for Consumer {
    fn set_option(&self, option: Opt, value: u64) -> Result<(), Reason> {
        self.prepare(&[(option, value)], &[]).map(Pending::commit)
    }

    fn add_clause(&self, clause: &Clause) -> Result<ClauseId, Reason> {
        let pending = self.prepare(&[], std::slice::from_ref(clause))?;
        let id = pending.clause(0).unwrap();
        pending.commit();
        Ok(id)
    }

    fn add_enabling(&self, enabling: &Enabling) -> Result<Vec<ClauseId>, Reason> {
        let pending = self.prepare(enabling.options(), enabling.clauses())?;
        let ids = (0..).map_while(|n| pending.clause(n)).collect();
        pending.commit();
        Ok(ids)
    }

    fn bind(&self, clause: ClauseId, probe: u32) -> Result<Ecb, Reason> {
        let mut binding = self.binding();
        let ecb = binding.bind(clause, probe)?;
        binding.keep();
        Ok(ecb)
    }
}

/// A consumer that is tracing.
pub struct Bench {
    pub consumer: Consumer,
    pub ecbs: Vec<Ecb>,
    pub m: TestMachine,
}

/// Claims a CPU. Tests are single-threaded unless they say otherwise, so every claim is valid.
pub fn cpu(index: usize) -> Cpu {
    // SAFETY: tests that use several threads give each thread a CPU of its own.
    unsafe { Cpu::claim(index) }
}

impl Bench {
    /// Starts a consumer with these clauses, each bound to `PROBE`.
    pub fn new(clauses: Vec<Clause>) -> Self {
        Self::with(Consumer::new(config()).unwrap(), clauses)
    }

    pub fn with(consumer: Consumer, clauses: Vec<Clause>) -> Self {
        let mut ecbs = Vec::new();
        for clause in &clauses {
            let id: ClauseId = consumer
                .add_clause(clause)
                .unwrap_or_else(|r| panic!("{r}"));
            ecbs.push(consumer.bind(id, PROBE).unwrap());
        }
        consumer.go().unwrap_or_else(|r| panic!("{r}"));
        consumer.activate();
        assert_eq!(consumer.activity(), Activity::Active);
        Self {
            consumer,
            ecbs,
            m: TestMachine::default(),
        }
    }

    /// Fires all clauses on CPU 0, as one firing with a new time.
    pub fn fire(&self) -> Vec<Option<FaultReport>> {
        self.m.now.set(self.m.now.get() + 1);
        self.ecbs
            .iter()
            .map(|ecb| self.consumer.fire(&cpu(0), *ecb, &self.m))
            .collect()
    }

    /// Returns the bytes of CPU 0's buffer, and its drops.
    pub fn read(&self, which: Which) -> (Vec<u8>, u64) {
        self.consumer
            .switch(&cpu(0), which, 1)
            .unwrap_or_else(|r| panic!("{r}"));
        self.consumer
            .snapshot(0, which, |snap| (snap.data.to_vec(), snap.drops))
            .unwrap_or_else(|r| panic!("{r}"))
    }
}

pub fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(data[at..at + 4].try_into().unwrap())
}

pub fn u64_at(data: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(data[at..at + 8].try_into().unwrap())
}

pub fn str_at(data: &[u8], at: usize) -> &str {
    let end = data[at..].iter().position(|b| *b == 0).unwrap();
    std::str::from_utf8(&data[at..at + end]).unwrap()
}
