// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A CPU that is taken for probe context.
//!
//! A [`CpuGuard`] proves that the code behind it runs on one CPU with interrupts off, and that no
//! other code of ours does so on that CPU: neither an interrupted probe below it nor an NMI on top,
//! because a firing that finds the flag set leaves at once and is counted (INV-4). All per-CPU
//! memory hangs on this proof, so nothing in probe context needs a lock.

use crate::bindings;
use core::marker::PhantomData;
use dtrace_engine::Cpu;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// The number of raw frames that a stack walk may see, our own frames above the requested ones
/// included.
const FRAMES: usize = 160;

/// Probe context on this CPU. Dropping it leaves probe context and restores the interrupt flag.
pub struct CpuGuard {
    raw: *mut bindings::dtrace_cpu,
    cpu: Cpu,
    // Must not move to another CPU, so it is not `Send`.
    _here: PhantomData<*mut ()>,
}

impl CpuGuard {
    /// Enters probe context on this CPU. If it is entered already, or RCU does not watch this CPU,
    /// counts the attempt and returns `None`. May be called in any context.
    #[inline]
    pub fn enter() -> Option<Self> {
        // SAFETY: No preconditions.
        let raw = unsafe { bindings::dtrace_cpu_enter() };
        if raw.is_null() {
            return None;
        }
        // SAFETY: `dtrace_cpu_enter()` has returned this CPU's structure, which only this code
        // accesses until `dtrace_cpu_exit()`.
        let index = unsafe { (*raw).cpu } as usize;
        Some(Self {
            raw,
            // SAFETY: The claim must be the only one in code that can run at the same time.
            // Interrupts are off on this CPU until `drop`, and `busy` keeps NMIs out.
            cpu: unsafe { Cpu::claim(index) },
            _here: PhantomData,
        })
    }

    /// Returns the engine's view of this claim.
    #[inline]
    pub fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// Returns the task that runs on this CPU.
    #[inline]
    pub(super) fn task(&self) -> *mut bindings::task_struct {
        // SAFETY: Only this code accesses the structure while the guard lives. `task` was set when
        // the CPU was taken.
        unsafe { (*self.raw).task }
    }

    /// Returns a number that distinguishes this firing from others on this CPU.
    #[inline]
    pub fn firing(&self) -> u64 {
        // SAFETY: Only this code accesses the structure while the guard lives.
        unsafe { (*self.raw).firing }
    }

    /// Whether several firings count as one, because the CPU is stopped once for all of them.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        // SAFETY: As in `firing`.
        unsafe { (*self.raw).stopped }
    }

    /// Counts a firing that some consumer gets.
    #[inline]
    pub fn count(&self) {
        // SAFETY: As in `firing`; other CPUs only read this counter.
        unsafe { (*self.raw).fired = (*self.raw).fired.wrapping_add(1) };
    }

    /// Returns the work of members' clauses in this firing, in units.
    pub fn work_of_users(&self) -> u64 {
        // SAFETY: As in `firing`; the reference ends with this call.
        let toil = unsafe { &(*self.raw).toil };
        match toil.firing == self.firing() {
            true => toil.users,
            false => 0,
        }
    }

    /// Adds to the work of members' clauses in this firing.
    pub fn add_work_of_users(&self, units: u64) {
        self.begin_toil();
        // SAFETY: As in `firing`; no other reference to the structure exists during this call.
        let users = unsafe { &mut (*self.raw).toil.users };
        *users = users.saturating_add(units);
    }

    /// Adds to the work of the clauses of all other consumers in this firing, and returns the sum.
    pub fn add_work_of_others(&self, units: u64) -> u64 {
        self.begin_toil();
        // SAFETY: As in `add_work_of_users`.
        let others = unsafe { &mut (*self.raw).toil.others };
        *others = others.saturating_add(units);
        *others
    }

    /// Returns how long ago this was last called in this firing, 0 if it was not. `now` is the
    /// present time. Both in nanoseconds.
    pub fn look_at_toil(&self, now: u64) -> u64 {
        self.begin_toil();
        // SAFETY: As in `add_work_of_users`.
        let before = unsafe { core::mem::replace(&mut (*self.raw).toil.looked, now) };
        match before {
            0 => 0,
            before => now.saturating_sub(before),
        }
    }

    fn begin_toil(&self) {
        let firing = self.firing();
        // SAFETY: As in `add_work_of_users`.
        let toil = unsafe { &mut (*self.raw).toil };
        if toil.firing != firing {
            (toil.firing, toil.users, toil.others, toil.looked) = (firing, 0, 0, 0);
        }
    }

    /// Returns the structure for the C helpers.
    #[inline]
    pub(super) fn raw(&self) -> *mut bindings::dtrace_cpu {
        self.raw
    }

    /// Calls `f` with the memory for a stack walk. A nested call from within `f` gets an empty
    /// slice.
    #[inline]
    pub fn with_frames<R>(&self, f: impl FnOnce(&mut [usize]) -> R) -> R {
        // SAFETY: As in `firing`. The memory is taken out during the call, so that a nested call
        // finds none and the slice below is not aliased.
        let (ptr, len) = unsafe {
            let len = (*self.raw).nr_frames as usize;
            (*self.raw).nr_frames = 0;
            ((*self.raw).frames, len)
        };
        let room: &mut [usize] = if ptr.is_null() || len == 0 {
            &mut []
        } else {
            // SAFETY: `CpuScratch::new` allocated that many words for this CPU, they live as long
            // as probes may fire, and only the holder of the guard uses them.
            unsafe { core::slice::from_raw_parts_mut(ptr.cast::<usize>(), len) }
        };
        let result = f(room);
        // SAFETY: As in `firing`.
        unsafe { (*self.raw).nr_frames = len as u32 };
        result
    }
}

