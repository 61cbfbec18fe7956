// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads the debug information that a compiler wrote for a program (DWARF 4 and 5): types,
//! functions, inlined functions and source lines.
//!
//! The information is in the program's own file or in a separate one. Part of it may be shared with
//! other programs ([`file`](mod@file)), and units may be in files of their own ([`apart`]).
//! Everything is read on demand: opening a file reads only the unit headers, a unit is parsed when
//! one of its addresses or types is needed, and an entry is parsed when it is looked at. A type is
//! identified by the position of its entry ([`TypeId`]); equal numbers mean the same type.
//!
//! The contents are untrusted. Every offset is checked before use, every chain and list has a
//! limit, and what cannot be interpreted is left out or reported as an [`Error`]. For files that
//! the user did not request, the total cost of reading is limited ([`budget`]).

mod apart;
#[cfg(test)]
mod apart_tests;
mod budget;
mod error;
mod file;
mod function;
mod inlined;
#[cfg(test)]
pub(crate) mod inlined_tests;
mod line;
mod names;
mod part;
mod rows;
#[cfg(test)]
mod shared_tests;
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

use apart::Apart;
pub(crate) use budget::Budget;
use dtrace_uapi::names::misleads;
use file::Found;
pub(crate) use file::FILE_MAX;
use gimli::{
    AttributeValue, DebuggingInformationEntry, DwAt, Dwarf, EndianRcSlice, Reader, RunTimeEndian,
    Section as _, UnitOffset, UnitType,
};
use part::{Header, Part, Unit};
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

/// Part of a section.
type Bytes = EndianRcSlice<RunTimeEndian>;
/// Debugging information entry (DIE) of a unit.
type Entry<'u> = DebuggingInformationEntry<'u, 'u, Bytes>;

/// Most links that are followed from one entry to another that completes it.
const CHAIN_MAX: usize = 8;
/// Approximate number of bytes of text that cost one step.
const TEXT: usize = 16;
/// Longest name, in bytes.
pub(crate) const NAME_MAX: usize = 1024;
/// Most units of a program.
const UNITS_MAX: usize = 1 << 20;
/// Approximate memory for a unit's header, and again for a parsed unit, in bytes.
const UNIT_KEPT: usize = 512;
/// Approximate number of steps to reach a referenced entry, or the first entry of a unit.
const REFERENCE: usize = 64;

/// Position of a type's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(usize);

impl TypeId {
    /// Makes an id from a table's index and a number in that table, for readers with several
    /// tables.
    pub(crate) fn of(table: usize, number: u32) -> Self {
        Self(table << u32::BITS | number as usize)
    }

    /// Splits an id made by [`of`](Self::of) into table and number.
    pub(crate) fn parts(self) -> (usize, u32) {
        (self.0 >> u32::BITS, self.0 as u32)
    }
}

/// Debug information of one program.
pub struct DebugInfo {
    /// Sorted by position; the units of one part follow those of another.
    units: Vec<Header>,
    /// Maps the signature of a type unit to its type.
    signatures: RefCell<HashMap<u64, TypeId>>,
    apart: Apart,
    budget: Budget,
    /// The program refers to a shared file (dwz) that was not found.
    is_partial: bool,
    /// Whether the units of `.debug_types` are read.
    has_types: bool,
    /// Parsed units, by number.
    open: RefCell<HashMap<usize, Rc<Unit>>>,
    /// Numbers of the skeleton units whose own files were not found.
    missing: RefCell<HashSet<usize>>,
    functions: OnceCell<function::Index>,
    names: OnceCell<names::Index>,
    copies: RefCell<HashMap<usize, Rc<inlined::Copies>>>,
}

impl DebugInfo {
    /// Opens the debug information of the program in `file`, which its process sees at `path`.
    pub fn open(file: &Path, path: &str) -> Result<Self, Error> {
        let found = file::find(file, path, FILE_MAX)?;
        Self::parse_within(found, Budget::unlimited(), true)
    }

    /// Like [`open`](Self::open), for a file that the user did not request: the cost of reading is
    /// limited ([`is_spent`](Self::is_spent)), and units of `.debug_types` are left out.
    pub fn open_unasked(file: &Path, path: &str) -> Result<Self, Error> {
        let found = file::find(file, path, budget::ROOM_MAX)?;
        Self::parse_within(found, Budget::limited(), false)
    }

