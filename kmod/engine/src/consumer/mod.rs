// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A consumer: one open file's clauses, enabled probes, options, buffers and state.
//!
//! Everything takes `&self`, so the framework keeps a consumer in an `Arc` from open to close. Control calls
//! (`prepare`, `go`, descriptions, snapshots) are to be serialised by the framework's mutex of the open file; two at a
//! time are refused with `EBUSY`, never undefined. Probes are bound ([`Consumer::binding`]) under the framework's own
//! mutex, next to any of them. [`Consumer::fire`] runs at any time on any CPU.
//!
//! The life of a consumer is its [`Activity`]: `Inactive` –go→ `Warmup` –activate→ `Active` –exit()→ `Draining`
//! –cool_down→ `Cooldown` –stop→ `Stopped`; `kill` ends it from anywhere. Clauses are added while `Inactive`; `go` freezes them and
//! allocates what firing needs; probes may be bound to clauses at any time.
//!
//! A consumer may be dropped only when no CPU can be in `fire` any more (the framework removes its ECBs from all probes
//! and waits for an RCU grace period).
// Numbers of clauses and enabled probes.
#![allow(clippy::arithmetic_side_effects)]

mod describe;
mod ecbs;
mod firing;
mod options;
mod pending;
mod run;
mod speculate;

use crate::ecb::{build, Prepared};
use crate::error::{Errno, Reason};
use crate::interp::names::Unread;
use crate::interp::Walker;
use crate::mem::sync::{Guard, Once, TryLock};
use crate::mem::{Boxed, Vec};
use core::sync::atomic::{AtomicU64, AtomicU8, Ordering};
pub use describe::Snapshot;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::option::{Opt, UNSET};
use dtrace_uapi::types::{Epid, ProbeId};
use ecbs::{Ecbs, OWN};
use options::Options;
pub use pending::{Binding, Pending};
use run::{Demand, Pay, Run};

/// What the consumer's opener may see and do. Whoever may see no other user's processes has no probe fire in them, either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// May see the kernel's inside, its probes, arguments, registers and stacks: without it what is asked for faults with KPRIV.
    pub kernel: bool,
    /// May load the kernel's memory as well.
    pub kernel_memory: bool,
    /// May trace all processes: without it no probe fires in one that may not be traced, and its memory faults with UPRIV.
    pub all_users: bool,
    /// May load the memory of the processes that it may trace, and have probes placed in them.
    pub user_memory: bool,
    /// May use destructive actions, if the option `destructive` is set as well.
    pub destructive: bool,
}

impl Privileges {
    /// Everything: root.
    pub const ALL: Self = Self {
        kernel: true,
        kernel_memory: true,
        all_users: true,
        user_memory: true,
        destructive: true,
    };

    /// Whether whoever has these may do all that `other` allows.
    pub fn cover(self, other: Self) -> bool {
        (self.kernel || !other.kernel)
            && (self.kernel_memory || !other.kernel_memory)
            && (self.all_users || !other.all_users)
            && (self.user_memory || !other.user_memory)
            && (self.destructive || !other.destructive)
    }
}

/// What the platform under [`Machine`] can do; programs that ask for more are refused with the thing's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// `stop()` and `raise()`.
    pub signals: bool,
    /// `ustack()` and what depends on it.
    pub ustack: bool,
    /// `breakpoint()`.
    pub breakpoint: bool,
    /// `panic()`.
    pub panic: bool,
    /// `chill()`.
    pub chill: bool,
    /// `copyout()` and `copyoutstr()`.
    pub user_store: bool,
    /// `regs[]`.
    pub regs: bool,
    /// `uregs[]`.
    pub uregs: bool,
}

/// What a consumer is made with.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// CPUs are numbered from 0 to below this.
    pub ncpus: usize,
    /// Of the opener.
    pub privileges: Privileges,
    /// Of the platform.
    pub features: Features,
    /// The id of `dtrace:::BEGIN`.
    pub begin: ProbeId,
    /// The id of `dtrace:::END`.
    pub end: ProbeId,
    /// The id of `dtrace:::ERROR`.
    pub error: ProbeId,
    /// Starts the random numbers of `rand()`.
    pub seed: u64,
    /// Starts the [hashes](crate::hash) of its keys: nobody can guess it.
    pub secret: u64,
    /// Whether the caller of a control call is killed, and need not be answered.
    pub is_killed: fn() -> bool,
}

impl Config {
    /// Which a probe is of those that fire for one consumer at a time, if it is one.
    #[inline(always)]
    fn own(&self, probe: ProbeId) -> Option<usize> {
        let own: [ProbeId; OWN] = [self.begin, self.end, self.error];
        own.iter().position(|own| *own == probe)
    }
}

