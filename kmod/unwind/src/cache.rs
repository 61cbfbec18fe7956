// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! A cache of rules.
//!
//! Probes see the same stacks again and again, and a page of code has some hundred rows to search.
//! So each rule is kept in a slot that is selected by the table's number and the instruction's
//! offset. Another rule with the same slot replaces it. A number never belongs to another table
//! later, so nothing has to be removed when a table goes. Each CPU has a cache of its own. Walks on
//! a CPU do not interrupt each other, so the cache needs no lock.

use crate::rule::SIZE;
use crate::table::Table;
use core::cell::Cell;

/// The number of slots.
pub const SLOTS: usize = 256;

/// A rule, or none. All bytes of an empty slot are 0.
#[derive(Default)]
#[repr(C)]
pub struct Slot {
    /// The number of the table; never 0 if there is a rule.
    table: Cell<u64>,
    offset: Cell<u64>,
    rule: Cell<[u8; SIZE]>,
}

/// The cache of a CPU.
#[derive(Clone, Copy)]
pub struct Cache<'a>(pub &'a [Slot; SLOTS]);

impl Cache<'_> {
    /// The bytes of [`Table::rule`] for the table with this number.
    #[inline]
    pub fn rule(&self, number: u64, table: &Table<'_>, offset: u64) -> [u8; SIZE] {
        // Callers are a few bytes from each other, and in few tables. The constant is 2^64 divided
        // by the golden ratio.
        let mixed = (offset ^ number.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Some(slot) = self.0.get(mixed.wrapping_shr(56) as usize) else {
            return table.rule_bytes(offset);
        };
        if slot.table.get() != number || slot.offset.get() != offset {
            slot.table.set(number);
            slot.offset.set(offset);
            slot.rule.set(table.rule_bytes(offset));
        }
        slot.rule.get()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::table::tests::{table, FIRST, SECOND};
    use crate::table::Table;
    use std::vec::Vec;

    fn slots() -> [Slot; SLOTS] {
        core::array::from_fn(|_| Slot::default())
    }

    #[test]
    fn a_cache_says_what_the_table_says() {
        let pages: Vec<(u16, u16)> = (0..64).map(|n| (n * 64 + 3, n % 2)).collect();
        let one = table(&[&pages[..40], &pages[10..]], &[FIRST, SECOND]);
        let other = table(&[&pages[7..], &pages[..9]], &[SECOND, FIRST]);
        let (one, other) = (Table::check(&one).unwrap(), Table::check(&other).unwrap());
        let slots = slots();
        let cache = Cache(&slots);
        for _ in 0..2 {
            for offset in (0x0f00..0x3100).step_by(3) {
                for (number, table) in [(1, &one), (2, &other)] {
                    let found = cache.rule(number, table, offset);
                    assert_eq!(found, table.rule_bytes(offset), "{offset:#x}");
                }
            }
        }
    }

    #[test]
    fn a_table_that_has_gone_tells_nothing_any_more() {
        let one = table(&[&[(0, 0)]], &[FIRST]);
        let other = table(&[&[(0, 0)]], &[SECOND]);
        let (one, other) = (Table::check(&one).unwrap(), Table::check(&other).unwrap());
        let slots = slots();
        let cache = Cache(&slots);
        let [first, second] = [FIRST, SECOND].map(|rule| rule.encode().unwrap());
        assert_eq!(cache.rule(7, &one, 0x1000), first);
        assert_eq!(cache.rule(8, &other, 0x1000), second);
        // Found without a look at the table that is passed.
        assert_eq!(cache.rule(8, &one, 0x1000), second);
    }
}
