// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Types as BTF records describe them, borrowed from the bytes.
//!
//! A [`Type`] is one record decoded, its parts still referring to other types by [`TypeId`]; nothing is followed or
//! copied. Lists (members, parameters, enumerators) stay bytes and are decoded as they are iterated. Their names were
//! checked when the [`Type`] was made, so that iterating cannot fail.

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
        /// What it stands for.
        target: TypeId,
    },
    /// A qualified type, or a tagged one.
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
        /// Its bytes.
        size: u32,
    },
    /// A remark about a declaration.
    DeclTag {
        /// The remark.
        name: &'a str,
        /// The type, variable or function that it is about.
        target: TypeId,
        /// Which of its members or parameters it is about; `None` for the whole.
        component: Option<u32>,
    },
    /// A kind that this reader does not know.
    Unknown(u8),
}

/// What stands between a name and a type.
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
    /// Bytes.
    pub size: u32,
    /// Bits that hold the value; fewer than `size` has only in bit-fields of old encoders.
    pub bits: u8,
    /// Where in the bytes these bits start.
    pub bit_offset: u8,
    /// Whether it has a sign.
    pub signed: bool,
    /// Whether it is a character.
    pub is_char: bool,
    /// Whether it is a truth value.
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
    /// Its tag; empty where it has none.
    pub name: &'a str,
    /// Its bytes.
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
    /// Bits from the start of the outer one.
    pub bit_offset: u32,
    /// Width of a bit-field, `None` for a plain member.
    pub bit_size: Option<u8>,
}

impl<'a> Composite<'a> {
    /// The members in order.
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
    /// Its tag; empty where it has none.
    pub name: &'a str,
    /// Its bytes.
    pub size: u32,
    /// Whether its values have a sign.
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
    /// Its value; the bits of an unsigned 64-bit one.
    pub value: i64,
}

impl<'a> Enum<'a> {
    /// The constants in order.
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
    /// What it returns.
    pub ret: TypeId,
    /// Whether arguments may follow those that are named.
    pub variadic: bool,
    pub(super) names: Names<'a>,
    pub(super) tail: &'a [u8],
}

/// A function's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param<'a> {
    /// Its name; empty where it has none.
    pub name: &'a str,
    /// Its type.
    pub ty: TypeId,
}

impl<'a> Proto<'a> {
    /// The parameters in order.
    pub fn params(self) -> impl ExactSizeIterator<Item = Param<'a>> {
        tuples(self.tail).map(move |[name, ty]| Param {
            name: self.names.get(name),
            ty: TypeId(ty),
        })
    }

    /// The prototype without its first `count` parameters.
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
    /// Its bytes.
    pub size: u32,
    pub(super) tail: &'a [u8],
}

/// A variable's place in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The variable.
    pub var: TypeId,
    /// Its offset in the section.
    pub offset: u32,
    /// Its bytes.
    pub size: u32,
}

impl<'a> DataSec<'a> {
    /// The variables in order.
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
    /// The name at `offset`; the lists' names were checked before.
    fn get(self, offset: u32) -> &'a str {
        self.0.string(offset).unwrap_or_default()
    }
}
