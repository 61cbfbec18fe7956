// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The name of the process as data, by words: what is aggregated by most often.
//!
//! A name is one word or two, with zeros behind its NUL; where the NUL is in the first word, the second does not count.

use crate::buf::{set_word, word};
use crate::machine::Machine;

/// Bytes that there must be room for.
pub const SIZE: usize = 16;

/// The words of the name of the process.
#[inline(always)]
fn words<M: Machine>(m: &M) -> (u64, Option<u64>) {
    let name = u128::from_le_bytes(m.execname());
    let (low, high) = (name as u64, (name >> 64) as u64);
    let end = nul_of(low);
    let low = u64::from_le(keep(low, end));
    // The last byte is a NUL in any case.
    let high = (end == 64).then(|| u64::from_le(keep(high, nul_of(high).min(56))));
    (low, high)
}

/// Writes the name of the process to the beginning of `to`. Returns how many bytes it takes, 8 or 16.
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

/// Whether what [`write()`] wrote at `at` is the name of the process.
#[inline(always)]
pub fn is_at<M: Machine>(mem: &[u8], at: usize, m: &M) -> bool {
    let (low, high) = words(m);
    word(mem, at) == low && high.is_none_or(|high| word(mem, at.wrapping_add(8)) == high)
}

/// Bits before the first zero byte of `word`, 64 where there is none.
#[inline(always)]
fn nul_of(word: u64) -> u32 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let zeros = word.wrapping_sub(LOW) & !word & (LOW << 7);
    // The lowest mark is at the first zero byte; those above it may be borrows.
    zeros.trailing_zeros() & !7
}

/// The low `bits` bits of `word`.
#[inline(always)]
fn keep(word: u64, bits: u32) -> u64 {
    match bits {
        0..64 => word & (1u64 << bits).wrapping_sub(1),
        _ => word,
    }
}
