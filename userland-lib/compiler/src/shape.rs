// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A type, reduced to what printing its values needs.

use serde::{Deserialize, Serialize};

/// Levels of nesting that are printed; deeper ones become `...`.
pub const DEPTH: usize = 10;

/// A type, reduced to what printing its values needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Its name in C.
    pub name: String,
    /// Its size, bytes.
    pub size: u64,
    /// The interpretation of its bytes.
    pub form: Form,
}

/// The interpretation of a value's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// An integer.
    Int {
        /// Whether it has a sign.
        signed: bool,
    },
    /// An enumeration, with its constants.
    Enum(Vec<(String, i64)>),
    /// An address.
    Pointer,
    /// A floating-point number.
    Float,
    /// An array.
    Array {
        /// Its elements.
        element: Box<Shape>,
        /// Their number.
        count: u64,
        /// Whether it is text, which ends at its first NUL.
        text: bool,
    },
    /// A structure or union.
    Record(Vec<Field>),
    /// A value that is not printed.
    Opaque,
}

/// A member of a structure or union.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Its name; empty if it has none.
    pub name: String,
    /// Its type.
    pub shape: Shape,
    /// Its offset in the structure, bits.
    pub bit_offset: u64,
    /// Width of a bit-field, bits; 0 for a plain member.
    pub bits: u32,
}
