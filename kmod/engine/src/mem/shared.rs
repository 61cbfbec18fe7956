// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Memory that several CPUs read and write at the same time.
//!
//! D gives no order between CPUs that use one global variable, so two stores to a string may mix. That must stay a
//! matter of D, and not become undefined behaviour of the module: every access here is a relaxed atomic one, of words
//! where both sides are aligned and of bytes at the edges. On the machines we know these are plain moves.

use super::alloc::Region;
use crate::error::NoMem;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering};

/// Zeroed memory that everybody may read and write.
#[derive(Debug)]
pub struct Shared(Region);

impl Shared {
    /// No memory.
    pub const fn empty() -> Self {
        Self(Region::empty())
    }

    /// Allocates `size` zeroed bytes.
    pub fn new(size: usize) -> Result<Self, NoMem> {
        Region::new(size).map(Self)
    }

    /// Its size, bytes.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// The byte at `at`.
    #[inline(always)]
    pub fn u8(&self, at: usize) -> Option<&AtomicU8> {
        if at >= self.size() {
            return None;
        }
        // SAFETY: the byte lies in the region, which outlives the borrow; it is accessed only atomically, as the region
        // never gives a plain reference away.
        Some(unsafe { &*self.0.ptr().add(at).cast() })
    }

    /// The aligned 32-bit word at `at`.
    #[inline(always)]
    pub fn u32(&self, at: usize) -> Option<&AtomicU32> {
        if at % 4 != 0 || at.checked_add(4)? > self.size() {
            return None;
        }
        // SAFETY: as in `u8`; the region is aligned to 8 and `at` to 4.
        Some(unsafe { &*self.0.ptr().add(at).cast() })
    }

    /// The aligned 64-bit word at `at`.
    #[inline(always)]
    pub fn u64(&self, at: usize) -> Option<&AtomicU64> {
        if at % 8 != 0 || at.checked_add(8)? > self.size() {
            return None;
        }
        // SAFETY: as in `u8`; the region and `at` are aligned to 8.
        Some(unsafe { &*self.0.ptr().add(at).cast() })
    }

    /// `n` 64-bit words from word `first` on.
    #[inline(always)]
    pub fn words(&self, first: usize, n: usize) -> Option<&[AtomicU64]> {
        // SAFETY: as in `u8`; the region is aligned to 8 and holds so many whole words.
        let all = unsafe { core::slice::from_raw_parts(self.0.ptr().cast(), self.size() / 8) };
        all.get(first..first.wrapping_add(n))
    }

    /// Copies `out.len()` bytes from `at`; false where they do not all lie within.
    pub fn read(&self, at: usize, out: &mut [u8]) -> bool {
        if at
            .checked_add(out.len())
            .is_none_or(|end| end > self.size())
        {
            return false;
        }
        let mut at = at;
        let mut out = out;
        while at % 8 != 0 && !out.is_empty() {
            at = self.read_byte(at, &mut out);
        }
        while out.len() >= 8 {
            let (head, rest) = out.split_at_mut(8);
            let word = self.u64(at).map_or(0, |w| w.load(Ordering::Relaxed));
            head.copy_from_slice(&word.to_ne_bytes());
            out = rest;
            at += 8;
        }
        while !out.is_empty() {
            at = self.read_byte(at, &mut out);
        }
        true
    }

    fn read_byte(&self, at: usize, out: &mut &mut [u8]) -> usize {
        let (head, rest) = core::mem::take(out).split_at_mut(1);
        head.fill(self.u8(at).map_or(0, |b| b.load(Ordering::Relaxed)));
        *out = rest;
        at + 1
    }

    /// Copies `from` to `at`; false, and nothing written, where it does not all lie within.
    pub fn write(&self, at: usize, from: &[u8]) -> bool {
        if at
            .checked_add(from.len())
            .is_none_or(|end| end > self.size())
        {
            return false;
        }
        let mut at = at;
        let mut from = from;
        while at % 8 != 0 && !from.is_empty() {
            (at, from) = self.write_byte(at, from);
        }
        while let Some((head, rest)) = from.split_first_chunk::<8>() {
            if let Some(word) = self.u64(at) {
                word.store(u64::from_ne_bytes(*head), Ordering::Relaxed);
            }
            from = rest;
            at += 8;
        }
        while !from.is_empty() {
            (at, from) = self.write_byte(at, from);
        }
        true
    }

    fn write_byte<'a>(&self, at: usize, from: &'a [u8]) -> (usize, &'a [u8]) {
        let Some((head, rest)) = from.split_first() else {
            return (at, from);
        };
        if let Some(byte) = self.u8(at) {
            byte.store(*head, Ordering::Relaxed);
        }
        (at + 1, rest)
    }

    /// Copies a string from `at` to `out`: bytes up to the first NUL, the end of `out` or the end of the region.
    /// Returns how many there were.
    pub fn read_str(&self, at: usize, out: &mut [u8]) -> usize {
        let mut n = 0;
        for to in out.iter_mut() {
            match self
                .u8(at.wrapping_add(n))
                .map(|b| b.load(Ordering::Relaxed))
            {
                Some(0) | None => break,
                Some(byte) => *to = byte,
            }
            n += 1;
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_any_alignment() {
        let s = Shared::new(64).unwrap();
        for at in 0..9 {
            for len in 0..40 {
                let from: std::vec::Vec<u8> = (0..len).map(|i| i as u8 + 1).collect();
                assert!(s.write(at, &from));
                let mut out = std::vec![0; len];
                assert!(s.read(at, &mut out));
                assert_eq!(out, from);
            }
        }
    }

    #[test]
    fn refuses_what_lies_outside() {
        let s = Shared::new(16).unwrap();
        assert!(!s.write(9, &[1; 8]));
        assert!(!s.read(usize::MAX, &mut [0; 8]));
        assert!(s.u64(4).is_none() && s.u64(16).is_none() && s.u32(14).is_none());
        assert!(s.u8(16).is_none());
        assert_eq!(s.words(1, 1).map(<[_]>::len), Some(1));
        assert!(s.words(1, 2).is_none() && s.words(usize::MAX, 2).is_none());
    }

    #[test]
    fn strings_end_at_nul_or_at_the_end() {
        let s = Shared::new(8).unwrap();
        s.write(0, b"abc\0defg");
        let mut out = [0; 8];
        assert_eq!(s.read_str(0, &mut out), 3);
        assert_eq!(s.read_str(4, &mut out), 4);
        assert_eq!(s.read_str(8, &mut out), 0);
        assert_eq!(s.read_str(0, &mut out[..2]), 2);
    }
}