/// Where a consumer is in its life; the numbers are DTrace's.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Being set up.
    Inactive = 0,
    /// `BEGIN` is firing.
    Warmup = 1,
    /// Tracing.
    Active = 2,
    /// `exit()` was called: only `ERROR` fires.
    Draining = 3,
    /// The consumer stops: only `END` and `ERROR` fire.
    Cooldown = 4,
    /// `END` has fired.
    Stopped = 5,
    /// The kernel has ended it.
    Killed = 6,
}

/// It fires probes, be it one.
const UNDER_WAY: &[Activity] = &[
    Activity::Warmup,
    Activity::Active,
    Activity::Draining,
    Activity::Cooldown,
];

/// A verified and prepared clause of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClauseId {
    index: u32,
    /// Size of its records, bytes.
    size: u32,
}

/// An enabled probe: what the framework keeps in its list at the probe, and gives to [`Consumer::fire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ecb {
    /// The enabled probe's id, from 1 without gaps.
    pub epid: Epid,
    /// The probe.
    pub probe: ProbeId,
    /// Its clause.
    pub clause: ClauseId,
}

/// A fault in a firing: the arguments of the `ERROR` probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultReport {
    /// `arg1`: the enabled probe.
    pub epid: Epid,
    /// `arg2`: the action, from 1; 0 is the predicate.
    pub action: u32,
    /// `arg3`: the offset of the DIF instruction, bytes.
    pub offset: u32,
    /// `arg4`: the kind of fault.
    pub fault: Fault,
    /// `arg5`: the address or value.
    pub value: u64,
}

/// Which of a CPU's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The records of actions.
    Principal,
    /// Aggregations.
    Aggregation,
}

/// What the control calls work on.
#[derive(Debug, Default)]
struct Control {
    options: Options,
    shared: build::Shared,
    /// Empty once started: then they are in [`Run`].
    clauses: Vec<Boxed<Prepared>>,
    /// The same.
    walkers: Vec<Walker>,
}

/// A consumer. See the [module](self)'s text.
#[derive(Debug)]
pub struct Consumer {
    config: Config,
    activity: AtomicU8,
    run: Once<Run>,
    control: TryLock<Control>,
    cleaning: TryLock<()>,
    ecbs: Ecbs,
    errors: AtomicU64,
    double_errors: AtomicU64,
    filled: AtomicU64,
}

const BUSY: Reason = Reason::new(Errno::EBUSY, "another call is under way");
const STARTED: Reason = Reason::new(Errno::EBUSY, "tracing has started");
const NOT_STARTED: Reason = Reason::new(Errno::ENOENT, "tracing has not started");

impl Consumer {
    /// A consumer without clauses.
    pub fn new(config: Config) -> Result<Self, Reason> {
        Ok(Self {
            config,
            activity: AtomicU8::new(Activity::Inactive as u8),
            run: Once::new(),
            control: TryLock::new(Control::default()),
            cleaning: TryLock::new(()),
            ecbs: Ecbs::default(),
            errors: AtomicU64::new(0),
            double_errors: AtomicU64::new(0),
            filled: AtomicU64::new(0),
        })
    }

    /// What its opener may see and do.
    pub fn privileges(&self) -> Privileges {
        self.config.privileges
    }