    /// Parses the debug information of an ELF file.
    pub fn parse(bytes: Rc<[u8]>) -> Result<Self, Error> {
        Self::parse_within(Found::alone(bytes), Budget::unlimited(), true)
    }

    /// Like [`parse`](Self::parse), for a file that the user did not request: the cost is limited.
    pub fn parse_unasked(bytes: Rc<[u8]>) -> Result<Self, Error> {
        Self::parse_within(Found::alone(bytes), Budget::limited(), true)
    }

    /// Parses a program's own file together with the file that it shares with others. The cost is
    /// limited.
    pub fn parse_both(own: Rc<[u8]>, shared: Rc<[u8]>) -> Result<Self, Error> {
        let found = Found {
            own,
            shared: Some(shared),
            is_partial: false,
            by: Vec::new(),
            most: 0,
        };
        Self::parse_within(found, Budget::limited(), true)
    }

    fn parse_within(found: Found, budget: Budget, has_types: bool) -> Result<Self, Error> {
        let mut debug = Self {
            units: Vec::new(),
            signatures: RefCell::default(),
            apart: Apart::new(found.by, found.most),
            missing: RefCell::default(),
            budget,
            is_partial: found.is_partial,
            has_types,
            open: RefCell::default(),
            functions: OnceCell::new(),
            names: OnceCell::new(),
            copies: RefCell::default(),
        };
        let mut own = debug.sections(&found.own)?;
        let shared = match &found.shared {
            Some(bytes) => {
                let sections = debug.sections(bytes)?;
                file::share_texts(&mut own, &sections)?;
                let base = own.debug_info.reader().len() + own.debug_types.reader().len();
                Some(Rc::new(Part::new(sections, base, None)))
            }
            None => None,
        };
        let own = Rc::new(Part::new(own, 0, shared.clone()));
        let mut units = debug.units_of(&own, UNITS_MAX)?;
        if units.is_empty() {
            return Err(Error::None);
        }
        if let Some(shared) = &shared {
            units.extend(debug.units_of(shared, UNITS_MAX)?);
        }
        debug.apart.end.set(shared.unwrap_or(own).end());
        debug.sign(&units);
        debug.units = units;
        Ok(debug)
    }

    fn sections(&self, bytes: &Rc<[u8]>) -> Result<Dwarf<Bytes>, Error> {
        self.budget.keep(bytes.len())?;
        file::sections(bytes, &self.budget)
    }

    /// Returns the headers of the units of a part. More than `most` units are an error.
    fn units_of(&self, part: &Rc<Part>, most: usize) -> Result<Vec<Header>, Error> {
        let (mut programs, mut types) = (part.dwarf.units(), part.dwarf.type_units());
        // A damaged header ends the section's list.
        let programs = std::iter::from_fn(|| programs.next().ok().flatten());
        // Types are not needed for files that the user did not request.
        let types = std::iter::from_fn(|| types.next().ok().flatten());
        let types = types.take_while(|_| self.has_types);
        let mut units = Vec::new();
        for header in programs.chain(types) {
            if units.len() >= most {
                return Err(Error::Unsupported("it has too many units"));
            }
            self.budget.keep(UNIT_KEPT)?;
            let part = part.clone();
            units.push(Header { part, header });
        }
        *part.tables.borrow_mut() = unit::shared(&units);
        Ok(units)
    }

    /// Returns an error if types are incomplete because a shared file is missing.
    pub fn whole(&self) -> Result<(), Error> {
        match self.is_partial {
            true => Err(Error::Unsupported(
                "the file is missing that has what several programs share (dwz)",
            )),
            false => Ok(()),
        }
    }

    /// Whether the budget is used up. If so, nothing more is read.
    pub fn is_spent(&self) -> bool {
        self.budget.is_spent()
    }

    /// Approximate memory that the information takes, in bytes.
    pub fn kept(&self) -> u64 {
        self.budget.kept()
    }

    /// Records the signatures of type units.
    fn sign(&self, units: &[Header]) {
        let mut signatures = self.signatures.borrow_mut();
        for unit in units {
            if let UnitType::Type {
                type_signature,
                type_offset,
            }
            | UnitType::SplitType {
                type_signature,
                type_offset,
            } = unit.type_()
            {
                let id = TypeId(unit.start().saturating_add(type_offset.0));
                // A package may be read both by signature and completely; a type keeps its first
                // id.
                signatures.entry(type_signature.0).or_insert(id);
            }
        }
    }

