// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Units that are in files of their own (`-gsplit-dwarf`).
//!
//! The program itself has only a skeleton of each unit: what the linker has to relocate (addresses,
//! the line program) and where the rest is. The rest is in one file per unit (`.dwo`), under the
//! name that the compiler gave it, or in a package of all units (`.dwp`) beside the program or
//! beside its separate debug file. A unit and its skeleton have the same id (DWO id), which
//! distinguishes them from all others.
//!
//! Such a file is opened when its unit is needed. It then becomes a further part of the
//! [`DebugInfo`].

use super::file;
use super::part::{Header, Part, Unit};
use super::{Bytes, DebugInfo, Error, TypeId, REFERENCE, UNITS_MAX};
use crate::elf::separate::read;
use gimli::{
    DebugTypeSignature, Dwarf, DwarfPackage, DwoId, Reader as _, RunTimeEndian, Section as _,
    SectionId, UnitIndex, UnitType,
};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The error for a unit whose file was not found.
pub const MISSING: Error = Error::Unsupported("its file (.dwo) is missing");

/// Most slots of a package's index: twice the number of units of the largest programs.
const SLOTS_MAX: u32 = 1 << 18;
/// Cost of looking for a file, in steps.
const OPENING: usize = 1024;

/// Most steps that looking up a unit in a package takes. In an index without an empty slot a lookup
/// probes all slots.
fn walk(index: &UnitIndex<Bytes>) -> usize {
    match index.unit_count() < index.slot_count() / 4 * 3 {
        true => REFERENCE,
        false => index.slot_count() as usize,
    }
}

/// Where to look for split units, and those that were found.
pub struct Apart {
    /// Paths of the program and of its separate debug file.
    by: Vec<PathBuf>,
    /// Bytes that may still be read from files of split units.
    most: Cell<u64>,
    package: OnceCell<Option<DwarfPackage<Bytes>>>,
    /// Signatures that were already looked for in the package, and whether all of its types are
    /// known.
    asked: RefCell<HashSet<u64>>,
    are_all_known: Cell<bool>,
    /// First number after those of all entries.
    pub end: Cell<usize>,
    /// Sorted by position.
    pub units: RefCell<Vec<Header>>,
}

impl Apart {
    pub fn new(by: Vec<PathBuf>, most: u64) -> Self {
        Self {
            by,
            most: Cell::new(most),
            package: OnceCell::new(),
            asked: RefCell::default(),
            are_all_known: Cell::new(false),
            end: Cell::new(0),
            units: RefCell::default(),
        }
    }

    /// Returns the paths where a unit's file may be: where the compiler put it, or beside the
    /// program.
    fn places(&self, folder: Option<&str>, name: &str) -> Vec<PathBuf> {
        let name = Path::new(name);
        let mut places: Vec<PathBuf> = folder
            .map(|folder| Path::new(folder).join(name))
            .into_iter()
            .collect();
        let folders = self.by.iter().filter_map(|by| by.parent());
        for folder in folders {
            places.push(folder.join(name));
            places.extend(name.file_name().map(|own| folder.join(own)));
        }
        // A relative path would be relative to dtrace's own working directory.
        places.retain(|place| place.is_absolute());
        places
    }
}

impl DebugInfo {
    /// Returns the unit that a skeleton stands for.
    pub(super) fn of_skeleton(&self, skeleton: Unit) -> Result<Rc<Unit>, Error> {
        let id = skeleton.dwo_id.ok_or(Error::Damaged)?;
        let skeleton = Rc::new(skeleton);
        let parent = &skeleton.part;
        let in_package = self.package(parent).and_then(|package| {
            self.budget.spend(walk(&package.cu_index)).ok()?;
            let found = package.find_cu(id, &parent.dwarf);
            self.unit_of(found.ok()??, &skeleton, id)
        });
        let found = in_package.or_else(|| self.in_file(&skeleton, id));
        found.ok_or(MISSING)
    }

    /// Looks for the unit in a `.dwo` file.
    fn in_file(&self, skeleton: &Rc<Unit>, id: DwoId) -> Option<Rc<Unit>> {
        let mut entries = skeleton.entries();
        let (_, root) = entries.next_dfs().ok()??;
        let text = |at| {
            let value = root.attr_value(at).ok()??;
            self.text(skeleton, value)
        };
        let name = text(gimli::DW_AT_dwo_name).or_else(|| text(gimli::DW_AT_GNU_dwo_name))?;
        let folder = text(gimli::DW_AT_comp_dir);
        let places = self.apart.places(folder.as_deref(), &name);
        places.iter().find_map(|place| {
            let bytes = self.bytes(place)?;
            let own = file::load(&bytes, &self.budget, SectionId::dwo_name, |get| {
                Dwarf::load(get)
            });
            let mut own = own.ok()?;
            own.make_dwo(&skeleton.part.dwarf);
            self.unit_of(own, skeleton, id)
        })
    }

