// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Kernel stacks from probe context.

use super::percpu::CpuGuard;
use super::regs::Regs;
use crate::bindings;
use kernel::error::to_result;
use kernel::prelude::*;

/// The right to walk kernel stacks by ourselves.
pub struct Walks(());

impl Walks {
    /// The only ones.
    pub fn new() -> Result<Self> {
        // SAFETY: Called once in the life of the module.
        to_result(unsafe { bindings::dtrace_orc_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Walks {
    fn drop(&mut self) {
        // SAFETY: What fires has ended before.
        unsafe { bindings::dtrace_orc_exit() };
    }
}

/// In place of an address of [`kernel`]: there is no stack.
pub const NOWHERE: u64 = u64::MAX;

/// Where a kernel stack begins.
#[derive(Clone, Copy)]
pub struct From<'a> {
    /// The address of its first frame. 0: unknown.
    pub pc: u64,
    /// The registers of the code that it is the stack of, as far as they tell where that is, if they are known.
    pub regs: Option<&'a Regs>,
}

/// Walks the kernel stack into `f`, innermost frame first, from the frame whose address is `from` on, and not much further than
/// `most` frames. Where there is no such frame the frames of this module are left out, wherever they are: those of a control
/// call that fires `BEGIN` lie on both sides of the kernel's.
///
/// The frames above `from` are ours and the mechanism's that called us; how many there are depends on the mechanism and
/// the compiler, so they are found by address and not counted. Where the registers are known the walk begins with them, and sees
/// none of ours; should it miss the frame nevertheless, as one by frame pointers does at the entry of a function, all is walked.
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
            // SAFETY: `room` is valid for that many words. The registers are of kernel code of the current task that stands still
            // meanwhile: it has called us, or an interrupt of this CPU has stopped it. The unwinder believes no stack pointer.
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
        // SAFETY: `room` is valid for that many words; the walk takes no locks.
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

/// Frames that a walk from registers may see before the first one that is wanted: the function's own instruction.
const ABOVE: usize = 1;

/// Moves the frames that are not this module's to the front, and returns them.
fn foreign(all: &mut [usize]) -> &[usize] {
    let mut kept = 0usize;
    for at in 0..all.len() {
        let Some(pc) = all.get(at).copied() else {
            break;
        };
        // SAFETY: Needs nothing.
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
