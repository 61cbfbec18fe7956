// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A consumer, as all code but that of its own file knows it.
//!
//! It is shared by the file, by the nodes of its ECBs, and by what runs beside it while it traces.
//! What changes in it are single atomic words, each of which stands for itself, so `Relaxed` is
//! enough.

use super::super::patience::Drawn;
use super::super::probe::ProbeRef;
use super::super::quota::{Payer, Purse};
use super::super::text::Refusal;
use crate::sys::process::Process;
use crate::sys::rights::Rights;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use dtrace_engine::{Activity, Consumer as Engine};
use dtrace_uapi::ioctl::Status;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A consumer.
pub struct Consumer {
    /// The engine, which does the tracing.
    pub engine: Engine,
    /// `dtrace:::ERROR`.
    pub error: ProbeRef,
    /// Which processes it may trace; `None` for all.
    pub rights: Option<Arc<Rights>>,
    /// The accounts that pay for what it has in processes and at probes.
    pub payer: Payer,
    /// The payment for its engine's memory.
    pub purse: Purse,
    /// It sees the kernel's inside, and all processes.
    pub sees_all: bool,
    /// It has, or had, probes in the kernel's code.
    in_kernel: AtomicBool,
    missed: AtomicU64,
    recursions: AtomicU64,
    nmis: AtomicU64,
    returns: AtomicU64,
    /// Time of its last control call, ns.
    asked: AtomicU64,
    /// Time since it was last known to be healthy, ns.
    doubted: AtomicU64,
    /// Time at which `doubted` was last increased, ns.
    watched: AtomicU64,
}

impl Consumer {
    /// Makes a consumer without any history.
    pub fn new(engine: Engine, error: ProbeRef, rights: Option<Arc<Rights>>, payer: Payer) -> Self {
        Self {
            sees_all: engine.privileges().kernel && rights.is_none(),
            engine,
            error,
            rights,
            purse: payer.purse(),
            payer,
            in_kernel: AtomicBool::new(false),
            missed: AtomicU64::new(0),
            recursions: AtomicU64::new(0),
            nmis: AtomicU64::new(0),
            returns: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            doubted: AtomicU64::new(0),
            watched: AtomicU64::new(0),
        }
    }

    /// Whether it may read all memory and see everything.
    pub fn reads_all(&self) -> bool {
        let may = self.engine.privileges();
        self.sees_all && may.kernel_memory && may.user_memory
    }

    /// Returns the steps that may be compared for it on this occasion.
    pub fn patience(&self, occasion: u64) -> Drawn<'_> {
        let is_trusted = self.engine.privileges().kernel;
        Drawn::from(self.payer.allowance(), occasion, is_trusted)
    }

    /// Whether it may trace a process. Fails like [`Rights::may_trace`]; does not wait for the
    /// process.
    pub fn may_trace(&self, process: &Process) -> Result<bool> {
        match &self.rights {
            Some(rights) => rights.may_trace(process, false),
            None => Ok(self.engine.privileges().user_memory),
        }
    }

    /// Refuses a process that it may not trace. May wait for the process, so the framework's mutex
    /// must not be held.
    pub fn must_trace(&self, process: &Process) -> Result<(), Refusal> {
        let may = match &self.rights {
            Some(rights) => rights.may_trace(process, true)?,
            None => self.engine.privileges().user_memory,
        };
        match may {
            true => Ok(()),
            false => Err(Refusal::new(EPERM, self.why_not())),
        }
    }

    /// Returns why it may have no probe in a process.
    pub fn why_not(&self) -> &'static str {
        match self.rights {
            Some(_) => "no right to trace the process, by the rules of ptrace()",
            None => "probes in processes need CAP_BPF beside CAP_PERFMON",
        }
    }

    /// Counts `n` probes that it has described, or parts of them, that appeared after its request
    /// and could not be enabled. There was no call to refuse, so its status tells of them.
    pub fn miss(&self, n: u64) {
        self.missed.fetch_add(n, Ordering::Relaxed);
    }

    /// Returns the number of such probes.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Notes that it gets probes in the kernel's code, which may be reached where RCU is not
    /// watching. There the consumers of a probe cannot be found, so all consumers with such probes
    /// are told of the firings that are not executed.
    pub fn enter_kernel(&self) {
        self.in_kernel.store(true, Ordering::Relaxed);
    }

    /// Whether firings that were not executed, because RCU was not watching, may have been those of
    /// its probes.
    pub fn is_in_kernel(&self) -> bool {
        self.in_kernel.load(Ordering::Relaxed)
    }

    /// Counts a firing that was not executed, because it came in probe context, for `n` of its
    /// clauses. `nmi` says that an NMI caused it.
    pub fn lose(&self, n: u64, nmi: bool) {
        if self.engine.activity() == Activity::Active {
            let kind = if nmi { &self.nmis } else { &self.recursions };
            kind.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Counts a return, at which it has `n` clauses, that could not be hooked.
    pub fn lose_return(&self, n: u64) {
        if self.engine.activity() == Activity::Active {
            self.returns.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Counts `n` firings that did not happen some time ago, because probe context called what they
    /// probe. The consumer may have called `exit()` since. When each of them was due is not known,
    /// so those after that are counted too.
    pub fn have_lost(&self, n: u64) {
        if matches!(
            self.engine.activity(),
            Activity::Active | Activity::Draining | Activity::Cooldown
        ) {
            self.recursions.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Notes that it begins to trace.
    pub fn begin(&self, now: u64) {
        self.asked.store(now, Ordering::Relaxed);
        self.watched.store(now, Ordering::Relaxed);
        self.doubted.store(0, Ordering::Relaxed);
    }

    /// Notes a control call.
    pub fn ask(&self, now: u64) {
        self.asked.store(now, Ordering::Relaxed);
    }

    /// Allows it to trace without control calls, until the first one comes.
    pub fn need_no_attention(&self) {
        self.ask(u64::MAX);
    }

    /// Notes that the machine is alive while it traces. This counts only if a control call came
    /// within the last `user` ns.
    pub fn beat(&self, now: u64, user: u64) {
        if now.saturating_sub(self.asked.load(Ordering::Relaxed)) < user {
            self.doubted.store(0, Ordering::Relaxed);
        }
    }

    /// Kills it if there was no beat for `timeout` ns, or if a CPU has shown no life for so long.
    /// `without` is called with the time since the last call, and returns the longest time without
    /// a sign of life, ns. Called about every `interval` ns, in a hard interrupt. If it is called
    /// much too late, the machine itself may have been stopped (a paused virtual machine), so at
    /// most four intervals count.
    pub fn watch(&self, now: u64, interval: u64, timeout: u64, without: impl FnOnce(u64) -> u64) {
        let since = now.saturating_sub(self.watched.swap(now, Ordering::Relaxed));
        let since = since.min(interval.saturating_mul(4));
        let doubted = self.doubted.fetch_add(since, Ordering::Relaxed);
        if without(since).max(doubted.saturating_add(since)) > timeout {
            self.engine.kill();
        }
    }

    /// Fills in what was not recorded and what could not be enabled.
    pub fn report(&self, status: &mut Status) {
        status.recursions = self.recursions.load(Ordering::Relaxed);
        status.nmis = self.nmis.load(Ordering::Relaxed);
        status.returns = self.returns.load(Ordering::Relaxed);
        status.missed = self.missed();
        status.unanswered = self.rights.as_ref().map_or(0, |rights| rights.unanswered());
    }
}
