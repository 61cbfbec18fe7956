// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds types by name.
//!
//! Each unit has its own copies of types, mostly equal ones under equal names. The first complete
//! type of a name stands for all. Building the index requires a scan of every unit, so it is done
//! once, at the first lookup by name.

use super::{is_set, DebugInfo, Error, TypeId};
use std::collections::HashMap;

/// Most names that are kept.
const NAMES_MAX: usize = 1 << 22;

/// C's name spaces of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// `struct`, or a class of C++.
    Struct,
    /// `union`
    Union,
    /// `enum`
    Enum,
    /// A typedef, which is named without a keyword.
    Typedef,
}

/// Types by name space and name.
pub(super) type Index = HashMap<(Tag, String), TypeId>;

impl DebugInfo {
    /// Returns the type of this name.
    pub fn named(&self, tag: Tag, name: &str) -> Option<TypeId> {
        self.names().get(&(tag, name.to_owned())).copied()
    }

    fn names(&self) -> &Index {
        self.names.get_or_init(|| {
            let mut index = Index::new();
            // Ignore errors: a damaged unit must not hide the others.
            for (number, header) in self.units.iter().enumerate() {
                let _ = self.names_of(number, header, &mut index);
            }
            // The skeletons have loaded their split units. Add the package's type units, then scan
            // all of these.
            let _ = self.all_of_package();
            let mut number = self.units.len();
            while let Some(header) = self.header(number) {
                let _ = self.names_of(number, &header, &mut index);
                number += 1;
            }
            index
        })
    }

    fn names_of(
        &self,
        number: usize,
        header: &super::Header,
        index: &mut Index,
    ) -> Result<(), Error> {
        let unit = self.take_apart(header, None)?;
        if unit.is_skeleton() {
            self.unit(number)?;
            return Ok(());
        }
        let mut entries = unit.entries();
        while let (Some((_, entry)), true) = (entries.next_dfs()?, index.len() < NAMES_MAX) {
            let tag = match entry.tag() {
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => Tag::Struct,
                gimli::DW_TAG_union_type => Tag::Union,
                gimli::DW_TAG_enumeration_type => Tag::Enum,
                gimli::DW_TAG_typedef => Tag::Typedef,
                _ => continue,
            };
            if is_set(entry, gimli::DW_AT_declaration) {
                continue;
            }
            let name = self.name(&unit, entry);
            let id = unit.id(entry.offset());
            if let (Some(id), false) = (id, name.is_empty()) {
                index.entry((tag, name)).or_insert(id);
            }
        }
        Ok(())
    }
}
