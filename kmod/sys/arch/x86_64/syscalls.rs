// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Names of the functions that implement system calls.

use core::ffi::CStr;
use kernel::prelude::*;
use kernel::str::CString;

/// The module name of 32-bit programs' system calls in probe descriptions.
pub const COMPAT: &[u8] = b"ia32";

/// Returns the name of the function that implements the call of this name for 64-bit programs.
pub fn native(name: &str) -> Result<CString> {
    CString::try_from_fmt(fmt!("__x64_sys_{name}"))
}

/// Returns the name of the call of 32-bit programs that this function implements.
pub fn compat_name(function: &[u8]) -> &[u8] {
    let parts: [&[u8]; 4] = [b"__ia32_", b"compat_", b"sys_", b"ia32_"];
    parts.into_iter().fold(function, |name, part| {
        name.strip_prefix(part).unwrap_or(name)
    })
}

/// Calls by which programs read: those of the processor's own kind, of 32-bit programs, and of
/// programs with 32-bit pointers.
pub const READS: [&CStr; 12] = [
    c"__x64_sys_read",
    c"__x64_sys_readv",
    c"__x64_sys_pread64",
    c"__x64_sys_preadv",
    c"__x64_sys_preadv2",
    c"__ia32_sys_read",
    c"__ia32_sys_readv",
    c"__ia32_sys_ia32_pread64",
    c"__ia32_compat_sys_preadv",
    c"__ia32_compat_sys_preadv2",
    c"__x64_compat_sys_preadv64",
    c"__x64_compat_sys_preadv64v2",
];

/// Calls by which programs write.
pub const WRITES: [&CStr; 12] = [
    c"__x64_sys_write",
    c"__x64_sys_writev",
    c"__x64_sys_pwrite64",
    c"__x64_sys_pwritev",
    c"__x64_sys_pwritev2",
    c"__ia32_sys_write",
    c"__ia32_sys_writev",
    c"__ia32_sys_ia32_pwrite64",
    c"__ia32_compat_sys_pwritev",
    c"__ia32_compat_sys_pwritev2",
    c"__x64_compat_sys_pwritev64",
    c"__x64_compat_sys_pwritev64v2",
];

/// The only call that waits for a signal in a kernel without system calls of 32-bit programs.
pub const SIGTIMEDWAIT: &CStr = c"__x64_sys_rt_sigtimedwait";
