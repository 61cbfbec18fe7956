// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The aggregation buffer: one entry for each aggregation and key, found by its hash and updated in
//! place.
//!
//! Entries (aggregation id, key records, data) grow from the bottom, in the layout in which the
//! consumer reads them. The index, by which entries are found, grows from the top, 16 bytes an
//! entry. So the buffer's size bounds all memory that depends on the number of keys. The table of
//! buckets is separate. A switch invalidates all entries at once by a new generation number, so
//! nothing is cleared with interrupts off.

use super::{set_half, set_word, word, word_in, Aside};
use crate::error::NoMem;
use crate::hash::{mix, SAME};
use crate::mem::alloc::Bytes;

/// Size of an index entry in bytes: hash (8), offset of the entry (4), next entry of the bucket
/// (4).
const INDEX: usize = 16;

/// Maximum number of entries of a bucket that a look-up examines. Usually a bucket has one or two.
const CHAIN: usize = 256;

/// The half of a CPU's aggregation buffer that is being filled.
#[derive(Debug)]
pub struct Aggregations {
    mem: Bytes,
    used: usize,
    entries: usize,
    /// A word for each bucket: generation (high half) and number of the last entry, from 1 (low
    /// half). The number of buckets is a power of two, and `mask` is that number less 1.
    buckets: Bytes,
    mask: u32,
    /// Start value of the hashes (INV-30).
    secret: u64,
    generation: u32,
    drops: u64,
}

impl Aggregations {
    /// Makes an empty buffer of `size` bytes, rounded down to a multiple of 8. Hashes start from
    /// `secret`.
    pub fn new(size: usize, secret: u64) -> Result<Self, NoMem> {
        let size = size & !7;
        let nbuckets = (size / 128).max(1).next_power_of_two();
        Ok(Self {
            mem: Bytes::new(size)?,
            used: 0,
            entries: 0,
            buckets: Bytes::new(nbuckets * 8)?,
            mask: (nbuckets - 1) as u32,
            secret,
            generation: 1,
            drops: 0,
        })
    }

