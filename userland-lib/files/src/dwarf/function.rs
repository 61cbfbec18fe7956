// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Prototypes of functions, found by the functions' addresses.
//!
//! Functions are looked up by address rather than by name, because names are ambiguous: several
//! functions may have one name (`static`), and one function may have several. An address belongs to
//! one unit, whose entries are scanned once.

use super::part::{Header, Unit};
use super::{is_set, DebugInfo, Error, TypeId};
use gimli::{AttributeValue, UnitType};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Most parameters of a function.
const PARAMETERS_MAX: usize = 256;
/// Most address ranges of all units together.
const RANGES_MAX: usize = 1 << 22;

/// Return type and parameters of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prototype {
    /// Return type; `None` for `void`.
    pub ret: Option<TypeId>,
    /// Names and types of the parameters.
    pub params: Vec<(String, Option<TypeId>)>,
    /// The function has no prototype, so callers do not know the types of its parameters and pass a
    /// `float` as a `double` (C17 §6.5.2.2).
    pub promotes: bool,
}

/// Beginning, end and unit number.
type UnitRange = (u64, u64, usize);

/// The functions of a unit, by their first address.
type Functions = HashMap<u64, TypeId>;

/// Finds the unit of an address.
pub(super) struct Index {
    /// Sorted by beginning.
    ranges: Vec<UnitRange>,
    functions: RefCell<HashMap<usize, Rc<Functions>>>,
}

impl DebugInfo {
    /// Returns the prototype of the function that begins at `address` (in the file's numbering).
    pub fn function(&self, address: u64) -> Result<Option<Prototype>, Error> {
        self.whole()?;
        let Some(unit) = self.unit_at(address) else {
            return Ok(None);
        };
        let index = self.index();
        let known = index.functions.borrow().get(&unit).cloned();
        let functions = match known {
            Some(functions) => functions,
            None => {
                let functions = Rc::new(self.functions_of(&*self.unit(unit)?)?);
                index.functions.borrow_mut().insert(unit, functions.clone());
                functions
            }
        };
        let function = functions.get(&address);
        function.map(|id| self.prototype(*id)).transpose()
    }

    /// Returns the number of the unit that contains an address.
    pub(super) fn unit_at(&self, address: u64) -> Option<usize> {
        let index = self.index();
        let after = index.ranges.partition_point(|range| range.0 <= address);
        // The ranges of units do not overlap unless the file is damaged.
        let (_, end, unit) = *index.ranges.get(after.checked_sub(1)?)?;
        (address < end).then_some(unit)
    }

    fn index(&self) -> &Index {
        self.functions.get_or_init(|| {
            let mut ranges = Vec::new();
            for (number, header) in self.units.iter().enumerate() {
                // Ignore errors: a damaged unit must not hide the others.
                let _ = self.ranges_of(number, header, &mut ranges);
            }
            ranges.sort_unstable();
            Index {
                ranges,
                functions: RefCell::default(),
            }
        })
    }

    fn ranges_of(
        &self,
        number: usize,
        header: &Header,
        ranges: &mut Vec<UnitRange>,
    ) -> Result<(), Error> {
        if matches!(header.type_(), UnitType::Type { .. }) {
            return Ok(());
        }
        let unit = self.take_apart(header, None)?;
        let mut entries = unit.entries();
        let (_, root) = entries.next_dfs()?.ok_or(Error::Damaged)?;
        let mut of_unit = self.ranges(&unit, root)?;
        while let (Some(range), true) = (of_unit.next()?, ranges.len() < RANGES_MAX) {
            if range.begin < range.end {
                self.budget.keep(size_of::<UnitRange>())?;
                ranges.push((range.begin, range.end, number));
            }
        }
        Ok(())
    }

