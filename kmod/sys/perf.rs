// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Counters of performance events of the hardware and of the kernel: one on every CPU, including
//! CPUs that come online later.
//!
//! Whether the machine can count an event at all is known beforehand; whether a counter is free for
//! it is not. A CPU that goes offline loses its counter, because the kernel's events work that way,
//! and gets another one when it comes back. Starting a counter may have to wait until CPUs have
//! come online. So the hotplug callback does not do it, but a work item that runs soon after.

use super::deferred::{Chore, Deferred};
use super::hotplug::{CpuState, Everywhere, PerCpu};
use super::percpu::online;
use super::regs::Regs;
use crate::bindings;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use kernel::alloc::KVVec;
use kernel::error::to_result;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// An event that has a name.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Event {
    /// Time of a CPU.
    CpuClock = bindings::dtrace_perf_name_DTRACE_PERF_CPU_CLOCK,
    /// Time of the CPU's tasks.
    TaskClock = bindings::dtrace_perf_name_DTRACE_PERF_TASK_CLOCK,
    /// Page faults.
    PageFaults = bindings::dtrace_perf_name_DTRACE_PERF_PAGE_FAULTS,
    /// Page faults that needed no device.
    MinorFaults = bindings::dtrace_perf_name_DTRACE_PERF_MINOR_FAULTS,
    /// Page faults that needed a device.
    MajorFaults = bindings::dtrace_perf_name_DTRACE_PERF_MAJOR_FAULTS,
    /// Switches from one task to another.
    ContextSwitches = bindings::dtrace_perf_name_DTRACE_PERF_CONTEXT_SWITCHES,
    /// Moves of tasks to other CPUs.
    CpuMigrations = bindings::dtrace_perf_name_DTRACE_PERF_CPU_MIGRATIONS,
    /// Unaligned accesses.
    AlignmentFaults = bindings::dtrace_perf_name_DTRACE_PERF_ALIGNMENT_FAULTS,
    /// Instructions that the kernel emulated.
    EmulationFaults = bindings::dtrace_perf_name_DTRACE_PERF_EMULATION_FAULTS,
    /// Cycles of the processor.
    Cycles = bindings::dtrace_perf_name_DTRACE_PERF_CYCLES,
    /// Instructions of the processor.
    Instructions = bindings::dtrace_perf_name_DTRACE_PERF_INSTRUCTIONS,
    /// Accesses to the last-level cache.
    CacheReferences = bindings::dtrace_perf_name_DTRACE_PERF_CACHE_REFERENCES,
    /// Misses in the last-level cache.
    CacheMisses = bindings::dtrace_perf_name_DTRACE_PERF_CACHE_MISSES,
    /// Branches.
    Branches = bindings::dtrace_perf_name_DTRACE_PERF_BRANCHES,
    /// Mispredicted branches.
    BranchMisses = bindings::dtrace_perf_name_DTRACE_PERF_BRANCH_MISSES,
    /// Cycles of the bus.
    BusCycles = bindings::dtrace_perf_name_DTRACE_PERF_BUS_CYCLES,
    /// Cycles in which no instruction could be issued.
    StalledFrontend = bindings::dtrace_perf_name_DTRACE_PERF_STALLED_FRONTEND,
    /// Cycles that waited for results.
    StalledBackend = bindings::dtrace_perf_name_DTRACE_PERF_STALLED_BACKEND,
    /// Cycles of a clock whose frequency is constant.
    RefCycles = bindings::dtrace_perf_name_DTRACE_PERF_REF_CYCLES,
}

/// Callbacks of a counter.
pub trait Overflow: Send + Sync + 'static {
    /// The counter has counted its period. Called in any context, NMI included. `regs`: the code in
    /// which it happened.
    fn overflow(&self, regs: Option<&Regs>);

    /// A CPU has come online that could not be given its counter. May sleep.
    fn missed(&self);
}

/// The distance of overflows.
#[derive(Clone, Copy)]
pub enum Every {
    /// After so many events.
    Events(u64),
    /// So often in a second, if the event happens all the time. The kernel adapts the period to the
    /// recent rate of events.
    Hz(u64),
}

/// What to count.
#[derive(Clone, Copy)]
pub struct What {
    /// The event.
    pub event: Event,
    /// When there is an overflow.
    pub every: Every,
    /// Whether to count in programs.
    pub user: bool,
    /// Whether to count in the kernel.
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
        // SAFETY: The number is one of the enumeration's, so it is within the helper's table; `raw`
        // is valid for the write.
        unsafe { bindings::dtrace_perf_named(self.event as u32, &mut raw) };
        raw
    }

    /// Whether this machine can count it. Fails with `ENOMEM` if there was no memory to find out.
    /// May sleep.
    pub fn countable(&self) -> Result<bool> {
        // SAFETY: No preconditions; may sleep.
        match to_result(unsafe { bindings::dtrace_perf_try(&self.raw()) }) {
            Err(ENOMEM) => Err(ENOMEM),
            tried => Ok(tried.is_ok()),
        }
    }
}

#[repr(C)]
struct Hook<H> {
    // Must be first: a pointer to it is a pointer to the whole.
    raw: bindings::dtrace_perf,
    handler: H,
}

impl<H: Overflow> Hook<H> {
    fn new(handler: H) -> Result<KBox<Self>> {
        let hit = Some(on_overflow::<H> as unsafe extern "C" fn(_, _));
        let raw = bindings::dtrace_perf { hit };
        Ok(KBox::new(Self { raw, handler }, GFP_KERNEL)?)
    }

