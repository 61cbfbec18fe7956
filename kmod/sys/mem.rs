// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The engine's memory: what it asks of its platform, from the kernel's allocator; and how much there is.

use crate::bindings;

/// How much memory the machine has, MiB.
pub fn machine_mib() -> u32 {
    // SAFETY: Needs nothing.
    unsafe { bindings::dtrace_machine_mib() }
}

/// Zeroed memory of `size` bytes, aligned to 8 at least, or null.
#[no_mangle]
extern "C" fn dtrace_engine_alloc(size: usize) -> *mut u8 {
    // SAFETY: Takes any size.
    unsafe { bindings::dtrace_mem_alloc(size).cast() }
}

/// Gives back what [`dtrace_engine_alloc`] gave.
///
/// # Safety
///
/// `ptr` came from it, and is not used any more.
#[no_mangle]
unsafe extern "C" fn dtrace_engine_free(ptr: *mut u8, _size: usize) {
    // SAFETY: By the contract.
    unsafe { bindings::kvfree(ptr.cast()) };
}
