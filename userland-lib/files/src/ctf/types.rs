// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Converts a dictionary's types to C types.

use super::dict::{
    word, Entry, ARRAY, CONST, ENUM, FLOAT, FORWARD, FUNCTION, INTEGER, POINTER, RESTRICT, SLICE,
    STRUCT, TYPEDEF, UNION, VOLATILE,
};
use super::Ctf;
use crate::dwarf::{Base, Budget, Error, Member, Tag, Type, TypeId};
use dtrace_uapi::names::misleads;
use std::collections::HashMap;

/// Types by name. A name that has several types is `None`, unless the parent has it.
pub(super) type Names = HashMap<(Tag, String), Option<TypeId>>;

// Flags of an integer.
const SIGNED: u32 = 1;
const CHAR: u32 = 2;
/// Encodings of real numbers: single, double and long double.
const REAL: [u32; 3] = [1, 2, 6];
/// Most members of a structure or constants of an enumeration, and most parameters of a function.
const ITEMS_MAX: usize = 1 << 16;
const PARAMETERS_MAX: usize = 256;
/// Approximate memory per name in addition to its characters, in bytes.
const KEPT: usize = 64;
/// Largest structure, in bits.
const BITS_MAX: u64 = 1 << 40;

/// Return type, parameter types, and whether further arguments may follow.
type Signature = (Option<TypeId>, Vec<Option<TypeId>>, bool);

impl Ctf {
    fn entry(&self, id: TypeId) -> Option<(usize, Entry<'_>)> {
        let (dict, number) = id.parts();
        Some((dict, self.dicts.get(dict)?.entry(number)?))
    }

    /// Returns a name; empty if it has characters that mislead.
    fn name(&self, dict: usize, name: u32) -> String {
        let text = || {
            let bytes = self.dicts.get(dict)?.bytes_at(name, &self.names)?;
            let text = String::from_utf8_lossy(bytes).into_owned();
            (!text.contains(misleads)).then_some(text)
        };
        text().unwrap_or_default()
    }

    /// Returns the type of an id.
    pub fn ty(&self, id: TypeId) -> Result<Type, Error> {
        let (dict, entry) = self.entry(id).ok_or(Error::Damaged)?;
        let name = self.name(dict, entry.name);
        let part = |at| word(entry.parts, at).ok_or(Error::Damaged);
        let target = self.id(dict, entry.target);
        Ok(match entry.kind {
            // An integer of size 0 represents `void`.
            INTEGER if entry.size == 0 => Type::Same(None),
            INTEGER => {
                let bits = part(0)? >> 24;
                Type::Number(
                    name,
                    entry.size,
                    Base::Int(bits & SIGNED != 0, bits & CHAR != 0),
                )
            }
            FLOAT if REAL.contains(&(part(0)? >> 24)) => {
                Type::Number(name, entry.size, Base::Float)
            }
            POINTER => Type::Pointer(target, self.address),
            ARRAY => {
                let count = u64::from(part(8)?);
                Type::Array(
                    self.id(dict, part(0)?),
                    vec![Some(count).filter(|count| *count > 0)],
                )
            }
            FUNCTION => {
                let (ret, params, is_variadic) = self.signature(id).ok_or(Error::Damaged)?;
                Type::Function(ret, params, is_variadic)
            }
            STRUCT | UNION => Type::Record(name, entry.kind == UNION, Some(entry.size)),
            ENUM => Type::Enum(name, entry.size, self.items(dict, &entry)),
            FORWARD => match entry.target {
                ENUM => Type::Enum(name, 4, Vec::new()),
                of => Type::Record(name, of == UNION, None),
            },
            TYPEDEF => Type::Typedef(name, target),
            CONST => Type::Const(target),
            VOLATILE | RESTRICT => Type::Same(target),
            SLICE => Type::Same(self.id(dict, part(0)?)),
            _ => Type::Other,
        })
    }

