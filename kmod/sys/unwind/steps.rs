// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Steps from frame to frame that were taken before, and where frames go.

use crate::bindings;
use crate::sys::percpu::CpuGuard;
use core::ptr::null_mut;
use dtrace_engine::frames::Frames;
use dtrace_unwind::{Frame, Plain};

/// Where the frames of a stack go.
pub enum Sink<'a, 'b> {
    /// Their program counters are put there, as long as there is room.
    Frames(&'a mut Frames<'b>),
    /// They are counted, all of them.
    Depth(&'a mut u32),
}

impl Sink<'_, '_> {
    /// Takes the next one; returns whether another is wanted.
    pub(super) fn put(&mut self, pc: u64) -> bool {
        match self {
            Self::Frames(frames) => frames.put(pc),
            Self::Depth(depth) => {
                **depth = depth.saturating_add(1);
                true
            }
        }
    }

    /// The caller of the last one was not found.
    pub(super) fn lost(&mut self) {
        if let Self::Frames(frames) = self {
            frames.lost();
        }
    }
}

/// How far steps led.
#[derive(Default)]
pub(super) struct Followed {
    /// How many frames were left behind.
    pub(super) count: u32,
    /// No more are wanted.
    pub(super) is_full: bool,
    /// The next one has no caller.
    pub(super) is_last: bool,
}

/// Goes as far as is known by the steps that were taken before on this CPU, and at most `most` frames; gives those that were left behind to `to`.
///
/// # Safety
///
/// The processor has the program's memory.
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
    // SAFETY: The guard says that this CPU is claimed, and interrupts are off; the rest is the caller's promise. `pcs` is valid for `room`
    // words, or null.
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

/// The epoch in which steps are right that are found now.
#[derive(Clone, Copy)]
pub(super) struct Steps<'a> {
    epoch: u64,
    _guard: &'a CpuGuard,
}

impl<'a> Steps<'a> {
    /// That of the current program, if there is one.
    pub(super) fn new(guard: &'a CpuGuard) -> Option<Self> {
        // SAFETY: The guard says that this CPU is claimed, and interrupts are off.
        let epoch = unsafe { bindings::dtrace_unwind_epoch() };
        let steps = Self {
            epoch,
            _guard: guard,
        };
        (epoch != 0).then_some(steps)
    }

    /// Keeps the step from the instruction at an address by that rule; none: it has no caller.
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
        // SAFETY: The CPU is claimed, and interrupts are off.
        unsafe { bindings::dtrace_unwind_keep(&step) };
    }
}
