// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Per-CPU buffers: records in two halves, of which the CPU fills one while the consumer reads the other.
//!
//! Only the CPU itself, with its claim, touches the half that is being filled and decides to switch. The half that was
//! put aside belongs to the control path until the next switch, which is refused while it is being read.
// Offsets and sizes within one buffer, of which none exceeds `BUFFER_MAX`.
#![allow(clippy::arithmetic_side_effects)]

pub mod aggregate;
pub mod principal;

use crate::error::NoMem;
use crate::mem::alloc::Bytes;
use crate::mem::sync::TryLock;
use dtrace_uapi::ioctl::RecHdr;

/// The half that was put aside, with what is known about it.
#[derive(Debug)]
pub struct Aside {
    mem: Bytes,
    used: usize,
    /// Records dropped while it was being filled.
    pub drops: u64,
    /// Faults while it was being filled.
    pub errors: u32,
    /// Offset of the oldest record.
    pub oldest: usize,
    /// When it was put aside.
    pub timestamp: u64,
}

impl Aside {
    /// An empty half of `size` bytes.
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

    /// Its records.
    pub fn data(&self) -> &[u8] {
        self.mem.get(..self.used).unwrap_or(&[])
    }
}

/// Where something is in an entry: neither number reaches 4 GiB, so their sum does not overflow, and one comparison tells whether it
/// lies within the buffer.
#[inline(always)]
fn place(entry: u32, offset: u32, size: usize) -> core::ops::Range<usize> {
    let at = entry as usize + offset as usize;
    at..at + size
}

/// The `N` bytes at `offset` in the entry at `entry`, if they lie within `mem`.
#[inline(always)]
fn part<const N: usize>(mem: &[u8], entry: u32, offset: u32) -> Option<&[u8; N]> {
    mem.get(place(entry, offset, N))?.first_chunk()
}

/// The eight bytes at `offset` in an entry, 0 outside of `mem`.
#[inline(always)]
pub(crate) fn word_in(mem: &[u8], entry: u32, offset: u32) -> u64 {
    part(mem, entry, offset).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// The four bytes at `offset` in an entry, 0 outside of `mem`.
#[inline(always)]
pub(crate) fn half_in(mem: &[u8], entry: u32, offset: u32) -> u32 {
    part(mem, entry, offset).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

/// Adds to the eight bytes at `offset` in an entry; nothing outside of `mem`.
#[inline(always)]
pub(crate) fn add_word_in(mem: &mut [u8], entry: u32, offset: u32, n: u64) {
    let place = place(entry, offset, 8);
    if let Some(bytes) = mem.get_mut(place).and_then(|part| part.first_chunk_mut()) {
        *bytes = u64::from_ne_bytes(*bytes).wrapping_add(n).to_ne_bytes();
    }
}

/// The eight bytes at `at`, 0 outside of `mem`.
#[inline(always)]
pub(crate) fn word(mem: &[u8], at: usize) -> u64 {
    slice_at(mem, at).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// Writes the eight bytes at `at`; nothing outside of `mem`.
#[inline(always)]
pub(crate) fn set_word(mem: &mut [u8], at: usize, value: u64) {
    if let Some(bytes) = slice_mut(mem, at) {
        *bytes = value.to_ne_bytes();
    }
}

/// The four bytes at `at`, 0 outside of `mem`.
#[inline(always)]
pub(crate) fn half(mem: &[u8], at: usize) -> u32 {
    slice_at(mem, at).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

/// Copies as much of `from` as fits to the beginning of `to`; returns how much.
#[inline(always)]
pub(crate) fn copy(to: &mut [u8], from: &[u8]) -> usize {
    let n = to.len().min(from.len());
    if let (Some(to), Some(from)) = (to.get_mut(..n), from.get(..n)) {
        to.copy_from_slice(from);
    }
    n
}

/// Adds to the eight bytes at `at`; nothing outside of `mem`.
#[inline(always)]
pub(crate) fn add_word(mem: &mut [u8], at: usize, n: u64) {
    if let Some(bytes) = slice_mut(mem, at) {
        *bytes = u64::from_ne_bytes(*bytes).wrapping_add(n).to_ne_bytes();
    }
}

/// The `N` bytes at `at`, if they lie within `mem`.
#[inline(always)]
pub(crate) fn slice_at<const N: usize>(mem: &[u8], at: usize) -> Option<&[u8; N]> {
    mem.get(at..)?.first_chunk()
}

/// The `N` bytes at `at`, to be written.
#[inline(always)]
pub(crate) fn slice_mut<const N: usize>(mem: &mut [u8], at: usize) -> Option<&mut [u8; N]> {
    mem.get_mut(at..)?.first_chunk_mut()
}

/// Writes the head of a record at `at`; nothing outside of `mem`.
#[inline(always)]
pub(crate) fn set_head(mem: &mut [u8], at: usize, head: RecHdr) {
    if let Some(bytes) = slice_mut::<{ size_of::<RecHdr>() }>(mem, at) {
        *bytes = zerocopy::transmute!(head);
    }
}

/// Writes the four bytes at `at`; nothing outside of `mem`.
#[inline(always)]
pub(crate) fn set_half(mem: &mut [u8], at: usize, value: u32) {
    if let Some(bytes) = slice_mut(mem, at) {
        *bytes = value.to_ne_bytes();
    }
}
