// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! The table of rules of a file.
//!
//! Instructions are named by their offset in the *file*, so a table is valid wherever the file is
//! mapped. A row gives a byte of a page and a rule. The rule holds from this byte on until the next
//! row, which may be on a later page. An index gives the first row of each page. All numbers are in
//! the processor's byte order, little-endian:
//!
//! | bytes | contents |
//! |---|---|
//! | 4 | [`MAGIC`] |
//! | 2 | [`VERSION`] |
//! | 1 | bytes of an address, 4 or 8 |
//! | 1 | 1 if evaluators follow, else 0 |
//! | 4 | the first page |
//! | 4 | the number of pages |
//! | 4 | the number of rows |
//! | 4 | the number of rules |
//! | 4 × (pages + 1) | the first row of each page, and at the end the number of rows |
//! | 4 × rows | the byte of the page (`u16`), and the rule (`u16`) |
//! | 8 × rules | [`Rule`]s |
//! | the rest | [`Evaluators`], if the file has any |

use crate::evaluators::Evaluators;
use crate::rule::{Rule, NOTHING, SIZE};
use crate::walk::Word;

/// The first bytes of a table.
pub const MAGIC: [u8; 4] = *b"DTUW";
/// The version of this layout.
pub const VERSION: u16 = 1;
/// Bytes of a page of the file.
pub const PAGE: u64 = 4096;
/// Bytes before the index.
pub const HEADER: usize = 24;
/// The most bytes of a table.
pub const SIZE_MAX: usize = 64 << 20;
/// The most rules of a table.
pub const RULES_MAX: usize = 1 << 16;

/// Why some bytes are not a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// The header is not that of a table.
    Header,
    /// Their number is not the one that the header implies, or it is too large.
    Size,
    /// The rows of the pages do not follow each other.
    Index,
    /// The rows of a page are not in order, or a row names a rule that does not exist.
    Row,
    /// A rule is invalid.
    Rule,
}

/// The table of rules of a file.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    word: Word,
    first_page: u32,
    pages: u32,
    rows: u32,
    rules: u32,
    index: &'a [u8],
    row_bytes: &'a [u8],
    rule_bytes: &'a [u8],
    evaluators: Option<Evaluators<'a>>,
}

/// Bytes of a number of the index, and of a row.
const ITEM: usize = 4;

fn item<const N: usize>(bytes: &[u8], at: u32) -> Option<[u8; N]> {
    let from = (at as usize).checked_mul(N)?;
    bytes.get(from..)?.first_chunk().copied()
}

