// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The mappings of processes that have ended (INV-16, `helpers/remains.c`).

use super::tracepoint::{Attached, Hit};
use crate::bindings;
use core::ffi::c_int;
use kernel::error::to_result;
use kernel::prelude::*;

/// Marks the current process, of which an address is being recorded: its mappings are noted when it
/// ends. May be called in any context.
#[inline]
pub fn mark() {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_remains_mark() }
}

/// Why the current process loses its memory.
enum Told {
    /// It executes another program.
    Exec,
    /// A thread ends, which may be the last one.
    Exit,
}

impl Hit for Told {
    fn hit(&self, args: &[u64]) {
        // `bool group_dead` is narrower than a word; the upper bits mean nothing.
        let is_last = |word: &u64| word & 0xff != 0;
        if matches!(self, Self::Exec) || args.get(1).is_some_and(is_last) {
            // SAFETY: Must be called in task context, by a process that is about to lose its memory
            // and still has it. Both tracepoints are passed by such a task before it gives the
            // memory up.
            unsafe { bindings::dtrace_remains_note() };
        }
    }
}

/// While at least one exists, mappings are noted.
pub struct Keeper {
    // Dropped first: when `_kept` frees what was noted, nothing is noted any more.
    _told: Attached<Told>,
    _kept: Kept,
}

/// One request to keep what is noted.
struct Kept(());

impl Kept {
    fn new() -> Self {
        // SAFETY: No preconditions; `drop` takes this back. May sleep.
        unsafe { bindings::dtrace_remains_keep(true) };
        Self(())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: Matches the call in `new`. May sleep.
        unsafe { bindings::dtrace_remains_keep(false) };
    }
}

/// A mapping.
pub struct Part {
    /// Its number.
    pub number: u64,
    /// Its first address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Whether it could be executed.
    pub is_code: bool,
    /// What was mapped.
    pub of: Of,
}

/// What was mapped.
pub enum Of {
    /// Memory, or a file that the current process may not have.
    Nothing,
    /// A file, as a descriptor of the current process.
    File(c_int),
    /// The kernel's own code for processes.
    Vdso,
}

impl Keeper {
    /// Makes one more keeper. Fails with `ENODEV` if the kernel does not report when processes lose
    /// their memory. May sleep.
    pub fn new() -> Result<Self> {
        let kept = Kept::new();
        let told = [
            (&b"sched_prepare_exec"[..], Told::Exec),
            (b"sched_process_exit", Told::Exit),
        ];
        Ok(Self {
            // After our probes there, which may still record addresses.
            _told: Attached::new(told, true)?,
            _kept: kept,
        })
    }

    /// Returns the next mapping of process `pid` after the one numbered `after`. Fails with
    /// `ENOENT` if there is none. May sleep.
    pub fn next(&self, pid: u32, after: u64) -> Result<Part> {
        let mut number = after;
        let mut part = bindings::dtrace_part::default();
        // SAFETY: Both are valid for the writes.
        to_result(unsafe { bindings::dtrace_remains_next(pid, &mut number, &mut part) })?;
        let of = match u32::from(part.kind) {
            bindings::DTRACE_PART_VDSO => Of::Vdso,
            // SAFETY: The call above has returned a reference to the path, which this call takes
            // over.
            bindings::DTRACE_PART_FILE => match unsafe { bindings::dtrace_part_open(&mut part) } {
                fd if fd >= 0 => Of::File(fd),
                // The file can be had later, when there are descriptors or memory.
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

/// Whether an error means that descriptors or memory are short.
fn is_short(error: c_int) -> bool {
    [EMFILE, ENFILE, ENOMEM]
        .iter()
        .any(|short| short.to_errno() == error)
}
