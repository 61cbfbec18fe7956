// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Data models: the sizes of C's `long` and of pointers.
//!
//! A program has the kernel's model unless `-32` is given. With `-32`, the types that the program
//! names are those of 32-bit programs, so that it can read their structures as they lie in memory.
//! The model applies only to what the program itself writes: the kernel's types keep their sizes,
//! and so do the types of the D libraries, which describe the kernel.
//!
//! Invariant: in both models a value in a register and a variable of pointer type have 64 bits, so
//! that they can hold addresses of the kernel and of scratch memory. A pointer is narrow only where
//! the program declares its layout in memory.

use super::{IntType, Kind, Ty, Types};
use dtrace_files::arch::HOST;

/// The sizes of C's types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataModel {
    /// `long` and pointers have 64 bits.
    #[default]
    Lp64,
    /// `int`, `long` and pointers have 32 bits.
    Ilp32,
}

/// D's own typedefs of the size of a `long` or a pointer. All others, such as `int64_t`, have a
/// fixed size.
const OF_MODEL: [&str; 6] = [
    "intptr_t",
    "size_t",
    "ssize_t",
    "u_long",
    "uintptr_t",
    "ulong_t",
];

impl DataModel {
    /// Size of a `long` and of a pointer in bytes.
    pub const fn long(self) -> u8 {
        match self {
            Self::Lp64 => 8,
            Self::Ilp32 => 4,
        }
    }

    /// Largest alignment, in bytes, that a number has in a structure. On i386 no number is aligned
    /// to more than a word.
    pub const fn alignment(self) -> u64 {
        match self {
            Self::Lp64 => 16,
            Self::Ilp32 => HOST.narrow_alignment,
        }
    }
}

impl Types<'_> {
    /// Sets the model of the types that are named after this call.
    pub fn set_model(&mut self, model: DataModel) {
        self.model = model;
    }

    /// Returns the model of the types that are named after this call.
    pub fn model(&self) -> DataModel {
        self.model
    }

    /// Returns the type that a basic C type or one of D's typedefs has in the current model; `ty`
    /// is its type in the kernel's model.
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

    /// Returns the type that the integer constant `value` has in the current model; `ty` is its
    /// type in the kernel's model.
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
    use dtrace_objects::processes::Nowhere;

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