    fn control(&self) -> Result<Guard<'_, Control>, Reason> {
        self.control.take().ok_or(BUSY)
    }

    fn control_before_go(&self) -> Result<Guard<'_, Control>, Reason> {
        let control = self.control()?;
        match self.run.get() {
            Some(_) => Err(STARTED),
            None => Ok(control),
        }
    }

    /// An option's value, [`UNSET`] where nobody has set it. After `go`, the sizes that were got.
    pub fn option(&self, option: Opt) -> u64 {
        self.control().map_or(UNSET, |c| c.options.raw(option))
    }

    /// Copies the names of a frame of interpreted code to the beginning of `to`; returns how many bytes they are.
    pub fn frame_names(&self, number: u32, to: &mut [u8]) -> Result<usize, Unread> {
        let interp = self.run.get().and_then(|run| run.core.interp.as_ref());
        interp.ok_or(Unread::None)?.names.read(number, to)
    }

    /// Whether anything has been enabled, before `go`.
    pub fn has_clauses(&self) -> bool {
        self.control().is_ok_and(|c| !c.clauses.is_empty())
    }

    /// Whether a clause reads `vtimestamp`.
    pub fn reads_vtimestamp(&self) -> bool {
        self.control().is_ok_and(|c| c.shared.vtimestamp)
    }

    /// As [`go_on`](Self::go_on), with all CPUs there.
    pub fn go(&self) -> Result<(), Reason> {
        self.go_on(&|_| true, &|_| true)
    }

    /// Allocates all that firing needs, of what each CPU needs that for those that are `there`, and moves to `Warmup`. On an error
    /// nothing stays allocated and it may be tried again, with smaller options say. `pay` is asked before memory is allocated whose
    /// size options tell, and may be asked again for less: for how much in all, bytes.
    pub fn go_on(&self, there: &dyn Fn(usize) -> bool, pay: Pay<'_>) -> Result<(), Reason> {
        let mut control = self.control_before_go()?;
        if self.activity() != Activity::Inactive {
            return Err(STARTED);
        }
        let demand = self.demand(&control);
        let run = run::start(&self.config, &mut control, demand, there, pay)?;
        // Clauses are gone from the control path only with a run to hold them, and there is no other.
        self.run.set(run).map_err(|_| STARTED)?;
        self.advance(&[Activity::Inactive], Activity::Warmup);
        Ok(())
    }

    /// Allocates what a CPU needs that comes after [`go_on`](Self::go_on) and before the end; to be called before it fires, for one CPU at
    /// a time. Where it fails, what fires there is counted, and it may be tried again. `pay` is asked as by `go_on`.
    pub fn admit(&self, cpu: usize, pay: Pay<'_>) -> Result<(), Reason> {
        let run = self.run.get().ok_or(NOT_STARTED)?;
        match self.is_over() {
            true => Ok(()),
            false => run.admit(cpu, pay),
        }
    }

    /// Whether there is what a CPU needs: what fires there may be recorded.
    pub fn has_buffers(&self, cpu: usize) -> bool {
        self.run.get().is_some_and(|run| run.cpus.has(cpu))
    }

    /// Whether nothing will be recorded any more.
    pub fn is_over(&self) -> bool {
        matches!(self.activity(), Activity::Stopped | Activity::Killed)
    }

    /// What the bound clauses ask of a principal buffer.
    fn demand(&self, control: &Control) -> Demand {
        let mut demand = Demand::default();
        for (_, probe, clause) in self.ecbs.iter() {
            let of = |c: &Prepared| (c.charge(), c.principal, c.align);
            let Some((charge, size @ 1.., align)) = self.with_clause(control, clause, of) else {
                continue;
            };
            if probe == self.config.end {
                demand.end.add(charge, size, align);
            }
            // Every consumer lets the library tell of faults: what has no room for that may have room for all the rest.
            if probe != self.config.error {
                demand.record = demand.record.max(charge);
            }
        }
        demand
    }

    /// Moves on from one of `from`, which stand in the order of a life; whether it was this call that did.
    fn advance(&self, from: &[Activity], to: Activity) -> bool {
        from.iter().any(|from| {
            let (from, to) = (*from as u8, to as u8);
            self.activity
                .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Ends `Warmup`: call it when `BEGIN` has fired.
    pub fn activate(&self) {
        self.advance(&[Activity::Warmup], Activity::Active);
    }

    /// Moves to `Cooldown`: call it before `END` is fired.
    pub fn cool_down(&self) {
        self.advance(
            &[Activity::Warmup, Activity::Active, Activity::Draining],
            Activity::Cooldown,
        );
    }

    /// Moves to `Stopped`: call it when `END` has fired.
    pub fn stop(&self) {
        self.advance(UNDER_WAY, Activity::Stopped);
    }

    /// Ends it (a deadman, or a firing that took too long). What has not begun, or has ended, stays as it is.
    pub fn kill(&self) {
        self.advance(UNDER_WAY, Activity::Killed);
    }

    /// Where it is in its life.
    pub fn activity(&self) -> Activity {
        match self.activity.load(Ordering::Acquire) {
            1 => Activity::Warmup,
            2 => Activity::Active,
            3 => Activity::Draining,
            4 => Activity::Cooldown,
            5 => Activity::Stopped,
            6 => Activity::Killed,
            _ => Activity::Inactive,
        }
    }

    /// Whether a clause loads user memory, which the arguments of its probe may lie in; where another call keeps that from being known, it may.
    pub fn reads_user(&self, clause: ClauseId, args_in_memory: bool) -> bool {
        let reads = |clauses: &Vec<Boxed<Prepared>>| {
            let clause = clauses.get(clause.index as usize);
            clause.is_some_and(|clause| clause.reads_user || args_in_memory && clause.reads_args)
        };
        match self.run.get() {
            Some(run) => reads(&run.clauses),
            None => self
                .control()
                .map_or(true, |control| reads(&control.clauses)),
        }
    }

    /// Cleans deleted dynamic variables for reuse; to be called every `cleanrate`. `grace` must return only after every
    /// CPU that was in [`fire`](Self::fire) when it was called has left it (synchronize_rcu()).
    pub fn clean(&self, grace: impl FnOnce()) {
        if let (Some(run), Some(_cleaning)) = (self.run.get(), self.cleaning.take()) {
            if let Some(dynamics) = &run.core.dynamics {
                dynamics.clean(grace);
            }
        }
    }

    fn with_clause<R>(
        &self,
        control: &Control,
        id: ClauseId,
        read: impl FnOnce(&Prepared) -> R,
    ) -> Option<R> {
        let clauses = self.run.get().map_or(&control.clauses, |run| &run.clauses);
        clauses.get(id.index as usize).map(|clause| read(clause))
    }
}
