// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A consumer: the clauses, enabled probes, options, buffers and state of one open file.
//!
//! All methods take `&self`, so the framework keeps a consumer in an `Arc` from open to close. The
//! framework must serialise control calls (`prepare`, `go`, descriptions, snapshots) by the open
//! file's mutex. If two of them overlap nevertheless, the second is refused with `EBUSY`; that is
//! never undefined behaviour. Probes are bound ([`Consumer::binding`]) under the framework's own
//! mutex, also while a control call is under way. [`Consumer::fire`] runs at any time on any CPU.
//!
//! The life of a consumer is its [`Activity`]: `Inactive` –go→ `Warmup` –activate→ `Active`
//! –exit()→ `Draining` –cool_down→ `Cooldown` –stop→ `Stopped`. Steps may be left out, but none
//! goes back. `kill` ends a consumer in any state between `Warmup` and `Cooldown`. Clauses are
//! added while `Inactive`; `go` freezes them and allocates what firings need. Probes may be bound
//! to clauses at any time.
//!
//! A consumer may be dropped only when no CPU can be in `fire` any more: the framework first
//! removes its ECBs from all probes and waits for an RCU grace period.
// Arithmetic on numbers of clauses and enabled probes.
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

/// Rights of the consumer's opener (INV-35). If the opener may not trace all processes, no probe
/// fires for the consumer in a process that the opener may not trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// May see the kernel's state: its probes, arguments, registers and stacks. Without this right
    /// a request for it faults with KPRIV.
    pub kernel: bool,
    /// May also load kernel memory.
    pub kernel_memory: bool,
    /// May trace all processes. Without this right no probe fires in a process that the opener may
    /// not trace, and a request for its memory faults with UPRIV.
    pub all_users: bool,
    /// May load the memory of the processes that the opener may trace, and have probes placed in
    /// them.
    pub user_memory: bool,
    /// May use destructive actions, if the option `destructive` is set as well.
    pub destructive: bool,
}

impl Privileges {
    /// All rights: root's.
    pub const ALL: Self = Self {
        kernel: true,
        kernel_memory: true,
        all_users: true,
        user_memory: true,
        destructive: true,
    };

    /// Whether these rights include all rights of `other`.
    pub fn cover(self, other: Self) -> bool {
        (self.kernel || !other.kernel)
            && (self.kernel_memory || !other.kernel_memory)
            && (self.all_users || !other.all_users)
            && (self.user_memory || !other.user_memory)
            && (self.destructive || !other.destructive)
    }
}

/// What the platform under [`Machine`](crate::Machine) can do. A program that needs more is
/// refused, and the reason names what is missing.
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

/// Parameters of a new consumer.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// CPUs are numbered from 0 to `ncpus` - 1.
    pub ncpus: usize,
    /// Rights of the opener.
    pub privileges: Privileges,
    /// Features of the platform.
    pub features: Features,
    /// The id of `dtrace:::BEGIN`.
    pub begin: ProbeId,
    /// The id of `dtrace:::END`.
    pub end: ProbeId,
    /// The id of `dtrace:::ERROR`.
    pub error: ProbeId,
    /// Seed of the random numbers of `rand()`, and of the hashes of interpreted frames' names.
    pub seed: u64,
    /// Start value of the [hashes](crate::hash) of its keys, which must not be predictable
    /// (INV-30).
    pub secret: u64,
    /// Whether the caller of a control call has been killed, so that it needs no answer.
    pub is_killed: fn() -> bool,
}

impl Config {
    /// Returns which of the consumer's *own probes* `probe` is, if it is one. These are `BEGIN`,
    /// `END` and `ERROR`, which fire for one consumer at a time.
    #[inline(always)]
    fn own(&self, probe: ProbeId) -> Option<usize> {
        let own: [ProbeId; OWN] = [self.begin, self.end, self.error];
        own.iter().position(|own| *own == probe)
    }
}

/// The state of a consumer's life; the numbers are DTrace's.
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
    /// The consumer is stopping: only `END` and `ERROR` fire.
    Cooldown = 4,
    /// `END` has fired.
    Stopped = 5,
    /// The kernel has ended it.
    Killed = 6,
}

/// States in which at least one probe may fire.
const UNDER_WAY: &[Activity] = &[
    Activity::Warmup,
    Activity::Active,
    Activity::Draining,
    Activity::Cooldown,
];

