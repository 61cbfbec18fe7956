// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What a compiler has told of a program: types, functions, those that were inlined, source lines (DWARF 4 and 5).
//!
//! It lies in the program's own file or in one beside it ([`file`](mod@file)). Nothing is read before somebody asks, and then what he
//! asks for: units are told apart by their headers, a unit is taken apart when an address or a type of it is wanted, and an
//! entry when it is looked at. A type is known by where its entry lies ([`TypeId`]); equal numbers are the same type.
//!
//! All of it is of whoever made the file: every number leads nowhere or to something that is there, every chain and list
//! has a limit, and what is not understood is left out, or an [`Error`] that says so. What reading may cost in all is limited for files that
//! nobody has asked for ([`budget`]).

mod budget;
mod error;
mod file;
mod function;
mod inlined;
#[cfg(test)]
pub(crate) mod inlined_tests;
mod line;
mod names;
mod rows;
#[cfg(test)]
pub(crate) mod tests;
mod types;
mod unit;

pub use error::Error;
pub use function::Prototype;
pub use inlined::Inlined;
pub use line::Lines;
pub use names::Tag;
pub use types::{Base, Member, Type};

use budget::Budget;
use dtrace_uapi::names::misleads;
use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, DwAt, Dwarf, EndianRcSlice, Reader,
    RunTimeEndian, Unit, UnitHeader, UnitOffset, UnitSectionOffset, UnitType,
};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

/// A piece of a section.
type Bytes = EndianRcSlice<RunTimeEndian>;
/// An entry of a unit.
type Entry<'u> = DebuggingInformationEntry<'u, 'u, Bytes>;

/// How often an entry may refer to another that says more of the same thing.
const CHAIN_MAX: usize = 8;
/// Bytes of text that are read in a step, about.
const TEXT: usize = 16;
/// Longest name, bytes.
const NAME_MAX: usize = 1024;
/// Units of a file.
const UNITS_MAX: usize = 1 << 20;
/// Bytes that are kept of a unit, or of one that is taken apart, about.
const UNIT_KEPT: usize = 512;
/// Steps to an entry that another refers to, or to the first one of a unit, about.
const REFERENCE: usize = 64;

/// Where a type's entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(usize);

/// What is known of a program's file.
pub struct DebugInfo {
    dwarf: Dwarf<Bytes>,
    /// In the order of where they lie.
    units: Vec<UnitHeader<Bytes>>,
    /// Which unit has the type of a signature, and where in it.
    signatures: HashMap<u64, TypeId>,
    budget: Budget,
    tables: RefCell<unit::Tables>,
    /// Units that were taken apart, by their number.
    open: RefCell<HashMap<usize, Rc<Unit<Bytes>>>>,
    functions: OnceCell<function::Index>,
    names: OnceCell<names::Index>,
    copies: RefCell<HashMap<usize, Rc<inlined::Copies>>>,
}

impl DebugInfo {
    /// What is known of the program in `file`, which its process sees at `path`.
    pub fn open(file: &Path, path: &str) -> Result<Self, Error> {
        let bytes = file::find(file, path, file::FILE_MAX)?;
        Self::parse(bytes.into())
    }

    /// The same of a file that nobody has asked for: what reading it costs is limited ([`is_spent`](Self::is_spent)).
    pub fn open_unasked(file: &Path, path: &str) -> Result<Self, Error> {
        let bytes = file::find(file, path, budget::ROOM_MAX)?;
        Self::parse_unasked(bytes.into())
    }

    /// What an ELF file tells.
    pub fn parse(bytes: Rc<[u8]>) -> Result<Self, Error> {
        Self::parse_within(bytes, Budget::unlimited())
    }

    /// What an ELF file tells that nobody has asked for.
    pub fn parse_unasked(bytes: Rc<[u8]>) -> Result<Self, Error> {
        Self::parse_within(bytes, Budget::limited())
    }

    fn parse_within(bytes: Rc<[u8]>, budget: Budget) -> Result<Self, Error> {
        budget.keep(bytes.len())?;
        let dwarf = file::sections(&bytes, &budget)?;
        let mut units = Vec::new();
        let mut signatures = HashMap::new();
        let mut headers = dwarf.units();
        // What is damaged ends the list.
        while let Ok(Some(header)) = headers.next() {
            if units.len() >= UNITS_MAX {
                return Err(Error::Unsupported("it has too many units"));
            }
            if let UnitType::Type {
                type_signature,
                type_offset,
            } = header.type_()
            {
                let id = TypeId(start_of(&header).saturating_add(type_offset.0));
                signatures.insert(type_signature.0, id);
            }
            budget.keep(UNIT_KEPT)?;
            units.push(header);
        }
        if units.is_empty() {
            return Err(Error::None);
        }
        Ok(Self {
            dwarf,
            budget,
            tables: RefCell::new(unit::shared(&units)),
            units,
            signatures,
            open: RefCell::default(),
            functions: OnceCell::new(),
            names: OnceCell::new(),
            copies: RefCell::default(),
        })
    }

