// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Types as BTF records describe them, borrowed from the bytes.
//!
//! A [`Type`] is one decoded record. Its parts refer to other types by [`TypeId`]; nothing is
//! followed or copied. Lists (members, parameters, enumerators) stay bytes and are decoded during
//! iteration. Their names are checked when the [`Type`] is made, so iteration cannot fail.

use super::wire::tuples;
use super::Btf;
use std::fmt;

/// Number of a type in its BTF; 0 is `void`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

impl TypeId {
    /// `void`
    pub const VOID: Self = Self(0);
}

impl fmt::Display for TypeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A type.
#[derive(Clone, Copy, Debug)]
pub enum Type<'a> {
    /// `void`
    Void,
    /// An integer.
    Int(Int<'a>),
    /// A pointer.
    Ptr(TypeId),
    /// An array.
    Array(Array),
    /// A structure.
    Struct(Composite<'a>),
    /// A union.
    Union(Composite<'a>),
    /// An enumeration of either width.
    Enum(Enum<'a>),
    /// A structure or union of which only the name is known.
    Fwd {
        /// Its tag.
        name: &'a str,
        /// Whether it is a union.
        is_union: bool,
    },
    /// A typedef.
    Typedef {
        /// Its name.
        name: &'a str,
        /// The type that it stands for.
        target: TypeId,
    },
    /// A qualified or tagged type, with the type below.
    Qualified(Qualifier<'a>, TypeId),
    /// A function.
    Func {
        /// Its name.
        name: &'a str,
        /// Its prototype.
        proto: TypeId,
    },
    /// A prototype.
    FuncProto(Proto<'a>),
    /// A variable.
    Var {
        /// Its name.
        name: &'a str,
        /// Its type.
        ty: TypeId,
    },
    /// A section of variables.
    DataSec(DataSec<'a>),
    /// A floating-point number.
    Float {
        /// Its name.
        name: &'a str,
        /// Its size in bytes.
        size: u32,
    },
    /// A tag on a declaration.
    DeclTag {
        /// The text of the tag.
        name: &'a str,
        /// The type, variable or function that carries the tag.
        target: TypeId,
        /// The index of the member or parameter that carries the tag; `None` for the whole
        /// declaration.
        component: Option<u32>,
    },
    /// A kind that this reader does not know, by its number.
    Unknown(u8),
}

/// A qualifier or tag of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Qualifier<'a> {
    /// `const`
    Const,
    /// `volatile`
    Volatile,
    /// `restrict`
    Restrict,
    /// An attribute such as `user` or `percpu`.
    Tag(&'a str),
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its size in bytes.
    pub size: u32,
    /// Number of bits that hold the value. It is less than `size` bytes only for bit-fields of old
    /// encoders.
    pub bits: u8,
    /// Offset of these bits in bits.
    pub bit_offset: u8,
    /// Whether it is signed.
    pub signed: bool,
    /// Whether it is a character type.
    pub is_char: bool,
    /// Whether it is a boolean type.
    pub is_bool: bool,
}

/// An array type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    /// Type of the elements.
    pub element: TypeId,
    /// Type of the index.
    pub index: TypeId,
    /// Number of elements; 0 for a flexible array.
    pub count: u32,
}

/// A structure or union.
#[derive(Clone, Copy)]
pub struct Composite<'a> {
    /// Its tag; empty if it has none.
    pub name: &'a str,
    /// Its size in bytes.
    pub size: u32,
    pub(super) packed: bool,
    pub(super) names: Names<'a>,
    pub(super) tail: &'a [u8],
}

/// A member of a structure or union.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its name; empty for an anonymous structure or union, whose members belong to the outer one.
    pub name: &'a str,
    /// Its type.
    pub ty: TypeId,
    /// Offset from the start of the structure or union in bits.
    pub bit_offset: u32,
    /// Width of a bit-field in bits; `None` for a plain member.
    pub bit_size: Option<u8>,
}

impl<'a> Composite<'a> {
    /// Returns the members in order.
    pub fn members(self) -> impl ExactSizeIterator<Item = Member<'a>> {
        tuples(self.tail).map(move |[name, ty, offset]| {
            let width = (offset >> 24) as u8;
            Member {
                name: self.names.get(name),
                ty: TypeId(ty),
                bit_offset: if self.packed {
                    offset & 0x00ff_ffff
                } else {
                    offset
                },
                bit_size: (self.packed && width != 0).then_some(width),
            }
        })
    }
}

impl fmt::Debug for Composite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Composite")
            .field("name", &self.name)
            .field("size", &self.size)
            .field("members", &self.members().collect::<Vec<_>>())
            .finish()
    }
}