impl Drop for CpuGuard {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `raw` came from `dtrace_cpu_enter()` on this CPU, which interrupts being off has
        // kept the same, and is given back once.
        unsafe { bindings::dtrace_cpu_exit(self.raw) };
    }
}

/// Proof that interrupts are off on this CPU and RCU watches it, so that no grace period ends that
/// begins from now on.
///
/// # Safety
///
/// Both must hold as long as a value of the type lives.
pub unsafe trait NoGracePeriod {}

// SAFETY: `dtrace_cpu_enter()` turns interrupts off until the guard is dropped, and refuses to
// enter if RCU does not watch this CPU.
unsafe impl NoGracePeriod for CpuGuard {}

/// A firing on top of probe context, which refused it.
pub struct Nested {
    /// Whether an NMI interrupted that probe context. Otherwise the probe context itself called
    /// what is traced.
    pub nmi: bool,
    // Must not move to another CPU, so it is not `Send`.
    _here: PhantomData<*mut ()>,
}

// SAFETY: The probe context below has interrupts off, and was entered while RCU watched this CPU.
// The value is made only after such a refusal, and dropped before the code that was refused
// returns.
unsafe impl NoGracePeriod for Nested {}

impl Nested {
    /// Returns the kind of a firing that [`CpuGuard::enter`] has just refused; `None` if it was
    /// refused because RCU does not watch this CPU. Must be called only right after such a refusal:
    /// in other code it would return a proof that is not true.
    #[cold]
    pub fn after_refusal() -> Option<Self> {
        // SAFETY: No preconditions.
        let why = unsafe { bindings::dtrace_cpu_why() };
        let nmi = match why {
            bindings::dtrace_loss_DTRACE_LOSS_RECURSION => false,
            bindings::dtrace_loss_DTRACE_LOSS_NMI => true,
            _ => return None,
        };
        Some(Self {
            nmi,
            _here: PhantomData,
        })
    }
}

/// The memory that probe context has on each CPU. It must live as long as probes may fire.
pub struct CpuScratch {
    _frames: KVVec<usize>,
}