    /// Collects the functions of a unit that have code of their own.
    fn functions_of(&self, unit: &Unit) -> Result<Functions, Error> {
        let mut functions = Functions::new();
        let mut entries = unit.entries();
        while let Some((_, entry)) = entries.next_dfs()? {
            let convention = entry.attr_value(gimli::DW_AT_calling_convention)?;
            // A function with a nonstandard calling convention has no arguments that a probe could
            // find.
            let is_odd = convention == Some(AttributeValue::CallingConvention(gimli::DW_CC_nocall));
            if entry.tag() != gimli::DW_TAG_subprogram || is_odd {
                continue;
            }
            let Some(id) = unit.id(entry.offset()) else {
                continue;
            };
            // Entry is in the first range; the others contain rarely executed code.
            let mut ranges = unit.part.dwarf.die_ranges(unit, entry)?;
            if let Some(range) = ranges.next()? {
                functions.insert(range.begin, id);
            }
        }
        Ok(functions)
    }

    fn prototype(&self, id: TypeId) -> Result<Prototype, Error> {
        let mut params = self.parameters(id)?;
        if params.is_empty() {
            let origins = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
            let (unit, offset) = self.locate(id)?;
            let entry = unit.entry(offset)?;
            let mut origins = origins.into_iter();
            let origin = origins.find_map(|at| self.reference(&unit, &entry, at));
            if let Some(origin) = origin {
                params = self.parameters(origin)?;
            }
        }
        let is_told = |_: &Unit, entry: &super::Entry<'_>| {
            is_set(entry, gimli::DW_AT_prototyped).then_some(true)
        };
        let is_prototyped = self.said(id, is_told).unwrap_or(false);
        Ok(Prototype {
            ret: self.type_of(id),
            params,
            promotes: !is_prototyped && self.is_c(id)?,
        })
    }

    /// Whether the unit is written in C, where a function need not have a prototype.
    fn is_c(&self, id: TypeId) -> Result<bool, Error> {
        let (unit, _) = self.locate(id)?;
        let mut entries = unit.entries();
        let (_, root) = entries.next_dfs()?.ok_or(Error::Damaged)?;
        let Some(AttributeValue::Language(language)) = root.attr_value(gimli::DW_AT_language)?
        else {
            return Ok(false);
        };
        let all = [
            gimli::DW_LANG_C89,
            gimli::DW_LANG_C,
            gimli::DW_LANG_C99,
            gimli::DW_LANG_C11,
            gimli::DW_LANG_C17,
        ];
        Ok(all.contains(&language))
    }

    /// Returns names and types of the parameters of a function's entry.
    pub(super) fn parameters(&self, id: TypeId) -> Result<Vec<(String, Option<TypeId>)>, Error> {
        let mut params = Vec::new();
        self.children(id, |unit, entry| {
            let Some(id) = unit.id(entry.offset()) else {
                return true;
            };
            if entry.tag() == gimli::DW_TAG_formal_parameter {
                let name = self.said(id, |unit, entry| {
                    Some(self.name(unit, entry)).filter(|name| !name.is_empty())
                });
                params.push((name.unwrap_or_default(), self.type_of(id)));
            }
            params.len() < PARAMETERS_MAX
        })?;
        Ok(params)
    }

    /// Whether a function's entry says that it takes further arguments (`...`).
    pub(super) fn is_variadic(&self, id: TypeId) -> Result<bool, Error> {
        let mut found = false;
        self.children(id, |_, entry| {
            found = entry.tag() == gimli::DW_TAG_unspecified_parameters;
            !found
        })?;
        Ok(found)
    }

    /// Calls `each` for the direct children of an entry until it returns `false`. Static members
    /// are skipped.
    pub(super) fn children(
        &self,
        id: TypeId,
        mut each: impl FnMut(&Unit, &super::Entry<'_>) -> bool,
    ) -> Result<(), Error> {
        let (unit, offset) = self.locate(id)?;
        let mut tree = unit.entries_tree(Some(offset))?;
        let mut children = tree.root()?.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            if is_set(entry, gimli::DW_AT_external) && entry.tag() == gimli::DW_TAG_member {
                // A static member is a variable, not part of the structure.
                continue;
            }
            if !each(&unit, entry) {
                break;
            }
        }
        Ok(())
    }
}
