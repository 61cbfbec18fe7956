// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! x86-64, including 32-bit programs.

pub mod program;
pub mod regs;
pub mod syscalls;

use crate::bindings;
use core::ops::Range;
use dtrace_insn::x86_64::Segment;
use regs::Regs;

/// Where a program's text can be: nothing is mapped in the first page, and addresses of programs
/// have at most 56 bits (Linux: `Documentation/arch/x86/x86_64/mm.rst`).
pub const TEXT: Range<u64> = 4096..1 << 56;

/// Returns the first address that no program can have.
fn program_end() -> u64 {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_program_end() }
}

/// Returns what the processor adds to an address with this segment in the current program.
fn segment_base(segment: Segment) -> u64 {
    match segment {
        Segment::Flat => 0,
        // SAFETY: No preconditions.
        Segment::Fs => unsafe { bindings::dtrace_segment_base(false) },
        // SAFETY: As above.
        Segment::Gs => unsafe { bindings::dtrace_segment_base(true) },
    }
}

/// Returns the address by which the current program addresses its thread-local variables.
pub fn thread_pointer() -> u64 {
    segment_base(Segment::Fs)
}

/// Whether `regs`, which the current program has, are of code whose segments begin at 0.
fn is_flat(regs: &Regs) -> bool {
    // SAFETY: The registers are valid for reads, because they are borrowed.
    unsafe { bindings::dtrace_user_flat(regs.as_ptr()) }
}

/// Whether calls and returns of the current program use a second stack (shadow stack), which this
/// module must not write.
fn has_shadow_stack() -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_user_shadowed() }
}
