// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The files that tell of one program, and their units.
//!
//! What a compiler has told may lie in several files. Each is a part; the entries of all parts are numbered one after the other, so that
//! a number is of one entry, whatever file that is in. DWARF 4 has a section for types that have units of their own: in a part its
//! entries come after the others.

use super::unit::Tables;
use super::{Bytes, TypeId};
use gimli::{
    DebugInfoOffset, DebugTypesOffset, Dwarf, DwarfFileType, Reader as _, Section as _, UnitHeader,
    UnitOffset, UnitSectionOffset,
};
use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

/// A file's sections.
pub struct Part {
    pub dwarf: Dwarf<Bytes>,
    /// The number of its first entry.
    pub base: usize,
    /// The part that it shares with other programs' files.
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

    /// The entry at a place of the section that has programs' units.
    pub fn id(&self, offset: usize) -> Option<TypeId> {
        let number = self.base.saturating_add(offset);
        (number < self.types()).then_some(TypeId(number))
    }

    /// The number of the first byte at `offset`.
    fn number(&self, offset: UnitSectionOffset) -> usize {
        match offset {
            UnitSectionOffset::DebugInfoOffset(offset) => self.base.saturating_add(offset.0),
            UnitSectionOffset::DebugTypesOffset(offset) => self.types().saturating_add(offset.0),
        }
    }

    /// The number behind those of the entries of `.debug_info`: where those of `.debug_types` begin.
    fn types(&self) -> usize {
        let size = self.dwarf.debug_info.reader().len();
        self.base.saturating_add(size)
    }

    /// The number behind those of its entries.
    pub fn end(&self) -> usize {
        let size = self.dwarf.debug_types.reader().len();
        self.types().saturating_add(size)
    }
}

/// A unit's header, and the part that it is in.
#[derive(Clone)]
pub struct Header {
    pub part: Rc<Part>,
    pub header: UnitHeader<Bytes>,
}

impl Header {
    /// The number of the unit's first byte.
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

/// A unit that is taken apart, and the part that it is in.
pub struct Unit {
    pub part: Rc<Part>,
    /// What the program has of it, where it is in a file of its own.
    pub skeleton: Option<Rc<Unit>>,
    pub unit: gimli::Unit<Bytes>,
}

impl Unit {
    /// Whether it stands for one that is in a file of its own.
    pub fn is_skeleton(&self) -> bool {
        self.dwo_id.is_some() && self.part.dwarf.file_type == DwarfFileType::Main
    }

    /// Which entry is at a place of the unit.
    pub fn id(&self, offset: UnitOffset) -> Option<TypeId> {
        if offset.0 >= self.header.length_including_self() {
            return None;
        }
        let number = self.part.number(offset.to_unit_section_offset(&self.unit));
        (number < self.part.end()).then_some(TypeId(number))
    }

    /// Where in the unit an entry is.
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