/// An enumeration.
#[derive(Clone, Copy)]
pub struct Enum<'a> {
    /// Its tag; empty if it has none.
    pub name: &'a str,
    /// Its size in bytes.
    pub size: u32,
    /// Whether its values are signed.
    pub signed: bool,
    pub(super) wide: bool,
    pub(super) names: Names<'a>,
    pub(super) tail: &'a [u8],
}

/// A constant of an enumeration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enumerator<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value. An unsigned 64-bit value is stored as its bits.
    pub value: i64,
}

impl<'a> Enum<'a> {
    /// Returns the constants in order.
    pub fn enumerators(self) -> impl ExactSizeIterator<Item = Enumerator<'a>> {
        let each = if self.wide { 3 } else { 2 };
        self.tail.chunks_exact(each * 4).map(move |entry| {
            let at = |i: usize| super::wire::word(entry, i * 4).unwrap_or(0);
            let value = if self.wide {
                (u64::from(at(2)) << 32 | u64::from(at(1))) as i64
            } else if self.signed {
                i64::from(at(1) as i32)
            } else {
                i64::from(at(1))
            };
            Enumerator {
                name: self.names.get(at(0)),
                value,
            }
        })
    }
}

impl fmt::Debug for Enum<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enum")
            .field("name", &self.name)
            .field("size", &self.size)
            .field("enumerators", &self.enumerators().collect::<Vec<_>>())
            .finish()
    }
}

/// A function's prototype.
#[derive(Clone, Copy)]
pub struct Proto<'a> {
    /// Its return type.
    pub ret: TypeId,
    /// Whether further arguments may follow the named ones.
    pub variadic: bool,
    pub(super) names: Names<'a>,
    pub(super) tail: &'a [u8],
}

/// A function's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param<'a> {
    /// Its name; empty if it has none.
    pub name: &'a str,
    /// Its type.
    pub ty: TypeId,
}

impl<'a> Proto<'a> {
    /// Returns the parameters in order.
    pub fn params(self) -> impl ExactSizeIterator<Item = Param<'a>> {
        tuples(self.tail).map(move |[name, ty]| Param {
            name: self.names.get(name),
            ty: TypeId(ty),
        })
    }

    /// Returns the prototype without its first `count` parameters.
    pub fn skip(self, count: usize) -> Self {
        Self {
            tail: self.tail.get(count * 8..).unwrap_or_default(),
            ..self
        }
    }
}

impl fmt::Debug for Proto<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proto")
            .field("ret", &self.ret)
            .field("params", &self.params().collect::<Vec<_>>())
            .field("variadic", &self.variadic)
            .finish()
    }
}

/// A section of variables.
#[derive(Clone, Copy, Debug)]
pub struct DataSec<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its size in bytes.
    pub size: u32,
    pub(super) tail: &'a [u8],
}

/// The position of a variable in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The variable.
    pub var: TypeId,
    /// Its offset in the section in bytes.
    pub offset: u32,
    /// Its size in bytes.
    pub size: u32,
}

impl<'a> DataSec<'a> {
    /// Returns the variables in order.
    pub fn vars(self) -> impl ExactSizeIterator<Item = Placed> + 'a {
        tuples(self.tail).map(|[var, offset, size]| Placed {
            var: TypeId(var),
            offset,
            size,
        })
    }
}

/// The strings of a BTF and of its base.
#[derive(Clone, Copy)]
pub struct Names<'a>(pub(super) &'a Btf);

impl<'a> Names<'a> {
    /// Returns the name at `offset`. The names of the lists have been checked, so the default is
    /// not used.
    fn get(self, offset: u32) -> &'a str {
        self.0.string(offset).unwrap_or_default()
    }
}
