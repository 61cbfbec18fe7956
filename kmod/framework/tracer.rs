// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A consumer as everything but its own file knows it.
//!
//! It is shared: by the file, by each of its ECBs, and by what runs beside it while it traces. What changes in it changes by
//! single atomic words.

use super::patience::Drawn;
use super::probe::ProbeRef;
use super::quota::{Payer, Purse};
use super::text::Refusal;
use crate::sys::process::Process;
use crate::sys::rights::Rights;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use dtrace_engine::{Activity, Consumer};
use dtrace_uapi::ioctl::Status;
use kernel::prelude::*;
use kernel::sync::Arc;

/// A consumer.
pub struct Tracer {
    /// What does the tracing.
    pub engine: Consumer,
    /// `dtrace:::ERROR`.
    pub error: ProbeRef,
    /// Which processes it may trace; `None`: all.
    pub rights: Option<Arc<Rights>>,
    /// What it has in processes.
    pub payer: Payer,
    /// What its engine's memory is paid with.
    pub purse: Purse,
    /// It sees the kernel's inside, and every process.
    pub sees_all: bool,
    /// It has, or had, probes in the kernel's code.
    in_kernel: AtomicBool,
    missed: AtomicU64,
    recursions: AtomicU64,
    nmis: AtomicU64,
    returns: AtomicU64,
    /// When its file was last used, ns.
    asked: AtomicU64,
    /// How long it has not been known to do no harm, ns.
    doubted: AtomicU64,
    /// When that was last added to, ns.
    watched: AtomicU64,
}

impl Tracer {
    /// A consumer that nothing has happened to yet.
    pub fn new(
        engine: Consumer,
        error: ProbeRef,
        rights: Option<Arc<Rights>>,
        payer: Payer,
    ) -> Self {
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

    /// Whether it may read all memory, as well as see everything.
    pub fn reads_all(&self) -> bool {
        let may = self.engine.privileges();
        self.sees_all && may.kernel_memory && may.user_memory
    }

    /// How much may be compared for it on this occasion.
    pub fn patience(&self, occasion: u64) -> Drawn<'_> {
        let is_trusted = self.engine.privileges().kernel;
        Drawn::from(self.payer.allowance(), occasion, is_trusted)
    }

    /// Whether it may trace a process; as [`Rights::may_trace`], without waiting.
    pub fn may_trace(&self, process: &Process) -> Result<bool> {
        match &self.rights {
            Some(rights) => rights.may_trace(process, false),
            None => Ok(self.engine.privileges().user_memory),
        }
    }

    /// The same, with the reason where it may not. May wait for the process, so the framework's mutex is free.
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

    /// Why it may have no probe in a process.
    pub fn why_not(&self) -> &'static str {
        match self.rights {
            Some(_) => "no right to trace the process, by the rules of ptrace()",
            None => "probes in processes need CAP_BPF beside CAP_PERFMON",
        }
    }

    /// Notes that it goes without `n` probes that it has described, or parts of them: they appeared after its request, and could not be
    /// enabled. There was no call to refuse, so that the status has to tell.
    pub fn miss(&self, n: u64) {
        self.missed.fetch_add(n, Ordering::Relaxed);
    }

    /// How many probes it goes without.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Notes that it gets probes in the kernel's code, which may be passed where RCU is not watching. Whose they are cannot be told there,
    /// so all who have such are told.
    pub fn enter_kernel(&self) {
        self.in_kernel.store(true, Ordering::Relaxed);
    }

    /// Whether firings that were lost where RCU was not watching may have been of its probes.
    pub fn is_in_kernel(&self) -> bool {
        self.in_kernel.load(Ordering::Relaxed)
    }

    /// Notes that a probe of its own fires on top of probe context, which `n` of its clauses lose.
    pub fn lose(&self, n: u64, nmi: bool) {
        if self.engine.activity() == Activity::Active {
            let kind = if nmi { &self.nmis } else { &self.recursions };
            kind.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Notes that a function's return, at which it has `n` clauses, could not be hooked.
    pub fn lose_return(&self, n: u64) {
        if self.engine.activity() == Activity::Active {
            self.returns.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Notes that a probe of its own was lost `n` times by what probe context called, some time ago. It may have called `exit()`
    /// since; what was lost only after that is counted too, as nobody knows.
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

    /// Notes that somebody uses its file.
    pub fn ask(&self, now: u64) {
        self.asked.store(now, Ordering::Relaxed);
    }

    /// Notes that it may trace without anybody asking, until somebody does.
    pub fn need_no_attention(&self) {
        self.ask(u64::MAX);
    }

    /// Notes that the machine is alive beside it; that is of no use to it where nobody has asked for `user` ns.
    pub fn beat(&self, now: u64, user: u64) {
        if now.saturating_sub(self.asked.load(Ordering::Relaxed)) < user {
            self.doubted.store(0, Ordering::Relaxed);
        }
    }

    /// Kills it where there has been no beat for `timeout` ns, or a CPU has been without life for so long, which `without` tells of the
    /// last so many ns; called about every `interval` ns. Where it is called much too late the machine itself may have stood still (a
    /// virtual one that is paused), which is nobody's fault.
    pub fn watch(&self, now: u64, interval: u64, timeout: u64, without: impl FnOnce(u64) -> u64) {
        let since = now.saturating_sub(self.watched.swap(now, Ordering::Relaxed));
        let since = since.min(interval.saturating_mul(4));
        let doubted = self.doubted.fetch_add(since, Ordering::Relaxed);
        if without(since).max(doubted.saturating_add(since)) > timeout {
            self.engine.kill();
        }
    }

    /// What was lost, and what it goes without.
    pub fn report(&self, status: &mut Status) {
        status.recursions = self.recursions.load(Ordering::Relaxed);
        status.nmis = self.nmis.load(Ordering::Relaxed);
        status.returns = self.returns.load(Ordering::Relaxed);
        status.missed = self.missed();
        status.unanswered = self.rights.as_ref().map_or(0, |rights| rights.unanswered());
    }
}
