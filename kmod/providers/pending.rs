// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What has begun and not ended: a number for each, kept between two firings.
//!
//! A table without locks, for probe context. Its keys name who began and what, so that only one context at a time has to do
//! with a key, and no two have the same; who ends a thing is who began it. A slot is taken by exchanging its key for 0, after
//! which its value is the taker's alone.
//!
//! An end that never comes, because nobody listens any more, leaves its slot taken; whoever begins the same again
//! finds it, and a table that nobody uses is [cleared](Pending::clear).

use core::sync::atomic::{AtomicU64, Ordering};

struct Slot {
    key: AtomicU64,
    value: AtomicU64,
}

/// A table of `N` slots, a power of two.
pub struct Pending<const N: usize> {
    slots: [Slot; N],
}

/// How many slots a key is looked for in.
const REACH: usize = 32;

impl<const N: usize> Pending<N> {
    /// An empty table.
    pub const fn new() -> Self {
        Self {
            slots: [const {
                Slot {
                    key: AtomicU64::new(0),
                    value: AtomicU64::new(0),
                }
            }; N],
        }
    }

    /// The slots of a key, in the order in which they are tried.
    fn slots(&self, key: u64) -> impl Iterator<Item = &Slot> {
        // Fibonacci hashing: the upper bits of the product are well mixed.
        let hash = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        (0..REACH).filter_map(move |n| self.slots.get(hash.wrapping_add(n) & N.wrapping_sub(1)))
    }

    /// Begins `key`, which is not 0. Where there is no room it has never begun.
    pub fn begin(&self, key: u64, value: u64) {
        let known = |slot: &&Slot| slot.key.load(Ordering::Relaxed) == key;
        let free = |slot: &&Slot| {
            let taken = slot
                .key
                .compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed);
            taken.is_ok()
        };
        let slot = self.slots(key).find(known);
        if let Some(slot) = slot.or_else(|| self.slots(key).find(free)) {
            slot.value.store(value, Ordering::Relaxed);
        }
    }

    /// Ends `key`; its value.
    pub fn end(&self, key: u64) -> Option<u64> {
        let known = |slot: &&Slot| slot.key.load(Ordering::Relaxed) == key;
        let slot = self.slots(key).find(known)?;
        let value = slot.value.load(Ordering::Relaxed);
        slot.key.store(0, Ordering::Release);
        Some(value)
    }

    /// Forgets everything.
    pub fn clear(&self) {
        for slot in &self.slots {
            slot.key.store(0, Ordering::Relaxed);
        }
    }
}
