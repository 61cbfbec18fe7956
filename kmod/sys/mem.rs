// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The engine's memory: what it asks of its platform, from the kernel's allocator.

use core::alloc::Layout;
use core::ptr::NonNull;
use kernel::alloc::allocator::KVmalloc;
use kernel::alloc::{flags, Allocator, NumaNode};

/// Zeroed memory of `size` bytes, aligned to 8 at least, or null.
#[no_mangle]
extern "C" fn dtrace_engine_alloc(size: usize) -> *mut u8 {
    let Ok(layout) = Layout::from_size_align(size, 8) else {
        return core::ptr::null_mut();
    };
    // A consumer asks for what it likes; being refused is better than reclaiming everybody's memory for it.
    let gfp = flags::GFP_KERNEL_ACCOUNT | flags::__GFP_ZERO | flags::__GFP_NOWARN;
    KVmalloc::alloc(layout, gfp, NumaNode::NO_NODE)
        .map_or(core::ptr::null_mut(), |p| p.as_ptr().cast())
}

/// Gives back what [`dtrace_engine_alloc`] gave.
///
/// # Safety
///
/// `ptr` came from it with the same `size`, and is not used any more.
#[no_mangle]
unsafe extern "C" fn dtrace_engine_free(ptr: *mut u8, size: usize) {
    if let (Some(ptr), Ok(layout)) = (NonNull::new(ptr), Layout::from_size_align(size, 8)) {
        // SAFETY: By the contract.
        unsafe { KVmalloc::free(ptr, layout) };
    }
}
