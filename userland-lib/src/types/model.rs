// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Data models: how large C's `long` and pointers are.
//!
//! A program is of the kernel's model unless `-32` says otherwise: then the types that it names are those of 32-bit
//! programs, so that their structures can be read as they lie in memory. Only what a program itself writes is of its model:
//! the kernel's types are what they are, and so are those of the D libraries, which speak of the kernel.
//!
//! Invariant: a value in a register and a variable that is a pointer have 64 bits in both models, so that addresses of the
//! kernel and of scratch memory can be held; a pointer is narrow where its place in memory is the program's to declare.

use super::{IntType, Kind, Ty, Types};
use crate::arch::HOST;

/// How large C's types are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataModel {
    /// `long` and pointers have 64 bits.
    #[default]
    Lp64,
    /// `int`, `long` and pointers have 32 bits.
    Ilp32,
}

/// D's own typedefs that are as large as a `long` or a pointer. Others, such as `int64_t`, have one size.
const OF_MODEL: [&str; 6] = [
    "intptr_t",
    "size_t",
    "ssize_t",
    "u_long",
    "uintptr_t",
    "ulong_t",
];

impl DataModel {
    /// Bytes of a `long` and of a pointer.
    pub const fn long(self) -> u8 {
        match self {
            Self::Lp64 => 8,
            Self::Ilp32 => 4,
        }
    }

    /// The largest alignment that a number has in a structure, bytes. i386 has none larger than a word's.
    pub const fn alignment(self) -> u64 {
        match self {
            Self::Lp64 => 16,
            Self::Ilp32 => HOST.narrow_alignment,
        }
    }
}

impl Types<'_> {
    /// Types that are named from now on are of this model.
    pub fn set_model(&mut self, model: DataModel) {
        self.model = model;
    }

    /// The model of types that are named now.
    pub fn model(&self) -> DataModel {
        self.model
    }

    /// What C's words, or a name of D's own, that stand for `ty` in the kernel's model stand for in the program's.
    pub fn in_model(&mut self, ty: Ty) -> Ty {
        if self.model == DataModel::Lp64 {
            return ty;
        }
        match (ty, self.kind(ty).clone()) {
            (Ty::LONG, _) => self.narrow("long", true),
            (Ty::ULONG, _) => self.narrow("unsigned long", false),
            (_, Kind::Typedef(name, target @ (Ty::LONG | Ty::ULONG)))
                if OF_MODEL.contains(&&*name) =>
            {
                let target = self.in_model(target);
                self.enter(Kind::Typedef(name, target))
            }
            _ => ty,
        }
    }

    /// The type of the integer constant `value` that has the type `ty` in the kernel's model.
    pub fn constant_in_model(&mut self, ty: Ty, value: u64) -> Ty {
        match (self.model, ty) {
            (DataModel::Ilp32, Ty::LONG) if value > i32::MAX as u64 => Ty::LONGLONG,
            (DataModel::Ilp32, Ty::ULONG) if value > u64::from(u32::MAX) => Ty::ULONGLONG,
            _ => self.in_model(ty),
        }
    }

    fn narrow(&mut self, name: &str, signed: bool) -> Ty {
        self.enter(Kind::Int {
            name: name.into(),
            int: IntType { size: 4, signed },
            is_char: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::Nowhere;

    #[test]
    fn what_is_as_large_as_a_long_depends_on_the_model() {
        let mut types = Types::new(&Nowhere);
        let sizes = |types: &mut Types<'_>| {
            [Ty::LONG, Ty::SIZE_T, Ty::INT64_T, Ty::LONGLONG, Ty::INT].map(|ty| {
                let ty = types.in_model(ty);
                types.size(ty).unwrap_or(0)
            })
        };
        assert_eq!(sizes(&mut types), [8, 8, 8, 8, 4]);
        types.set_model(DataModel::Ilp32);
        assert_eq!(sizes(&mut types), [4, 4, 8, 8, 4]);
        let long = types.in_model(Ty::ULONG);
        assert_eq!(types.name(long), "unsigned long");
        let constants = [
            (Ty::LONG, 7, 4),
            (Ty::LONG, 1 << 31, 8),
            (Ty::ULONG, 1 << 31, 4),
            (Ty::ULONG, 1 << 32, 8),
            (Ty::INT, 7, 4),
        ];
        for (ty, value, size) in constants {
            let ty = types.constant_in_model(ty, value);
            assert_eq!(types.size(ty), Some(size), "{value:#x}");
        }
        types.set_model(DataModel::Lp64);
        assert_eq!(sizes(&mut types), [8, 8, 8, 8, 4]);
    }

    #[test]
    fn pointers_are_narrow_in_memory_alone() {
        let mut types = Types::new(&Nowhere);
        types.set_model(DataModel::Ilp32);
        let pointer = types.declared_pointer_to(Ty::INT, false);
        assert_eq!(types.size(pointer), Some(4));
        assert_eq!(types.dif_type(pointer).size, 8);
        let (members, wide) = (
            vec![("a", pointer), ("b", Ty::CHAR)],
            types.pointer_to(Ty::INT),
        );
        let members = members
            .into_iter()
            .map(|(name, ty)| (name.to_owned(), ty, None))
            .collect();
        let record = types
            .declare_record(false, Some("s"), Some(members))
            .unwrap();
        assert_eq!(types.size(record), Some(8));
        assert_eq!(types.size(wide), Some(8));
        let members = [("a", Ty::INT), ("b", Ty::INT64_T)];
        let members = members.map(|(name, ty)| (name.to_owned(), ty, None));
        let record = types
            .declare_record(false, Some("t"), Some(members.into()))
            .unwrap();
        assert_eq!(types.size(record), Some(8 + DataModel::Ilp32.alignment()));
        assert!(types.compatible(pointer, wide));
        assert_eq!(types.name(pointer), "int *");
    }
}