impl<'a> Table<'a> {
    /// Interprets all of `bytes` as a table. They must have passed [`check`](Self::check) before.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let [m0, m1, m2, m3, v0, v1, word, more, rest_of_header @ ..] = header;
        let number = |at| item(rest_of_header, at).map(u32::from_le_bytes);
        let is_ours = [*m0, *m1, *m2, *m3] == MAGIC && u16::from_le_bytes([*v0, *v1]) == VERSION;
        let (first_page, pages) = (number(0)?, number(1)?);
        let (rows, rules) = (number(2)?, number(3)?);
        let size = |count: u32, size: usize| (count as usize).checked_mul(size);
        let (index, rest) = rest.split_at_checked(size(pages.checked_add(1)?, ITEM)?)?;
        let (row_bytes, rest) = rest.split_at_checked(size(rows, ITEM)?)?;
        let (rule_bytes, rest) = rest.split_at_checked(size(rules, SIZE)?)?;
        let evaluators = match more {
            0 if rest.is_empty() => None,
            1 => Some(Evaluators::new(rest)?),
            _ => return None,
        };
        is_ours.then_some(Self {
            word: Word::of(*word)?,
            first_page,
            pages,
            rows,
            rules,
            index,
            row_bytes,
            rule_bytes,
            evaluators,
        })
    }

    /// Checks bytes of unknown origin and interprets them as a table. The time is proportional to
    /// their number.
    pub fn check(bytes: &'a [u8]) -> Result<Self, Bad> {
        if bytes.len() > SIZE_MAX {
            return Err(Bad::Size);
        }
        let header = bytes.first_chunk::<HEADER>().ok_or(Bad::Header)?;
        if !header.starts_with(&MAGIC) {
            return Err(Bad::Header);
        }
        let table = Self::new(bytes).ok_or(Bad::Size)?;
        if table.rules as usize > RULES_MAX {
            return Err(Bad::Size);
        }
        let mut from = 0;
        for page in 0..table.pages {
            let end = table.first_row(page.saturating_add(1)).ok_or(Bad::Index)?;
            if table.first_row(page) != Some(from) || end < from || end > table.rows {
                return Err(Bad::Index);
            }
            table.check_page(from..end)?;
            from = end;
        }
        if from != table.rows || table.first_row(table.pages) != Some(from) {
            return Err(Bad::Index);
        }
        let is_good = |n| item(table.rule_bytes, n).and_then(Rule::decode).is_some();
        match (0..table.rules).all(is_good) {
            true => Ok(table),
            false => Err(Bad::Rule),
        }
    }

    fn check_page(&self, rows: core::ops::Range<u32>) -> Result<(), Bad> {
        let mut least = 0;
        for n in rows {
            let (at, rule) = self.row(n).ok_or(Bad::Row)?;
            if at < least || u64::from(at) >= PAGE || u32::from(rule) >= self.rules {
                return Err(Bad::Row);
            }
            least = at.saturating_add(1);
        }
        Ok(())
    }

    /// The evaluators of the file, if it has any.
    #[inline]
    pub fn evaluators(&self) -> Option<&Evaluators<'a>> {
        self.evaluators.as_ref()
    }

    /// The width of an address.
    pub fn word(&self) -> Word {
        self.word
    }

    /// The number of rows.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    fn first_row(&self, page: u32) -> Option<u32> {
        item(self.index, page).map(u32::from_le_bytes)
    }

    fn row(&self, n: u32) -> Option<(u16, u16)> {
        let [a0, a1, r0, r1] = item::<ITEM>(self.row_bytes, n)?;
        Some((u16::from_le_bytes([a0, a1]), u16::from_le_bytes([r0, r1])))
    }

    /// The rule of the instruction at an offset of the file; [`Rule::UNKNOWN`] if there is none.
    #[inline]
    pub fn rule(&self, offset: u64) -> Rule {
        Rule::decode(self.rule_bytes(offset)).unwrap_or(Rule::UNKNOWN)
    }

    /// The bytes of that rule.
    #[inline]
    pub(crate) fn rule_bytes(&self, offset: u64) -> [u8; SIZE] {
        self.find(offset).unwrap_or(NOTHING)
    }

    fn find(&self, offset: u64) -> Option<[u8; SIZE]> {
        let page = u32::try_from(offset.checked_div(PAGE)?).ok()?;
        let page = page.checked_sub(self.first_page)?;
        if page >= self.pages {
            return None;
        }
        let at = (offset % PAGE) as u16;
        // Rows before `low` begin at or before the instruction, rows from `high` on begin after it.
        let mut low = self.first_row(page)?;
        let mut high = self.first_row(page.checked_add(1)?)?;
        while low < high {
            let middle = low.midpoint(high);
            match self.row(middle)?.0 <= at {
                true => low = middle.checked_add(1)?,
                false => high = middle,
            }
        }
        // The row before the first of a page belongs to an earlier page, and its rule still holds.
        let (_, rule) = self.row(low.checked_sub(1)?)?;
        item(self.rule_bytes, rule.into())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    extern crate std;
    use super::*;
    use crate::rule::{Base, Cfa, FramePointer};
    use proptest::prelude::*;
    use std::vec::Vec;

    pub const FIRST: Rule = Rule {
        cfa: Cfa::At(Base::Sp, 8),
        fp: FramePointer::Same,
    };
    pub const SECOND: Rule = Rule {
        cfa: Cfa::At(Base::Fp, 16),
        fp: FramePointer::Saved(-16),
    };

    /// A table whose first page is the second page of the file.
    pub fn table(pages: &[&[(u16, u16)]], rules: &[Rule]) -> Vec<u8> {
        let rows: usize = pages.iter().map(|page| page.len()).sum();
        let mut bytes = Vec::from(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([8, 0]);
        for number in [1, pages.len(), rows, rules.len()] {
            bytes.extend((number as u32).to_le_bytes());
        }
        let mut first = 0_u32;
        bytes.extend(first.to_le_bytes());
        for page in pages {
            first += page.len() as u32;
            bytes.extend(first.to_le_bytes());
        }
        for (at, rule) in pages.iter().copied().flatten() {
            bytes.extend(at.to_le_bytes());
            bytes.extend(rule.to_le_bytes());
        }
        for rule in rules {
            bytes.extend(rule.encode().unwrap());
        }
        bytes
    }

    #[test]
    fn a_row_holds_until_the_next() {
        let bytes = table(
            &[&[(0x10, 0), (0x20, 1)], &[], &[(0x8, 0)]],
            &[FIRST, SECOND],
        );
        let table = Table::check(&bytes).unwrap();
        let found = [
            0, 0xfff, 0x100f, 0x1010, 0x101f, 0x1020, 0x1fff, 0x2000, 0x3007, 0x3008, 0x4000,
        ]
        .map(|offset| table.rule(offset));
        let (none, first, second) = (Rule::UNKNOWN, FIRST, SECOND);
        assert_eq!(
            found,
            [none, none, none, first, first, second, second, second, second, first, none]
        );
        assert_eq!(table.rule(u64::MAX), none);
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let good = [FIRST, SECOND];
        let bad = |bytes: &[u8]| Table::check(bytes).err();
        assert_eq!(bad(b""), Some(Bad::Header));
        assert_eq!(bad(&[0; 100]), Some(Bad::Header));
        let bytes = table(&[&[(0, 0)]], &good);
        assert_eq!(bad(&bytes), None);
        assert_eq!(bad(&bytes[..bytes.len() - 1]), Some(Bad::Size));
        assert_eq!(bad(&[&bytes[..], &[0]].concat()), Some(Bad::Size));
        assert_eq!(bad(&table(&[&[(1, 0), (1, 1)]], &good)), Some(Bad::Row));
        assert_eq!(bad(&table(&[&[(4096, 0)]], &good)), Some(Bad::Row));
        assert_eq!(bad(&table(&[&[(0, 2)]], &good)), Some(Bad::Row));
        let mut index = table(&[&[(0, 0)], &[(0, 0)]], &good);
        index[HEADER + ITEM] = 3;
        assert_eq!(bad(&index), Some(Bad::Index));
        let mut rule = bytes.clone();
        *rule.iter_mut().nth_back(SIZE - 1).unwrap() = 9;
        assert_eq!(bad(&rule), Some(Bad::Rule));
    }

    proptest! {
        #[test]
        fn any_bytes_are_looked_at(
            mut bytes in prop::collection::vec(any::<u8>(), HEADER..200),
            offset in any::<u64>(),
        ) {
            bytes[..7].copy_from_slice(b"DTUW\x01\0\x08");
            bytes[7] &= 1;
            for at in [12, 16, 20] {
                let small = u32::from(bytes[at] % 16);
                bytes[at..at + 4].copy_from_slice(&small.to_le_bytes());
            }
            let _ = Table::check(&bytes);
            if let Some(table) = Table::new(&bytes) {
                table.rule(offset);
                table.rule(offset % 0x20000);
            }
        }

        #[test]
        fn rules_are_their_bytes(bytes in any::<[u8; SIZE]>()) {
            if let Some(rule) = Rule::decode(bytes) {
                if let Some(encoded) = rule.encode() {
                    prop_assert_eq!(Rule::decode(encoded), Some(rule));
                }
            }
        }
    }
}
