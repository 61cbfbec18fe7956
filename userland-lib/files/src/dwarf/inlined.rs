// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds the functions that are inlined at an instruction.
//!
//! For each inlined copy of a function the compiler emits an entry below the function that contains
//! it, or below the copy that contains it. The nesting of these entries is the inlining depth.
//! Copies of the same depth do not overlap unless the file is damaged. So one pass over a unit's
//! entries collects its copies, and they are kept sorted by depth and address.
//!
//! The line table gives an instruction's line in the innermost function. In each outer function it
//! is the line of the call of the next inner one.
//!
//! The crate addr2line does the same, but recursively: its depth and memory are bounded only by the
//! contents of the file.

use super::part::Unit;
use super::rows::{Rows, Source};
use super::{number, DebugInfo, Error, TypeId};
use gimli::{AttributeValue, UnitOffset};
use std::cell::OnceCell;
use std::rc::Rc;

/// Greatest inlining depth; copies that are nested deeper are left out.
const DEPTH_MAX: u32 = 64;
/// Most functions and copies that may be nested in one another.
const NESTING_MAX: usize = 4096;

/// A function that is inlined at an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// Linkage name if the compiler gives one, otherwise the name in the source.
    pub name: String,
    /// Base name of the source file, and the line of the instruction or, except in the innermost
    /// function, of the call.
    pub source: Option<(Rc<str>, u64)>,
}

/// All inlined copies of a unit.
#[derive(Default)]
pub(super) struct Copies {
    /// Sorted by depth, then by beginning.
    ranges: Vec<Copy>,
    rows: OnceCell<Rows>,
}

/// One address range of an inlined copy.
struct Copy {
    depth: u32,
    begin: u64,
    end: u64,
    entry: UnitOffset,
}

impl Copies {
    /// Returns the entries of the copies that contain the instruction at `address`, outermost
    /// first.
    fn at(&self, address: u64) -> Vec<UnitOffset> {
        let at_depth = |depth| {
            let is_before = |copy: &Copy| (copy.depth, copy.begin) <= (depth, address);
            let after = self.ranges.partition_point(is_before);
            let found = self.ranges.get(after.checked_sub(1)?)?;
            (found.depth == depth && address < found.end).then_some(found.entry)
        };
        (0..DEPTH_MAX).map_while(at_depth).collect()
    }
}

impl DebugInfo {
    /// Returns the functions that are inlined at `address` (an address in the file's numbering),
    /// innermost first. Unreadable information and functions without a known name are left out.
    pub fn inlined(&self, address: u64) -> Vec<Inlined> {
        let Some(number) = self.unit_at(address) else {
            return Vec::new();
        };
        let copies = self.copies(number);
        let chain = copies.at(address);
        let (Ok(unit), false) = (self.unit(number), chain.is_empty()) else {
            return Vec::new();
        };
        let rows = copies.rows.get_or_init(|| self.rows(&unit));
        let mut source = rows.at(address);
        let mut inlined = Vec::new();
        for entry in chain.into_iter().rev() {
            let name = unit.id(entry).and_then(|id| self.linkage_name(id));
            // The call of this function is the line of the next outer one.
            let source = std::mem::replace(&mut source, call_of(&unit, entry, rows));
            inlined.extend(name.map(|name| Inlined { name, source }));
        }
        inlined
    }

    /// Returns the copies of a unit, which are collected once.
    fn copies(&self, number: usize) -> Rc<Copies> {
        if let Some(known) = self.copies.borrow().get(&number) {
            return known.clone();
        }
        let mut copies = Copies::default();
        if let Ok(unit) = self.unit(number) {
            // Keep what was found before the damage.
            let _ = self.find_copies(&unit, &mut copies.ranges);
        }
        copies
            .ranges
            .sort_unstable_by_key(|copy| (copy.depth, copy.begin));
        let copies = Rc::new(copies);
        self.copies.borrow_mut().insert(number, copies.clone());
        copies
    }

    fn find_copies(&self, unit: &Unit, found: &mut Vec<Copy>) -> Result<(), Error> {
        // Enclosing functions and copies of the current entry: the tree level of each, and the
        // inlining depth of a copy inside it.
        let mut around: Vec<(isize, u32)> = Vec::new();
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let (entry, level) = (entries.next_offset(), entries.next_depth());
            let Some(form) = entries.read_abbreviation()? else {
                self.budget.spend(1)?;
                continue;
            };
            self.budget.spend(1 + form.attributes().len())?;
            entries.skip_attributes(form.attributes())?;
            while around.last().is_some_and(|(above, _)| *above >= level) {
                around.pop();
            }
            let is_copy = match form.tag() {
                gimli::DW_TAG_inlined_subroutine => true,
                gimli::DW_TAG_subprogram => false,
                _ => continue,
            };
            if around.len() >= NESTING_MAX {
                return Err(Error::Damaged);
            }
            let depth = around
                .last()
                .filter(|_| is_copy)
                .map_or(0, |(_, depth)| *depth);
            if is_copy && depth < DEPTH_MAX {
                self.budget.spend(2 * form.attributes().len())?;
                self.find_ranges(unit, entry, depth, found)?;
            }
            around.push((level, depth + u32::from(is_copy)));
        }
        Ok(())
    }

    fn find_ranges(
        &self,
        unit: &Unit,
        entry: UnitOffset,
        depth: u32,
        found: &mut Vec<Copy>,
    ) -> Result<(), Error> {
        let mut ranges = self.ranges(unit, &unit.entry(entry)?)?;
        while let Some(range) = ranges.next()? {
            if range.begin < range.end {
                self.budget.keep(size_of::<Copy>())?;
                found.push(Copy {
                    depth,
                    begin: range.begin,
                    end: range.end,
                    entry,
                });
            }
        }
        Ok(())
    }

    /// Returns the linkage name of a function, or its source name if it has none.
    fn linkage_name(&self, id: TypeId) -> Option<String> {
        let linkage = self.said(id, |unit, entry| {
            let value = entry.attr_value(gimli::DW_AT_linkage_name).ok()??;
            self.text(unit, value)
        });
        let name = linkage.filter(|name| !name.is_empty());
        name.or_else(|| {
            self.said(id, |unit, entry| {
                Some(self.name(unit, entry)).filter(|name| !name.is_empty())
            })
        })
    }
}

/// Returns the file and line of the call that a copy replaces.
fn call_of(unit: &Unit, entry: UnitOffset, rows: &Rows) -> Option<Source> {
    let entry = unit.entry(entry).ok()?;
    let AttributeValue::FileIndex(file) = entry.attr_value(gimli::DW_AT_call_file).ok()?? else {
        return None;
    };
    rows.source(file, number(&entry, gimli::DW_AT_call_line)?)
}