    /// Returns the header of a unit. Units of separate files are numbered after all others.
    fn header(&self, number: usize) -> Option<Header> {
        let known = self.units.get(number).cloned();
        known.or_else(|| {
            let number = number.checked_sub(self.units.len())?;
            self.apart.units.borrow().get(number).cloned()
        })
    }

    /// Returns the parsed unit `number`. For a skeleton, returns the unit that it stands for.
    fn unit(&self, number: usize) -> Result<Rc<Unit>, Error> {
        if let Some(unit) = self.open.borrow().get(&number) {
            return Ok(unit.clone());
        }
        if self.missing.borrow().contains(&number) {
            return Err(apart::MISSING);
        }
        let header = self.header(number).ok_or(Error::Damaged)?;
        let unit = self.take_apart(&header, None)?;
        let unit = match unit.is_skeleton() {
            true => self.of_skeleton(unit).inspect_err(|_| {
                self.missing.borrow_mut().insert(number);
            })?,
            false => Rc::new(unit),
        };
        self.budget.keep(UNIT_KEPT)?;
        self.open.borrow_mut().insert(number, unit.clone());
        Ok(unit)
    }

    /// Returns the unit that contains an entry, and the entry's offset in that unit.
    fn locate(&self, id: TypeId) -> Result<(Rc<Unit>, UnitOffset), Error> {
        let before = |units: &[Header]| units.partition_point(|unit| unit.start() <= id.0);
        let after = match before(&self.apart.units.borrow()) {
            0 => before(&self.units),
            apart => self.units.len() + apart,
        };
        // The entry is in the last unit that starts at or before it.
        let number = after.checked_sub(1).ok_or(Error::Damaged)?;
        let unit = self.unit(number)?;
        let offset = unit.offset(id).ok_or(Error::Damaged)?;
        Ok((unit, offset))
    }

    /// Returns the entry that an attribute's value refers to.
    fn target(&self, unit: &Unit, value: &AttributeValue<Bytes>) -> Option<TypeId> {
        match *value {
            AttributeValue::UnitRef(offset) => unit.id(offset),
            AttributeValue::DebugInfoRef(offset) => unit.part.id(offset.0),
            AttributeValue::DebugInfoRefSup(offset) => unit.part.shared.as_ref()?.id(offset.0),
            AttributeValue::DebugTypesRef(signature) => {
                let known = self.signatures.borrow().get(&signature.0).copied();
                known.or_else(|| self.in_package(signature))
            }
            _ => None,
        }
    }

    /// Returns the entry that the attribute `at` of `entry` refers to.
    fn reference(&self, unit: &Unit, entry: &Entry<'_>, at: DwAt) -> Option<TypeId> {
        let value = entry.attr_value(at).ok()??;
        self.target(unit, &value)
    }

    /// Calls `look` for an entry and then for those that it completes (by `DW_AT_abstract_origin`
    /// or `DW_AT_specification`) until `look` finds something.
    fn said<T>(&self, id: TypeId, look: impl Fn(&Unit, &Entry<'_>) -> Option<T>) -> Option<T> {
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

    /// Returns the type of an entry, or of the entry that it completes.
    fn type_of(&self, id: TypeId) -> Option<TypeId> {
        self.said(id, |unit, entry| {
            self.reference(unit, entry, gimli::DW_AT_type)
        })
    }

    /// Returns the entry's own name; empty if it has none or if the name has characters that
    /// mislead.
    fn name(&self, unit: &Unit, entry: &Entry<'_>) -> String {
        let name = || {
            let value = entry.attr_value(gimli::DW_AT_name).ok()??;
            self.text(unit, value)
        };
        name().unwrap_or_default()
    }

    fn text(&self, unit: &Unit, value: AttributeValue<Bytes>) -> Option<String> {
        let text = unit.part.dwarf.attr_string(unit, value).ok()?;
        self.budget.spend(text.len() / TEXT).ok()?;
        if text.len() > NAME_MAX {
            return None;
        }
        let text = text.to_string_lossy().ok()?.into_owned();
        (!text.contains(misleads)).then_some(text)
    }
}

/// Returns a numeric attribute.
fn number(entry: &Entry<'_>, at: DwAt) -> Option<u64> {
    entry.attr_value(at).ok()??.udata_value()
}

/// Whether a flag attribute is set.
fn is_set(entry: &Entry<'_>, at: DwAt) -> bool {
    matches!(entry.attr_value(at), Ok(Some(AttributeValue::Flag(true))))
}
