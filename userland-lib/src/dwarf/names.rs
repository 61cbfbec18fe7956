// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Types by their names.
//!
//! Each unit has types of its own, mostly the same ones under the same names. The first that is whole stands for all. To know
//! the names every unit is looked through, once, and only for who asks by name.

use super::{is_set, DebugInfo, Error, TypeId};
use std::collections::HashMap;

/// Names that are kept.
const NAMES_MAX: usize = 1 << 22;

/// Which space a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// `struct`, or a class.
    Struct,
    /// `union`
    Union,
    /// `enum`
    Enum,
    /// A name without a word before it: a typedef.
    Typedef,
}

/// Types by their names.
pub(super) type Index = HashMap<(Tag, String), TypeId>;

impl DebugInfo {
    /// The type of this name.
    pub fn named(&self, tag: Tag, name: &str) -> Option<TypeId> {
        self.names().get(&(tag, name.to_owned())).copied()
    }

    fn names(&self) -> &Index {
        self.names.get_or_init(|| {
            let mut index = Index::new();
            // Whatever one unit hides, others show.
            for (number, header) in self.units.iter().enumerate() {
                let _ = self.names_of(number, header, &mut index);
            }
            // Skeletons have brought those that they stand for.
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
