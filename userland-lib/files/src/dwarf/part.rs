// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The files with the debug information of one program, and their units.
//!
//! The information may be spread over several files. Each file is a part. The entries of all parts
//! are numbered consecutively, so that a number identifies one entry in any of them. DWARF 4 has a
//! separate section for type units (`.debug_types`); in a part its entries are numbered after those
//! of `.debug_info`.

use super::unit::Tables;
use super::{Bytes, TypeId};
use gimli::{
    DebugInfoOffset, DebugTypesOffset, Dwarf, DwarfFileType, Reader as _, Section as _, UnitHeader,
    UnitOffset, UnitSectionOffset,
};
use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

/// The sections of a file.
pub struct Part {
    pub dwarf: Dwarf<Bytes>,
    /// Number of its first entry.
    pub base: usize,
    /// The part that it shares with other programs.
    pub shared: Option<Rc<Part>>,
    pub tables: RefCell<Tables>,
}

impl Part {
    pub fn new(dwarf: Dwarf<Bytes>, base: usize, shared: Option<Rc<Part>>) -> Self {
        Self {
            dwarf,
            base,
            shared,
            tables: RefCell::default(),
        }
    }

    /// Returns the entry at an offset of `.debug_info`.
    pub fn id(&self, offset: usize) -> Option<TypeId> {
        let number = self.base.saturating_add(offset);
        (number < self.types()).then_some(TypeId(number))
    }

    /// Returns the number of the byte at `offset`.
    fn number(&self, offset: UnitSectionOffset) -> usize {
        match offset {
            UnitSectionOffset::DebugInfoOffset(offset) => self.base.saturating_add(offset.0),
            UnitSectionOffset::DebugTypesOffset(offset) => self.types().saturating_add(offset.0),
        }
    }

    /// First number after the entries of `.debug_info`, where those of `.debug_types` begin.
    fn types(&self) -> usize {
        let size = self.dwarf.debug_info.reader().len();
        self.base.saturating_add(size)
    }

    /// First number after all entries of the part.
    pub fn end(&self) -> usize {
        let size = self.dwarf.debug_types.reader().len();
        self.types().saturating_add(size)
    }
}

/// A unit's header and its part.
#[derive(Clone)]
pub struct Header {
    pub part: Rc<Part>,
    pub header: UnitHeader<Bytes>,
}

impl Header {
    /// Number of the unit's first byte.
    pub fn start(&self) -> usize {
        self.part.number(self.header.offset())
    }
}

impl Deref for Header {
    type Target = UnitHeader<Bytes>;

    fn deref(&self) -> &Self::Target {
        &self.header
    }
}

/// A parsed unit and its part.
pub struct Unit {
    pub part: Rc<Part>,
    /// The unit's skeleton in the program, if the unit is in a file of its own.
    pub skeleton: Option<Rc<Unit>>,
    pub unit: gimli::Unit<Bytes>,
}

impl Unit {
    /// Whether this is a skeleton that stands for a unit in another file.
    pub fn is_skeleton(&self) -> bool {
        self.dwo_id.is_some() && self.part.dwarf.file_type == DwarfFileType::Main
    }

    /// Returns the entry at an offset of the unit.
    pub fn id(&self, offset: UnitOffset) -> Option<TypeId> {
        if offset.0 >= self.header.length_including_self() {
            return None;
        }
        let number = self.part.number(offset.to_unit_section_offset(&self.unit));
        (number < self.part.end()).then_some(TypeId(number))
    }

    /// Returns the offset of an entry in the unit.
    pub fn offset(&self, id: TypeId) -> Option<UnitOffset> {
        match id.0.checked_sub(self.part.types()) {
            Some(offset) => DebugTypesOffset(offset).to_unit_offset(&self.header),
            None => {
                let offset = id.0.checked_sub(self.part.base)?;
                DebugInfoOffset(offset).to_unit_offset(&self.header)
            }
        }
    }
}

impl Deref for Unit {
    type Target = gimli::Unit<Bytes>;

    fn deref(&self) -> &Self::Target {
        &self.unit
    }
}
