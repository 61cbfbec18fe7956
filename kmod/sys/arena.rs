// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Memory that stays where it is until the module goes.
//!
//! Probes and their names are referred to from kernel callbacks that know no lifetimes. They are therefore never moved
//! or freed while the module is loaded, and an [`Arena`] hands out `&'static` references. Allocation is in
//! large pieces: a hundred thousand probes take a few dozen allocations.

use core::mem::MaybeUninit;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// Values of one type that live until the module goes.
///
/// # Invariants
///
/// Every chunk's first `len` slots are initialized, shared, and neither moved nor dropped before the arena is.
pub struct Arena<T: Sync + 'static> {
    chunks: KVVec<KVVec<T>>,
    per_chunk: usize,
}

impl<T: Sync + 'static> Arena<T> {
    /// An arena that allocates `per_chunk` values at a time.
    ///
    /// # Safety
    ///
    /// The arena must be dropped only when no reference that it handed out can be used any more: at the module's unload,
    /// after the last callback into the module has ended.
    pub const unsafe fn new(per_chunk: usize) -> Self {
        Self {
            chunks: KVVec::new(),
            per_chunk,
        }
    }

    /// Adds a value.
    pub fn push(&mut self, value: T) -> Result<&'static T> {
        if self.chunks.last().is_none_or(|c| c.len() >= self.per_chunk) {
            let chunk = KVVec::with_capacity(self.per_chunk, GFP_KERNEL)?;
            self.chunks.push(chunk, GFP_KERNEL)?;
        }
        let chunk = self.chunks.last_mut().ok_or(ENOMEM)?;
        let at: *const T = chunk
            .spare_capacity_mut()
            .as_ptr()
            .cast::<MaybeUninit<T>>()
            .cast();
        chunk.push_within_capacity(value).map_err(|_| ENOMEM)?;
        // SAFETY: The slot has just been filled; the chunk never grows beyond its capacity, so it is not reallocated, and the
        // creator of the arena promised to keep it for as long as references are in use.
        Ok(unsafe { &*at })
    }
}

/// Strings that live until the module goes.
pub struct Strings {
    chunks: KVVec<KVVec<u8>>,
}

impl Strings {
    const CHUNK: usize = 64 << 10;

    /// As [`Arena::new`].
    ///
    /// # Safety
    ///
    /// As of [`Arena::new`].
    pub const unsafe fn new() -> Self {
        Self {
            chunks: KVVec::new(),
        }
    }

    /// Adds a copy of `text`, which must be shorter than 64 KiB.
    pub fn push(&mut self, text: &[u8]) -> Result<&'static [u8]> {
        let free = self.chunks.last().map_or(0, |c| c.capacity() - c.len());
        if free < text.len() {
            if text.len() > Self::CHUNK {
                return Err(EINVAL);
            }
            let chunk = KVVec::with_capacity(Self::CHUNK, GFP_KERNEL)?;
            self.chunks.push(chunk, GFP_KERNEL)?;
        }
        let chunk = self.chunks.last_mut().ok_or(ENOMEM)?;
        let from = chunk.len();
        chunk.extend_from_slice(text, GFP_KERNEL)?;
        let copy: *const [u8] = chunk.get(from..).ok_or(EINVAL)?;
        // SAFETY: As in `Arena::push`: there was room, so the chunk was not reallocated and never will be.
        Ok(unsafe { &*copy })
    }
}
