// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Counters of performance events, of the hardware's and of the kernel's own: one on every CPU, also on those that come later.
//!
//! Whether the machine can count an event at all is known beforehand, whether a counter is free for it is not. A CPU that is
//! switched off loses its counter; the kernel's events are so made, and it gets another when it comes again. To start one may
//! wait until CPUs have come, so that this is not done by who is told that one comes but soon after.

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

    /// A CPU has come that could not be given its counter. It may sleep.
    fn missed(&self);
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

    /// Whether this machine can count it. `ENOMEM`: nobody knows.
    pub fn countable(&self) -> Result<bool> {
        // SAFETY: No preconditions.
        match to_result(unsafe { bindings::dtrace_perf_try(&self.raw()) }) {
            Err(ENOMEM) => Err(ENOMEM),
            tried => Ok(tried.is_ok()),
        }
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

/// A CPU's counter.
#[derive(Default)]
struct Slot {
    /// Null where none runs.
    event: AtomicPtr<bindings::perf_event>,
    /// The CPU has come since that was started.
    stale: AtomicBool,
    /// It has been told that none could be started.
    told: AtomicBool,
}

/// The counters of all CPUs.
#[pin_data(PinnedDrop)]
struct Slots<H: Overflow> {
    what: bindings::dtrace_perf_event,
    slots: KVVec<Slot>,
    // Outlives the events, which are stopped first.
    hook: KBox<Hook<H>>,
    /// Whether all CPUs had theirs once; held by who starts and stops them.
    #[pin]
    begun: Mutex<bool>,
}

// SAFETY: The events are started and stopped from anywhere, under the lock; the handler is `Sync`.
unsafe impl<H: Overflow> Send for Slots<H> {}
// SAFETY: As above.
unsafe impl<H: Overflow> Sync for Slots<H> {}

impl<H: Overflow> Slots<H> {
    /// Gives every CPU its counter for the first time.
    fn begin(&self) -> Result {
        let mut begun = self.begun.lock();
        let mut result = Ok(());
        self.complete(|_, error| result = Err(error));
        *begun = result.is_ok();
        result
    }

    /// Starts what CPUs that are online lack. One that cannot be started is told to `failed`.
    fn complete(&self, mut failed: impl FnMut(u32, Error)) {
        for (cpu, slot) in (0u32..).zip(self.slots.iter()) {
            if slot.stale.swap(false, Ordering::Relaxed) {
                slot.told.store(false, Ordering::Relaxed);
                slot.stop();
            }
            if online(cpu) && slot.event.load(Ordering::Relaxed).is_null() {
                // SAFETY: The hook is in its box until the event has been stopped, by `Slot::stop`.
                match unsafe { self.hook.start(cpu, &self.what) } {
                    Ok(event) => slot.event.store(event, Ordering::Relaxed),
                    // It goes at this moment.
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
            // SAFETY: It was started, and is in its place no more.
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

/// What is told of CPUs that come.
pub struct Watch<H: Overflow>(Pin<KBox<Deferred<Arc<Slots<H>>>>>);

impl<H: Overflow> PerCpu for Watch<H> {
    fn start(&self, cpu: usize) -> Result {
        let slot = self.0.chore().slots.get(cpu).ok_or(EINVAL)?;
        // Whatever it had it has lost; also what is just being put there.
        slot.stale.store(true, Ordering::Relaxed);
        self.0.ask();
        Ok(())
    }

    /// What the kernel has taken from it is put away when it comes again, or in the end.
    fn stop(&self, _cpu: usize) {}
}

/// Running counters. Dropping them stops them.
pub struct Counters<H: Overflow> {
    _watch: Pin<KBox<Everywhere<Watch<H>>>>,
}

impl<H: Overflow> Counters<H> {
    /// Starts them, on all CPUs or on none.
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
/// Called by `perf.c` with a `Hook<H>`, and registers that stay during the call.
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
