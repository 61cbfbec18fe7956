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
/// Other CPUs may write to a task's structure at any time (exec changes ids and name), so no
/// reference to it is ever made: each field is read on its own, once, as by the kernel's
/// `READ_ONCE()`.
///
/// # Invariants
///
/// `task` is valid for reads for `'a`.
#[derive(Clone, Copy)]
pub struct Current<'a> {
    task: *mut bindings::task_struct,
    _guard: PhantomData<&'a CpuGuard>,
}

/// Whether the current task has been killed, so that nobody waits for what it does.
pub fn is_killed() -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_killed() }
}

/// Returns the number of the current thread in the first namespace.
pub fn number() -> u32 {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_thread_number() }
}

/// Reads a field of the task once.
macro_rules! read {
    ($current:expr, $field:ident) => {{
        // SAFETY: By the invariant the pointer is valid for reads. The field is a number or an
        // array of bytes, for which all bits are valid, and the volatile read allows for writes by
        // other CPUs.
        unsafe { (&raw const (*$current.task).$field).read_volatile() }
    }};
}

impl<'a> Current<'a> {
    /// Returns the current task. It is running, so it lives as long as probe context lasts.
    #[inline]
    pub fn get(guard: &'a CpuGuard) -> Self {
        Self {
            task: guard.task(),
            _guard: PhantomData,
        }
    }

    /// Returns the task that a firing has stopped.
    ///
    /// # Safety
    ///
    /// `raw` must be the structure of this CPU, which must be in probe context for `'a`.
    pub(super) unsafe fn of(raw: *const bindings::dtrace_cpu) -> Self {
        Self {
            // SAFETY: By the caller's promise; `task` was set when the CPU was taken.
            task: unsafe { (*raw).task },
            _guard: PhantomData,
        }
    }

    /// Returns its address.
    #[inline]
    pub fn addr(self) -> u64 {
        self.task as u64
    }

    /// Returns the id of its process (thread group).
    #[inline]
    pub fn tgid(self) -> u32 {
        read!(self, tgid) as u32
    }

    /// Returns the id of its thread.
    #[inline]
    pub fn pid(self) -> u32 {
        read!(self, pid) as u32
    }

    /// Returns the id of the thread as its process sees it; 0 if the thread has left all lists.
    pub fn own_tid(self) -> u32 {
        // SAFETY: Must be called with interrupts off, which the guard ensures: the current thread's
        // `struct pid` is not freed meanwhile.
        unsafe { bindings::dtrace_own_tid() }
    }

    /// Returns the address by which the thread's program addresses its thread-local variables.
    pub fn thread_pointer(self) -> u64 {
        super::arch::thread_pointer()
    }

    /// Returns when it was started, in ns. Together with its id this identifies it for all time.
    #[inline]
    pub fn start_time(self) -> u64 {
        read!(self, start_time)
    }

    /// Returns what identifies it among all threads (the low 42 bits of its start time in ns, and
    /// its id), and the idle thread of `cpu` among those.
    #[inline]
    pub fn who(self, cpu: usize) -> u64 {
        match self.pid() {
            0 => cpu as u64,
            pid => self.start_time() << 22 | u64::from(pid),
        }
    }

    /// Returns its name, ending with NUL. A concurrent prctl() may lead to a mix of both names.
    #[inline]
    pub fn comm(self) -> [u8; 16] {
        // By words if the field is aligned: the compiler must not combine volatile reads of bytes.
        let mut comm: [u8; 16] = if offset_of!(bindings::task_struct, comm) % align_of::<u64>() == 0
        {
            // SAFETY: By the invariant. The field is as long as two words and, as just tested, as
            // aligned as they are; all bits are valid.
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

    /// Returns the process id of its parent; 0 once it has left all lists, as a task that ends does
    /// some time before its last switch.
    pub fn ppid(self) -> u32 {
        // SAFETY: The task is the current one, and interrupts are off, which is an RCU read-side
        // critical section: its parent is not freed meanwhile.
        unsafe { bindings::dtrace_ppid(self.task) }
    }

    /// Returns its real user id.
    pub fn uid(self) -> u32 {
        // SAFETY: As in `ppid`, for its credentials.
        unsafe { bindings::dtrace_uid(self.task) }
    }

    /// Returns its real group id.
    pub fn gid(self) -> u32 {
        // SAFETY: As in `ppid`, for its credentials.
        unsafe { bindings::dtrace_gid(self.task) }
    }

    /// Whether its process is `pid` or descends from it; and how many ancestors were looked at.
    pub fn descends_from(self, pid: u64) -> (bool, u32) {
        let mut hops = 0;
        // SAFETY: As in `ppid`; `hops` is valid for the write.
        let descends = unsafe { bindings::dtrace_progenyof(self.task, pid, &mut hops) };
        (descends, hops)
    }

    /// Returns the registers with which it entered the kernel; `None` for a kernel thread.
    pub fn user_regs(self) -> Option<&'a Regs> {
        // SAFETY: The task is the current one, so its stack exists.
        let regs = unsafe { bindings::dtrace_user_regs(self.task) };
        // SAFETY: If the pointer is not null, the registers lie on the task's kernel stack. Nothing
        // writes to them while the task is in the probe, which is longer than `'a`.
        (!regs.is_null()).then(|| unsafe { Regs::from_ptr(regs) })
    }

    /// Returns register `n` of user code that the kernel does not save on entry: the segment
    /// selectors, and the number of the last trap.
    pub fn user_segment(self, n: u64) -> Option<u64> {
        let mut value = 0;
        // SAFETY: `value` is valid for the write; the task is the current one, so the CPU has its
        // selectors.
        let has = unsafe { bindings::dtrace_user_segment(self.task, n, &mut value) };
        has.then_some(value)
    }

    /// Sends it `signal` as soon as interrupts are on again. Kernel threads and init get none; that
    /// is no failure. `false` if `signal` is no signal, or if signals for another task are still
    /// under way on this CPU.
    pub fn signal(self, signal: u64) -> bool {
        let Ok(signal) = i32::try_from(signal) else {
            return false;
        };
        // SAFETY: Must be called in probe context, which the guard ensures: nothing else accesses
        // this CPU's slot.
        unsafe { bindings::dtrace_signal_current(signal) }
    }
}

/// Returns 0 in a thread, 1 in a soft interrupt, 2 in a hard one, 3 in an NMI.
#[inline]
pub fn irq_level() -> u32 {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_irq_level() }
}
