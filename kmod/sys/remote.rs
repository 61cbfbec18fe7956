// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Processes that need not run on this CPU, and their memory (INV-18).
//!
//! An address may come from anywhere, and what it leads to may end at any moment: all loads are as
//! in [`nofault`](super::nofault), and `remote.c` says when their results can be believed.

use super::nofault::Unreachable;
use super::percpu::CpuGuard;
use crate::bindings;
use core::ffi::c_void;
use dtrace_engine::TaskArgs;

fn check(ret: i32) -> Result<(), Unreachable> {
    match ret {
        0 => Ok(()),
        _ => Err(Unreachable),
    }
}

/// Returns where the process of the `struct task_struct` at `task` has its arguments; `None` if it
/// has no memory. All loads from its memory before this call are ordered before the loads of this
/// call (a read barrier).
pub fn task_args(_here: &CpuGuard, task: u64) -> Result<Option<TaskArgs>, Unreachable> {
    let mut raw = bindings::dtrace_task_args::default();
    // SAFETY: `raw` is valid for the write; faults of the loads are caught.
    check(unsafe { bindings::dtrace_task_args(&mut raw, task) })?;
    Ok((raw.mm != 0).then_some(TaskArgs {
        mm: raw.mm,
        begin: raw.begin,
        end: raw.end,
    }))
}

/// Returns the name of the process of the `struct task_struct` at `task`, ending with NUL.
pub fn task_name(task: u64) -> Result<[u8; 16], Unreachable> {
    let mut name = [0; bindings::TASK_COMM_LEN as usize];
    // SAFETY: `name` is valid for a write of `TASK_COMM_LEN` bytes; faults of the loads are caught.
    check(unsafe { bindings::dtrace_task_name(name.as_mut_ptr().cast(), task) })?;
    name[15] = 0;
    Ok(name)
}

/// Loads what the address space of the `struct mm_struct` at `mm` has at `addr`.
pub fn load(_here: &CpuGuard, mm: u64, addr: u64, out: &mut [u8]) -> Result<(), Unreachable> {
    let (to, size) = (out.as_mut_ptr().cast::<c_void>(), out.len());
    // SAFETY: `out` is valid for a write of that many bytes; faults of the loads are caught.
    // Interrupts are off, so page tables are not freed meanwhile.
    check(unsafe { bindings::dtrace_remote_load(to, mm, addr, size) })
}