    /// Starts a counter on `cpu`. May sleep.
    ///
    /// # Safety
    ///
    /// The hook must stay where it is until the returned event is stopped, which must happen once.
    unsafe fn start(
        &self,
        cpu: u32,
        what: &bindings::dtrace_perf_event,
    ) -> Result<*mut bindings::perf_event> {
        let hook = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: By the caller's promise the hook outlives the event. It begins with its
        // `dtrace_perf`.
        let event = unsafe { bindings::dtrace_perf_start(cpu, what, hook) };
        kernel::error::from_err_ptr(event)
    }
}

/// The counter of one CPU.
#[derive(Default)]
struct Slot {
    /// Null if none runs.
    event: AtomicPtr<bindings::perf_event>,
    /// Whether the CPU has come online since the counter was started, and so has lost it.
    stale: AtomicBool,
    /// Whether a failure to start one has been reported.
    told: AtomicBool,
}

/// The counters of all CPUs.
#[pin_data(PinnedDrop)]
struct Slots<H: Overflow> {
    what: bindings::dtrace_perf_event,
    slots: KVVec<Slot>,
    // Outlives the events, which `drop` stops first.
    hook: KBox<Hook<H>>,
    /// Whether all CPUs have had their counters once. Held by the code that starts and stops
    /// counters.
    #[pin]
    begun: Mutex<bool>,
}

// SAFETY: Any task may start and stop the events, which happens under the mutex; the handler is
// `Send` and `Sync`.
unsafe impl<H: Overflow> Send for Slots<H> {}
// SAFETY: As above.
unsafe impl<H: Overflow> Sync for Slots<H> {}

impl<H: Overflow> Slots<H> {
    /// Gives every CPU its counter for the first time. May sleep.
    fn begin(&self) -> Result {
        let mut begun = self.begun.lock();
        let mut result = Ok(());
        self.complete(|_, error| result = Err(error));
        *begun = result.is_ok();
        result
    }

    /// Starts the counters that online CPUs lack. Calls `failed` for a CPU whose counter cannot be
    /// started, once until it comes online again. The mutex must be held.
    fn complete(&self, mut failed: impl FnMut(u32, Error)) {
        for (cpu, slot) in (0u32..).zip(self.slots.iter()) {
            if slot.stale.swap(false, Ordering::Relaxed) {
                slot.told.store(false, Ordering::Relaxed);
                slot.stop();
            }
            if online(cpu) && slot.event.load(Ordering::Relaxed).is_null() {
                // SAFETY: The hook stays in its box, which is dropped only after `Slot::stop` has
                // stopped every event, each once.
                match unsafe { self.hook.start(cpu, &self.what) } {
                    Ok(event) => slot.event.store(event, Ordering::Relaxed),
                    // The CPU is just going offline.
                    Err(error) if error == ENODEV => {}
                    Err(_) if slot.told.swap(true, Ordering::Relaxed) => {}
                    Err(error) => failed(cpu, error),
                }
            }
        }
    }
}

impl Slot {
    fn stop(&self) {
        let event = self.event.swap(null_mut(), Ordering::Relaxed);
        if !event.is_null() {
            // SAFETY: The event was started, and the swap has taken it out of its slot, so it is
            // stopped once.
            unsafe { bindings::dtrace_perf_stop(event) };
        }
    }
}

#[pinned_drop]
impl<H: Overflow> PinnedDrop for Slots<H> {
    fn drop(self: Pin<&mut Self>) {
        for slot in &self.slots {
            slot.stop();
        }
    }
}

impl<H: Overflow> Chore for Arc<Slots<H>> {
    fn run(&self) {
        let begun = self.begun.lock();
        if *begun {
            self.complete(|cpu, error| {
                pr_warn!("CPU {} does not count: {:?}\n", cpu, error);
                self.hook.handler.missed();
            });
        }
    }
}

/// Reacts to CPUs that come online.
pub struct Watch<H: Overflow>(Pin<KBox<Deferred<Arc<Slots<H>>>>>);

impl<H: Overflow> PerCpu for Watch<H> {
    fn start(&self, cpu: usize) -> Result {
        let slot = self.0.chore().slots.get(cpu).ok_or(EINVAL)?;
        // Whatever counter the CPU had is lost, even one that is being put there now.
        slot.stale.store(true, Ordering::Relaxed);
        self.0.ask();
        Ok(())
    }

    /// Does nothing: the lost event is released when the CPU comes online again, or at the end.
    fn stop(&self, _cpu: usize) {}
}

/// Running counters. Dropping them stops them. May sleep.
pub struct Counters<H: Overflow> {
    _watch: Pin<KBox<Everywhere<Watch<H>>>>,
}

impl<H: Overflow> Counters<H> {
    /// Starts counters on all CPUs that are online, or on none. May sleep.
    pub fn start(state: &Arc<CpuState<Watch<H>>>, what: &What, handler: H) -> Result<Self> {
        // SAFETY: No preconditions.
        let cpus = unsafe { bindings::dtrace_nr_cpus() } as usize;
        let mut slots = KVVec::with_capacity(cpus, GFP_KERNEL)?;
        for _ in 0..cpus {
            slots.push(Slot::default(), GFP_KERNEL)?;
        }
        let slots = Arc::pin_init(
            pin_init!(Slots {
                what: what.raw(),
                slots,
                hook: Hook::new(handler)?,
                begun <- new_mutex!(false, "dtrace::Slots"),
            }? Error),
            GFP_KERNEL,
        )?;
        let deferred = KBox::pin_init(Deferred::new(slots.clone()), GFP_KERNEL)?;
        let watch = Everywhere::start(state.clone(), Watch(deferred))?;
        slots.begin()?;
        Ok(Self { _watch: watch })
    }
}

/// # Safety
///
/// Called by `perf.c` with a live `Hook<H>`, and with registers that are null, or valid and
/// unchanged during the call.
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
