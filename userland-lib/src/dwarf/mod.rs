// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What a compiler has told of a program: types, functions, those that were inlined, source lines (DWARF 4 and 5).
//!
//! It lies in the program's own file or in one beside it, and may be shared in part with other programs ([`file`](mod@file)); units may
//! be in files of their own ([`apart`]). Nothing is read before somebody asks, and then what he asks for: units are told apart by their headers, a unit is taken apart when an address or a type of it is wanted, and an
//! entry when it is looked at. A type is known by where its entry lies ([`TypeId`]); equal numbers are the same type.
//!
//! All of it is of whoever made the file: every number leads nowhere or to something that is there, every chain and list
//! has a limit, and what is not understood is left out, or an [`Error`] that says so. What reading may cost in all is limited for files that
//! nobody has asked for ([`budget`]).

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

/// A piece of a section.
type Bytes = EndianRcSlice<RunTimeEndian>;
/// An entry of a unit.
type Entry<'u> = DebuggingInformationEntry<'u, 'u, Bytes>;

/// How often an entry may refer to another that says more of the same thing.
const CHAIN_MAX: usize = 8;
/// Bytes of text that are read in a step, about.
const TEXT: usize = 16;
/// Longest name, bytes.
pub(crate) const NAME_MAX: usize = 1024;
/// Units of a file.
const UNITS_MAX: usize = 1 << 20;
/// Bytes that are kept of a unit, or of one that is taken apart, about.
const UNIT_KEPT: usize = 512;
/// Steps to an entry that another refers to, or to the first one of a unit, about.
const REFERENCE: usize = 64;

/// Where a type's entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(usize);

impl TypeId {
    /// The type of a number in one of several tables.
    pub(crate) fn of(table: usize, number: u32) -> Self {
        Self(table << u32::BITS | number as usize)
    }

    /// The table, and the number in there.
    pub(crate) fn parts(self) -> (usize, u32) {
        (self.0 >> u32::BITS, self.0 as u32)
    }
}

/// What is known of a program's file.
pub struct DebugInfo {
    /// In the order of where they lie, those of one part after those of another.
    units: Vec<Header>,
    /// Which unit has the type of a signature, and where in it.
    signatures: RefCell<HashMap<u64, TypeId>>,
    apart: Apart,
    budget: Budget,
    /// What is shared with other programs' files is not there.
    is_partial: bool,
    /// Whether types that are in a section of their own are wanted.
    has_types: bool,
    /// Units that were taken apart, by their number.
    open: RefCell<HashMap<usize, Rc<Unit>>>,
    /// Those that are in files of their own which are not there.
    missing: RefCell<HashSet<usize>>,
    functions: OnceCell<function::Index>,
    names: OnceCell<names::Index>,
    copies: RefCell<HashMap<usize, Rc<inlined::Copies>>>,
}

impl DebugInfo {
    /// What is known of the program in `file`, which its process sees at `path`.
    pub fn open(file: &Path, path: &str) -> Result<Self, Error> {
        let found = file::find(file, path, FILE_MAX)?;
        Self::parse_within(found, Budget::unlimited(), true)
    }

    /// The same of a file that nobody has asked for: what reading it costs is limited ([`is_spent`](Self::is_spent)), and types that
    /// are in a section of their own are left out.
    pub fn open_unasked(file: &Path, path: &str) -> Result<Self, Error> {
        let found = file::find(file, path, budget::ROOM_MAX)?;
        Self::parse_within(found, Budget::limited(), false)
    }

    /// What an ELF file tells.
    pub fn parse(bytes: Rc<[u8]>) -> Result<Self, Error> {
        Self::parse_within(Found::alone(bytes), Budget::unlimited(), true)
    }

    /// What an ELF file tells that nobody has asked for.
    pub fn parse_unasked(bytes: Rc<[u8]>) -> Result<Self, Error> {
        Self::parse_within(Found::alone(bytes), Budget::limited(), true)
    }

    /// What two files tell that nobody has asked for: a program's own, and the one that it shares with others.
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

    /// The units of a part, `most` at most.
    fn units_of(&self, part: &Rc<Part>, most: usize) -> Result<Vec<Header>, Error> {
        let (mut programs, mut types) = (part.dwarf.units(), part.dwarf.type_units());
        // What is damaged ends a section's list.
        let programs = std::iter::from_fn(|| programs.next().ok().flatten());
        // Nobody wants types of a file that nobody has asked for.
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

    /// Why not all can be told of types, if something is missing.
    pub fn whole(&self) -> Result<(), Error> {
        match self.is_partial {
            true => Err(Error::Unsupported(
                "the file is missing that has what several programs share (dwz)",
            )),
            false => Ok(()),
        }
    }

    /// Whether reading has cost what it may: nothing more is told.
    pub fn is_spent(&self) -> bool {
        self.budget.is_spent()
    }

    /// Bytes of memory that it takes, about.
    pub fn kept(&self) -> u64 {
        self.budget.kept()
    }

    /// Knows the types of units that are of one type each.
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
                // A package is read by signature and as a whole: a type keeps its first number.
                signatures.entry(type_signature.0).or_insert(id);
            }
        }
    }

    /// The header of a unit; those in files of their own are behind the others.
    fn header(&self, number: usize) -> Option<Header> {
        let known = self.units.get(number).cloned();
        known.or_else(|| {
            let number = number.checked_sub(self.units.len())?;
            self.apart.units.borrow().get(number).cloned()
        })
    }

    /// One of the units, taken apart; of a skeleton the one that it stands for.
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

    /// The unit that an entry is of, and where in it that lies.
    fn locate(&self, id: TypeId) -> Result<(Rc<Unit>, UnitOffset), Error> {
        let before = |units: &[Header]| units.partition_point(|unit| unit.start() <= id.0);
        let after = match before(&self.apart.units.borrow()) {
            0 => before(&self.units),
            apart => self.units.len() + apart,
        };
        let number = after.checked_sub(1).ok_or(Error::Damaged)?;
        let unit = self.unit(number)?;
        let offset = unit.offset(id).ok_or(Error::Damaged)?;
        Ok((unit, offset))
    }

    /// What entry a value refers to.
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

    /// The entry that `entry` refers to by an attribute of its own.
    fn reference(&self, unit: &Unit, entry: &Entry<'_>, at: DwAt) -> Option<TypeId> {
        let value = entry.attr_value(at).ok()??;
        self.target(unit, &value)
    }

    /// What is said of an entry, by itself or by the one that it completes.
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

    /// The type that an entry has, by itself or by the one that it completes.
    fn type_of(&self, id: TypeId) -> Option<TypeId> {
        self.said(id, |unit, entry| {
            self.reference(unit, entry, gimli::DW_AT_type)
        })
    }

    /// An entry's own name; empty where it has none, or one that nobody could write.
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

/// An attribute that is a number.
fn number(entry: &Entry<'_>, at: DwAt) -> Option<u64> {
    entry.attr_value(at).ok()??.udata_value()
}

/// An attribute that is a truth value.
fn is_set(entry: &Entry<'_>, at: DwAt) -> bool {
    matches!(entry.attr_value(at), Ok(Some(AttributeValue::Flag(true))))
}
