// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The life of a consumer: open, enable, go, stop, drop.
//!
//! `BEGIN` fires in the state `Warmup`, in which the engine lets only `BEGIN` and `ERROR` fire. So
//! it comes before everything else, on one CPU, whose number `GO` returns. `END` fires when no
//! other probe records any more: `STOP` first moves to `Cooldown` and waits for an RCU grace
//! period, until every CPU has left the firing that it was in.
//!
//! The consumer's ECBs are linked to their probes from before `BEGIN` until after `END` (INV-22).

use super::super::cpu_hotplug::{Admitting, CpuHotplug};
use super::super::deadman::Deadman;
use super::super::ecb;
use super::super::fire::{Args, FireArgs};
use super::super::machine::{KernelMachine, FEATURES};
use super::super::probe::ProbeRef;
use super::super::quota;
use super::super::retained::Wanted;
use super::super::text::{errno, refuse, Refusal, Text};
use super::super::Framework;
use super::cleaner::{clean_speculations, Cleaner, Cleaning, Visits};
use super::shared::Consumer;
use crate::sys::audience::Listener;
use crate::sys::percpu::{nr_cpus, online, CpuGuard, Losses};
use crate::sys::process::Process;
use crate::sys::rights::{Rights, Watch};
use crate::sys::vtime::Measuring;
use crate::sys::{clock, crosscall, privilege, random, rculist, task};
use core::cell::Cell;
use core::fmt::Write;
use dtrace_engine::{Activity, Config, Consumer as Engine, Enabling, Errno};
use dtrace_uapi::option::{Opt, UNSET};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// A consumer. The framework knows it once it enables something. Dropping it makes the framework
/// remove everything of it; this waits for an RCU grace period.
pub struct OwnedConsumer {
    /// Where it is known.
    pub framework: Arc<Framework>,
    /// What is shared of it.
    pub shared: Arc<Consumer>,
    /// Held by whoever visits its buffers.
    pub visits: Arc<Visits>,
    /// Keeps the answers up to date which processes a member's consumer may trace (INV-36).
    watch: Pin<KBox<Mutex<Option<Watching>>>>,
}

/// State of a tracing that has begun.
pub struct Tracing {
    /// Helpers of the tracing, until it ends.
    helpers: Option<Helpers>,
    /// Losses on the whole machine before the tracing began.
    pub lost_before: Losses,
}

/// What runs beside a tracing.
struct Helpers {
    _cleaner: Cleaner,
    _deadman: Option<Deadman>,
    _admitting: Admitting,
    /// Measures the time of firings, if a clause reads `vtimestamp`.
    _measuring: Option<Listener<Measuring>>,
}

/// What a member's consumer has from its first enabling, or its first `HOLD`, on.
struct Watching {
    _watch: Watch,
    _tracing: quota::Counted,
}

impl OwnedConsumer {
    /// Makes a consumer with the rights of the current task. `EPERM` if the task has none.
    pub fn open(framework: Arc<Framework>) -> Result<Self> {
        let privileges = privilege::of_current(framework.group)?.ok_or(EPERM)?;
        let ends = framework.ends;
        let engine = Engine::new(Config {
            ncpus: nr_cpus(),
            privileges,
            features: FEATURES,
            begin: ends.begin.id(),
            end: ends.end.id(),
            error: ends.error.id(),
            seed: clock::monotonic(),
            secret: random::word(),
            is_killed: task::is_killed,
        })
        .map_err(errno)?;
        let rights = match privileges.all_users {
            true => None,
            false => Some(Rights::of_current()?),
        };
        let user = rights.as_ref().map(|rights| rights.payer());
        let payer = framework.users.lock().payer(user)?;
        let shared = Consumer::new(engine, ends.error, rights, payer);
        Self::new(framework, Arc::new(shared, GFP_KERNEL)?)
    }

