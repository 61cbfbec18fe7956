// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Kernel stacks, walked in probe context (INV-11).

use super::percpu::CpuGuard;
use super::regs::Regs;
use crate::bindings;
use kernel::error::to_result;
use kernel::prelude::*;

/// The right to walk kernel stacks by our own walk.
pub struct Walks(());

impl Walks {
    /// Sets up the walk. Must be called at most once in the life of the module. May sleep.
    pub fn new() -> Result<Self> {
        // SAFETY: The module's entry point is the only caller, and calls it once.
        to_result(unsafe { bindings::dtrace_stacks_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Walks {
    fn drop(&mut self) {
        // SAFETY: No walk may be under way or follow. Nothing fires any more when the module drops
        // this value.
        unsafe { bindings::dtrace_stacks_exit() };
    }
}

/// In place of a frame's address, for [`kernel`]: there is no stack.
pub const NOWHERE: u64 = u64::MAX;

/// Where a kernel stack begins.
#[derive(Clone, Copy)]
pub struct From<'a> {
    /// The address of its first frame. 0: unknown.
    pub pc: u64,
    /// The registers of the code whose stack it is, if they are known. Only instruction, stack and
    /// frame pointer are used, and whether they are of user mode.
    pub regs: Option<&'a Regs>,
}

/// Walks the kernel stack and passes it to `f`, innermost frame first, from the frame with the
/// address `from.pc` on, and not much further than `most` frames. If there is no such frame, this
/// module's frames are left out wherever they are: those of a control call that fires `BEGIN` lie
/// on both sides of the kernel's.
///
/// The frames above `from` are ours and those of the mechanism that called us. Their number depends
/// on mechanism and compiler, so the frame is found by its address and not by counting. If the
/// registers are known, the walk begins with them and sees none of our frames. If it misses the
/// frame nevertheless, as a walk by frame pointers does at the entry of a function, the whole stack
/// is walked.
pub fn kernel<R>(
    guard: &CpuGuard,
    from: From<'_>,
    most: usize,
    f: impl FnOnce(&[usize]) -> R,
) -> R {
    if from.pc == NOWHERE {
        return f(&[]);
    }
    guard.with_frames(|room| {
        if let Some(regs) = from.regs {
            let most = most.saturating_add(ABOVE).min(room.len());
            let room = room.get_mut(..most).unwrap_or_default();
            // SAFETY: `room` is valid for a write of that many words. The registers are of kernel
            // code of the current task that does not go on meanwhile: it has called us, or an
            // interrupt of this CPU has stopped it. The unwinder checks every stack pointer, so
            // wrong registers do no harm. The guard keeps interrupts off and the CPU claimed, which
            // the rules that are kept for each CPU need.
            let n = unsafe {
                bindings::dtrace_stack_from(
                    room.as_mut_ptr().cast(),
                    room.len() as u32,
                    regs.as_ptr(),
                )
            };
            let all = room.get(..n as usize).unwrap_or_default();
            if let Some(first) = all.iter().position(|pc| *pc as u64 == from.pc) {
                return f(all.get(first..).unwrap_or_default());
            }
        }
        // SAFETY: `room` is valid for a write of that many words; the guard keeps interrupts off
        // and the CPU claimed. The walk takes no locks.
        let n = unsafe {
            bindings::dtrace_stack_here(room.as_mut_ptr().cast(), room.len() as u32) as usize
        };
        let all = room.get_mut(..n).unwrap_or_default();
        match all.iter().position(|pc| *pc as u64 == from.pc) {
            Some(first) => f(all.get(first..).unwrap_or_default()),
            None => f(foreign(all)),
        }
    })
}

/// How many frames a walk from registers may see before the first one that is wanted: the
/// function's own instruction.
const ABOVE: usize = 1;

/// Moves the frames that are not this module's to the front, and returns them.
fn foreign(all: &mut [usize]) -> &[usize] {
    let mut kept = 0usize;
    for at in 0..all.len() {
        let Some(pc) = all.get(at).copied() else {
            break;
        };
        // SAFETY: The helper takes any number.
        if unsafe { bindings::dtrace_own_text(pc) } {
            continue;
        }
        if let Some(slot) = all.get_mut(kept) {
            *slot = pc;
            kept = kept.wrapping_add(1);
        }
    }
    all.get(..kept).unwrap_or_default()
}
