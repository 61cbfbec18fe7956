// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Counters of performance events, of the hardware's and of the kernel's own: one on every CPU that is online when they start
//! ([`Counters`]), or also on those that come later ([`CpuCounters`]).
//!
//! Whether the machine can count an event at all is known beforehand, whether a counter is free for it is not. A CPU that is
//! switched off loses its counter; the kernel's events are so made. Where CPUs come the kernel's own events mostly cannot be started,
//! as they wait for that to end, so that those have [`Counters`] alone.

use super::hotplug::PerCpu;
use super::regs::Regs;
use crate::bindings;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// An event that has a name.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Event {
    /// The time of a CPU.
    CpuClock = bindings::dtrace_perf_name_DTRACE_PERF_CPU_CLOCK,
    /// The time of its tasks.
    TaskClock = bindings::dtrace_perf_name_DTRACE_PERF_TASK_CLOCK,
    /// Page faults.
    PageFaults = bindings::dtrace_perf_name_DTRACE_PERF_PAGE_FAULTS,
    /// Those that needed no device.
    MinorFaults = bindings::dtrace_perf_name_DTRACE_PERF_MINOR_FAULTS,
    /// Those that did.
    MajorFaults = bindings::dtrace_perf_name_DTRACE_PERF_MAJOR_FAULTS,
    /// Switches from one task to another.
    ContextSwitches = bindings::dtrace_perf_name_DTRACE_PERF_CONTEXT_SWITCHES,
    /// Moves of tasks to other CPUs.
    CpuMigrations = bindings::dtrace_perf_name_DTRACE_PERF_CPU_MIGRATIONS,
    /// Accesses that were not aligned.
    AlignmentFaults = bindings::dtrace_perf_name_DTRACE_PERF_ALIGNMENT_FAULTS,
    /// Instructions that the kernel emulated.
    EmulationFaults = bindings::dtrace_perf_name_DTRACE_PERF_EMULATION_FAULTS,
    /// Cycles of the processor.
    Cycles = bindings::dtrace_perf_name_DTRACE_PERF_CYCLES,
    /// Its instructions.
    Instructions = bindings::dtrace_perf_name_DTRACE_PERF_INSTRUCTIONS,
    /// Uses of the last cache.
    CacheReferences = bindings::dtrace_perf_name_DTRACE_PERF_CACHE_REFERENCES,
    /// Those in vain.
    CacheMisses = bindings::dtrace_perf_name_DTRACE_PERF_CACHE_MISSES,
    /// Branches.
    Branches = bindings::dtrace_perf_name_DTRACE_PERF_BRANCHES,
    /// Those that were guessed wrong.
    BranchMisses = bindings::dtrace_perf_name_DTRACE_PERF_BRANCH_MISSES,
    /// Cycles of the bus.
    BusCycles = bindings::dtrace_perf_name_DTRACE_PERF_BUS_CYCLES,
    /// Cycles without an instruction to begin.
    StalledFrontend = bindings::dtrace_perf_name_DTRACE_PERF_STALLED_FRONTEND,
    /// Cycles that waited for results.
    StalledBackend = bindings::dtrace_perf_name_DTRACE_PERF_STALLED_BACKEND,
    /// Cycles of a clock that does not change.
    RefCycles = bindings::dtrace_perf_name_DTRACE_PERF_REF_CYCLES,
}

/// What is called when a counter has counted its period, in whatever context that is, NMI included.
pub trait Overflow: Send + Sync + 'static {
    /// `regs`: the code that it happened in.
    fn overflow(&self, regs: Option<&Regs>);
}

/// How often there is to be an overflow.
#[derive(Clone, Copy)]
pub enum Every {
    /// When so many events have happened.
    Events(u64),
    /// So often in a second in which they happen all the time. The kernel goes by how often they came of late.
    Hz(u64),
}

/// What to count.
#[derive(Clone, Copy)]
pub struct What {
    /// The event.
    pub event: Event,
    /// How many of them make an overflow.
    pub every: Every,
    /// Those of programs.
    pub user: bool,
    /// Those of the kernel.
    pub kernel: bool,
}

impl What {
    fn raw(&self) -> bindings::dtrace_perf_event {
        let (period, hz) = match self.every {
            Every::Events(n) => (n, false),
            Every::Hz(n) => (n, true),
        };
        let mut raw = bindings::dtrace_perf_event {
            period,
            hz,
            user: self.user,
            kernel: self.kernel,
            ..Default::default()
        };
        // SAFETY: The name is one of the enumeration's; the other is ours.
        unsafe { bindings::dtrace_perf_named(self.event as u32, &mut raw) };
        raw
    }

    /// Whether this machine can count it.
    pub fn countable(&self) -> bool {
        // SAFETY: No preconditions.
        unsafe { bindings::dtrace_perf_countable(&self.raw()) }
    }
}

#[repr(C)]
struct Hook<H> {
    // First, so that a pointer to it is a pointer to the whole.
    raw: bindings::dtrace_perf,
    handler: H,
}

