// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! This CPU, taken for probe context.
//!
//! [`CpuGuard`] is the proof that the code behind it runs on one CPU, with interrupts off, and that no other code of
//! ours does so on that CPU below it: neither an interrupted probe nor an NMI on top, since whoever finds the
//! flag up leaves at once and is counted. All per-CPU memory hangs on this proof, so nothing in probe context needs a lock.

use crate::bindings;
use core::marker::PhantomData;
use dtrace_engine::Cpu;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// Raw frames that a stack walk may see, with our own on top of those asked for.
const FRAMES: usize = 160;

/// Probe context on this CPU; dropping it leaves.
pub struct CpuGuard {
    raw: *mut bindings::dtrace_cpu,
    cpu: Cpu,
    // Not to be sent to another CPU.
    _here: PhantomData<*mut ()>,
}

impl CpuGuard {
    /// Takes this CPU, or counts the attempt where it is taken already.
    #[inline]
    pub fn enter() -> Option<Self> {
        // SAFETY: Needs nothing.
        let raw = unsafe { bindings::dtrace_cpu_enter() };
        if raw.is_null() {
            return None;
        }
        // SAFETY: Until `dtrace_cpu_exit`, the pointee is ours alone.
        let index = unsafe { (*raw).cpu } as usize;
        Some(Self {
            raw,
            // SAFETY: Interrupts are off until `drop`, and `busy` keeps NMIs out.
            cpu: unsafe { Cpu::claim(index) },
            _here: PhantomData,
        })
    }

    /// The engine's view of this claim.
    #[inline]
    pub fn cpu(&self) -> &Cpu {
        &self.cpu
    }

    /// The task that runs on this CPU.
    #[inline]
    pub(super) fn task(&self) -> *mut bindings::task_struct {
        // SAFETY: The pointee is ours alone while the guard lives, and was told the task when it was taken.
        unsafe { (*self.raw).task }
    }

    /// What tells this firing from others on this CPU.
    #[inline]
    pub fn firing(&self) -> u64 {
        // SAFETY: The pointee is ours alone while the guard lives.
        unsafe { (*self.raw).firing }
    }

    /// Whether several firings are one, as the CPU is stopped once for them.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        // SAFETY: As above.
        unsafe { (*self.raw).stopped }
    }

    /// Counts a firing that is for somebody.
    #[inline]
    pub fn count(&self) {
        // SAFETY: As above; others only read it.
        unsafe { (*self.raw).fired = (*self.raw).fired.wrapping_add(1) };
    }

    /// What users' clauses have done together in this firing, units.
    pub fn work_of_users(&self) -> u64 {
        // SAFETY: As above.
        let toil = unsafe { &(*self.raw).toil };
        match toil.firing == self.firing() {
            true => toil.users,
            false => 0,
        }
    }

    /// Adds to that.
    pub fn add_work_of_users(&self, units: u64) {
        self.begin_toil();
        // SAFETY: As above.
        let users = unsafe { &mut (*self.raw).toil.users };
        *users = users.saturating_add(units);
    }

    /// The same of the clauses of those who see everything: adds to it, and returns it.
    pub fn add_work_of_others(&self, units: u64) -> u64 {
        self.begin_toil();
        // SAFETY: As above.
        let others = unsafe { &mut (*self.raw).toil.others };
        *others = others.saturating_add(units);
        *others
    }

    /// How long ago this was last called in this firing, if it was; `now` is when it is called. Both in nanoseconds.
    pub fn look_at_toil(&self, now: u64) -> u64 {
        self.begin_toil();
        // SAFETY: As above.
        let before = unsafe { core::mem::replace(&mut (*self.raw).toil.looked, now) };
        match before {
            0 => 0,
            before => now.saturating_sub(before),
        }
    }

    fn begin_toil(&self) {
        let firing = self.firing();
        // SAFETY: As above.
        let toil = unsafe { &mut (*self.raw).toil };
        if toil.firing != firing {
            (toil.firing, toil.users, toil.others, toil.looked) = (firing, 0, 0, 0);
        }
    }

    /// What the kernel's own functions take.
    #[inline]
    pub(super) fn raw(&self) -> *mut bindings::dtrace_cpu {
        self.raw
    }

    /// Room for a stack walk. The closure must not ask for it again.
    #[inline]
    pub fn with_frames<R>(&self, f: impl FnOnce(&mut [usize]) -> R) -> R {
        // SAFETY: The pointee is ours alone while the guard lives. The room is taken out for the time of the call, so that
        // a nested call finds none.
        let (ptr, len) = unsafe {
            let len = (*self.raw).nr_frames as usize;
            (*self.raw).nr_frames = 0;
            ((*self.raw).frames, len)
        };
        let room: &mut [usize] = if ptr.is_null() || len == 0 {
            &mut []
        } else {
            // SAFETY: `CpuScratch` allocated that many words, and took them out of nobody else's hands.
            unsafe { core::slice::from_raw_parts_mut(ptr.cast::<usize>(), len) }
        };
        let result = f(room);
        // SAFETY: As above.
        unsafe { (*self.raw).nr_frames = len as u32 };
        result
    }
}

