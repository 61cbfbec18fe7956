// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The current task, as far as probe context may look at it.

use super::percpu::CpuGuard;
use super::regs::Regs;
use crate::bindings;
use core::marker::PhantomData;
use core::mem::offset_of;

/// The task that runs on this CPU, while a [`CpuGuard`] keeps it there.
///
/// Other CPUs write to a task's structure at any time (exec changes ids and name), so there is never a reference to it: each
/// field is read on its own, once, as the kernel's own `READ_ONCE` does.
///
/// # Invariants
///
/// `task` is valid for reads for `'a`.
#[derive(Clone, Copy)]
pub struct Current<'a> {
    task: *mut bindings::task_struct,
    _guard: PhantomData<&'a CpuGuard>,
}

/// Whether the current task is to die: nobody waits for what it does.
pub fn is_killed() -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_killed() }
}

/// The number of the current thread.
pub fn number() -> u32 {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_thread_number() }
}

/// Reads a field of the task once.
macro_rules! read {
    ($current:expr, $field:ident) => {{
        // SAFETY: By the invariant; the field is a plain number or array of bytes, of which any bits are a value.
        unsafe { (&raw const (*$current.task).$field).read_volatile() }
    }};
}

impl<'a> Current<'a> {
    /// The current task. It runs, so it lives as long as probe context lasts.
    #[inline]
    pub fn get(guard: &'a CpuGuard) -> Self {
        Self {
            task: guard.task(),
            _guard: PhantomData,
        }
    }

    /// The task that a firing stopped.
    ///
    /// # Safety
    ///
    /// The CPU of `raw` is this one, and taken for `'a`.
    pub(super) unsafe fn of(raw: *const bindings::dtrace_cpu) -> Self {
        Self {
            // SAFETY: By the contract.
            task: unsafe { (*raw).task },
            _guard: PhantomData,
        }
    }

    /// Its address.
    #[inline]
    pub fn addr(self) -> u64 {
        self.task as u64
    }

    /// The process: its thread group's id.
    #[inline]
    pub fn tgid(self) -> u32 {
        read!(self, tgid) as u32
    }

    /// The thread.
    #[inline]
    pub fn pid(self) -> u32 {
        read!(self, pid) as u32
    }

    /// The id of the current thread as its process sees it.
    pub fn own_tid(self) -> u32 {
        // SAFETY: Interrupts are off: this is the current thread, and nothing of it is freed.
        unsafe { bindings::dtrace_own_tid() }
    }

    /// From where the current thread's program addresses the thread's own variables.
    pub fn thread_pointer(self) -> u64 {
        super::arch::thread_pointer()
    }

    /// When it was started, which with its id names it for all time.
    #[inline]
    pub fn start_time(self) -> u64 {
        read!(self, start_time)
    }

    /// What names it for all time among the threads, and the idle thread of `cpu`.
    #[inline]
    pub fn who(self, cpu: usize) -> u64 {
        match self.pid() {
            0 => cpu as u64,
            pid => self.start_time() << 22 | u64::from(pid),
        }
    }

    /// Its name, ending with NUL. A concurrent prctl() may leave a mix of both names.
    #[inline]
    pub fn comm(self) -> [u8; 16] {
        // By words where it lies so: the compiler may not join bytes that it is to read one by one.
        let mut comm: [u8; 16] = if offset_of!(bindings::task_struct, comm) % align_of::<u64>() == 0
        {
            // SAFETY: By the invariant; it is as long as two words and aligned as they are, and any bits are a value.
            let words = unsafe {
                (&raw const (*self.task).comm)
                    .cast::<[u64; 2]>()
                    .read_volatile()
            };
            zerocopy::transmute!(words)
        } else {
            read!(self, comm)
        };
        comm[15] = 0;
        comm
    }

    /// Process id of its parent; 0 once it has left all lists, as a task that ends does some time before it is gone.
    pub fn ppid(self) -> u32 {
        // SAFETY: The task is current and interrupts are off: an RCU read-side critical section.
        unsafe { bindings::dtrace_ppid(self.task) }
    }

    /// Its real user.
    pub fn uid(self) -> u32 {
        // SAFETY: As in `ppid`.
        unsafe { bindings::dtrace_uid(self.task) }
    }

    /// Its real group.
    pub fn gid(self) -> u32 {
        // SAFETY: As in `ppid`.
        unsafe { bindings::dtrace_gid(self.task) }
    }

    /// Whether its process is `pid` or descends from it, and how many ancestors were asked.
    pub fn descends_from(self, pid: u64) -> (bool, u32) {
        let mut hops = 0;
        // SAFETY: As in `ppid`.
        let descends = unsafe { bindings::dtrace_progenyof(self.task, pid, &mut hops) };
        (descends, hops)
    }

    /// The registers with which it entered the kernel; none of a kernel thread.
    pub fn user_regs(self) -> Option<&'a Regs> {
        // SAFETY: The task is current.
        let regs = unsafe { bindings::dtrace_user_regs(self.task) };
        // SAFETY: If there are any they lie on the task's kernel stack, where nobody writes to them while it is in the probe.
        (!regs.is_null()).then(|| unsafe { Regs::from_ptr(regs) })
    }

    /// Register `n` of user code that the kernel does not save when it is entered: the segments, and the number of the last
    /// trap.
    pub fn user_segment(self, n: u64) -> Option<u64> {
        let mut value = 0;
        // SAFETY: `value` is valid for the write; the task is current.
        let has = unsafe { bindings::dtrace_user_segment(self.task, n, &mut value) };
        has.then_some(value)
    }

    /// Sends it `signal` as soon as interrupts are on again. A kernel thread or init gets none, which is no failure. `false` if that is
    /// no signal, or another task's are still under way here.
    pub fn signal(self, signal: u64) -> bool {
        let Ok(signal) = i32::try_from(signal) else {
            return false;
        };
        // SAFETY: The CPU is taken.
        unsafe { bindings::dtrace_signal_current(signal) }
    }
}

/// 0 in a thread, 1 in a soft interrupt, 2 in a hard one, 3 in an NMI.
#[inline]
pub fn irq_level() -> u32 {
    // SAFETY: Needs nothing.
    unsafe { bindings::dtrace_irq_level() }
}
