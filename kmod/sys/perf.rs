// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Counters of performance events, of the hardware's and of the kernel's own: one on every CPU that is online when they start.
//!
//! Whether the machine can count an event at all is known beforehand, whether a counter is free for it is not. A CPU that is
//! switched off loses its counter and does not get it back; the kernel's events are so made.

use super::regs::Regs;
use crate::bindings;
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

/// What to count.
pub struct What {
    /// The event.
    pub event: Event,
    /// How many of them make an overflow.
    pub period: u64,
    /// Those of programs.
    pub user: bool,
    /// Those of the kernel.
    pub kernel: bool,
}

impl What {
    fn raw(&self) -> bindings::dtrace_perf_event {
        let mut raw = bindings::dtrace_perf_event {
            period: self.period,
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
        let hit = Some(on_overflow::<H> as unsafe extern "C" fn(_, _));
        let raw_hook = bindings::dtrace_perf { hit };
        let hook = KBox::new(
            Hook {
                raw: raw_hook,
                handler,
            },
            GFP_KERNEL,
        )?;
        let mut this = Self {
            events: KVVec::new(),
            hook,
        };
        // SAFETY: No preconditions.
        let cpus = unsafe { bindings::dtrace_nr_cpus() };
        this.events.reserve(cpus as usize, GFP_KERNEL)?;
        for cpu in 0..cpus {
            // SAFETY: No preconditions.
            if unsafe { bindings::dtrace_cpu_online(cpu) } {
                this.add(cpu, &raw)?;
            }
        }
        Ok(this)
    }

    fn add(&mut self, cpu: u32, what: &bindings::dtrace_perf_event) -> Result {
        let hook = core::ptr::from_ref(&*self.hook).cast_mut().cast();
        // SAFETY: The hook stays until the event is stopped.
        let event = unsafe { bindings::dtrace_perf_start(cpu, what, hook) };
        let event = kernel::error::from_err_ptr(event)?;
        // There is room.
        self.events.push_within_capacity(event).map_err(|_| ENOMEM)
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
