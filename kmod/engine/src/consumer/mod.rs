// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A consumer: one open file's clauses, enabled probes, options, buffers and state.
//!
//! Everything takes `&self`, so the framework keeps a consumer in an `Arc` from open to close. Control calls
//! (`add_clause`, `bind`, `set_option`, `go`, descriptions, snapshots) are to be serialised by the framework's mutex of
//! the open file; two at a time are refused with `EBUSY`, never undefined. [`Consumer::fire`] runs at any time on any
//! CPU, next to all of them.
//!
//! The life of a consumer is its [`Activity`]: `Inactive` –go→ `Warmup` –activate→ `Active` –exit()/drain→ `Draining`
//! –stop→ `Stopped`; `kill` ends it from anywhere. Clauses are added while `Inactive`; `go` freezes them and
//! allocates what firing needs; probes may be bound to clauses at any time.
//!
//! A consumer may be dropped only when no CPU can be in `fire` any more (the framework removes its ECBs from all probes
//! and waits for an RCU grace period).

use crate::dof::{Clause, Enabling};
use crate::error::{Errno, Reason};
use crate::machine::Machine;
use crate::mem::sync::Cpu;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::ioctl::{AggDesc, EprobeDesc, RecDesc, Status};
use dtrace_uapi::option::Opt;
use dtrace_uapi::types::{AggId, Epid, ProbeId};

/// What the consumer's opener may see and do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// May read kernel memory and state: without it loads fault with KPRIV.
    pub kernel: bool,
    /// May see processes of other users: without it their memory and state fault with UPRIV.
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
    /// `exit()` was called or the consumer stops: only `END` and `ERROR` fire.
    Draining = 3,
    /// `END` has fired.
    Stopped = 5,
    /// The kernel has ended it.
    Killed = 6,
}

/// A verified and prepared clause of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClauseId(pub u32);

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

/// The inactive half of a CPU's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The records.
    pub data: &'a [u8],
    /// Records dropped since the last snapshot.
    pub drops: u64,
    /// Faults since the last snapshot.
    pub errors: u32,
    /// Offset of the oldest record.
    pub oldest: u64,
    /// When it was switched.
    pub timestamp: u64,
}

/// A consumer. See the [module](self)'s text.
#[derive(Debug)]
pub struct Consumer {
    config: Config,
}

const LATER: Reason = Reason::new(Errno::ENOENT, "not started");

impl Consumer {
    /// A consumer without clauses.
    pub fn new(config: Config) -> Result<Self, Reason> {
        Ok(Self { config })
    }

    /// Sets an option. `EBUSY` once started; `EINVAL` for a value that it cannot have; `EACCES` without privilege.
    pub fn set_option(&self, _option: Opt, _value: u64) -> Result<(), Reason> {
        Err(LATER)
    }

    /// An option's value, [`UNSET`](dtrace_uapi::option::UNSET) where nobody has set it. After `go`, the sizes that were got.
    pub fn option(&self, _option: Opt) -> u64 {
        dtrace_uapi::option::UNSET
    }

    /// Verifies and prepares a clause. `EBUSY` once started.
    pub fn add_clause(&self, _clause: &Clause) -> Result<ClauseId, Reason> {
        Err(LATER)
    }

    /// Sets an image's options and adds its clauses, all or (of the clauses) none: the ids are consecutive from the one
    /// returned.
    pub fn add_enabling(&self, _enabling: &Enabling) -> Result<ClauseId, Reason> {
        Err(LATER)
    }

    /// Binds a probe to a clause, which gives it an EPID.
    pub fn bind(&self, _clause: ClauseId, _probe: ProbeId) -> Result<Ecb, Reason> {
        Err(LATER)
    }

    /// Allocates all that firing needs and moves to `Warmup`. On an error nothing stays allocated and it may be tried
    /// again, with smaller options say.
    pub fn go(&self) -> Result<(), Reason> {
        Err(LATER)
    }

    /// Ends `Warmup`: call it when `BEGIN` has fired.
    pub fn activate(&self) {}

    /// Moves to `Draining`: call it before `END` is fired.
    pub fn drain(&self) {}

    /// Moves to `Stopped`: call it when `END` has fired.
    pub fn stop(&self) {}

    /// Ends it from outside (a deadman).
    pub fn kill(&self) {}

    /// Where it is in its life.
    pub fn activity(&self) -> Activity {
        Activity::Inactive
    }

    /// Fires `ecb` on `cpu`: predicate, actions, records, aggregations. A fault is returned for the framework to fire
    /// `ERROR` for this consumer, with interrupts still off; a fault within `ERROR` is counted instead.
    #[inline]
    pub fn fire<M: Machine>(&self, cpu: &Cpu, _ecb: Ecb, _m: &M) -> Option<FaultReport> {
        let _ = (cpu, self.config.ncpus);
        None
    }

    /// Switches the halves of a buffer of `cpu`, so that the full one can be read. Runs on that CPU, or for an offline one.
    /// `EBUSY` for ring and fill buffers until stopped, and while a snapshot reads the other half.
    pub fn switch(&self, _cpu: &Cpu, _which: Which, _now: u64) -> Result<(), Reason> {
        Err(LATER)
    }

    /// Reads the half that the last `switch` put aside. It stays as it is until the next switch.
    pub fn snapshot<R>(
        &self,
        _cpu: usize,
        _which: Which,
        _read: impl FnOnce(Snapshot<'_>) -> R,
    ) -> Result<R, Reason> {
        Err(LATER)
    }

    /// Describes an enabled probe. `EINVAL` where there is none.
    pub fn eprobe<R>(
        &self,
        _epid: Epid,
        _read: impl FnOnce(&EprobeDesc, &[RecDesc]) -> R,
    ) -> Result<R, Reason> {
        Err(LATER)
    }

    /// Describes an aggregation. `EINVAL` where there is none.
    pub fn aggdesc<R>(
        &self,
        _id: AggId,
        _read: impl FnOnce(&AggDesc, &[RecDesc]) -> R,
    ) -> Result<R, Reason> {
        Err(LATER)
    }

    /// Gives a format, without NUL. `EINVAL` where there is none.
    pub fn format<R>(&self, _format: u16, _read: impl FnOnce(&[u8]) -> R) -> Result<R, Reason> {
        Err(LATER)
    }

    /// Drops and errors so far. `ENOENT` before `go`.
    pub fn status(&self) -> Result<Status, Reason> {
        Err(LATER)
    }

    /// Cleans deleted dynamic variables for reuse; to be called every `cleanrate`. `grace` must return only after every
    /// CPU that was in [`fire`](Self::fire) when it was called has left it (synchronize_rcu()).
    pub fn clean(&self, _grace: impl FnOnce()) {}
}