    fn new(framework: Arc<Framework>, shared: Arc<Consumer>) -> Result<Self> {
        let visits = Arc::pin_init(new_mutex!((), "dtrace::Visits"), GFP_KERNEL)?;
        Ok(Self {
            framework,
            shared,
            visits,
            watch: KBox::pin_init(new_mutex!(None, "dtrace::Watch"), GFP_KERNEL)?,
        })
    }

    /// Notes that the current task is the consumer's: it is the one that is asked about processes.
    pub fn sit(&self) {
        if let Some(rights) = &self.shared.rights {
            rights.sit();
        }
    }

    /// Returns the process with this ID, if the consumer may trace it. May wait for the process.
    pub fn process(&self, pid: i32) -> Result<Process, Refusal> {
        let process = Process::find(pid)?;
        self.shared.must_trace(&process)?;
        Ok(process)
    }

    /// Makes sure that from now on each process is asked about before it executes anything. Does
    /// nothing for a consumer that may trace all processes. May sleep.
    pub fn watch(&self) -> Result<(), Refusal> {
        let Some(rights) = &self.shared.rights else {
            return Ok(());
        };
        let mut watch = self.watch.lock();
        if watch.is_none() {
            let tracing = self.shared.payer.trace()?;
            *watch = Some(Watching {
                _watch: Watch::begin(rights, &self.framework.watchers)?,
                _tracing: tracing,
            });
        }
        Ok(())
    }

    /// Enables what an image requests. Returns the number of ECBs.
    pub fn enable(&self, enabling: &Enabling, note: &mut Text) -> Result<u32, Refusal> {
        self.watch()?;
        // Verification may take long and concerns this consumer alone, so it is done without the
        // framework's mutex.
        let engine = &self.shared.engine;
        let mut pending = engine.prepare(enabling.options(), enabling.clauses())?;
        pending.add_walkers(enabling.walkers(), engine)?;
        let wanted = Wanted::new(enabling, &pending)?;
        // If the request is refused, the clauses are freed without the mutex too: `pending` is
        // dropped after `state`. There may be thousands of clauses.
        let mut pending = Some(pending);
        let commit = || {
            if let Some(pending) = pending.take() {
                pending.commit();
            }
        };
        let mut state = self.framework.enter(&self.shared)?;
        state.enable(&self.shared, &wanted, commit, note)
    }

    /// Starts the tracing. Returns the CPU on which `BEGIN` fired, and what must be kept while it
    /// runs. On an error after the buffers were allocated, the consumer is killed.
    pub fn go(&self) -> Result<(u32, Tracing), Refusal> {
        let engine = &self.shared.engine;
        let mut used = engine.privileges();
        used.destructive &= engine.is_destructive()?;
        if !privilege::are_allowed(used) {
            let why = "the kernel has been locked down since the device was opened";
            return Err(Refusal::new(EPERM, why));
        }
        let there = |cpu: usize| u32::try_from(cpu).is_ok_and(online);
        self.allocate(&there)?;
        let begun = self.begin();
        if begun.is_err() {
            self.shared.engine.kill();
            self.framework.withdraw(&self.shared);
        }
        begun
    }

    /// Has the engine allocate its buffers, and pays for them.
    fn allocate(&self, there: &dyn Fn(usize) -> bool) -> Result<(), Refusal> {
        let Consumer { engine, purse, .. } = &*self.shared;
        // Without a request, there was no payment: the consumer has buffers already, which stay
        // paid.
        let (asked, refused) = (Cell::new(false), Cell::new(None));
        let pay = |bytes| {
            asked.set(true);
            let paid = purse.set_buffers(bytes);
            paid.map_err(|refusal| refused.set(Some(refusal))).is_ok()
        };
        engine.go_on(there, &pay).map_err(|reason| {
            if asked.get() {
                let _ = purse.set_buffers(0);
            }
            match (reason.errno, refused.take()) {
                (Errno::ENOMEM, Some(refusal)) => refusal,
                _ => reason.into(),
            }
        })
    }

