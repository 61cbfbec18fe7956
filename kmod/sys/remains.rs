// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What processes that have ended had mapped. See `bindings/remains.c`.

use super::tracepoint::{Attached, Hit};
use crate::bindings;
use core::ffi::c_int;
use kernel::error::to_result;
use kernel::prelude::*;

/// An address of the current process is being recorded: what it had mapped is noted when it ends.
#[inline]
pub fn mark() {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_remains_mark() }
}

/// The current process loses its memory.
enum Told {
    /// It executes another program.
    Exec,
    /// A thread ends, the last one perhaps.
    Exit,
}

impl Hit for Told {
    fn hit(&self, args: &[u64]) {
        // `bool group_dead` is narrower than a word.
        let is_last = |word: &u64| word & 0xff != 0;
        if matches!(self, Self::Exec) || args.get(1).is_some_and(is_last) {
            // SAFETY: The tracepoints are passed by who loses it, which has it still.
            unsafe { bindings::dtrace_remains_note() };
        }
    }
}

/// As long as there is one, mappings are noted.
pub struct Keeper {
    // Nobody notes any more when what was noted goes.
    _told: Attached<Told>,
    _kept: Kept,
}

/// What is noted is kept for it.
struct Kept(());

impl Kept {
    fn new() -> Self {
        // SAFETY: No preconditions; `drop` takes back what is counted.
        unsafe { bindings::dtrace_remains_keep(true) };
        Self(())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: It was counted. May sleep.
        unsafe { bindings::dtrace_remains_keep(false) };
    }
}

/// A mapping.
pub struct Part {
    /// Its number.
    pub number: u64,
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// It could be executed.
    pub is_code: bool,
    /// Of what it is.
    pub of: Of,
}

/// What was mapped.
pub enum Of {
    /// Memory, or a file that the current process may not have.
    Nothing,
    /// A file; the current process' descriptor.
    File(c_int),
    /// The kernel's own code for processes.
    Vdso,
}

impl Keeper {
    /// One more. `ENODEV`: the kernel does not tell when processes lose their memory.
    pub fn new() -> Result<Self> {
        let kept = Kept::new();
        let told = [
            (&b"sched_prepare_exec"[..], Told::Exec),
            (b"sched_process_exit", Told::Exit),
        ];
        Ok(Self {
            // After probes there, which may record addresses.
            _told: Attached::new(told, true)?,
            _kept: kept,
        })
    }

    /// The next mapping of a process after the one with that number. `ENOENT`: there is none.
    pub fn next(&self, pid: u32, after: u64) -> Result<Part> {
        let mut number = after;
        let mut part = bindings::dtrace_part::default();
        // SAFETY: Both are valid for writes.
        to_result(unsafe { bindings::dtrace_remains_next(pid, &mut number, &mut part) })?;
        let of = match u32::from(part.kind) {
            bindings::DTRACE_PART_VDSO => Of::Vdso,
            // SAFETY: The path is ours, and is C's from now on.
            bindings::DTRACE_PART_FILE => match unsafe { bindings::dtrace_part_open(&mut part) } {
                fd if fd >= 0 => Of::File(fd),
                // It can be had later.
                error if is_short(error) => return Err(Error::from_errno(error)),
                _ => Of::Nothing,
            },
            _ => Of::Nothing,
        };
        Ok(Part {
            number,
            start: part.start,
            end: part.end,
            offset: part.offset,
            is_code: part.is_code,
            of,
        })
    }
}

/// Whether an error is for want of descriptors or memory.
fn is_short(error: c_int) -> bool {
    [EMFILE, ENFILE, ENOMEM]
        .iter()
        .any(|short| short.to_errno() == error)
}
