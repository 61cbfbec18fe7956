// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Per-CPU buffers. Each has two halves: the CPU fills one while the consumer reads the other, the
//! *snapshot*.
//!
//! Only the holder of the CPU's claim accesses the half that is being filled, and switches the
//! halves. The snapshot belongs to the control path until the next switch, which is refused while
//! the snapshot is being read.
// Arithmetic on offsets and sizes within one buffer. A buffer has at most `BUFFER_MAX` bytes, and 8
// KiB more for the times of records.
#![allow(clippy::arithmetic_side_effects)]

pub mod aggregate;
pub mod principal;

use crate::error::NoMem;
use crate::mem::alloc::Bytes;
use crate::mem::sync::TryLock;
use dtrace_uapi::ioctl::RecHdr;

/// The snapshot: the half of a buffer that the control path reads, and what is known about it.
#[derive(Debug)]
pub struct Aside {
    mem: Bytes,
    used: usize,
    /// Records dropped while this half was being filled.
    pub drops: u64,
    /// Faults while this half was being filled.
    pub errors: u32,
    /// Offset of the oldest record.
    pub oldest: usize,
    /// Time of the switch, in ns.
    pub timestamp: u64,
}

impl Aside {
    /// Makes an empty snapshot of `size` bytes.
    pub fn new(size: usize) -> Result<TryLock<Self>, NoMem> {
        Ok(TryLock::new(Self {
            mem: Bytes::new(size)?,
            used: 0,
            drops: 0,
            errors: 0,
            oldest: 0,
            timestamp: 0,
        }))
    }

    /// Returns its records.
    pub fn data(&self) -> &[u8] {
        self.mem.get(..self.used).unwrap_or(&[])
    }
}

/// Returns the range of `size` bytes at `offset` in the entry at `entry`. Neither number reaches 4
/// GiB, so their sum does not overflow, and one comparison tells whether the range lies within the
/// buffer.
#[inline(always)]
fn place(entry: u32, offset: u32, size: usize) -> core::ops::Range<usize> {
    let at = entry as usize + offset as usize;
    at..at + size
}

/// Returns the `N` bytes at `offset` in the entry at `entry`; `None` if they do not lie within
/// `mem`.
#[inline(always)]
fn part<const N: usize>(mem: &[u8], entry: u32, offset: u32) -> Option<&[u8; N]> {
    mem.get(place(entry, offset, N))?.first_chunk()
}

/// Returns the eight bytes at `offset` in the entry at `entry`; 0 if they do not lie within `mem`.
#[inline(always)]
pub(crate) fn word_in(mem: &[u8], entry: u32, offset: u32) -> u64 {
    part(mem, entry, offset).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// Returns the four bytes at `offset` in the entry at `entry`; 0 if they do not lie within `mem`.
#[inline(always)]
pub(crate) fn half_in(mem: &[u8], entry: u32, offset: u32) -> u32 {
    part(mem, entry, offset).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

/// Adds `n` to the eight bytes at `offset` in the entry at `entry`, modulo 2^64. Does nothing if
/// they do not lie within `mem`.
#[inline(always)]
pub(crate) fn add_word_in(mem: &mut [u8], entry: u32, offset: u32, n: u64) {
    let place = place(entry, offset, 8);
    if let Some(bytes) = mem.get_mut(place).and_then(|part| part.first_chunk_mut()) {
        *bytes = u64::from_ne_bytes(*bytes).wrapping_add(n).to_ne_bytes();
    }
}

/// Returns the eight bytes at `at`; 0 if they do not lie within `mem`.
#[inline(always)]
pub(crate) fn word(mem: &[u8], at: usize) -> u64 {
    slice_at(mem, at).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// Writes the eight bytes at `at`. Does nothing if they do not lie within `mem`.
#[inline(always)]
pub(crate) fn set_word(mem: &mut [u8], at: usize, value: u64) {
    if let Some(bytes) = slice_mut(mem, at) {
        *bytes = value.to_ne_bytes();
    }
}

/// Returns the four bytes at `at`; 0 if they do not lie within `mem`.
#[inline(always)]
pub(crate) fn half(mem: &[u8], at: usize) -> u32 {
    slice_at(mem, at).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

/// Copies as much of `from` as fits to the beginning of `to`. Returns the number of bytes copied.
#[inline(always)]
pub(crate) fn copy(to: &mut [u8], from: &[u8]) -> usize {
    let n = to.len().min(from.len());
    if let (Some(to), Some(from)) = (to.get_mut(..n), from.get(..n)) {
        to.copy_from_slice(from);
    }
    n
}

/// Adds `n` to the eight bytes at `at`, modulo 2^64. Does nothing if they do not lie within `mem`.
#[inline(always)]
pub(crate) fn add_word(mem: &mut [u8], at: usize, n: u64) {
    if let Some(bytes) = slice_mut(mem, at) {
        *bytes = u64::from_ne_bytes(*bytes).wrapping_add(n).to_ne_bytes();
    }
}

/// Returns the `N` bytes at `at`; `None` if they do not lie within `mem`.
#[inline(always)]
pub(crate) fn slice_at<const N: usize>(mem: &[u8], at: usize) -> Option<&[u8; N]> {
    mem.get(at..)?.first_chunk()
}

/// Returns the `N` bytes at `at` for writing; `None` if they do not lie within `mem`.
#[inline(always)]
pub(crate) fn slice_mut<const N: usize>(mem: &mut [u8], at: usize) -> Option<&mut [u8; N]> {
    mem.get_mut(at..)?.first_chunk_mut()
}

/// Writes the header of a record at `at`. Does nothing if it does not lie within `mem`.
#[inline(always)]
pub(crate) fn set_head(mem: &mut [u8], at: usize, head: RecHdr) {
    if let Some(bytes) = slice_mut::<{ size_of::<RecHdr>() }>(mem, at) {
        *bytes = zerocopy::transmute!(head);
    }
}

/// Writes the four bytes at `at`. Does nothing if they do not lie within `mem`.
#[inline(always)]
pub(crate) fn set_half(mem: &mut [u8], at: usize, value: u32) {
    if let Some(bytes) = slice_mut(mem, at) {
        *bytes = value.to_ne_bytes();
    }
}
