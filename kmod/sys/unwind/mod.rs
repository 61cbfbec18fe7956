// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Unwind tables, by which the stacks of programs are walked (INV-12).
//!
//! Tables belong to files and are shared: all consumers use a table that one of them has made
//! (`helpers/unwind.c`). [`walk`] has the walk, [`known`] what it knows about text, and [`steps`]
//! the steps that were taken earlier, which `helpers/follow.c` keeps (INV-13).

mod known;
mod steps;
mod walk;

pub use steps::Sink;
pub use walk::{again, recorded, walk, How};

use crate::bindings;
use core::ptr::{null_mut, NonNull};
use kernel::error::to_result;
use kernel::prelude::*;

/// The right to have tables.
pub struct Tables(());

impl Tables {
    /// Sets up the tables. Must be called at most once in the life of the module. May sleep.
    pub fn new() -> Result<Self> {
        // SAFETY: The module's entry point is the only caller, and calls it once.
        to_result(unsafe { bindings::dtrace_unwind_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        // SAFETY: No walk and no server may be left. Nothing fires any more, and all consumers have
        // gone, when the module drops this value.
        unsafe { bindings::dtrace_unwind_exit() };
    }
}

/// A table that is not in use yet.
pub struct Fresh {
    table: NonNull<bindings::dtrace_unwind>,
    bytes: NonNull<u8>,
    size: usize,
}

impl Fresh {
    /// Allocates a table of `size` bytes. Fails with `ENOMEM`. May sleep.
    pub fn new(size: u32) -> Result<Self> {
        let mut bytes = null_mut();
        // SAFETY: `bytes` is valid for the write.
        let table = unsafe { bindings::dtrace_unwind_alloc(size, &mut bytes) };
        Ok(Self {
            table: NonNull::new(table).ok_or(ENOMEM)?,
            bytes: NonNull::new(bytes).ok_or(ENOMEM)?,
            size: size as usize,
        })
    }

    /// Returns the bytes, which are to be filled.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `dtrace_unwind_alloc()` has zeroed that many bytes. They belong to `self`, which
        // is borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.size) }
    }

    /// Makes it the table of a file that the current process has open and that was last `changed`
    /// at that time, in ns. Fails with `EEXIST` if the file has a table, `ESTALE` if it was changed
    /// since, `EBADF` or `EINVAL` if there is no such regular file, and `ENOSPC` or `ENOMEM` if
    /// there is no room. May sleep.
    pub fn add(self, fd: i32, changed: u64) -> Result {
        // SAFETY: `self` owns the table. Only if the call succeeds does it belong to C, and then
        // `self` is forgotten.
        to_result(unsafe { bindings::dtrace_unwind_add(self.table.as_ptr(), fd, changed) })?;
        core::mem::forget(self);
        Ok(())
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: `self` owns the table, and it is not in use.
        unsafe { bindings::dtrace_unwind_free(self.table.as_ptr()) };
    }
}

/// While at least one exists, files that have no table are noted.
pub struct Server(());

impl Server {
    /// Makes one more server.
    pub fn new() -> Self {
        // SAFETY: No preconditions; `drop` takes this back.
        unsafe { bindings::dtrace_unwind_serve(true) };
        Self(())
    }

    /// Returns a descriptor, for the current process, of the next file whose table is wanted. Fails
    /// with `ENOENT` if none is. May sleep.
    pub fn wanted(&self) -> Result<i32> {
        // SAFETY: No preconditions; may sleep.
        let fd = unsafe { bindings::dtrace_unwind_wanted() };
        to_result(fd)?;
        Ok(fd)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: Matches the call in `new`.
        unsafe { bindings::dtrace_unwind_serve(false) };
    }
}
