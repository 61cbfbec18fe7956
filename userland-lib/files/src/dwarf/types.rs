// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Converts type entries to C types.
//!
//! Constructs of other languages are converted if C has an equivalent: a class becomes a structure
//! whose bases are unnamed members, and a reference becomes a pointer. Anything else becomes
//! [`Type::Other`].

use super::{is_set, number, DebugInfo, Entry, Error, TypeId};
use gimli::{AttributeValue, Operation};

/// Most members of a structure, or constants of an enumeration.
const ITEMS_MAX: usize = 1 << 16;
/// Most dimensions of an array.
const DIMENSIONS_MAX: usize = 8;
/// Largest structure, in bits.
const BITS_MAX: u64 = 1 << 40;

/// Kind of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// An integer: whether it is signed, and whether it is a character.
    Int(bool, bool),
    /// A floating-point number.
    Float,
}

/// A type. Types that it refers to are given by id; `None` is `void`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number: name, size in bytes, kind.
    Number(String, u64, Base),
    /// A pointer: target, size in bytes.
    Pointer(Option<TypeId>, u64),
    /// An array: element type, and the sizes of its dimensions where they are known.
    Array(Option<TypeId>, Vec<Option<u64>>),
    /// A typedef: name and type.
    Typedef(String, Option<TypeId>),
    /// A `const` type.
    Const(Option<TypeId>),
    /// A type that reads like its target: `volatile`, `restrict`, `_Atomic`.
    Same(Option<TypeId>),
    /// A function: return type, parameter types, and whether it takes further arguments.
    Function(Option<TypeId>, Vec<Option<TypeId>>, bool),
    /// A structure or union: name, whether it is a union, and its size in bytes, or `None` if it is
    /// only declared.
    Record(String, bool, Option<u64>),
    /// An enumeration: name, size in bytes, constants.
    Enum(String, u64, Vec<(String, i64)>),
    /// A type that C does not have.
    Other,
}

/// A member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name; empty for an anonymous member whose own members belong to the outer structure.
    pub name: String,
    /// Its type.
    pub ty: Option<TypeId>,
    /// Offset of its lowest bit from the beginning of the structure, in bits.
    pub bit_offset: u64,
    /// Width of a bit-field in bits, otherwise 0.
    pub bits: u32,
}