    /// Whether reading has cost what it may: nothing more is told.
    pub fn is_spent(&self) -> bool {
        self.budget.is_spent()
    }

    /// Bytes of memory that it takes, about.
    pub fn kept(&self) -> u64 {
        self.budget.kept()
    }

    /// One of the units, taken apart.
    fn unit(&self, number: usize) -> Result<Rc<Unit<Bytes>>, Error> {
        if let Some(unit) = self.open.borrow().get(&number) {
            return Ok(unit.clone());
        }
        let header = self.units.get(number).ok_or(Error::Damaged)?;
        let unit = Rc::new(self.take_apart(header)?);
        if unit.dwo_id.is_some() {
            return Err(Error::Unsupported("it is in a file of its own (.dwo)"));
        }
        self.budget.keep(UNIT_KEPT)?;
        self.open.borrow_mut().insert(number, unit.clone());
        Ok(unit)
    }

    /// The unit that an entry is of, and where in it that lies.
    fn locate(&self, id: TypeId) -> Result<(Rc<Unit<Bytes>>, UnitOffset), Error> {
        let after = self.units.partition_point(|unit| start_of(unit) <= id.0);
        let number = after.checked_sub(1).ok_or(Error::Damaged)?;
        let unit = self.unit(number)?;
        let offset = UnitSectionOffset::DebugInfoOffset(DebugInfoOffset(id.0));
        let offset = offset.to_unit_offset(&unit).ok_or(Error::Damaged)?;
        Ok((unit, offset))
    }

    /// What entry a value refers to.
    fn target(&self, unit: &Unit<Bytes>, value: &AttributeValue<Bytes>) -> Option<TypeId> {
        match *value {
            AttributeValue::UnitRef(offset) => id_of(unit, offset),
            AttributeValue::DebugInfoRef(offset) => Some(TypeId(offset.0)),
            AttributeValue::DebugTypesRef(signature) => self.signatures.get(&signature.0).copied(),
            _ => None,
        }
    }

    /// The entry that `entry` refers to by an attribute of its own.
    fn reference(&self, unit: &Unit<Bytes>, entry: &Entry<'_>, at: DwAt) -> Option<TypeId> {
        let value = entry.attr_value(at).ok()??;
        self.target(unit, &value)
    }

    /// What is said of an entry, by itself or by the one that it completes.
    fn said<T>(
        &self,
        id: TypeId,
        look: impl Fn(&Unit<Bytes>, &Entry<'_>) -> Option<T>,
    ) -> Option<T> {
        let mut id = id;
        for _ in 0..CHAIN_MAX {
            self.budget.spend(REFERENCE).ok()?;
            let (unit, offset) = self.locate(id).ok()?;
            let entry = unit.entry(offset).ok()?;
            if let Some(found) = look(&unit, &entry) {
                return Some(found);
            }
            let more = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
            id = more
                .into_iter()
                .find_map(|at| self.reference(&unit, &entry, at))?;
        }
        None
    }

    /// The type that an entry has, by itself or by the one that it completes.
    fn type_of(&self, id: TypeId) -> Option<TypeId> {
        self.said(id, |unit, entry| {
            self.reference(unit, entry, gimli::DW_AT_type)
        })
    }

    /// An entry's own name; empty where it has none, or one that nobody could write.
    fn name(&self, unit: &Unit<Bytes>, entry: &Entry<'_>) -> String {
        let name = || {
            let value = entry.attr_value(gimli::DW_AT_name).ok()??;
            self.text(unit, value)
        };
        name().unwrap_or_default()
    }

    fn text(&self, unit: &Unit<Bytes>, value: AttributeValue<Bytes>) -> Option<String> {
        let text = self.dwarf.attr_string(unit, value).ok()?;
        self.budget.spend(text.len() / TEXT).ok()?;
        if text.len() > NAME_MAX {
            return None;
        }
        let text = text.to_string_lossy().ok()?.into_owned();
        (!text.contains(misleads)).then_some(text)
    }
}

/// Where a unit lies.
fn start_of(header: &UnitHeader<Bytes>) -> usize {
    match header.offset() {
        UnitSectionOffset::DebugInfoOffset(offset) => offset.0,
        UnitSectionOffset::DebugTypesOffset(_) => usize::MAX,
    }
}

/// Which entry is at a place of a unit.
fn id_of(unit: &Unit<Bytes>, offset: UnitOffset) -> Option<TypeId> {
    match offset.to_unit_section_offset(unit) {
        UnitSectionOffset::DebugInfoOffset(offset) => Some(TypeId(offset.0)),
        UnitSectionOffset::DebugTypesOffset(_) => None,
    }
}

/// An attribute that is a number.
fn number(entry: &Entry<'_>, at: DwAt) -> Option<u64> {
    entry.attr_value(at).ok()??.udata_value()
}

/// An attribute that is a truth value.
fn is_set(entry: &Entry<'_>, at: DwAt) -> bool {
    matches!(entry.attr_value(at), Ok(Some(AttributeValue::Flag(true))))
}
