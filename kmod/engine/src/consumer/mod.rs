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
mod options;
mod pending;
mod run;
mod speculate;

use crate::budget::{FIRING, LIGHT};
use crate::dif::env::{At, Env};
use crate::dif::exec::Stopped;
use crate::dif::locals::Locals;
use crate::ecb::brief::Brief;
use crate::ecb::fire::{self, End, Failed, Outputs};
use crate::ecb::record;
use crate::ecb::rehearsal::{self, Missing};
use crate::ecb::short::Note;
use crate::ecb::{build, Prepared};
use crate::error::{Errno, Reason};
use crate::interp::names::Unread;
use crate::interp::Walker;
use crate::machine::{BadAddr, Machine};
use crate::mem::sync::{Cpu, Guard, Once, TryLock};
use crate::mem::{Boxed, Vec};
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, AtomicU8, Ordering};
pub use describe::Snapshot;
use dtrace_uapi::dif::Instr;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::option::{Opt, UNSET};
use dtrace_uapi::types::{Epid, ProbeId};
use ecbs::Ecbs;
use options::Options;
pub use pending::{Binding, Pending};
use run::{CpuState, Demand, Run};

/// What the consumer's opener may see and do. Whoever may see no other user's processes has no probe fire in them, either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// May read kernel memory and state: without it loads fault with KPRIV.
    pub kernel: bool,
    /// May trace all processes: without it no probe fires in one that may not be traced, and its memory faults with UPRIV.
    pub all_users: bool,
    /// May use destructive actions, if the option `destructive` is set as well.
    pub destructive: bool,
}

impl Privileges {
    /// Everything: root.
    pub const ALL: Self = Self {
        kernel: true,
        all_users: true,
        destructive: true,
    };

    /// Whether whoever has these may do all that `other` allows.
    pub fn cover(self, other: Self) -> bool {
        (self.kernel || !other.kernel)
            && (self.all_users || !other.all_users)
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
        self.go_on(&|_| true)
    }

    /// Allocates all that firing needs, of what each CPU needs that for those that are `there`, and moves to `Warmup`. On an error
    /// nothing stays allocated and it may be tried again, with smaller options say.
    pub fn go_on(&self, there: &dyn Fn(usize) -> bool) -> Result<(), Reason> {
        let mut control = self.control_before_go()?;
        if self.activity() != Activity::Inactive {
            return Err(STARTED);
        }
        let demand = self.demand(&control);
        let run = run::start(&self.config, &mut control, demand, there)?;
        // Clauses are gone from the control path only with a run to hold them, and there is no other.
        self.run.set(run).map_err(|_| STARTED)?;
        self.advance(&[Activity::Inactive], Activity::Warmup);
        Ok(())
    }

