// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The system calls of the running kernel, as its own descriptions for tracing list them.

use super::regs::Regs;
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

/// A system call of 32-bit programs.
#[derive(Clone, Copy)]
pub struct Ia32 {
    symbol: &'static CStr,
}

impl Ia32 {
    /// Its name, as that of the function which implements it tells.
    pub fn name(&self) -> &'static [u8] {
        let name = self.symbol.to_bytes();
        let parts: [&[u8]; 4] = [b"__ia32_", b"compat_", b"sys_", b"ia32_"];
        parts
            .into_iter()
            .fold(name, |name, part| name.strip_prefix(part).unwrap_or(name))
    }

    /// Its name, to be printed.
    pub fn display(&self) -> &'static str {
        core::str::from_utf8(self.name()).unwrap_or("?")
    }

    /// The function that implements it.
    pub fn function(&self) -> Option<Address> {
        symbols::lookup(self.symbol).ok()
    }
}

/// All system calls of 32-bit programs, each once; none where the kernel does not know such programs.
pub fn all_ia32() -> Result<KVVec<Ia32>> {
    // SAFETY: No preconditions.
    let count = unsafe { bindings::dtrace_ia32_count() };
    let mut list: KVVec<Ia32> = KVVec::with_capacity(count as usize, GFP_KERNEL)?;
    for n in 0..count {
        // SAFETY: `n` is within the bounds.
        let symbol = unsafe { bindings::dtrace_ia32_at(n) };
        if symbol.is_null() {
            continue;
        }
        // SAFETY: It is a constant C string.
        let symbol = unsafe { CStr::from_char_ptr(symbol.cast()) };
        let call = Ia32 { symbol };
        // What stands for calls that there are no more is no call.
        if call.name() != b"ni_syscall" && list.iter().all(|other| other.symbol != symbol) {
            list.push(call, GFP_KERNEL)?;
        }
    }
    Ok(list)
}

/// Whether the current task is in a system call of 32-bit programs.
#[inline]
pub fn in_ia32() -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_ia32_current() }
}

/// The arguments that the current task has entered such a system call with.
#[inline]
pub fn ia32_args() -> [u64; 6] {
    // SAFETY: The registers that a task entered the kernel with are its own as long as it is there.
    let regs = unsafe { Regs::from_ptr(bindings::dtrace_user_regs(bindings::dtrace_current())) };
    regs.ia32_args()
}
