// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The system calls of the running kernel, as its own descriptions for tracing list them.

use super::symbols::{self, Address};
use crate::bindings;
use core::ffi::CStr;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::str::CString;

/// A system call.
#[derive(Clone, Copy)]
pub struct Syscall {
    // Without `sys_`.
    name: &'static [u8],
    types: &'static [*const u8],
}

// SAFETY: All of it is the kernel's constant data.
unsafe impl Send for Syscall {}
// SAFETY: As above.
unsafe impl Sync for Syscall {}

impl Syscall {
    /// Its name.
    pub fn name(&self) -> &'static [u8] {
        self.name
    }

    /// Its name, to be printed.
    pub fn display(&self) -> &'static str {
        core::str::from_utf8(self.name).unwrap_or("?")
    }

    /// The type of argument `n`, in the words of the kernel's sources.
    pub fn type_of(&self, n: u32) -> Option<&'static [u8]> {
        let text = *self.types.get(n as usize)?;
        // SAFETY: Types are constant C strings.
        Some(unsafe { CStr::from_char_ptr(text.cast()) }.to_bytes())
    }

    /// The function that implements it for 64-bit programs.
    pub fn function(&self) -> Option<Address> {
        let symbol = CString::try_from_fmt(fmt!("__x64_sys_{}", self.display())).ok()?;
        symbols::lookup(&symbol).ok()
    }
}

/// All of them.
pub fn all() -> Result<KVVec<Syscall>> {
    let table = symbols::lookup(c"syscalls_metadata")?.get();
    // SAFETY: The helper has no preconditions.
    let count = unsafe { bindings::dtrace_syscall_count() };
    let mut list = KVVec::with_capacity(count as usize, GFP_KERNEL)?;
    for n in 0..count {
        let mut raw = bindings::dtrace_syscall::default();
        // SAFETY: `table` is where the helper asks for it, `n` is within its bounds; the rest is written to.
        if !unsafe { bindings::dtrace_syscall_at(table, n, &mut raw) } {
            continue;
        }
        // SAFETY: Names are constant C strings; there are as many types as arguments.
        let (name, types) = unsafe {
            let types = match raw.nargs {
                0 => &[],
                nargs => core::slice::from_raw_parts(raw.types.cast(), nargs as usize),
            };
            (CStr::from_char_ptr(raw.name.cast()).to_bytes(), types)
        };
        if let Some(name) = name.strip_prefix(b"sys_") {
            list.push(Syscall { name, types }, GFP_KERNEL)?;
        }
    }
    Ok(list)
}
