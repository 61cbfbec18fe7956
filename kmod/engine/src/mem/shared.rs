// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Memory that several CPUs read and write at the same time.
//!
//! D defines no order between CPUs that use one global variable, so two stores to a string may mix.
//! This must remain a property of D programs and not become undefined behaviour of the module. So
//! every access is a relaxed atomic one, and always has the same size at the same location, as the
//! memory model requires. Bytes are read and written as parts of their words. A store to some bytes
//! of a word may therefore undo another CPU's store to its other bytes. Variables start at word
//! boundaries, so both stores are to the same variable, where they may mix anyway. On the supported
//! processors these accesses are plain moves.
//!
//! The links of lists are 32-bit words of their own, which are never accessed in another size.

use super::atomic::{AtomicU32, AtomicU64, Ordering, Words};
use crate::error::NoMem;

/// Zeroed memory that any thread may read and write.
#[derive(Debug)]
pub struct Shared(Words);

impl Shared {
    /// Returns a value without memory.
    pub const fn empty() -> Self {
        Self(Words::empty())
    }

    /// Allocates `size` zeroed bytes, rounded up to whole words.
    pub fn new(size: usize) -> Result<Self, NoMem> {
        let size = size.checked_next_multiple_of(8).ok_or(NoMem)?;
        Words::new(size).map(Self)
    }

    /// Returns the size in bytes.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.0.size()
    }

    /// Returns the aligned 32-bit word at byte offset `at`; `None` if it is misaligned or out of
    /// range.
    #[inline(always)]
    pub fn u32(&self, at: usize) -> Option<&AtomicU32> {
        self.0.u32(at)
    }

    /// Returns the aligned 64-bit word at byte offset `at`; `None` if it is misaligned or out of
    /// range.
    #[inline(always)]
    pub fn u64(&self, at: usize) -> Option<&AtomicU64> {
        self.0.u64(at)
    }

    /// Returns `n` 64-bit words from word `first` on.
    #[inline(always)]
    pub fn words(&self, first: usize, n: usize) -> Option<&[AtomicU64]> {
        self.0.words(first, n)
    }

    /// Returns the 64-bit word `n`.
    #[inline(always)]
    pub fn word(&self, n: usize) -> Option<&AtomicU64> {
        self.0.word(n)
    }

    /// Returns the bytes from `at` to the end of the word that contains it, and their number.
    #[inline(always)]
    fn tail_of_word(&self, at: usize) -> Option<([u8; 8], usize)> {
        let skip = at % 8;
        let word = self.u64(at - skip)?.load(Ordering::Relaxed);
        let mut bytes = word.to_ne_bytes();
        bytes.copy_within(skip.., 0);
        Some((bytes, 8 - skip))
    }

    /// Whether all of the `len` bytes from `at` on are in range.
    pub fn lies_within(&self, at: usize, len: usize) -> bool {
        at.checked_add(len).is_some_and(|end| end <= self.size())
    }

    /// Copies `out.len()` bytes from `at` to `out`. Returns `false` if they are not all in range.
    pub fn read(&self, mut at: usize, mut out: &mut [u8]) -> bool {
        if !self.lies_within(at, out.len()) {
            return false;
        }
        while !out.is_empty() {
            let Some((bytes, n)) = self.tail_of_word(at) else {
                return false;
            };
            let (head, rest) = out.split_at_mut(n.min(out.len()));
            head.copy_from_slice(bytes.get(..head.len()).unwrap_or(&[]));
            at += head.len();
            out = rest;
        }
        true
    }

    /// Copies `from` to `at`. Returns `false`, and writes nothing, if not all of it is in range.
    pub fn write(&self, mut at: usize, mut from: &[u8]) -> bool {
        if !self.lies_within(at, from.len()) {
            return false;
        }
        while !from.is_empty() {
            let skip = at % 8;
            let Some(word) = self.u64(at - skip) else {
                return false;
            };
            let (head, rest) = from.split_at((8 - skip).min(from.len()));
            let mut bytes = [0; 8];
            if head.len() < 8 {
                bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            }
            if let Some(part) = bytes.get_mut(skip..skip + head.len()) {
                part.copy_from_slice(head);
            }
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
            at += head.len();
            from = rest;
        }
        true
    }

    /// Copies a string from `at` to `out`: bytes up to the first NUL, the end of `out` or the end
    /// of the region. Returns their number.
    pub fn read_str(&self, at: usize, out: &mut [u8]) -> usize {
        let mut len = 0;
        while let Some((bytes, n)) = self.tail_of_word(at.wrapping_add(len)) {
            let text = bytes.get(..n).unwrap_or(&[]);
            let end = text.iter().position(|b| *b == 0);
            let to = out.get_mut(len..).unwrap_or(&mut []);
            let n = end.unwrap_or(n).min(to.len());
            if let (Some(to), Some(text)) = (to.get_mut(..n), text.get(..n)) {
                to.copy_from_slice(text);
            }
            len += n;
            if end.is_some() || len == out.len() {
                break;
            }
        }
        len
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
        assert_eq!(s.words(1, 1).map(<[_]>::len), Some(1));
        assert!(s.words(1, 2).is_none() && s.words(usize::MAX, 2).is_none());
        assert!(s.word(1).is_some() && s.word(2).is_none() && s.word(usize::MAX).is_none());
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
