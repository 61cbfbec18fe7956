// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tables by which programs' stacks are walked.
//!
//! They belong to files, and are the machine's: what one consumer has made all use. See `bindings/unwind.c`. The walk is in [`walk`]; what it knows of
//! text is in [`known`], and the steps that were taken before, which `bindings/follow.c` keeps, in [`steps`].

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
    /// The only ones.
    pub fn new() -> Result<Self> {
        // SAFETY: Called once in the life of the module.
        to_result(unsafe { bindings::dtrace_unwind_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        // SAFETY: What fires and who serves has ended before.
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
    /// Room for so many bytes.
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

    /// The bytes, which are to be filled.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: They are initialized, and as long as this is borrowed nobody else's.
        unsafe { core::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.size) }
    }

    /// Makes it that of a file of the current process, which was `changed` last at that time, in nanoseconds. `EEXIST`: it has one; `ESTALE`: it was
    /// changed since; `EBADF`, `EINVAL`: it is no such file; `ENOSPC`: there is no room.
    pub fn add(self, fd: i32, changed: u64) -> Result {
        // SAFETY: It is whole. It is nobody's but C's if it is taken over.
        to_result(unsafe { bindings::dtrace_unwind_add(self.table.as_ptr(), fd, changed) })?;
        core::mem::forget(self);
        Ok(())
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: It is ours alone.
        unsafe { bindings::dtrace_unwind_free(self.table.as_ptr()) };
    }
}

/// As long as there is one, files that have no table are noted.
pub struct Server(());

impl Server {
    /// One more.
    pub fn new() -> Self {
        // SAFETY: No preconditions.
        unsafe { bindings::dtrace_unwind_serve(true) };
        Self(())
    }

    /// A descriptor for the current process of the next file that is wanted. `ENOENT`: none is.
    pub fn wanted(&self) -> Result<i32> {
        // SAFETY: No preconditions.
        let fd = unsafe { bindings::dtrace_unwind_wanted() };
        to_result(fd)?;
        Ok(fd)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: It was counted.
        unsafe { bindings::dtrace_unwind_serve(false) };
    }
}
