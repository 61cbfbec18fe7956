// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Which functions are inlined where an instruction is.
//!
//! A compiler that puts a function's instructions into another's tells of each such copy by an entry below that of the function that has it,
//! or of the copy: how deep it lies there is how deep it was inlined. Copies of one depth do not overlap, but for a damaged file's. So a unit's
//! entries are looked through once, in one pass, and its copies kept by depth and address.
//!
//! An instruction is of the line that its row tells. That is a line of the innermost function; of any other the line is the one where the next was called.
//!
//! (The crate addr2line does the same, by recursion: how deep it goes, and how much it keeps, is left to who made the file.)

use super::part::Unit;
use super::rows::{Rows, Source};
use super::{number, DebugInfo, Error, TypeId};
use gimli::{AttributeValue, UnitOffset};
use std::cell::OnceCell;
use std::rc::Rc;

/// How deep functions are inlined in one another at most; what lies deeper is not told.
const DEPTH_MAX: u32 = 64;
/// Functions and copies that lie in one another.
const NESTING_MAX: usize = 4096;

/// A function whose instructions are in another's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined {
    /// The linker's name where the compiler tells it, or that of the source.
    pub name: String,
    /// The name of its file, without the folder, and the line that the instruction is of, or what was called.
    pub source: Option<(Rc<str>, u64)>,
}

/// The copies of a unit.
#[derive(Default)]
pub(super) struct Copies {
    /// In the order of depths and of where they begin.
    ranges: Vec<Copy>,
    rows: OnceCell<Rows>,
}

/// A range of a copy's instructions.
struct Copy {
    depth: u32,
    begin: u64,
    end: u64,
    entry: UnitOffset,
}

impl Copies {
    /// The entries of those that have the instruction at `address`, the outermost first.
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
    /// The functions that are inlined where the instruction at `address` is, as the file numbers its memory: the innermost first. What
    /// cannot be read is not told, nor a function whose name is not known.
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
            let source = std::mem::replace(&mut source, call_of(&unit, entry, rows));
            inlined.extend(name.map(|name| Inlined { name, source }));
        }
        inlined
    }

    /// The copies of a unit, which are looked for once.
    fn copies(&self, number: usize) -> Rc<Copies> {
        if let Some(known) = self.copies.borrow().get(&number) {
            return known.clone();
        }
        let mut copies = Copies::default();
        if let Ok(unit) = self.unit(number) {
            // What is damaged has told what it has told.
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
        // The functions and copies that an entry is in: how deep their entries lie, and what lies in them as a copy.
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

    /// The name of a function, as the linker would have it.
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

/// Where a copy was called.
fn call_of(unit: &Unit, entry: UnitOffset, rows: &Rows) -> Option<Source> {
    let entry = unit.entry(entry).ok()?;
    let AttributeValue::FileIndex(file) = entry.attr_value(gimli::DW_AT_call_file).ok()?? else {
        return None;
    };
    rows.source(file, number(&entry, gimli::DW_AT_call_line)?)
}