    /// Returns the buffer's bytes.
    #[inline(always)]
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.mem
    }

    fn index(&self, entry: usize) -> usize {
        self.mem.len().wrapping_sub(entry.wrapping_mul(INDEX))
    }

    /// Returns the hash of an entry, its offset, and the next entry of the bucket (0 if there is
    /// none).
    #[inline(always)]
    fn indexed(&self, entry: u32) -> Option<(u64, u32, u32)> {
        let end = (entry as usize).wrapping_mul(INDEX);
        let index = self.mem.get(self.mem.len().checked_sub(end)?..)?;
        let at_next = word(index.first_chunk::<INDEX>()?, 8);
        Some((word(index, 0), at_next as u32, (at_next >> 32) as u32))
    }

    /// Returns the generation, which changes with every switch and is never 0. A remembered offset
    /// of an entry is valid only in the generation in which it was found.
    #[inline(always)]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns the value from which the hashes of an aggregation's keys start.
    #[inline(always)]
    pub fn hash(&self, id: u32) -> u64 {
        mix(self.secret, id.into())
    }

    /// Returns the offset of the entry with `hash` that `same` accepts. `same` gets the buffer and
    /// the offset of a candidate.
    #[inline(always)]
    pub fn find(&self, hash: u64, same: impl Fn(&[u8], u32) -> bool) -> Option<u32> {
        let head = word_in(&self.buckets, self.bucket(hash), 0);
        if (head >> 32) as u32 != self.generation {
            return None;
        }
        let mut entry = head as u32;
        let mut others = 0;
        // If this limit or `SAME` hides an entry, the caller adds it a second time, and the
        // consumer merges both.
        for _ in 0..CHAIN {
            if entry == 0 {
                return None;
            }
            let (its_hash, at, next) = self.indexed(entry)?;
            if its_hash == hash {
                if same(&self.mem, at) {
                    return Some(at);
                }
                others += 1;
                if others == SAME {
                    return None;
                }
            }
            entry = next;
        }
        None
    }

    /// Returns the offset in `buckets` of the bucket of a hash.
    #[inline(always)]
    fn bucket(&self, hash: u64) -> u32 {
        // No overflow: a buffer has at most `BUFFER_MAX` bytes, and fewer buckets than words.
        ((hash ^ hash >> 32) as u32 & self.mask).wrapping_mul(8)
    }

    /// Adds an entry of `size` bytes under `hash`; its first `key.len()` bytes are `key`. Returns
    /// its offset. If there is no room, counts a drop and returns `None`.
    pub fn add(&mut self, hash: u64, key: &[u8], size: usize) -> Option<u32> {
        let at = self.used.next_multiple_of(8);
        let end = at + size;
        let index = self.index(self.entries + 1);
        if end > index || index > self.mem.len() {
            self.drops += 1;
            return None;
        }
        let mut pad = self.used;
        while pad < at {
            set_half(&mut self.mem, pad, 0);
            pad += 4;
        }
        if let Some(to) = self.mem.get_mut(at..at + key.len()) {
            to.copy_from_slice(key);
        }
        let bucket = self.bucket(hash) as usize;
        let head = word(&self.buckets, bucket);
        let next = if (head >> 32) as u32 == self.generation {
            head & 0xffff_ffff
        } else {
            0
        };
        self.entries += 1;
        self.used = end;
        set_word(&mut self.mem, index, hash);
        set_word(&mut self.mem, index + 8, next << 32 | at as u64);
        let head = u64::from(self.generation) << 32 | self.entries as u64;
        set_word(&mut self.buckets, bucket, head);
        Some(at as u32)
    }

    /// Exchanges this half with the snapshot, and forgets all entries.
    pub fn switch(&mut self, aside: &mut Aside, now: u64) {
        core::mem::swap(&mut self.mem, &mut aside.mem);
        aside.used = core::mem::take(&mut self.used);
        aside.drops = core::mem::take(&mut self.drops);
        aside.errors = 0;
        aside.oldest = 0;
        aside.timestamp = now;
        self.entries = 0;
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            // The generation wraps around after 2^32 switches. Without this, entries of old
            // generations would become valid again.
            self.buckets.fill(0);
            self.generation = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::half;
    use super::*;

    fn touch(a: &mut Aggregations, key: u32) -> bool {
        let hash = u64::from(key % 17);
        let bytes = key.to_ne_bytes();
        let at = match a.find(hash, |mem, at| half(mem, at as usize) == key) {
            Some(at) => at as usize,
            None => match a.add(hash, &bytes, 16) {
                Some(at) => {
                    set_word(a.bytes(), at as usize + 8, 0);
                    at as usize
                }
                None => return false,
            },
        };
        let n = word(a.bytes(), at + 8);
        set_word(a.bytes(), at + 8, n + 1);
        true
    }

    #[test]
    fn keys_are_found_again_and_overflow_is_counted() {
        let mut a = Aggregations::new(1024, 0).unwrap();
        let aside = Aside::new(1024).unwrap();
        let mut aside = aside.take().unwrap();
        for generation in 0..3 {
            let mut dropped = 0;
            for round in 0..3u64 {
                for key in 1..50 {
                    if !touch(&mut a, key) {
                        dropped += 1;
                    } else {
                        let at = a
                            .find(u64::from(key % 17), |mem, at| half(mem, at as usize) == key)
                            .unwrap();
                        assert_eq!(word(a.bytes(), at as usize + 8), round + 1);
                    }
                }
            }
            // An entry takes 32 bytes with its index.
            assert_eq!(dropped, 3 * (49 - 32));
            a.switch(&mut aside, generation);
            assert_eq!((aside.drops, aside.data().len()), (dropped, 32 * 16));
        }
    }

    /// A look-up compares at most `SAME` entries of one hash. An entry beyond that is added again,
    /// and the consumer merges both.
    #[test]
    fn entries_of_one_hash_are_few() {
        let mut a = Aggregations::new(4096, 0).unwrap();
        let is = |key: u32| move |mem: &[u8], at: u32| half(mem, at as usize) == key;
        let most = SAME + 1;
        for key in 1..=most {
            a.add(9, &key.to_ne_bytes(), 16).unwrap();
        }
        assert_eq!(a.find(9, is(1)), None);
        assert!((2..=most).all(|key| a.find(9, is(key)).is_some()));
    }

    #[test]
    fn tiny_buffers_drop_everything() {
        for size in 0..31 {
            let mut a = Aggregations::new(size, 0).unwrap();
            assert!(!touch(&mut a, 1), "size {size}");
        }
        assert!(touch(&mut Aggregations::new(32, 0).unwrap(), 1));
    }
}
