// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Steps from frame to frame that were taken earlier, and the destination of frames.

use crate::bindings;
use crate::sys::percpu::CpuGuard;
use core::ptr::null_mut;
use dtrace_engine::frames::Frames;
use dtrace_unwind::{Frame, Plain};

/// The destination of the frames of a stack.
pub enum Sink<'a, 'b> {
    /// Their program counters are put there, as long as there is room.
    Frames(&'a mut Frames<'b>),
    /// They are only counted, all of them.
    Depth(&'a mut u32),
}

impl Sink<'_, '_> {
    /// Takes the next frame. Returns whether another one is wanted.
    pub(super) fn put(&mut self, pc: u64) -> bool {
        match self {
            Self::Frames(frames) => frames.put(pc),
            Self::Depth(depth) => {
                **depth = depth.saturating_add(1);
                true
            }
        }
    }

    /// Records that the caller of the last frame was not found.
    pub(super) fn lost(&mut self) {
        if let Self::Frames(frames) = self {
            frames.lost();
        }
    }
}

/// The result of following steps.
#[derive(Default)]
pub(super) struct Followed {
    /// The number of frames that were passed.
    pub(super) count: u32,
    /// Whether no more are wanted.
    pub(super) is_full: bool,
    /// Whether the next frame has no caller.
    pub(super) is_last: bool,
}

/// Follows the steps that were taken earlier on this CPU, as far as they are known, over at most
/// `most` frames. Gives the frames that it passes to `to`, and makes `frame` the next one.
///
/// # Safety
///
/// The processor must have the current program's memory.
#[inline]
pub(super) unsafe fn follow(
    _interrupts_off: &CpuGuard,
    frame: &mut Frame,
    to: &mut Sink<'_, '_>,
    most: u32,
) -> Followed {
    let Some(fp) = frame.fp else {
        return Followed::default();
    };
    let mut at = bindings::dtrace_unwind_frame {
        ip: frame.ip,
        sp: frame.sp,
        fp,
        is_exact: frame.is_exact,
        is_last: false,
    };
    let (pcs, room) = match to {
        Sink::Frames(frames) => {
            let room = frames.room();
            (frames.rest().as_mut_ptr(), room)
        }
        Sink::Depth(_) => (null_mut(), usize::MAX),
    };
    let room = u32::try_from(room).unwrap_or(u32::MAX).min(most);
    // SAFETY: The guard proves that this CPU is claimed and interrupts are off; the caller promises
    // the memory. `pcs` is valid for a write of `room` words, which need no alignment, or null.
    let n = unsafe { bindings::dtrace_unwind_follow(&mut at, pcs, room) };
    if n != 0 {
        *frame = Frame::calling(at.ip, at.sp, Some(at.fp));
    }
    let is_full = match to {
        Sink::Frames(frames) => !frames.took(n as usize),
        Sink::Depth(depth) => {
            **depth = depth.saturating_add(n);
            false
        }
    };
    Followed {
        count: n,
        is_full,
        is_last: at.is_last,
    }
}

/// The epoch in which steps that are found now are valid.
#[derive(Clone, Copy)]
pub(super) struct Steps<'a> {
    epoch: u64,
    _guard: &'a CpuGuard,
}

impl<'a> Steps<'a> {
    /// Returns that of the current program. `None`: its mappings are being changed.
    pub(super) fn new(guard: &'a CpuGuard) -> Option<Self> {
        // SAFETY: The guard proves that this CPU is claimed and interrupts are off.
        let epoch = unsafe { bindings::dtrace_unwind_epoch() };
        let steps = Self {
            epoch,
            _guard: guard,
        };
        (epoch != 0).then_some(steps)
    }

    /// Keeps the step from the instruction at `at` by `rule`; without a rule: it has no caller.
    pub(super) fn keep(self, at: u64, rule: Option<Plain>) {
        let step = bindings::dtrace_unwind_step {
            at,
            epoch: self.epoch,
            cfa: rule.map_or(0, |rule| rule.offset),
            saved: rule.and_then(|rule| rule.saved).unwrap_or(0),
            by_fp: rule.is_some_and(|rule| rule.is_fp),
            is_saved: rule.is_some_and(|rule| rule.saved.is_some()),
            is_last: rule.is_none(),
        };
        // SAFETY: The guard, which `self` borrows, proves that this CPU is claimed and interrupts
        // are off.
        unsafe { bindings::dtrace_unwind_keep(&step) };
    }
}
