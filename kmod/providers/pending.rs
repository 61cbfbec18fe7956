// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Events that have begun and not yet ended: a table that keeps a number for each between two
//! firings.
//!
//! The table has no locks, because it is used in probe context. The caller chooses keys that name
//! both the context and the object, so that at most one context uses a key at a time and no two
//! events have the same key. A begin claims a free slot by exchanging the key 0 for its own. From
//! then on only the calls with this key use the slot's value, until the end stores 0 again.
//!
//! If an end never comes, because no probe is enabled by then, its slot stays occupied. The next
//! begin with the same key reuses the slot. A table that nobody uses is [cleared](Pending::clear)
//! as a whole.

use core::sync::atomic::{AtomicU64, Ordering};

struct Slot {
    key: AtomicU64,
    value: AtomicU64,
}

/// A table of `N` slots, a power of two.
pub struct Pending<const N: usize> {
    slots: [Slot; N],
}

/// The number of slots in which a key may be.
const REACH: usize = 32;

impl<const N: usize> Pending<N> {
    /// Creates an empty table.
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

    /// Begins `key`, which is not 0, with a value. `false`: all slots of the key are occupied; its
    /// end finds nothing then.
    pub fn begin(&self, key: u64, value: u64) -> bool {
        let known = |slot: &&Slot| slot.key.load(Ordering::Relaxed) == key;
        let free = |slot: &&Slot| {
            let taken = slot
                .key
                .compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed);
            taken.is_ok()
        };
        let slot = self.slots(key).find(known);
        let slot = slot.or_else(|| self.slots(key).find(free));
        if let Some(slot) = slot {
            slot.value.store(value, Ordering::Relaxed);
        }
        slot.is_some()
    }

    /// Ends `key` and returns its value; `None` if it has not begun.
    pub fn end(&self, key: u64) -> Option<u64> {
        let known = |slot: &&Slot| slot.key.load(Ordering::Relaxed) == key;
        let slot = self.slots(key).find(known)?;
        let value = slot.value.load(Ordering::Relaxed);
        slot.key.store(0, Ordering::Release);
        Some(value)
    }

    /// Empties the table.
    pub fn clear(&self) {
        for slot in &self.slots {
            slot.key.store(0, Ordering::Relaxed);
        }
    }
}
