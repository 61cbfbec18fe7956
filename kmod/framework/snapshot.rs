// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Running a tracing, and reading what it has recorded.
//!
//! `BEGIN` fires in the state `Warmup`, in which the engine lets only `BEGIN` and `ERROR` fire. So
//! it comes before everything else, on one CPU, whose number `GO` returns. `END` fires when no
//! other probe records any more: `STOP` first moves to `Cooldown` and waits for an RCU grace
//! period, until every CPU has left the firing that it was in.
//!
//! The consumer's ECBs are linked to their probes from before `BEGIN` until after `END` (INV-22).
//!
//! A buffer is switched on its own CPU, which is claimed as for a firing, so no firing uses the
//! buffer at that time.

use super::consumer::Consumer;
use super::cpu_hotplug::CpuHotplug;
use super::deadman::Deadman;
use super::device::{Helpers, OwnedConsumer, Tracing, Visits};
use super::ecb;
use super::fire::{Args, FireArgs};
use super::machine::KernelMachine;
use super::probe::ProbeRef;
use super::text::{refuse, Answer, Refusal, Text};
use super::user;
use crate::sys::percpu::{nr_cpus, online, CpuGuard, Losses};
use crate::sys::periodic::{Periodic, Task};
use crate::sys::{clock, crosscall, privilege, rculist};
use core::cell::Cell;
use core::fmt::Write;
use dtrace_engine::consumer::Which;
use dtrace_engine::{Activity, Errno};
use dtrace_uapi::ioctl::{BufDesc, Status};
use dtrace_uapi::limits::{buffer_room, CLEANRATE_DEFAULT, CLEANRATE_MAX, CLEANRATE_MIN};
use dtrace_uapi::option::{Opt, UNSET};
use kernel::prelude::*;
use kernel::sync::Arc;
use zerocopy::IntoBytes;

/// Returns what has happened so far: the first `room` bytes of the status, which is as much as the
/// caller's version of the contract knows.
pub fn status(
    owned: &OwnedConsumer,
    arg: u64,
    room: usize,
    tracing: Option<&Tracing>,
    carried_before: u64,
) -> Answer {
    let consumer = &owned.shared;
    let mut status: Status = consumer.engine.status()?;
    consumer.report(&mut status);
    if let Some(tracing) = tracing {
        let total = Losses::total();
        status.carried = total.carried.wrapping_sub(carried_before);
        let lost = total.since(tracing.lost_before);
        if consumer.is_in_kernel() {
            status.unwatched = lost.unwatched;
        }
        status.waits = lost.waits;
        status.waits_in_vain = lost.waits_in_vain;
    }
    user::put(arg, status.as_bytes().get(..room).unwrap_or_default())?;
    Ok(0)
}

/// Switches a buffer and copies out what it held.
pub fn bufsnap(owned: &OwnedConsumer, arg: u64, which: Which) -> Answer {
    let mut desc: BufDesc = user::get(arg)?;
    let engine = &owned.shared.engine;
    let (option, room): (_, fn(u64) -> u64) = match which {
        Which::Principal => (Opt::Bufsize, buffer_room),
        Which::Aggregation => (Opt::Aggsize, |size| size),
    };
    let size = engine.option(option);
    if size != UNSET && desc.size < room(size) {
        return Err(Refusal::new(EINVAL, "less room than the buffer is large"));
    }
    let mut switched = Ok(());
    {
        let _visit = owned.visits.lock();
        crosscall::on_cpu(desc.cpu, &mut |cpu| {
            switched = engine.switch(cpu, which, clock::monotonic());
        })?;
    }
    switched?;
    engine.snapshot(desc.cpu as usize, which, |snapshot| {
        if desc.size < snapshot.data.len() as u64 {
            return Err(refuse(EINVAL));
        }
        user::put(desc.data, snapshot.data)?;
        desc.size = snapshot.data.len() as u64;
        desc.errors = snapshot.errors;
        desc.drops = snapshot.drops;
        desc.oldest = snapshot.oldest;
        desc.timestamp = snapshot.timestamp;
        Ok(())
    })??;
    user::put(arg, &desc)?;
    Ok(0)
}

impl OwnedConsumer {
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

/// Cleans the speculations that several CPUs may have recorded into.
fn clean_speculations(consumer: &Consumer, visits: &Visits) {
    let _visit = visits.lock();
    consumer
        .engine
        .clean_speculations(clock::monotonic, |cpu, visit| {
            crosscall::on_cpu(cpu as u32, visit).is_ok()
        });
}

/// Cleans a consumer's dynamic variables and speculations, every `cleanrate` ns while it traces.
pub struct Cleaning {
    consumer: Arc<Consumer>,
    visits: Arc<Visits>,
    rate: u64,
}

/// A running [`Cleaning`]. Dropping it ends it.
pub type Cleaner = Pin<KBox<Periodic<Cleaning>>>;

impl Task for Cleaning {
    fn run(&mut self) -> u64 {
        self.consumer.engine.clean(rculist::synchronize);
        clean_speculations(&self.consumer, &self.visits);
        self.rate
    }
}

impl Cleaning {
    fn start(consumer: &Arc<Consumer>, visits: &Arc<Visits>) -> Result<Cleaner> {
        let rate = match consumer.engine.option(Opt::Cleanrate) {
            UNSET => CLEANRATE_DEFAULT,
            rate => rate.clamp(CLEANRATE_MIN, CLEANRATE_MAX),
        };
        let cleaning = Self {
            consumer: consumer.clone(),
            visits: visits.clone(),
            rate,
        };
        KBox::pin_init(Periodic::start(rate, cleaning), GFP_KERNEL)
    }
}