impl DebugInfo {
    /// Returns the type of an entry.
    pub fn ty(&self, id: TypeId) -> Result<Type, Error> {
        let (unit, offset) = self.locate(id)?;
        let entry = unit.entry(offset)?;
        let name = self.name(&unit, &entry);
        let target = self.reference(&unit, &entry, gimli::DW_AT_type);
        let size = number(&entry, gimli::DW_AT_byte_size);
        Ok(match entry.tag() {
            gimli::DW_TAG_base_type => base(name, size.unwrap_or(0), &entry),
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => {
                let size = size.unwrap_or(u64::from(unit.encoding().address_size));
                Type::Pointer(target, size)
            }
            gimli::DW_TAG_array_type => Type::Array(target, self.dimensions(id)?),
            gimli::DW_TAG_typedef => Type::Typedef(name, target),
            gimli::DW_TAG_const_type => Type::Const(target),
            gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type => Type::Same(target),
            gimli::DW_TAG_subroutine_type => {
                let params = self.parameters(id)?.into_iter().map(|(_, ty)| ty);
                Type::Function(target, params.collect(), self.is_variadic(id)?)
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => {
                let is_union = entry.tag() == gimli::DW_TAG_union_type;
                let is_whole = !is_set(&entry, gimli::DW_AT_declaration);
                let size = size.unwrap_or(0);
                Type::Record(name, is_union, is_whole.then_some(size))
            }
            gimli::DW_TAG_enumeration_type => Type::Enum(name, size.unwrap_or(4), self.items(id)?),
            _ => Type::Other,
        })
    }

    /// Returns the type that a declaration stands for if that is in a type unit, otherwise `id`
    /// itself.
    pub fn defined(&self, id: TypeId) -> TypeId {
        let signed = || {
            let (unit, offset) = self.locate(id).ok()?;
            let entry = unit.entry(offset).ok()?;
            self.reference(&unit, &entry, gimli::DW_AT_signature)
        };
        signed().unwrap_or(id)
    }

    fn dimensions(&self, id: TypeId) -> Result<Vec<Option<u64>>, Error> {
        let mut counts = Vec::new();
        self.children(id, |_, entry| {
            if entry.tag() == gimli::DW_TAG_subrange_type {
                let last = number(entry, gimli::DW_AT_upper_bound);
                let count = number(entry, gimli::DW_AT_count);
                counts.push(count.or(last.and_then(|last| last.checked_add(1))));
            }
            counts.len() < DIMENSIONS_MAX
        })?;
        Ok(counts)
    }

    fn items(&self, id: TypeId) -> Result<Vec<(String, i64)>, Error> {
        let mut items = Vec::new();
        self.children(id, |unit, entry| {
            if entry.tag() == gimli::DW_TAG_enumerator {
                let value = match entry.attr_value(gimli::DW_AT_const_value) {
                    Ok(Some(AttributeValue::Sdata(value))) => value,
                    // Short forms hold an unsigned number.
                    Ok(Some(value)) => value.udata_value().unwrap_or(0) as i64,
                    _ => 0,
                };
                items.push((self.name(unit, entry), value));
            }
            items.len() < ITEMS_MAX
        })?;
        Ok(items)
    }

    /// Returns the members of a structure or union.
    pub fn members(&self, id: TypeId) -> Result<Vec<Member>, Error> {
        let mut members = Vec::new();
        self.children(id, |unit, entry| {
            let (is_member, is_base) = match entry.tag() {
                gimli::DW_TAG_member => (true, false),
                gimli::DW_TAG_inheritance => (true, true),
                _ => (false, false),
            };
            let ty = self.reference(unit, entry, gimli::DW_AT_type);
            if let (true, Some((bit_offset, bits))) = (is_member, self.place(unit, entry, ty)) {
                let name = match is_base {
                    true => String::new(),
                    false => self.name(unit, entry),
                };
                members.push(Member {
                    name,
                    ty,
                    bit_offset,
                    bits,
                });
            }
            members.len() < ITEMS_MAX
        })?;
        Ok(members)
    }

    /// Returns the offset of a member and the width of a bit-field, both in bits. Returns `None` if
    /// the offset is known only at run time (as for a virtual base) or out of range.
    fn place(
        &self,
        unit: &super::Unit,
        entry: &Entry<'_>,
        ty: Option<TypeId>,
    ) -> Option<(u64, u32)> {
        let bytes = match entry.attr_value(gimli::DW_AT_data_member_location).ok()? {
            None => 0,
            Some(AttributeValue::Exprloc(expression)) => {
                let mut operations = expression.operations(unit.encoding());
                match (operations.next().ok()?, operations.next().ok()?) {
                    (Some(Operation::PlusConstant { value }), None) => value,
                    _ => return None,
                }
            }
            Some(value) => value.udata_value()?,
        };
        let start = bytes.checked_mul(8)?;
        let bits = number(entry, gimli::DW_AT_bit_size).unwrap_or(0);
        let from_start = number(entry, gimli::DW_AT_data_bit_offset);
        let from_end = number(entry, gimli::DW_AT_bit_offset);
        let offset = match (from_start, from_end) {
            (Some(offset), _) => start.checked_add(offset)?,
            // `DW_AT_bit_offset` (DWARF 2 and 3) counts from the most significant bit of the
            // storage unit.
            (None, Some(offset)) => {
                let own = number(entry, gimli::DW_AT_byte_size);
                let holder = own.or_else(|| self.size(ty?))?.checked_mul(8)?;
                let used = offset.checked_add(bits)?;
                start.checked_add(holder.checked_sub(used)?)?
            }
            (None, None) => start,
        };
        let bits = u32::try_from(bits).ok().filter(|bits| *bits <= 64)?;
        (offset < BITS_MAX).then_some((offset, bits))
    }

    /// Returns the size in bytes of a number or enumeration, through typedefs and qualifiers.
    fn size(&self, id: TypeId) -> Option<u64> {
        let mut id = id;
        for _ in 0..super::CHAIN_MAX {
            match self.ty(id).ok()? {
                Type::Number(_, size, _) | Type::Enum(_, size, _) => return Some(size),
                Type::Typedef(_, to) | Type::Const(to) | Type::Same(to) => id = to?,
                _ => return None,
            }
        }
        None
    }
}

fn base(name: String, size: u64, entry: &Entry<'_>) -> Type {
    let encoding = match entry.attr_value(gimli::DW_AT_encoding) {
        Ok(Some(AttributeValue::Encoding(encoding))) => encoding,
        _ => return Type::Other,
    };
    let base = match encoding {
        gimli::DW_ATE_signed => Base::Int(true, false),
        gimli::DW_ATE_signed_char => Base::Int(true, true),
        gimli::DW_ATE_unsigned | gimli::DW_ATE_boolean | gimli::DW_ATE_address => {
            Base::Int(false, false)
        }
        gimli::DW_ATE_unsigned_char => Base::Int(false, true),
        gimli::DW_ATE_UTF => Base::Int(false, size == 1),
        gimli::DW_ATE_float => Base::Float,
        _ => return Type::Other,
    };
    Type::Number(name, size, base)
}