    /// Allocates what a CPU needs that comes after [`go_on`](Self::go_on) and before the end; to be called before it fires, for one CPU at
    /// a time. Where it fails, what fires there is counted, and it may be tried again.
    pub fn admit(&self, cpu: usize) -> Result<(), Reason> {
        let run = self.run.get().ok_or(NOT_STARTED)?;
        match self.is_over() {
            true => Ok(()),
            false => run.admit(cpu),
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

    /// Whether `probe` may fire although the consumer is not `Active`.
    #[cold]
    fn fires_inactive(&self, probe: ProbeId) -> bool {
        let Config {
            begin, end, error, ..
        } = self.config;
        match self.activity() {
            // Once `BEGIN` has called exit(), its other clauses are not run.
            Activity::Warmup => probe == begin || probe == error,
            Activity::Draining => probe == error,
            Activity::Cooldown => probe == end || probe == error,
            Activity::Active => true,
            Activity::Inactive | Activity::Stopped | Activity::Killed => false,
        }
    }

    /// Whether `probe` fires for this consumer alone, wherever that is.
    fn is_own(&self, probe: ProbeId) -> bool {
        let Config {
            begin, end, error, ..
        } = self.config;
        probe == begin || probe == end || probe == error
    }

    /// Fires `ecb` on `cpu`: predicate, actions, records, aggregations. A fault is returned for the framework to fire
    /// `ERROR` for this consumer, with interrupts still off; a fault within `ERROR` is counted instead.
    ///
    /// Inlined wherever a probe fires: most firings end in here, by what costs less than a call.
    #[inline(always)]
    pub fn fire<M: Machine>(&self, cpu: &Cpu, ecb: Ecb, m: &M) -> Option<FaultReport> {
        let (probe, clause) = (ecb.probe, ecb.clause.index as usize);
        if self.activity.load(Ordering::Relaxed) != Activity::Active as u8
            && !self.fires_inactive(probe)
        {
            return None;
        }
        let run = self.run.get()?;
        if !run.core.all_users && !self.is_own(probe) && !m.is_of_nobody() && !m.owned() {
            return None;
        }
        let clause: &Prepared = run.clauses.get(clause)?;
        let at = At {
            cpu: cpu.index(),
            epid: ecb.epid,
            probe,
        };
        match clause.guard.as_ref().map_or(Ok(true), |g| g.opens(m, at)) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(bad) => return self.unguarded(run, cpu, at, bad),
        }
        // Whoever claims a CPU sees to it that claims are not nested, and counts what that costs.
        let Some(mut state) = run.cpus.enter(cpu) else {
            run.miss(at.cpu);
            return None;
        };
        let state = &mut *state;
        if clause.tally.is_some_and(|t| t.count(m, &mut state.out)) {
            return None;
        }
        if let Some(note) = &clause.note {
            if self.record(clause, note, state, m, at) {
                return None;
            }
        }
        if let Some(brief) = &clause.brief {
            let failed = run_brief(run, clause, brief, state, m, at).err()?;
            return self.failed(failed, at, &mut state.out);
        }
        if let Some(tally) = &clause.tally_by {
            if tally.count(m, at, &mut state.out) {
                return None;
            }
        }
        self.run_clause(run, clause, state, m, at)
    }

    /// The rest of [`fire`](Self::fire), where a clause records what hardly ever faults; `false`: this time
    /// it does.
    #[inline(never)]
    fn record<M: Machine>(
        &self,
        clause: &Prepared,
        note: &Note,
        state: &mut CpuState,
        m: &M,
        at: At,
    ) -> bool {
        let out = &mut state.out;
        let last = at.probe == self.config.end;
        let size_at = |record: &[u8]| self.size_at(record);
        match record::record(clause, note, m, at, &mut out.principal, last, size_at) {
            Ok(End::Done) => {}
            Ok(End::Dropped | End::Committed) => self.note_full(out),
            Err(_) => return false,
        }
        true
    }

    /// The rest of [`fire`](Self::fire), where the argument is not there that the condition is about.
    #[cold]
    fn unguarded(&self, run: &Run, cpu: &Cpu, at: At, bad: BadAddr) -> Option<FaultReport> {
        let mut state = run.cpus.enter(cpu)?;
        let stopped = Stopped {
            trap: bad.into(),
            pc: 0,
        };
        let failed = Failed { action: 0, stopped };
        self.failed(failed, at, &mut state.out)
    }

    /// The rest of [`fire`](Self::fire), where there is something to be made ready.
    #[inline(never)]
    fn run_clause<M: Machine>(
        &self,
        run: &Run,
        clause: &Prepared,
        state: &mut CpuState,
        m: &M,
        at: At,
    ) -> Option<FaultReport> {
        let CpuState { vm, out } = state;
        vm.reset();
        let dynamics = run.core.dynamics.as_ref().filter(|_| clause.dynamics);
        let _inside = dynamics.and_then(|dynamics| dynamics.enter(at.cpu));
        let mut env = Env {
            m,
            core: &run.core,
            vm,
            at,
            rehearsal: None,
        };
        let last = at.probe == self.config.end;
        let size_at = |record: &[u8]| self.size_at(record);
        let end = fire::run(clause, &mut env, out, last, size_at, || self.exits());
        if let Some(units) = env.vm.budget.toil() {
            self.note_toil(run, m, units);
        }
        match end {
            Ok(End::Done) => None,
            Ok(End::Dropped | End::Committed) => {
                self.note_full(out);
                None
            }
            Err(failed) => self.failed(failed, at, out),
        }
    }

    /// Runs `ecb` on `cpu` without any effect; the first user memory that its clause would load and that is not there.
    #[cold]
    pub fn rehearse<M: Machine>(&self, cpu: &Cpu, ecb: Ecb, m: &M) -> Option<Missing> {
        let run = self.run.get()?;
        if self.activity() != Activity::Active || !run.core.all_users && !m.owned() {
            return None;
        }
        let clause: &Prepared = run.clauses.get(ecb.clause.index as usize)?;
        let at = At {
            cpu: cpu.index(),
            epid: ecb.epid,
            probe: ecb.probe,
        };
        let guard = clause.guard.as_ref();
        if !guard.map_or(Ok(true), |g| g.opens(m, at)).ok()? {
            return None;
        }
        let mut state = run.cpus.enter(cpu)?;
        let vm = &mut state.vm;
        vm.reset();
        let dynamics = run.core.dynamics.as_ref().filter(|_| clause.dynamics);
        let _inside = dynamics.and_then(|dynamics| dynamics.enter(at.cpu));
        let missing = Cell::new(None);
        let mut env = Env {
            m,
            core: &run.core,
            vm,
            at,
            rehearsal: Some(&missing),
        };
        // What else is wrong the firing will tell.
        let _ = rehearsal::run(clause, &mut env);
        if let Some(units) = env.vm.budget.toil() {
            self.note_toil(run, m, units);
        }
        missing.get()
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

    /// Counts that `clauses` were passed by in `m`'s firing, as if each had done what is not counted else.
    #[cold]
    pub fn note_clauses<M: Machine>(&self, m: &M, clauses: u64) {
        if let Some(run) = self.run.get() {
            self.note_toil(run, m, clauses.saturating_mul(LIGHT));
        }
    }

    /// Counts a heavy clause's work, and ends the consumer where the firing takes too long. Whoever has asked for destructive
    /// actions is trusted.
    #[cold]
    fn note_toil<M: Machine>(&self, run: &Run, m: &M, units: u64) {
        if m.toil(units) > FIRING && !run.destructive {
            self.kill();
        }
    }

    /// Counts a fill buffer that has become full, which ends the tracing.
    #[cold]
    fn note_full(&self, out: &mut Outputs) {
        if out.principal.newly_full() {
            self.filled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// `exit()` was called; whether it is this call that counts. There is one while tracing, on whichever CPU; after that `END`
    /// may have another word.
    #[cold]
    fn exits(&self) -> bool {
        self.advance(&[Activity::Warmup, Activity::Active], Activity::Draining)
            || self.activity() == Activity::Cooldown
    }

    /// Size of the record at the beginning of `record`; that of padding is 4.
    fn size_at(&self, record: &[u8]) -> usize {
        let epid = record.first_chunk().map_or(0, |b| u32::from_ne_bytes(*b));
        self.ecbs.record_size(epid).max(4)
    }

    #[cold]
    fn failed(&self, failed: Failed, at: At, out: &mut Outputs) -> Option<FaultReport> {
        out.principal.count_error();
        self.note_full(out);
        if at.probe == self.config.error {
            self.double_errors.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.errors.fetch_add(1, Ordering::Relaxed);
        Some(FaultReport {
            epid: at.epid,
            action: failed.action,
            offset: failed.stopped.pc.wrapping_mul(size_of::<Instr>() as u32),
            fault: failed.stopped.trap.fault,
            value: failed.stopped.trap.value,
        })
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

/// The rest of [`Consumer::fire`], where hardly anything can fault.
#[inline(never)]
fn run_brief<M: Machine>(
    run: &Run,
    clause: &Prepared,
    brief: &Brief,
    state: &mut CpuState,
    m: &M,
    at: At,
) -> Result<(), Failed> {
    let CpuState { vm, out } = state;
    let dynamics = match &run.core.dynamics {
        Some(dynamics) if clause.dynamics => Some(dynamics),
        _ => None,
    };
    let _inside = dynamics.and_then(|dynamics| dynamics.enter(at.cpu));
    let locals = Locals::new(m, at.cpu, dynamics, vm);
    brief.run(&clause.actions, m, at, locals, out)
}