    fn bytes(&self, place: &Path) -> Option<Rc<[u8]>> {
        self.budget.spend(OPENING).ok()?;
        let most = self.apart.most.get();
        let bytes = read(place, most.min(self.budget.room())).ok()?;
        self.apart.most.set(most.saturating_sub(bytes.len() as u64));
        self.budget.keep(bytes.len()).ok()?;
        Some(bytes.into())
    }

    /// Returns the package, if there is one. It is opened at the first call.
    fn package(&self, parent: &Part) -> Option<&DwarfPackage<Bytes>> {
        let package = self.apart.package.get_or_init(|| {
            let endian = parent.dwarf.debug_info.reader().endian();
            let mut all = self.apart.by.iter().filter(|by| by.is_absolute());
            all.find_map(|by| {
                let mut name = OsString::from(by);
                name.push(".dwp");
                self.open_package(Path::new(&name), endian)
            })
        });
        package.as_ref()
    }

    fn open_package(&self, place: &Path, endian: RunTimeEndian) -> Option<DwarfPackage<Bytes>> {
        let bytes = self.bytes(place)?;
        let empty = Bytes::new(Rc::default(), endian);
        file::load(&bytes, &self.budget, SectionId::dwo_name, |get| {
            DwarfPackage::load(get, empty)
        })
        .ok()
        .filter(|package| {
            let indices = [&package.cu_index, &package.tu_index];
            indices
                .iter()
                .all(|index| index.slot_count().max(index.unit_count()) <= SLOTS_MAX)
        })
    }

    /// Finds the unit with a DWO id among those of a file. If it is there, all units of the file
    /// are added.
    fn unit_of(&self, own: Dwarf<Bytes>, skeleton: &Rc<Unit>, id: DwoId) -> Option<Rc<Unit>> {
        let units = self.new_units(own).ok()?;
        let found = units.iter().enumerate().find_map(|(at, header)| {
            let unit = match header.type_() {
                UnitType::Compilation => self.take_apart(header, Some(skeleton)).ok()?,
                UnitType::SplitCompilation(own) if own == id => {
                    self.take_apart(header, Some(skeleton)).ok()?
                }
                _ => return None,
            };
            (unit.dwo_id == Some(id)).then_some((at, Rc::new(unit)))
        });
        let (at, unit) = found?;
        let first = self.add(units);
        self.open.borrow_mut().insert(first + at, unit.clone());
        Some(unit)
    }

    /// Reads the headers of the units of a further file.
    fn new_units(&self, own: Dwarf<Bytes>) -> Result<Vec<Header>, Error> {
        let part = Rc::new(Part::new(own, self.apart.end.get(), None));
        let known = self.units.len() + self.apart.units.borrow().len();
        self.units_of(&part, UNITS_MAX.saturating_sub(known))
    }

    /// Adds the units of a file and returns the number of the first.
    fn add(&self, units: Vec<Header>) -> usize {
        self.sign(&units);
        let mut all = self.apart.units.borrow_mut();
        let first = self.units.len() + all.len();
        if let Some(unit) = units.first() {
            self.apart.end.set(unit.part.end());
        }
        all.extend(units);
        first
    }

    /// Adds all type units of the package, if a package was opened.
    pub(super) fn all_of_package(&self) -> Option<()> {
        let package = self.apart.package.get()?.as_ref()?;
        let parent = &self.units.first()?.part;
        for row in 1..=package.tu_index.unit_count() {
            // Skip a damaged entry: the others are independent of it.
            let own = package.tu_sections(row, &parent.dwarf);
            if let Ok(own) = own {
                // This fails if there are too many units in total.
                self.add(self.new_units(own).ok()?);
            }
            self.budget.spend(REFERENCE).ok()?;
        }
        self.apart.are_all_known.set(true);
        Some(())
    }

    /// Looks for a type unit in the package.
    pub(super) fn in_package(&self, signature: DebugTypeSignature) -> Option<TypeId> {
        let package = self.apart.package.get()?.as_ref()?;
        let parent = &self.units.first()?.part;
        let is_new = self.apart.asked.borrow_mut().insert(signature.0);
        if !is_new || self.apart.are_all_known.get() {
            return None;
        }
        self.budget.spend(walk(&package.tu_index)).ok()?;
        let own = package.find_tu(signature, &parent.dwarf).ok()??;
        self.add(self.new_units(own).ok()?);
        self.signatures.borrow().get(&signature.0).copied()
    }
}