    fn items(&self, dict: usize, entry: &Entry<'_>) -> Vec<(String, i64)> {
        let items = entry.parts.chunks_exact(8).take(ITEMS_MAX);
        let items = items.filter_map(|item| {
            let value = word(item, 4)? as i32;
            Some((self.name(dict, word(item, 0)?), i64::from(value)))
        });
        items.collect()
    }

    /// Returns return type and parameters of a function type.
    pub(super) fn signature(&self, id: TypeId) -> Option<Signature> {
        let (dict, entry) = self.entry(id)?;
        if entry.kind != FUNCTION {
            return None;
        }
        let mut params: Vec<u32> = (0..entry.count.min(PARAMETERS_MAX))
            .map_while(|at| word(entry.parts, 4 * at))
            .collect();
        // A last parameter of type 0 stands for further arguments.
        let is_variadic = params.last() == Some(&0);
        if is_variadic {
            params.pop();
        }
        let params = params.into_iter().map(|number| self.id(dict, number));
        Some((self.id(dict, entry.target), params.collect(), is_variadic))
    }

    /// Returns the members of a structure or union.
    pub fn members(&self, id: TypeId) -> Result<Vec<Member>, Error> {
        let (dict, entry) = self.entry(id).ok_or(Error::Damaged)?;
        if !matches!(entry.kind, STRUCT | UNION) {
            return Ok(Vec::new());
        }
        let size = if entry.is_large() { 16 } else { 12 };
        let members = entry.parts.chunks_exact(size).take(ITEMS_MAX);
        let members = members.filter_map(|member| {
            // Short form: name, offset, type. Long form: name, high word of the offset, type, low
            // word.
            let (name, near, ty) = (word(member, 0)?, word(member, 4)?, word(member, 8)?);
            let bit_offset = match entry.is_large() {
                true => u64::from(near) << 32 | u64::from(word(member, 12)?),
                false => u64::from(near),
            };
            let (ty, bits, begin) = self.bits(self.id(dict, ty));
            let bit_offset = bit_offset.saturating_add(begin);
            (bit_offset < BITS_MAX).then(|| Member {
                name: self.name(dict, name),
                ty,
                bit_offset,
                bits,
            })
        });
        Ok(members.collect())
    }

    /// Returns the type of a member, the width of a bit-field, and the distance in bits from the
    /// member's offset to the beginning of the bit-field.
    fn bits(&self, ty: Option<TypeId>) -> (Option<TypeId>, u32, u64) {
        let slice = || {
            let (dict, entry) = self.entry(ty?)?;
            let is_slice = entry.kind == SLICE;
            let (of, place) = (word(entry.parts, 0)?, word(entry.parts, 4)?);
            let (bits, begin) = (place >> 16, u64::from(place & 0xffff));
            is_slice.then_some((self.id(dict, of), bits.min(64), begin))
        };
        slice().unwrap_or((ty, 0, 0))
    }

    /// Returns the type of this name.
    pub fn named(&self, tag: Tag, name: &str) -> Option<TypeId> {
        let names = self.named.get_or_init(|| self.find_names());
        *names.get(&(tag, name.to_owned()))?
    }

    fn find_names(&self) -> Names {
        let mut names = Names::new();
        let budget = Budget::limited();
        for (number, dict) in self.dicts.iter().enumerate() {
            for own in 1..=dict.len() as u32 {
                let Some(entry) = dict.entry(own).filter(|entry| entry.is_root) else {
                    continue;
                };
                let tag = match entry.kind {
                    STRUCT => Tag::Struct,
                    UNION => Tag::Union,
                    ENUM => Tag::Enum,
                    TYPEDEF => Tag::Typedef,
                    _ => continue,
                };
                let name = self.name(number, entry.name);
                if budget.keep(name.len() + KEPT).is_err() {
                    return names;
                }
                if name.is_empty() {
                    continue;
                }
                let id = TypeId::of(number, own);
                let known = names.entry((tag, name)).or_insert(Some(id));
                // The parent has the types on which all units agree, so its type takes precedence.
                *known = known.filter(|known| *known == id || known.parts().0 == 0);
            }
        }
        names
    }
}