impl<H: Overflow> Hook<H> {
    fn new(handler: H) -> Result<KBox<Self>> {
        let hit = Some(on_overflow::<H> as unsafe extern "C" fn(_, _));
        let raw = bindings::dtrace_perf { hit };
        Ok(KBox::new(Self { raw, handler }, GFP_KERNEL)?)
    }

    /// Starts a counter on `cpu`.
    ///
    /// # Safety
    ///
    /// The hook must stay where it is until the event is stopped, which must be once.
    unsafe fn start(
        &self,
        cpu: u32,
        what: &bindings::dtrace_perf_event,
    ) -> Result<*mut bindings::perf_event> {
        let hook = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: By the caller's promise.
        let event = unsafe { bindings::dtrace_perf_start(cpu, what, hook) };
        kernel::error::from_err_ptr(event)
    }
}

/// Running counters. Dropping them stops them.
pub struct Counters<H: Overflow> {
    events: KVVec<*mut bindings::perf_event>,
    // Outlives the events, which are stopped first.
    hook: KBox<Hook<H>>,
}

// SAFETY: The events are started and stopped from anywhere; the handler is `Sync`.
unsafe impl<H: Overflow> Send for Counters<H> {}
// SAFETY: As above.
unsafe impl<H: Overflow> Sync for Counters<H> {}

impl<H: Overflow> Counters<H> {
    /// Starts them, on all CPUs or on none.
    pub fn start(what: &What, handler: H) -> Result<Self> {
        let raw = what.raw();
        let mut this = Self {
            events: KVVec::new(),
            hook: Hook::new(handler)?,
        };
        // SAFETY: No preconditions.
        let cpus = unsafe { bindings::dtrace_nr_cpus() };
        this.events.reserve(cpus as usize, GFP_KERNEL)?;
        for cpu in 0..cpus {
            // SAFETY: No preconditions.
            if unsafe { bindings::dtrace_cpu_online(cpu) } {
                // SAFETY: The hook is in its box until the event has been stopped, by drop.
                let event = unsafe { this.hook.start(cpu, &raw) }?;
                // There is room.
                this.events
                    .push_within_capacity(event)
                    .map_err(|_| ENOMEM)?;
            }
        }
        Ok(this)
    }
}

impl<H: Overflow> Drop for Counters<H> {
    fn drop(&mut self) {
        for event in &self.events {
            // SAFETY: The event was started, and is stopped once.
            unsafe { bindings::dtrace_perf_stop(*event) };
        }
    }
}

/// A counter on every CPU, for [`Everywhere`](super::hotplug::Everywhere): of the processor's events and of `CpuClock`.
pub struct CpuCounters<H: Overflow> {
    what: bindings::dtrace_perf_event,
    // Null where none runs.
    events: KVVec<AtomicPtr<bindings::perf_event>>,
    hook: KBox<Hook<H>>,
}

// SAFETY: The events are started and stopped by the hotplug core, one call at a time; the handler is `Sync`.
unsafe impl<H: Overflow> Send for CpuCounters<H> {}
// SAFETY: As above.
unsafe impl<H: Overflow> Sync for CpuCounters<H> {}

impl<H: Overflow> CpuCounters<H> {
    /// Counters that do not run yet.
    pub fn new(what: &What, handler: H) -> Result<Self> {
        // SAFETY: No preconditions.
        let cpus = unsafe { bindings::dtrace_nr_cpus() };
        let mut events = KVVec::with_capacity(cpus as usize, GFP_KERNEL)?;
        for _ in 0..cpus {
            events.push(AtomicPtr::new(null_mut()), GFP_KERNEL)?;
        }
        Ok(Self {
            what: what.raw(),
            events,
            hook: Hook::new(handler)?,
        })
    }
}

impl<H: Overflow> PerCpu for CpuCounters<H> {
    fn start(&self, cpu: usize) -> Result {
        let slot = self.events.get(cpu).ok_or(EINVAL)?;
        // SAFETY: The hook is in its box; each start is followed by its stop.
        let event = unsafe { self.hook.start(cpu as u32, &self.what) }?;
        slot.store(event, Ordering::Relaxed);
        Ok(())
    }

    fn stop(&self, cpu: usize) {
        let event = self
            .events
            .get(cpu)
            .map_or(null_mut(), |slot| slot.swap(null_mut(), Ordering::Relaxed));
        if !event.is_null() {
            // SAFETY: It was started, and is in its place no more.
            unsafe { bindings::dtrace_perf_stop(event) };
        }
    }
}

/// # Safety
///
/// Called by `perf.c` with the hook of a `Counters<H>`, and registers that stay during the call.
unsafe extern "C" fn on_overflow<H: Overflow>(
    hook: *mut bindings::dtrace_perf,
    regs: *mut bindings::pt_regs,
) {
    // SAFETY: By the caller's promise.
    let (hook, regs) = unsafe {
        (
            &*hook.cast::<Hook<H>>(),
            (!regs.is_null()).then(|| Regs::from_ptr(regs)),
        )
    };
    hook.handler.overflow(regs);
}
