// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Parses units.
//!
//! An entry's layout is given by an abbreviation, which is a number in a table that the unit names.
//! Units may share a table, which is then read once. Tables that overlap without being equal serve
//! no purpose except to have the same bytes read repeatedly, so reading a table is charged to the
//! budget. The line program of a unit is not read here; [`rows`](super::rows) and
//! [`line`](super::line) read it when needed.

use super::part::{Header, Part, Unit};
use super::{Bytes, DebugInfo, Entry, Error, REFERENCE};
use gimli::{
    Abbreviations, AttributeValue, DebugAbbrevOffset, DebugAddrBase, DebugLocListsBase,
    DebugRngListsBase, DebugStrOffsetsBase, RangeIter, Reader as _, Section as _, UnitType,
};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Most attributes of an entry; compilers emit about twenty. The limit is needed because some forms
/// take time but no byte of the entry.
const ATTRIBUTES_MAX: usize = 256;
/// Approximate number of steps to read one part of a table (an attribute, for example), and
/// approximate number of bytes to keep it.
const PART: usize = 8;
const PART_KEPT: usize = 32;

/// Abbreviation tables that several units name, by offset; `None` until they are read.
pub type Tables = HashMap<usize, Option<Arc<Abbreviations>>>;

/// Returns the offsets of the tables that more than one of the units names.
pub fn shared(units: &[Header]) -> Tables {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for unit in units {
        *counts.entry(unit.debug_abbrev_offset().0).or_default() += 1;
    }
    let shared = counts.into_iter().filter(|(_, count)| *count > 1);
    shared.map(|(offset, _)| (offset, None)).collect()
}

impl DebugInfo {
    /// Parses a unit without its line program. `skeleton` supplies the attributes that the linker
    /// relocates, if the unit is in a file of its own.
    pub(super) fn take_apart(
        &self,
        header: &Header,
        skeleton: Option<&Rc<Unit>>,
    ) -> Result<Unit, Error> {
        self.budget.spend(REFERENCE)?;
        let (encoding, kind) = (header.encoding(), header.part.dwarf.file_type);
        let mut unit = gimli::Unit {
            header: header.header.clone(),
            abbreviations: self.abbreviations(header)?,
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(encoding, kind),
            addr_base: DebugAddrBase(0),
            loclists_base: DebugLocListsBase::default_for_encoding_and_file(encoding, kind),
            rnglists_base: DebugRngListsBase::default_for_encoding_and_file(encoding, kind),
            line_program: None,
            dwo_id: match header.type_() {
                UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id),
                _ => None,
            },
        };
        let mut low_pc = None;
        let mut entries = header.entries(&unit.abbreviations);
        let (_, root) = entries.next_dfs()?.ok_or(Error::Damaged)?;
        let mut attributes = root.attrs();
        while let Some(attribute) = attributes.next()? {
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_low_pc, value) => low_pc = Some(value),
                (_, AttributeValue::DebugStrOffsetsBase(base)) => unit.str_offsets_base = base,
                (_, AttributeValue::DebugAddrBase(base)) => unit.addr_base = base,
                (_, AttributeValue::DebugRngListsBase(base)) => unit.rnglists_base = base,
                (_, AttributeValue::DwoId(id)) => unit.dwo_id = unit.dwo_id.or(Some(id)),
                _ => {}
            }
        }
        if let Some(low_pc) = low_pc {
            // The address may be an index into a table whose base is a later attribute.
            unit.low_pc = header.part.dwarf.attr_address(&unit, low_pc)?.unwrap_or(0);
        }
        if let Some(skeleton) = skeleton {
            unit.copy_relocated_attributes(skeleton);
        }
        Ok(Unit {
            part: header.part.clone(),
            skeleton: skeleton.cloned(),
            unit,
        })
    }

    /// Returns the address ranges of an entry.
    pub(super) fn ranges(&self, unit: &Unit, entry: &Entry<'_>) -> Result<RangeIter<Bytes>, Error> {
        let dwarf = &unit.part.dwarf;
        let list = entry.attr_value(gimli::DW_AT_ranges)?;
        let list = list.map(|list| dwarf.attr_ranges_offset(unit, list));
        if let Some(list) = list.transpose()?.flatten() {
            // Count raw entries: those that the iterator skips take time as well.
            let mut all = dwarf.raw_ranges(unit, list)?;
            while all.next()?.is_some() {
                self.budget.spend(1)?;
            }
        }
        Ok(dwarf.die_ranges(unit, entry)?)
    }

    /// Returns the abbreviation table of a unit.
    pub(super) fn abbreviations(&self, header: &Header) -> Result<Arc<Abbreviations>, Error> {
        let offset = header.debug_abbrev_offset();
        let mut tables = header.part.tables.borrow_mut();
        let place = tables.get_mut(&offset.0);
        if let Some(Some(known)) = place.as_deref() {
            return Ok(known.clone());
        }
        self.weigh(&header.part, offset)?;
        let table = Arc::new(header.part.dwarf.debug_abbrev.abbreviations(offset)?);
        if let Some(place) = place {
            *place = Some(table.clone());
        }
        Ok(table)
    }

    /// Charges the budget for reading a table and keeping it.
    fn weigh(&self, part: &Part, offset: DebugAbbrevOffset) -> Result<(), Error> {
        let mut table = part.dwarf.debug_abbrev.reader().clone();
        table.skip(offset.0)?;
        // The last table may lack its terminating 0.
        while !table.is_empty() && table.read_uleb128()? != 0 {
            let _tag = table.read_uleb128()?;
            let _has_children = table.read_u8()?;
            let mut parts = PART;
            loop {
                let (name, form) = (table.read_uleb128()?, table.read_uleb128()?);
                if (name, form) == (0, 0) {
                    break;
                }
                if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                    table.read_sleb128()?;
                }
                parts += 1;
            }
            if parts > PART + ATTRIBUTES_MAX {
                return Err(Error::Damaged);
            }
            self.budget.spend(PART * parts)?;
            self.budget.keep(PART_KEPT * parts)?;
        }
        Ok(())
    }
}
