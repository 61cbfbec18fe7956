// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Loads of any address, which fail where others fault.
//!
//! The kernel refuses user addresses here, non-canonical ones and what is not mapped; the exception table does the
//! rest. Memory of devices is refused by us (`loads.c`). User memory is reached only from a task that has some, and only
//! where its page tables are certainly those in use: an NMI may come while the CPU goes from one to others, which the kernel's load asks
//! (`nmi_uaccess_okay()`), and its store does not.

use crate::bindings;
use core::ffi::c_void;

/// The access failed.
#[derive(Debug, Clone, Copy)]
pub struct Unreachable;

/// Loads a word of kernel memory.
#[inline]
pub fn load_u64(addr: u64) -> Result<u64, Unreachable> {
    let mut word = 0u64;
    // SAFETY: `word` is valid for the write; the load does not fault.
    let ret = unsafe { bindings::dtrace_load_u64(&mut word, addr) };
    if ret == 0 {
        Ok(word)
    } else {
        Err(Unreachable)
    }
}

/// Loads kernel memory. What `out` holds when that has failed depends on the kernel's compiler.
#[inline]
pub fn load(addr: u64, out: &mut [u8]) -> Result<(), Unreachable> {
    // SAFETY: `out` is valid for that many bytes; the load does not fault.
    let ret = unsafe { bindings::dtrace_load(out.as_mut_ptr().cast::<c_void>(), addr, out.len()) };
    check(ret as isize).map(|_| ())
}

/// Loads a string of kernel memory as far as there is room; its length, without the NUL, which is not stored.
pub fn load_str(addr: u64, out: &mut [u8]) -> Result<usize, Unreachable> {
    // SAFETY: `out` is valid for that many bytes; the load does not fault.
    check(unsafe { bindings::dtrace_load_str(out.as_mut_ptr().cast(), addr, out.len()) } as isize)
}

/// Waits until all that was done before is no guess of the processor's any more.
pub fn settle() {
    // SAFETY: Needs nothing.
    unsafe { bindings::dtrace_settle() };
}

/// Loads memory of the current task.
pub fn user_load(addr: u64, out: &mut [u8]) -> Result<(), Unreachable> {
    // SAFETY: `out` is valid for that many bytes; the load does not fault.
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

/// Loads a string of the current task as far as there is room; its length, without the NUL.
pub fn user_load_str(addr: u64, out: &mut [u8]) -> Result<usize, Unreachable> {
    // SAFETY: `out` is valid for that many bytes; the load does not fault.
    let ret = unsafe { bindings::dtrace_user_load_str(out.as_mut_ptr().cast(), addr, out.len()) };
    check(ret as isize)
}

/// Stores into memory of the current task.
pub fn user_store(addr: u64, data: &[u8]) -> Result<(), Unreachable> {
    // SAFETY: `data` is valid for that many bytes; the store does not fault.
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

/// Loads 1, 2, 4 or 8 bytes of the current task's memory in one piece. Only where a breakpoint has stopped the program.
#[inline]
pub fn user_get(addr: u64, size: u64) -> Result<u64, Unreachable> {
    let mut word = 0u64;
    // SAFETY: `word` is valid for the write; the load does not fault.
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

/// Stores 1, 2, 4 or 8 bytes in one piece, all or none. As [`user_get`].
#[inline]
pub fn user_put(addr: u64, size: u64, value: u64) -> Result<(), Unreachable> {
    // SAFETY: The store does not fault.
    match unsafe { bindings::dtrace_user_put(addr, size as u32, value) } {
        0 => Ok(()),
        _ => Err(Unreachable),
    }
}

/// Stores 8 bytes. As [`user_get`].
#[inline]
pub fn user_put_word(addr: u64, value: u64) -> Result<(), Unreachable> {
    // SAFETY: The store does not fault.
    match unsafe { bindings::dtrace_user_put_word(addr, value) } {
        0 => Ok(()),
        _ => Err(Unreachable),
    }
}

/// Stores 1, 2, 4 or 8 bytes, on one cache line, if `old` is still there; whether that was so. As [`user_get`].
#[inline]
pub fn user_swap(addr: u64, size: u64, old: u64, value: u64) -> Result<bool, Unreachable> {
    // SAFETY: The store does not fault.
    match unsafe { bindings::dtrace_user_swap(addr, size as u32, old, value) } {
        swapped @ (0 | 1) => Ok(swapped == 1),
        _ => Err(Unreachable),
    }
}

/// Whether a byte of the current task's memory can be stored, and what is on its page, at once. As [`user_get`].
#[inline]
pub fn is_user_writable(addr: u64) -> bool {
    // SAFETY: The store that this tries does not fault.
    unsafe { bindings::dtrace_user_writable(addr) }
}

#[inline]
fn check(ret: isize) -> Result<usize, Unreachable> {
    usize::try_from(ret).map_err(|_| Unreachable)
}
