// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! x86-64, with programs of 32 bits.

pub mod program;

use crate::bindings;
use dtrace_insn::x86_64::Segment;

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
