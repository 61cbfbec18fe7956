// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Loads from any address, and stores to user memory, that fail where others would fault.
//!
//! The kernel refuses kernel loads from user addresses, from non-canonical addresses and from what
//! is not mapped; the exception table does the rest. Memory of devices is refused by this module
//! (`loads.c`). User memory is reached only from a task that has some, and only if its page tables
//! are certainly in use: an NMI may come while the CPU switches page tables. The kernel's load
//! checks that (`nmi_uaccess_okay()`). Its store does not check it, so stores are refused in NMIs.

use crate::bindings;
use core::ffi::c_void;

/// The access failed.
#[derive(Debug, Clone, Copy)]
pub struct Unreachable;

/// Loads a word of kernel memory. May be called in any context.
#[inline]
pub fn load_u64(addr: u64) -> Result<u64, Unreachable> {
    let mut word = 0u64;
    // SAFETY: `word` is valid for the write; a fault of the load is caught.
    let ret = unsafe { bindings::dtrace_load_u64(&mut word, addr) };
    if ret == 0 {
        Ok(word)
    } else {
        Err(Unreachable)
    }
}

/// Loads kernel memory. May be called in any context. After a failure the contents of `out` are
/// unspecified; they depend on the kernel's compiler.
#[inline]
pub fn load(addr: u64, out: &mut [u8]) -> Result<(), Unreachable> {
    // SAFETY: `out` is valid for a write of that many bytes; a fault of the load is caught.
    let ret = unsafe { bindings::dtrace_load(out.as_mut_ptr().cast::<c_void>(), addr, out.len()) };
    check(ret as isize).map(|_| ())
}

/// Loads a string of kernel memory, as far as `out` has room. Returns its length without the NUL,
/// which is not stored. May be called in any context.
pub fn load_str(addr: u64, out: &mut [u8]) -> Result<usize, Unreachable> {
    // SAFETY: `out` is valid for a write of that many bytes; a fault of the load is caught.
    check(unsafe { bindings::dtrace_load_str(out.as_mut_ptr().cast(), addr, out.len()) } as isize)
}

/// Waits until nothing that was done before is speculative any more (INV-38).
pub fn settle() {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_settle() };
}

/// Loads memory of the current task. May be called in any context.
pub fn user_load(addr: u64, out: &mut [u8]) -> Result<(), Unreachable> {
    // SAFETY: `out` is valid for a write of that many bytes; a fault of the load is caught. The
    // kernel's function needs nothing else: it checks that the address is a user's and that the
    // current task's page tables are in use.
    let ret = unsafe {
        if !bindings::dtrace_user_ok() {
            return Err(Unreachable);
        }
        bindings::copy_from_user_nofault(
            out.as_mut_ptr().cast::<c_void>(),
            addr as *const c_void,
            out.len(),
        )
    };
    check(ret).map(|_| ())
}

/// Loads a string of the current task, as far as `out` has room. Returns its length without the
/// NUL; the bytes of `out` behind that are unspecified. May be called in any context.
pub fn user_load_str(addr: u64, out: &mut [u8]) -> Result<usize, Unreachable> {
    // SAFETY: `out` is valid for a write of that many bytes; a fault of the load is caught.
    let ret = unsafe { bindings::dtrace_user_load_str(out.as_mut_ptr().cast(), addr, out.len()) };
    check(ret as isize)
}

/// Stores into memory of the current task. Fails in an NMI, and while the CPU has the page tables of
/// another task in use, as in the middle of a switch of tasks.
pub fn user_store(addr: u64, data: &[u8]) -> Result<(), Unreachable> {
    // copy_to_user_nofault() does not check whose page tables are in use; copy_from_user_nofault()
    // does (nmi_uaccess_okay()).
    user_load(addr, &mut [0])?;
    // SAFETY: `data` is valid for a read of that many bytes; the kernel's function checks that the
    // address is a user's, and a fault of the store is caught.
    let ret = unsafe {
        if !bindings::dtrace_user_store_ok() {
            return Err(Unreachable);
        }
        bindings::copy_to_user_nofault(
            addr as *mut c_void,
            data.as_ptr().cast::<c_void>(),
            data.len(),
        )
    };
    check(ret).map(|_| ())
}

/// Loads 1, 2, 4 or 8 bytes of the current task's memory, in one piece if `addr` is a multiple of
/// the size. Only where a breakpoint has stopped the program, in the exception: whether its page
/// tables are in use is not checked.
#[inline]
pub fn user_get(addr: u64, size: u64) -> Result<u64, Unreachable> {
    let mut word = 0u64;
    // SAFETY: `word` is valid for the write; a fault of the load is caught.
    match unsafe { bindings::dtrace_user_get(addr, size as u32, &mut word) } {
        0 => Ok(word),
        _ => Err(Unreachable),
    }
}

/// Loads 8 bytes. As [`user_get`].
#[inline]
pub fn user_get_word(addr: u64) -> Result<u64, Unreachable> {
    let mut word = 0u64;
    // SAFETY: As in `user_get`.
    match unsafe { bindings::dtrace_user_get_word(addr, &mut word) } {
        0 => Ok(word),
        _ => Err(Unreachable),
    }
}

/// Stores 1, 2, 4 or 8 bytes, all or none, and in one piece if `addr` is a multiple of the size.
/// Otherwise as [`user_get`].
#[inline]
pub fn user_put(addr: u64, size: u64, value: u64) -> Result<(), Unreachable> {
    // SAFETY: The helper checks that the address is a user's; a fault of the store is caught.
    match unsafe { bindings::dtrace_user_put(addr, size as u32, value) } {
        0 => Ok(()),
        _ => Err(Unreachable),
    }
}

/// Stores 8 bytes. As [`user_put`].
#[inline]
pub fn user_put_word(addr: u64, value: u64) -> Result<(), Unreachable> {
    // SAFETY: As in `user_put`.
    match unsafe { bindings::dtrace_user_put_word(addr, value) } {
        0 => Ok(()),
        _ => Err(Unreachable),
    }
}

/// Stores 1, 2, 4 or 8 bytes, which must lie on one cache line, if `old` is still there, in one
/// step for all processors. Returns whether it was. Otherwise as [`user_get`].
#[inline]
pub fn user_swap(addr: u64, size: u64, old: u64, value: u64) -> Result<bool, Unreachable> {
    // SAFETY: As in `user_put`.
    match unsafe { bindings::dtrace_user_swap(addr, size as u32, old, value) } {
        swapped @ (0 | 1) => Ok(swapped == 1),
        _ => Err(Unreachable),
    }
}

/// Whether the page of a byte of the current task's memory can be written at once. This is looked
/// up in the page tables and not tried; `false` for a device's page. Otherwise as [`user_get`].
#[inline]
pub fn is_user_writable(addr: u64) -> bool {
    // SAFETY: The helper takes any address. It does not access the memory.
    unsafe { bindings::dtrace_user_writable(addr) }
}

#[inline]
fn check(ret: isize) -> Result<usize, Unreachable> {
    usize::try_from(ret).map_err(|_| Unreachable)
}
