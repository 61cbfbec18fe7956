// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The current task, as far as probe context may look at it.

use super::regs::Regs;
use crate::bindings;

/// The task that runs on this CPU, while a [`CpuGuard`](super::percpu::CpuGuard) keeps it there.
#[derive(Clone, Copy)]
pub struct Current<'a> {
    task: &'a bindings::task_struct,
}

impl<'a> Current<'a> {
    /// The current task. It runs, so it lives as long as probe context lasts.
    #[inline]
    pub fn get(_guard: &'a super::percpu::CpuGuard) -> Self {
        Self {
            // SAFETY: The current task exists, and interrupts stay off for `'a`. Fields that others write are read through
            // `read_volatile`.
            task: unsafe { &*bindings::dtrace_current() },
        }
    }

    #[inline]
    fn raw(self) -> *mut bindings::task_struct {
        core::ptr::from_ref(self.task).cast_mut()
    }

    /// Its address.
    #[inline]
    pub fn addr(self) -> u64 {
        self.raw() as u64
    }

    /// The process: its thread group's id.
    #[inline]
    pub fn tgid(self) -> u32 {
        self.task.tgid as u32
    }

    /// The thread.
    #[inline]
    pub fn pid(self) -> u32 {
        self.task.pid as u32
    }

    /// When it was started, which with its id names it for all time.
    #[inline]
    pub fn start_time(self) -> u64 {
        self.task.start_time
    }

    /// Its name, ending with NUL.
    #[inline]
    pub fn comm(self) -> [u8; 16] {
        // SAFETY: The field is valid for the read; a concurrent prctl() leaves a mix of both names, but always a last NUL.
        let raw = unsafe {
            (&raw const self.task.comm)
                .cast::<[u8; 16]>()
                .read_volatile()
        };
        let mut comm = raw;
        comm[15] = 0;
        comm
    }

    /// Process id of its parent.
    pub fn ppid(self) -> u32 {
        // SAFETY: The task is current and interrupts are off: an RCU read-side critical section.
        unsafe { bindings::dtrace_ppid(self.raw()) }
    }

    /// Its real user.
    pub fn uid(self) -> u32 {
        // SAFETY: As in `ppid`.
        unsafe { bindings::dtrace_uid(self.raw()) }
    }

    /// Its real group.
    pub fn gid(self) -> u32 {
        // SAFETY: As in `ppid`.
        unsafe { bindings::dtrace_gid(self.raw()) }
    }

    /// Time that it has spent on a CPU, ns.
    pub fn vtime(self) -> u64 {
        // SAFETY: The task is current.
        unsafe { bindings::dtrace_vtime(self.raw()) }
    }

    /// Whether its process is `pid` or descends from it.
    pub fn descends_from(self, pid: u64) -> bool {
        // SAFETY: As in `ppid`.
        unsafe { bindings::dtrace_progenyof(self.raw(), pid) }
    }

    /// The registers with which it entered the kernel; none of a kernel thread.
    pub fn user_regs(self) -> Option<&'a Regs> {
        // SAFETY: The task is current.
        let regs = unsafe { bindings::dtrace_user_regs(self.raw()) };
        // SAFETY: If there are any they lie on the task's kernel stack, where nobody writes to them while it is in the probe.
        (!regs.is_null()).then(|| unsafe { Regs::from_ptr(regs) })
    }

    /// Sends it `signal` as soon as interrupts are on again; `false` if that is no signal, or one is under way already.
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
