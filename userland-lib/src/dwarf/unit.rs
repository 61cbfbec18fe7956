// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Units, taken apart.
//!
//! An entry has the form that its abbreviation tells, by a number in a table that the unit names. Units may share a table, which is
//! read once then; tables that overlap without being the same are only a way to have something read over and over, so that is counted. The
//! lines of a unit are left alone: they are read by who wants them.

use super::part::{Header, Part, Unit};
use super::{Bytes, DebugInfo, Entry, Error, REFERENCE};
use gimli::{
    Abbreviations, AttributeValue, DebugAbbrevOffset, DebugAddrBase, DebugLocListsBase,
    DebugRngListsBase, DebugStrOffsetsBase, RangeIter, Reader as _, Section as _, UnitType,
};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Attributes of an entry; compilers give it some twenty. Some take no byte of the entry, but time.
const ATTRIBUTES_MAX: usize = 256;
/// About how many steps it takes to read a part of a table, and how many bytes to have it.
const PART: usize = 8;
const PART_KEPT: usize = 32;

/// The tables that several units name, once they were read, by where they lie.
pub type Tables = HashMap<usize, Option<Arc<Abbreviations>>>;

/// Where the tables are that more than one of the units names.
pub fn shared(units: &[Header]) -> Tables {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for unit in units {
        *counts.entry(unit.debug_abbrev_offset().0).or_default() += 1;
    }
    let shared = counts.into_iter().filter(|(_, count)| *count > 1);
    shared.map(|(offset, _)| (offset, None)).collect()
}

impl DebugInfo {
    /// A unit without its lines, and with what its skeleton has of it.
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
            // It may stand in a table that a later attribute tells.
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

    /// The ranges of addresses that an entry has.
    pub(super) fn ranges(&self, unit: &Unit, entry: &Entry<'_>) -> Result<RangeIter<Bytes>, Error> {
        let dwarf = &unit.part.dwarf;
        let list = entry.attr_value(gimli::DW_AT_ranges)?;
        let list = list.map(|list| dwarf.attr_ranges_offset(unit, list));
        if let Some(list) = list.transpose()?.flatten() {
            // What is to be left out takes time as well.
            let mut all = dwarf.raw_ranges(unit, list)?;
            while all.next()?.is_some() {
                self.budget.spend(1)?;
            }
        }
        Ok(dwarf.die_ranges(unit, entry)?)
    }

    /// The table of a unit.
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

    /// Counts what it costs to read a table, and to keep it.
    fn weigh(&self, part: &Part, offset: DebugAbbrevOffset) -> Result<(), Error> {
        let mut table = part.dwarf.debug_abbrev.reader().clone();
        table.skip(offset.0)?;
        // The last table may lack its end.
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