impl Drop for CpuGuard {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `raw` came from `dtrace_cpu_enter` on this CPU, and is given back once.
        unsafe { bindings::dtrace_cpu_exit(self.raw) };
    }
}

/// Interrupts are off on this CPU and RCU is watching it: no grace period ends.
///
/// # Safety
///
/// That must be so as long as a value of the type lives.
pub unsafe trait NoGracePeriod {}

// SAFETY: `dtrace_cpu_enter` turns interrupts off, and refuses out of RCU's sight.
unsafe impl NoGracePeriod for CpuGuard {}

/// A firing on top of probe context, which refused it.
pub struct Nested {
    /// It was hit by an NMI, and did not call what is traced.
    pub nmi: bool,
    // Not to be sent to another CPU.
    _here: PhantomData<*mut ()>,
}

// SAFETY: The probe context below has interrupts off, and began in RCU's sight.
unsafe impl NoGracePeriod for Nested {}

impl Nested {
    /// What a firing is to which [`CpuGuard::enter`] has just given nothing; `None` where probe context was not entered,
    /// and RCU was not watching.
    #[cold]
    pub fn after_refusal() -> Option<Self> {
        // SAFETY: Needs nothing.
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

/// The memory that probe context has on each CPU. Lives as long as probes may fire.
pub struct CpuScratch {
    _frames: KVVec<usize>,
}

impl CpuScratch {
    /// Allocates and hands out the memory. To be called once, before any probe exists.
    pub fn new() -> Result<Self> {
        let cpus = nr_cpus();
        let mut frames =
            KVVec::from_elem(0usize, cpus.checked_mul(FRAMES).ok_or(ENOMEM)?, GFP_KERNEL)?;
        for (cpu, part) in frames.chunks_exact_mut(FRAMES).enumerate() {
            // SAFETY: Needs nothing.
            if unsafe { bindings::dtrace_cpu_possible(cpu as u32) } {
                // SAFETY: The CPU is possible; no probe fires yet, so nobody else touches the pointee.
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
        // SAFETY: Needs nothing; no probe fires any more, so no new signal is queued.
        unsafe { bindings::dtrace_signal_sync() };
    }
}

/// How many firings on a CPU were for somebody, which may be a moment old; 0 where there is no such CPU.
pub fn firings(cpu: u32) -> u64 {
    if !possible(cpu) {
        return 0;
    }
    // SAFETY: The CPU is possible; the counter is read whole on a 64-bit machine.
    unsafe { (&raw const (*bindings::dtrace_cpu_of(cpu)).fired).read_volatile() }
}

/// Firings that no consumer saw, whoever had enabled them, by the reason; and what made some slow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Probe context itself called what is traced.
    pub recursion: u64,
    /// An NMI hit probe context.
    pub nmi: u64,
    /// The code was out of RCU's sight: nothing would have kept the consumers alive.
    pub unwatched: u64,
    /// Returns of functions that could not be hooked when the function was called.
    pub returns: u64,
    /// A program waited for memory of its own that a clause or an instruction misses, and got it or a signal.
    pub waits: u64,
    /// It did so in vain.
    pub waits_in_vain: u64,
    /// An instruction was left to uprobes, as its program has no room to execute it elsewhere.
    pub carried: u64,
}

impl Losses {
    /// Those over all CPUs since the module was loaded. The sums only grow.
    pub fn total() -> Self {
        let mut total = Self::default();
        for cpu in (0..nr_cpus() as u32).filter(|cpu| possible(*cpu)) {
            // SAFETY: The CPU is possible; its counters are read whole on a 64-bit machine, and may be a moment old.
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

    /// Those since `before`.
    pub fn since(mut self, mut before: Self) -> Self {
        for (sum, before) in self.fields().into_iter().zip(before.fields()) {
            *sum = sum.wrapping_sub(*before);
        }
        self
    }

    /// In the order of `enum dtrace_loss`.
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

/// One more than the greatest CPU number.
pub fn nr_cpus() -> usize {
    // SAFETY: Needs nothing.
    unsafe { bindings::dtrace_nr_cpus() as usize }
}

/// Whether this CPU is online; it may be so no more, or be so now, unless the caller keeps CPUs from coming and going.
pub fn online(cpu: u32) -> bool {
    // SAFETY: Needs nothing.
    unsafe { bindings::dtrace_cpu_online(cpu) }
}

/// Whether there may ever be a CPU of this number.
pub fn possible(cpu: u32) -> bool {
    // SAFETY: Needs nothing.
    unsafe { bindings::dtrace_cpu_possible(cpu) }
}