impl CpuScratch {
    /// Allocates the memory and gives each CPU its part. Must be called once, before any probe
    /// exists. May sleep.
    pub fn new() -> Result<Self> {
        let cpus = nr_cpus();
        let mut frames =
            KVVec::from_elem(0usize, cpus.checked_mul(FRAMES).ok_or(ENOMEM)?, GFP_KERNEL)?;
        for (cpu, part) in frames.chunks_exact_mut(FRAMES).enumerate() {
            // SAFETY: No preconditions.
            if unsafe { bindings::dtrace_cpu_possible(cpu as u32) } {
                // SAFETY: The CPU is possible, so it has a structure. No probe fires yet, so
                // nothing else accesses it. `part` stays in place, because the vector is not
                // changed any more.
                unsafe {
                    let raw = bindings::dtrace_cpu_of(cpu as u32);
                    (*raw).cpu = cpu as u32;
                    (*raw).frames = part.as_mut_ptr().cast();
                    (*raw).nr_frames = FRAMES as u32;
                }
            }
        }
        Ok(Self { _frames: frames })
    }
}

impl Drop for CpuScratch {
    fn drop(&mut self) {
        // SAFETY: No preconditions; may sleep. No probe fires any more, so no new signal is queued.
        unsafe { bindings::dtrace_signal_sync() };
    }
}

/// Returns how many firings on a CPU some consumer got; 0 if there is no such CPU. The number may
/// be a moment old.
pub fn firings(cpu: u32) -> u64 {
    if !possible(cpu) {
        return 0;
    }
    // SAFETY: The CPU is possible, so it has a structure. The counter is an aligned word, which a
    // 64-bit machine reads whole; the volatile read allows for writes by that CPU.
    unsafe { (&raw const (*bindings::dtrace_cpu_of(cpu)).fired).read_volatile() }
}

/// Counts of firings that no consumer saw, for all consumers together, by the reason; and of what
/// made some slow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Probe context itself called what is traced.
    pub recursion: u64,
    /// An NMI interrupted probe context.
    pub nmi: u64,
    /// RCU did not watch the CPU: nothing would have kept the consumers alive.
    pub unwatched: u64,
    /// Returns of functions that could not be hooked when the function was called.
    pub returns: u64,
    /// A program waited for memory of its own that a clause or an instruction misses, and got it or
    /// a signal.
    pub waits: u64,
    /// A program waited for such memory in vain.
    pub waits_in_vain: u64,
    /// An instruction was left to uprobes, because its program has no room to execute it elsewhere.
    pub carried: u64,
}

impl Losses {
    /// Returns the sums over all CPUs since the module was loaded. They only grow.
    pub fn total() -> Self {
        let mut total = Self::default();
        for cpu in (0..nr_cpus() as u32).filter(|cpu| possible(*cpu)) {
            // SAFETY: The CPU is possible, so it has a structure. Its counters are aligned words,
            // which a 64-bit machine reads whole; they may be a moment old.
            let lost = unsafe {
                (&raw const (*bindings::dtrace_cpu_of(cpu)).lost)
                    .cast::<[u64; bindings::dtrace_loss_DTRACE_LOSSES as usize]>()
                    .read_volatile()
            };
            for (sum, lost) in total.fields().into_iter().zip(lost) {
                *sum = sum.wrapping_add(lost);
            }
        }
        total
    }

    /// Returns the counts since `before`.
    pub fn since(mut self, mut before: Self) -> Self {
        for (sum, before) in self.fields().into_iter().zip(before.fields()) {
            *sum = sum.wrapping_sub(*before);
        }
        self
    }

    /// Returns the fields in the order of `enum dtrace_loss`.
    fn fields(&mut self) -> [&mut u64; bindings::dtrace_loss_DTRACE_LOSSES as usize] {
        [
            &mut self.recursion,
            &mut self.nmi,
            &mut self.unwatched,
            &mut self.returns,
            &mut self.waits,
            &mut self.waits_in_vain,
            &mut self.carried,
        ]
    }
}

/// Returns the greatest CPU number plus one.
pub fn nr_cpus() -> usize {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_nr_cpus() as usize }
}

/// Whether this CPU is online. That may change at once, unless the caller keeps CPUs from coming
/// and going.
pub fn online(cpu: u32) -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_cpu_online(cpu) }
}

/// Whether a CPU of this number can ever exist.
pub fn possible(cpu: u32) -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_cpu_possible(cpu) }
}
