// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The engine's memory, from the kernel's allocator, and the size of the machine's memory.

use crate::bindings;

/// Returns the size of the machine's memory, MiB.
pub fn machine_mib() -> u32 {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_machine_mib() }
}

/// Allocates zeroed memory of `size` bytes, aligned to at least 8. Returns null if there is none,
/// or if it would be too much of the available memory (INV-29). The memory is charged to the
/// current control group. May sleep.
#[no_mangle]
extern "C" fn dtrace_engine_alloc(size: usize) -> *mut u8 {
    // SAFETY: The helper takes any size.
    unsafe { bindings::dtrace_mem_alloc(size).cast() }
}

/// Frees what [`dtrace_engine_alloc`] returned.
///
/// # Safety
///
/// `ptr` must have come from [`dtrace_engine_alloc`], and must not be used any more.
#[no_mangle]
unsafe extern "C" fn dtrace_engine_free(ptr: *mut u8, _size: usize) {
    // SAFETY: By the caller's promise; the helper allocates by `kvzalloc()`, which `kvfree()`
    // matches.
    unsafe { bindings::kvfree(ptr.cast()) };
}