/// Identifies a verified and prepared clause of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClauseId {
    index: u32,
    /// Size of its records, in bytes.
    size: u32,
}

/// An ECB, or enabled probe: the framework keeps it in its list at the probe, and passes it to
/// [`Consumer::fire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ecb {
    /// Its EPID. EPIDs start at 1 and have no gaps.
    pub epid: Epid,
    /// The probe.
    pub probe: ProbeId,
    /// Its clause.
    pub clause: ClauseId,
}

/// A fault in a firing: the arguments of the `ERROR` probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultReport {
    /// `arg1`: the EPID of the enabled probe.
    pub epid: Epid,
    /// `arg2`: the action, from 1; 0 is the predicate.
    pub action: u32,
    /// `arg3`: the offset of the DIF instruction, in bytes.
    pub offset: u32,
    /// `arg4`: the kind of fault.
    pub fault: Fault,
    /// `arg5`: the address or value.
    pub value: u64,
}

/// One of a CPU's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The records of actions.
    Principal,
    /// Aggregations.
    Aggregation,
}

/// The state that control calls work on.
#[derive(Debug, Default)]
struct Control {
    options: Options,
    shared: build::Shared,
    /// The clauses. `go` moves them to [`Run`].
    clauses: Vec<Boxed<Prepared>>,
    /// The walkers. `go` moves them to [`Run`] too.
    walkers: Vec<Walker>,
}

/// A consumer; see the [module](self).
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

/// How often the lock of the control calls is tried: for some ten microseconds.
const TRIES: usize = 1000;

const BUSY: Reason = Reason::new(Errno::EBUSY, "another call is under way");
const STARTED: Reason = Reason::new(Errno::EBUSY, "tracing has started");
const NOT_STARTED: Reason = Reason::new(Errno::ENOENT, "tracing has not started");

impl Consumer {
    /// Makes a consumer without clauses.
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

    /// Returns the rights of its opener.
    pub fn privileges(&self) -> Privileges {
        self.config.privileges
    }