    fn begin(&self) -> Result<(u32, Tracing), Refusal> {
        let lost_before = Losses::total();
        let measures = self.shared.engine.reads_vtimestamp();
        let measuring = &self.framework.measuring;
        let helpers = Helpers {
            _measuring: measures
                .then(|| measuring.join((), self.shared.rights.is_none()))
                .transpose()?,
            _admitting: CpuHotplug::start(&self.framework.cpu_hotplug, &self.shared)?,
            _cleaner: Cleaning::start(&self.shared, &self.visits)?,
            _deadman: Deadman::start(&self.framework, &self.shared, self.framework.deadman)?,
        };
        self.framework.enter(&self.shared)?.publish(&self.shared);
        let begun = self.fire_end(self.framework.ends.begin);
        let cpu = begun.map_err(|errno| match errno {
            ENXIO => Refusal::new(ENXIO, "BEGIN cannot fire: its CPU is offline"),
            errno => refuse(errno),
        })?;
        self.shared.engine.activate();
        let tracing = Tracing {
            helpers: Some(helpers),
            lost_before,
        };
        Ok((cpu, tracing))
    }

    /// Stops what [`go`](Self::go) has started, and takes away all that is enabled. Returns the CPU
    /// on which `END` fired; see [`end`](Self::end) for `note`. What was recorded can still be
    /// read.
    pub fn stop(&self, tracing: Option<&mut Tracing>, note: &mut Text) -> Result<u32, Refusal> {
        let engine = &self.shared.engine;
        self.framework.enter(&self.shared)?.settle();
        engine.cool_down();
        rculist::synchronize();
        let cpu = self.end(note)?;
        engine.stop();
        rculist::synchronize();
        self.framework.withdraw(&self.shared);
        if engine.activity() == Activity::Killed {
            return Err(Refusal::new(EINVAL, "END took too long"));
        }
        if let Some(tracing) = tracing {
            tracing.helpers = None;
        }
        // Speculations that were committed after the cleaner's last run.
        clean_speculations(&self.shared, &self.visits);
        Ok(cpu)
    }

    /// Fires `END`. Returns the CPU on which it fired. If no CPU that is traced is online, `END`
    /// does not fire and `note` says so, but records can still be read.
    fn end(&self, note: &mut Text) -> Result<u32> {
        let fired = self.fire_end(self.framework.ends.end);
        if fired != Err(ENXIO) {
            return fired;
        }
        let cpu = u32::try_from(self.shared.engine.option(Opt::Cpu)).ok();
        let _ = match cpu {
            Some(cpu) => write!(note, "END did not fire: CPU {cpu} is offline"),
            None => note.write_str("END did not fire: no CPU with buffers is online"),
        };
        Ok(cpu.unwrap_or_default())
    }

    /// Fires `BEGIN` or `END` for this consumer alone, and returns the CPU. That is the CPU of the
    /// option `cpu`, or else the current one, or another one if the current CPU has no buffers for
    /// want of memory. `ENXIO`: none of these is online.
    fn fire_end(&self, probe: ProbeRef) -> Result<u32> {
        let args = FireArgs::new(Args::Words(&[])).nowhere();
        let fire = |guard: &CpuGuard| {
            let machine = KernelMachine::new(guard, probe, &args);
            ecb::fire_own(guard, &self.shared, &machine);
        };
        let engine = &self.shared.engine;
        let only = engine.option(Opt::Cpu);
        if only != UNSET {
            let cpu = u32::try_from(only).map_err(|_| EINVAL)?;
            crosscall::probe_on(cpu, &mut |guard| fire(guard))?;
            return Ok(cpu);
        }
        let guard = CpuGuard::enter().ok_or(EBUSY)?;
        let here = guard.cpu().index();
        if engine.has_buffers(here) {
            fire(&guard);
            return Ok(here as u32);
        }
        drop(guard);
        let fires = |cpu: &u32| {
            engine.has_buffers(*cpu as usize) && crosscall::probe_on(*cpu, &mut |g| fire(g)).is_ok()
        };
        (0..nr_cpus() as u32).find(fires).ok_or(ENXIO)
    }
}

impl Drop for OwnedConsumer {
    fn drop(&mut self) {
        self.framework.forget(&self.shared);
    }
}
