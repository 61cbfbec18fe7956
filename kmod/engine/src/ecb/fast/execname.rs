// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The name of the process as data, in words: the most frequent key of aggregations.
//!
//! A name is one word or two, with zeros behind its NUL. If the NUL is in the first word, the
//! second does not count.

use crate::buf::{set_word, word};
use crate::machine::Machine;

/// Minimum room for a name, in bytes.
pub const SIZE: usize = 16;

/// Returns the words of the name of the process; `None` for the second if it does not count.
#[inline(always)]
fn words<M: Machine>(m: &M) -> (u64, Option<u64>) {
    let name = u128::from_le_bytes(m.execname());
    let (low, high) = (name as u64, (name >> 64) as u64);
    let end = nul_of(low);
    let low = u64::from_le(keep(low, end));
    // The last byte is always a NUL.
    let high = (end == 64).then(|| u64::from_le(keep(high, nul_of(high).min(56))));
    (low, high)
}

/// Writes the name of the process to the beginning of `to`. Returns the number of bytes that it
/// takes, 8 or 16.
#[inline(always)]
pub fn write<M: Machine>(to: &mut [u8], m: &M) -> usize {
    let (low, high) = words(m);
    set_word(to, 0, low);
    match high {
        Some(high) => {
            set_word(to, 8, high);
            16
        }
        None => 8,
    }
}

/// Whether the name at `at`, which [`write()`] wrote, is that of the process.
#[inline(always)]
pub fn is_at<M: Machine>(mem: &[u8], at: usize, m: &M) -> bool {
    let (low, high) = words(m);
    word(mem, at) == low && high.is_none_or(|high| word(mem, at.wrapping_add(8)) == high)
}

/// Returns the number of bits before the first zero byte of `word`, 64 if there is none.
#[inline(always)]
fn nul_of(word: u64) -> u32 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let zeros = word.wrapping_sub(LOW) & !word & (LOW << 7);
    // The lowest mark is at the first zero byte; those above it may be borrows.
    zeros.trailing_zeros() & !7
}

/// Returns the low `bits` bits of `word`.
#[inline(always)]
fn keep(word: u64, bits: u32) -> u64 {
    match bits {
        0..64 => word & (1u64 << bits).wrapping_sub(1),
        _ => word,
    }
}
