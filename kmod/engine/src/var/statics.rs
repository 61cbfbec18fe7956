// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Globals and clause-locals: a table of declarations, and the place of each value.
//!
//! A value of up to 8 bytes takes one word. A value by reference takes a word that says whether it
//! is NULL, followed by its bytes. Globals are in one block that all CPUs share; clause-locals have
//! the same layout in a block per CPU. Thread-locals and associative arrays are declared here too,
//! for their size, but have no place.

use super::index::Index;
use crate::dif::verify::same_var;
use crate::error::{Errno, NoMem, Reason};
use crate::mem::Vec;
use dtrace_uapi::types::{
    DifVar, DIFV_KIND_ARRAY, DIFV_SCOPE_GLOBAL, DIFV_SCOPE_LOCAL, DIFV_SCOPE_THREAD,
};
use dtrace_uapi::types::{DIF_TF_BYREF, DIF_TYPE_STRING};
use dtrace_uapi::var::OTHER_UBASE;

/// Value of the word before the bytes of a variable by reference to which NULL was assigned.
pub const NULL: u64 = u64::MAX;

/// Maximum size of the block of globals, and of a CPU's block of clause-locals, in bytes.
const STATICS_MAX: usize = 16 << 20;

/// Maximum number of bytes that a number counts as when the variables that a small space must hold
/// are counted. A script that sets such a size assumes numbers of the size of `int`, the type that
/// other DTraces give them.
const INT: usize = 4;

/// A declared variable.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The declaration.
    var: DifVar,
    /// Offset of its word in its block.
    pub offset: usize,
    /// Size of its bytes if it is by reference, else `None`.
    pub by_ref: Option<usize>,
    /// Whether it is a string.
    pub string: bool,
}

/// All variables of a consumer.
#[derive(Debug, Default)]
pub struct Table {
    places: Vec<Place>,
    /// Finds a variable's number in `places` by id and scope.
    index: Index,
    /// Bytes that the globals take.
    globals: usize,
    /// Bytes that the clause-locals of a CPU take.
    locals: usize,
    /// Bytes of the largest dynamic variable, rounded up to words.
    data_max: usize,
    /// Bytes of the largest thread-local that is no array, and of the largest element of an array.
    /// A number counts as at most an [`INT`].
    bare: [usize; 2],
}

impl Table {
    /// Returns a copy to add declarations to.
    pub fn copy(&self) -> Result<Self, NoMem> {
        Ok(Self {
            places: Vec::copy_of(&self.places)?,
            index: self.index.copy()?,
            ..*self
        })
    }

    /// Declares a variable, unless it is declared already. `EINVAL` if it was declared differently;
    /// `ENOMEM` if the variables get too large. After an error the table is unusable.
    pub fn declare(&mut self, var: &DifVar, strsize: usize) -> Result<(), Reason> {
        if var.id < u32::from(OTHER_UBASE) {
            return Ok(());
        }
        if let Some(place) = self.find(var.id, var.scope) {
            if !same_var(&place.var, var) {
                return Err(Reason::invalid(
                    "variable was declared in another way before",
                ));
            }
            return Ok(());
        }
        let string = var.ty.kind == DIF_TYPE_STRING;
        let by_ref = (var.ty.flags & DIF_TF_BYREF != 0).then_some(if string {
            strsize
        } else {
            var.ty.size as usize
        });
        let size = by_ref.map_or(8, |size| 8 + size.next_multiple_of(8));
        let mut offset = 0;
        match (var.scope, var.kind) {
            (DIFV_SCOPE_GLOBAL, kind) if kind != DIFV_KIND_ARRAY => {
                offset = self.globals;
                self.globals += size;
            }
            (DIFV_SCOPE_LOCAL, _) => {
                offset = self.locals;
                self.locals += size;
            }
            (_, kind) => {
                let size = by_ref.unwrap_or(8);
                self.data_max = self.data_max.max(size.next_multiple_of(8));
                let counted = by_ref.unwrap_or(INT.min(var.ty.size as usize)).max(1);
                let [plain, element] = &mut self.bare;
                let most = if kind == DIFV_KIND_ARRAY {
                    element
                } else {
                    plain
                };
                *most = counted.max(*most);
            }
        }
        if self.globals.max(self.locals) > STATICS_MAX {
            return Err(Reason::new(Errno::ENOMEM, "too many big variables"));
        }
        self.index.add(var.id, var.scope, self.places.len())?;
        self.places.push(Place {
            var: *var,
            offset,
            by_ref,
            string,
        })?;
        Ok(())
    }

    /// Returns the place of variable `id` in `scope`.
    pub fn find(&self, id: u32, scope: u8) -> Option<&Place> {
        self.places.get(self.index.find(id, scope)?)
    }

    /// Whether there are thread-locals or associative arrays.
    pub fn has_dynamics(&self) -> bool {
        self.places
            .iter()
            .any(|p| p.var.scope == DIFV_SCOPE_THREAD || p.var.kind == DIFV_KIND_ARRAY)
    }

    /// Returns the size of the block of globals in bytes.
    pub fn globals_size(&self) -> usize {
        self.globals
    }

    /// Returns the size of a CPU's block of clause-locals in bytes.
    pub fn locals_size(&self) -> usize {
        self.locals
    }

    /// Returns the bytes of the largest dynamic variable without any management: its value and, for
    /// an element of an array, the array and a key of `key_size` bytes.
    pub fn bare_max(&self, key_size: usize) -> usize {
        let [plain, element] = self.bare;
        match element {
            0 => plain,
            _ => plain.max(element + 8 + key_size),
        }
    }

    /// Returns the size of the largest dynamic variable in bytes.
    pub fn data_max(&self) -> usize {
        self.data_max.max(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dtrace_uapi::types::DifType;

    fn var(id: u32, scope: u8, size: u32) -> DifVar {
        DifVar {
            id,
            scope,
            kind: 1,
            ty: DifType {
                size,
                flags: if size > 8 { DIF_TF_BYREF } else { 0 },
                ..DifType::default()
            },
            ..DifVar::default()
        }
    }

    #[test]
    fn each_variable_has_a_place_of_its_own() {
        let mut t = Table::default();
        for v in [
            var(0x500, 0, 8),
            var(0x501, 0, 13),
            var(0x502, 0, 4),
            var(0x500, 2, 8),
            var(0x503, 1, 100),
        ] {
            t.declare(&v, 256).unwrap();
            t.declare(&v, 256).unwrap();
        }
        assert_eq!(t.find(0x501, 0).unwrap().offset, 8);
        assert_eq!(t.find(0x502, 0).unwrap().offset, 8 + 8 + 16);
        assert_eq!(
            (t.globals_size(), t.locals_size(), t.data_max()),
            (40, 8, 104)
        );
        assert!(t.has_dynamics());
        assert!(t.declare(&var(0x500, 0, 100), 256).is_err());
        assert!(t.find(0x500, 1).is_none());
    }
}
