// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Memory allocation through two functions that the platform defines.
//!
//! In the kernel the module defines them by `kvzalloc()` and `kvfree()`; an allocation also fails
//! if it would take too much of the available memory (INV-29). On the host (`std`) they are defined
//! here, count the live bytes, and can be made to fail, so that tests reach every out-of-memory
//! path.

use core::ptr::NonNull;

/// Alignment of every allocation in bytes: what the kernel guarantees for any size. Types that need
/// a larger alignment are refused at compile time.
pub const ALIGN: usize = 8;

#[cfg(not(feature = "std"))]
mod platform {
    extern "C" {
        fn dtrace_engine_alloc(size: usize) -> *mut u8;
        fn dtrace_engine_free(ptr: *mut u8, size: usize);
    }

    pub fn alloc(size: usize) -> *mut u8 {
        // SAFETY: the platform's function takes any size; it returns null or zeroed memory aligned
        // to `ALIGN`.
        unsafe { dtrace_engine_alloc(size) }
    }

    /// # Safety
    ///
    /// `ptr` must come from `alloc(size)`, and must not be used any more.
    pub unsafe fn free(ptr: *mut u8, size: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { dtrace_engine_free(ptr, size) }
    }
}

#[cfg(feature = "std")]
mod platform {
    use core::cell::Cell;
    use std::alloc::{alloc_zeroed, dealloc, Layout};

    std::thread_local! {
        static LIVE: Cell<usize> = const { Cell::new(0) };
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
        static MOST: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    /// Returns the bytes that this thread has allocated and not freed.
    pub fn live() -> usize {
        LIVE.get()
    }

    /// Lets `n` more allocations of this thread succeed, then makes all fail; `None` lifts the
    /// limit.
    pub fn fail_after(n: Option<usize>) {
        LEFT.set(n);
    }

    /// Makes allocations of this thread fail that would raise its live bytes above `bytes`.
    pub fn limit(bytes: usize) {
        MOST.set(bytes);
    }

    pub fn alloc(size: usize) -> *mut u8 {
        if LIVE.get().saturating_add(size) > MOST.get() {
            return core::ptr::null_mut();
        }
        match LEFT.get() {
            Some(0) => return core::ptr::null_mut(),
            Some(n) => LEFT.set(Some(n - 1)),
            None => {}
        }
        let Ok(layout) = Layout::from_size_align(size, super::ALIGN) else {
            return core::ptr::null_mut();
        };
        // SAFETY: `Region::new` never requests 0 bytes, so the layout's size is not zero.
        let ptr = unsafe { alloc_zeroed(layout) };
        if !ptr.is_null() {
            LIVE.set(LIVE.get().wrapping_add(size));
        }
        ptr
    }

    /// # Safety
    ///
    /// `ptr` must come from `alloc(size)`, and must not be used any more.
    pub unsafe fn free(ptr: *mut u8, size: usize) {
        LIVE.set(LIVE.get().wrapping_sub(size));
        if let Ok(layout) = Layout::from_size_align(size, super::ALIGN) {
            // SAFETY: `alloc` allocated it with the same layout, as the caller guarantees.
            unsafe { dealloc(ptr, layout) }
        }
    }
}

#[cfg(feature = "std")]
pub use platform::{fail_after, limit, live};

use crate::error::NoMem;

/// A zeroed piece of memory, freed when dropped. If its size is 0, the pointer dangles.
#[derive(Debug)]
pub struct Region {
    ptr: NonNull<u8>,
    size: usize,
}

// SAFETY: the region is plain memory without thread affinity; its wrappers control access to it.
unsafe impl Send for Region {}
// SAFETY: a shared region discloses only its address and size.
unsafe impl Sync for Region {}

impl Region {
    /// Returns a region without memory.
    pub const fn empty() -> Self {
        Self {
            ptr: NonNull::<u64>::dangling().cast(),
            size: 0,
        }
    }

    /// Allocates `size` zeroed bytes.
    pub fn new(size: usize) -> Result<Self, NoMem> {
        if size == 0 {
            return Ok(Self::empty());
        }
        if size > isize::MAX as usize {
            return Err(NoMem);
        }
        let ptr = NonNull::new(platform::alloc(size)).ok_or(NoMem)?;
        Ok(Self { ptr, size })
    }

    /// Returns the memory's address without freeing the memory.
    pub(super) fn into_raw(self) -> NonNull<u8> {
        core::mem::ManuallyDrop::new(self).ptr
    }

    /// Rebuilds the region from what [`into_raw`](Self::into_raw) returned.
    ///
    /// # Safety
    ///
    /// `ptr` must come from `into_raw` of a region of `size` bytes, and must be passed here only
    /// once.
    pub(super) unsafe fn from_raw(ptr: NonNull<u8>, size: usize) -> Self {
        Self { ptr, size }
    }

    /// Returns the start address.
    #[inline(always)]
    pub fn ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Returns the size in bytes.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.size
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if self.size != 0 {
            // SAFETY: `new` allocated it with this size, and nothing borrows from a region that is
            // being dropped.
            unsafe { platform::free(self.ptr.as_ptr(), self.size) }
        }
    }
}

/// A region as a byte slice, with a single owner.
#[derive(Debug)]
pub struct Bytes(Region);

impl Bytes {
    /// Returns an empty slice.
    pub const fn empty() -> Self {
        Self(Region::empty())
    }

    /// Allocates `size` zeroed bytes.
    pub fn new(size: usize) -> Result<Self, NoMem> {
        Region::new(size).map(Self)
    }
}

impl core::ops::Deref for Bytes {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: the region holds `size` initialised bytes, and `&self` excludes writers.
        unsafe { core::slice::from_raw_parts(self.0.ptr(), self.0.size()) }
    }
}

impl core::ops::DerefMut for Bytes {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` excludes all other accesses.
        unsafe { core::slice::from_raw_parts_mut(self.0.ptr(), self.0.size()) }
    }
}
