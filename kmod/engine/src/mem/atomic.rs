// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Atomic types for lock-free code, and memory whose words are accessed as atomics.
//!
//! They are the types of `core`, except under `cfg(loom)`, where they are loom's. There a test runs
//! a few threads in every order that the memory model allows, with every value that a load may see
//! (`tests/models.rs`, `make models`). Code that is to be tested that way takes its atomic types
//! from here.

#[cfg(loom)]
pub use loom::hint::spin_loop;
#[cfg(loom)]
pub use loom::sync::atomic::{fence, AtomicBool, AtomicU32, AtomicU64};

#[cfg(not(loom))]
pub use core::hint::spin_loop;
#[cfg(not(loom))]
pub use core::sync::atomic::{fence, AtomicBool, AtomicU32, AtomicU64};

pub use core::sync::atomic::Ordering;
pub use words::Words;

#[cfg(not(loom))]
mod words {
    use super::{AtomicU32, AtomicU64};
    use crate::error::NoMem;
    use crate::mem::alloc::Region;

    /// Zeroed memory whose words any thread may read and write.
    #[derive(Debug)]
    pub struct Words(Region);

    impl Words {
        /// Returns a value without memory.
        pub const fn empty() -> Self {
            Self(Region::empty())
        }

        /// Allocates `size` zeroed bytes. `size` must be a multiple of 8.
        pub fn new(size: usize) -> Result<Self, NoMem> {
            Region::new(size).map(Self)
        }

        /// Returns the size in bytes.
        #[inline(always)]
        pub fn size(&self) -> usize {
            self.0.size()
        }

        /// Returns the aligned 32-bit word at byte offset `at`; `None` if it is misaligned or out
        /// of range.
        #[inline(always)]
        pub fn u32(&self, at: usize) -> Option<&AtomicU32> {
            if at % 4 != 0 || at.checked_add(4)? > self.size() {
                return None;
            }
            // SAFETY: the word lies in the region, which outlives the borrow, and is aligned,
            // because the region is aligned to 8. It is accessed only atomically, because this type
            // never hands out a plain reference.
            Some(unsafe { &*self.0.ptr().add(at).cast() })
        }

        /// Returns the aligned 64-bit word at byte offset `at`; `None` if it is misaligned or out
        /// of range.
        #[inline(always)]
        pub fn u64(&self, at: usize) -> Option<&AtomicU64> {
            if at % 8 != 0 || at.checked_add(8)? > self.size() {
                return None;
            }
            // SAFETY: as in `u32`; the region and `at` are aligned to 8.
            Some(unsafe { &*self.0.ptr().add(at).cast() })
        }

        /// Returns `n` 64-bit words from word `first` on.
        #[inline(always)]
        pub fn words(&self, first: usize, n: usize) -> Option<&[AtomicU64]> {
            self.all().get(first..first.wrapping_add(n))
        }

        /// Returns the 64-bit word `n`.
        #[inline(always)]
        pub fn word(&self, n: usize) -> Option<&AtomicU64> {
            self.all().get(n)
        }

        #[inline(always)]
        fn all(&self) -> &[AtomicU64] {
            // SAFETY: as in `u32`; the region is aligned to 8 and holds this number of whole words.
            unsafe { core::slice::from_raw_parts(self.0.ptr().cast(), self.size() / 8) }
        }
    }
}

#[cfg(loom)]
mod words {
    use super::{AtomicU32, AtomicU64};
    use crate::error::NoMem;
    use std::vec::Vec;

    /// A stand-in for the real type. loom's words cannot overlap, so each size has words of its
    /// own. No word is used in both sizes.
    #[derive(Debug)]
    pub struct Words {
        long: Vec<AtomicU64>,
        short: Vec<AtomicU32>,
    }

    #[allow(missing_docs)]
    impl Words {
        pub const fn empty() -> Self {
            Self {
                long: Vec::new(),
                short: Vec::new(),
            }
        }

        pub fn new(size: usize) -> Result<Self, NoMem> {
            Ok(Self {
                long: (0..size / 8).map(|_| AtomicU64::new(0)).collect(),
                short: (0..size / 4).map(|_| AtomicU32::new(0)).collect(),
            })
        }

        pub fn size(&self) -> usize {
            self.long.len() * 8
        }

        pub fn u32(&self, at: usize) -> Option<&AtomicU32> {
            (at % 4 == 0).then(|| self.short.get(at / 4))?
        }

        pub fn u64(&self, at: usize) -> Option<&AtomicU64> {
            (at % 8 == 0).then(|| self.long.get(at / 8))?
        }

        pub fn words(&self, first: usize, n: usize) -> Option<&[AtomicU64]> {
            self.long.get(first..first.wrapping_add(n))
        }

        pub fn word(&self, n: usize) -> Option<&AtomicU64> {
            self.long.get(n)
        }
    }
}