    /// Takes the lock, for a call of the consumer's own. Other tasks hold the lock for a moment only,
    /// to look something up, and this waits for them for a moment. The consumer's calls may hold it
    /// for long, so who has the framework's mutex must not wait ([`reads_user`](Self::reads_user)).
    fn control(&self) -> Result<Guard<'_, Control>, Reason> {
        for _ in 0..TRIES {
            if let Some(control) = self.control.take() {
                return Ok(control);
            }
            core::hint::spin_loop();
        }
        Err(BUSY)
    }

    fn control_before_go(&self) -> Result<Guard<'_, Control>, Reason> {
        let control = self.control()?;
        match self.run.get() {
            Some(_) => Err(STARTED),
            None => Ok(control),
        }
    }

    /// Returns an option's value; [`UNSET`] if it has not been set, or if another control call is
    /// under way. After `go`, sizes are those that were allocated.
    pub fn option(&self, option: Opt) -> u64 {
        self.control().map_or(UNSET, |c| c.options.raw(option))
    }

    /// Whether it may do destructive actions by its options; an error if another control call is
    /// under way.
    pub fn is_destructive(&self) -> Result<bool, Reason> {
        let control = self.control()?;
        Ok(!matches!(control.options.raw(Opt::Destructive), 0 | UNSET))
    }

    /// Copies the names of a frame of interpreted code to the beginning of `to`. Returns their size
    /// in bytes.
    pub fn frame_names(&self, number: u32, to: &mut [u8]) -> Result<usize, Unread> {
        let interp = self.run.get().and_then(|run| run.core.interp.as_ref());
        interp.ok_or(Unread::None)?.names.read(number, to)
    }

    /// Whether anything has been enabled. Only meaningful before `go`; false if another control
    /// call is under way.
    pub fn has_clauses(&self) -> bool {
        self.control().is_ok_and(|c| !c.clauses.is_empty())
    }

    /// Whether a clause reads `vtimestamp`; false if another control call is under way.
    pub fn reads_vtimestamp(&self) -> bool {
        self.control().is_ok_and(|c| c.shared.vtimestamp)
    }

    /// As [`go_on`](Self::go_on), with all CPUs online.
    pub fn go(&self) -> Result<(), Reason> {
        self.go_on(&|_| true, &|_| true)
    }

    /// Allocates all memory that firings need, and moves to `Warmup`. Memory of a CPU is allocated
    /// only if the CPU is online, as `there` says, or if the option `cpu` names it. On an error
    /// nothing stays allocated, and the call may be repeated, for example with smaller options.
    /// Before memory is allocated whose size depends on options, `pay` is called with the total
    /// number of bytes. It may be called again with less.
    pub fn go_on(&self, there: &dyn Fn(usize) -> bool, pay: Pay<'_>) -> Result<(), Reason> {
        let mut control = self.control_before_go()?;
        if self.activity() != Activity::Inactive {
            return Err(STARTED);
        }
        let demand = self.demand(&control);
        let run = run::start(&self.config, &mut control, demand, there, pay)?;
        // Cannot fail. Only a call that sets `run` takes the clauses out of `control`, and `run` is
        // unset, because `control_before_go` has checked that under the same guard.
        self.run.set(run).map_err(|_| STARTED)?;
        self.advance(&[Activity::Inactive], Activity::Warmup);
        Ok(())
    }

    /// Allocates the memory of a CPU that comes online after [`go_on`](Self::go_on) and before the
    /// end. To be called before the CPU fires, and for one CPU at a time. If this fails, firings on
    /// that CPU are counted instead of recorded, and the call may be repeated. `pay` is called as
    /// by `go_on`.
    pub fn admit(&self, cpu: usize, pay: Pay<'_>) -> Result<(), Reason> {
        let run = self.run.get().ok_or(NOT_STARTED)?;
        match self.is_over() {
            true => Ok(()),
            false => run.admit(cpu, pay),
        }
    }

    /// Whether the CPU has its memory, so that its firings can be recorded.
    pub fn has_buffers(&self, cpu: usize) -> bool {
        self.run.get().is_some_and(|run| run.cpus.has(cpu))
    }

    /// Whether the consumer has ended, so that nothing will be recorded any more.
    pub fn is_over(&self) -> bool {
        matches!(self.activity(), Activity::Stopped | Activity::Killed)
    }

    /// Returns what the bound clauses need of a principal buffer.
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
            // The library enables `ERROR` for every consumer, to report faults. A buffer without
            // room for its record may have room for all others.
            if probe != self.config.error {
                demand.record = demand.record.max(charge);
            }
        }
        demand
    }

    /// Moves to `to` from one of the states `from`, which must be in the order of a life: then a
    /// state that another CPU changes in between is still found. Whether it was this call that did
    /// it.
    fn advance(&self, from: &[Activity], to: Activity) -> bool {
        from.iter().any(|from| {
            let (from, to) = (*from as u8, to as u8);
            self.activity
                .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Ends `Warmup`. To be called when `BEGIN` has fired.
    pub fn activate(&self) {
        self.advance(&[Activity::Warmup], Activity::Active);
    }

    /// Moves to `Cooldown`. To be called before `END` is fired.
    pub fn cool_down(&self) {
        self.advance(
            &[Activity::Warmup, Activity::Active, Activity::Draining],
            Activity::Cooldown,
        );
    }

    /// Moves to `Stopped`. To be called when `END` has fired.
    pub fn stop(&self) {
        self.advance(UNDER_WAY, Activity::Stopped);
    }

    /// Ends the consumer, by a deadman or because a firing took too long. A consumer that has not
    /// started, or has ended, stays as it is.
    pub fn kill(&self) {
        self.advance(UNDER_WAY, Activity::Killed);
    }

    /// Returns the state of its life.
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

    /// Whether a clause loads user memory. `args_in_memory` says that the arguments of its probe
    /// may lie there. If another control call before `go` keeps this from being looked up, the
    /// answer is true.
    pub fn reads_user(&self, clause: ClauseId, args_in_memory: bool) -> bool {
        let reads = |clauses: &Vec<Boxed<Prepared>>| {
            let clause = clauses.get(clause.index as usize);
            clause.is_some_and(|clause| clause.reads_user || args_in_memory && clause.reads_args)
        };
        match self.run.get() {
            Some(run) => reads(&run.clauses),
            None => self
                .control
                .take()
                .is_none_or(|control| reads(&control.clauses)),
        }
    }

    /// Cleans deleted dynamic variables for reuse; to be called every `cleanrate`. `grace` must
    /// return only after every CPU that was in [`fire`](Self::fire) when it was called has left it
    /// (`synchronize_rcu()`). Does nothing while another cleaning is under way.
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
