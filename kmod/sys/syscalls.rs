// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The system calls of the running kernel, as its own descriptions for tracing list them.

use super::arch::syscalls as names;
use super::regs::Regs;
use super::symbols::{self, Address};
use crate::bindings;
use core::ffi::CStr;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// The module name of 32-bit programs' system calls in probe descriptions.
pub use names::COMPAT;

/// A system call of 64-bit programs.
#[derive(Clone, Copy)]
pub struct Syscall {
    // Without `sys_`.
    name: &'static [u8],
    types: &'static [*const u8],
}

// SAFETY: Both slices are constant data of the kernel, which stays for ever.
unsafe impl Send for Syscall {}
// SAFETY: As above.
unsafe impl Sync for Syscall {}

impl Syscall {
    /// Returns its name.
    pub fn name(&self) -> &'static [u8] {
        self.name
    }

    /// Returns its name for printing.
    pub fn display(&self) -> &'static str {
        core::str::from_utf8(self.name).unwrap_or("?")
    }

    /// Returns the type of argument `n` as written in the kernel's sources.
    pub fn type_of(&self, n: u32) -> Option<&'static [u8]> {
        let text = *self.types.get(n as usize)?;
        // SAFETY: The types in the kernel's descriptions are constant C strings.
        Some(unsafe { CStr::from_char_ptr(text.cast()) }.to_bytes())
    }

    /// Returns the function that implements it for 64-bit programs.
    pub fn function(&self) -> Option<Address> {
        symbols::lookup(&names::native(self.display()).ok()?).ok()
    }
}

/// Returns all of them. May sleep.
pub fn all() -> Result<KVVec<Syscall>> {
    let table = symbols::lookup(c"syscalls_metadata")?.get();
    // SAFETY: No preconditions.
    let count = unsafe { bindings::dtrace_syscall_count() };
    let mut list = KVVec::with_capacity(count as usize, GFP_KERNEL)?;
    for n in 0..count {
        let mut raw = bindings::dtrace_syscall::default();
        // SAFETY: `table` is the address of the kernel's variable `syscalls_metadata`, as the
        // helper demands, and `n` is below its number of entries; `raw` is valid for the write.
        if !unsafe { bindings::dtrace_syscall_at(table, n, &mut raw) } {
            continue;
        }
        // SAFETY: By the kernel's descriptions the name is a constant C string, and `types` points
        // to as many constant pointers as there are arguments.
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

/// A system call of 32-bit programs.
#[derive(Clone, Copy)]
pub struct Compat {
    symbol: &'static CStr,
}

impl Compat {
    /// Returns its name, taken from that of the function that implements it.
    pub fn name(&self) -> &'static [u8] {
        names::compat_name(self.symbol.to_bytes())
    }

    /// Returns its name for printing.
    pub fn display(&self) -> &'static str {
        core::str::from_utf8(self.name()).unwrap_or("?")
    }

    /// Returns the function that implements it.
    pub fn function(&self) -> Option<Address> {
        symbols::lookup(self.symbol).ok()
    }
}

/// Returns all system calls of 32-bit programs, each once; none if the kernel does not support such
/// programs. May sleep.
pub fn all_compat() -> Result<KVVec<Compat>> {
    // SAFETY: No preconditions.
    let count = unsafe { bindings::dtrace_compat_count() };
    let mut list: KVVec<Compat> = KVVec::with_capacity(count as usize, GFP_KERNEL)?;
    for n in 0..count {
        // SAFETY: `n` is below the number of entries.
        let symbol = unsafe { bindings::dtrace_compat_at(n) };
        if symbol.is_null() {
            continue;
        }
        // SAFETY: The pointer is not null, so it is to a constant C string.
        let symbol = unsafe { CStr::from_char_ptr(symbol.cast()) };
        let call = Compat { symbol };
        // `sys_ni_syscall()` stands for calls that no longer exist, and is no call.
        if call.name() != b"ni_syscall" && list.iter().all(|other| other.symbol != symbol) {
            list.push(call, GFP_KERNEL)?;
        }
    }
    Ok(list)
}

/// Whether the current task is in a system call of a 32-bit program.
#[inline]
pub fn in_compat() -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_compat_current() }
}

/// Returns the arguments of that system call. Only if [`in_compat`] and in the task of a program,
/// where the registers exist.
#[inline]
pub fn compat_args() -> [u64; 6] {
    // SAFETY: The pointer is to the registers with which the task entered the kernel. It is not
    // null, because a task that is in such a call came from user mode. They lie on the task's
    // stack, and nothing writes to them while the task is here.
    let regs = unsafe { Regs::from_ptr(bindings::dtrace_user_regs(bindings::dtrace_current())) };
    regs.compat_args()
}
