// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! x86-64, with programs of 32 bits.

pub mod program;
pub mod regs;

use crate::bindings;
use dtrace_insn::x86_64::Segment;
use regs::Regs;

/// The first address that is no program's.
fn program_end() -> u64 {
    // SAFETY: Needs nothing.
    unsafe { bindings::dtrace_program_end() }
}

/// What the current program adds to an address with this segment.
fn segment_base(segment: Segment) -> u64 {
    match segment {
        Segment::Flat => 0,
        // SAFETY: Needs nothing.
        Segment::Fs => unsafe { bindings::dtrace_segment_base(false) },
        // SAFETY: As above.
        Segment::Gs => unsafe { bindings::dtrace_segment_base(true) },
    }
}

/// From where the current program addresses a thread's own variables.
pub fn thread_pointer() -> u64 {
    segment_base(Segment::Fs)
}

/// Whether these registers, which the current program has, are of code whose addresses are what they seem.
fn is_flat(regs: &Regs) -> bool {
    // SAFETY: The registers are valid; nothing else is needed.
    unsafe { bindings::dtrace_user_flat(regs.as_ptr()) }
}

/// Whether calls and returns of the current program have a second stack, which is not ours to write.
fn has_shadow_stack() -> bool {
    // SAFETY: Needs nothing.
    unsafe { bindings::dtrace_user_shadowed() }
}
