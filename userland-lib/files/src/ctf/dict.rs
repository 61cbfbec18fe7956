// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A dictionary: a sequence of types.
//!
//! A type consists of three words (name, kind, and either its size or the type that it refers to)
//! and a tail that depends on the kind. Types are numbered from 1. A name is an offset in the
//! dictionary's own string table or in that of the symbols.

use crate::dwarf::{Budget, Error};
use flate2::read::ZlibDecoder;
use std::io::Read as _;
use std::ops::Range;

const MAGIC: u16 = 0xdff2;
const VERSION_3: u8 = 4;
/// Size of the header in bytes.
const HEADER: usize = 52;
/// Flag: the data after the header is compressed.
const PACKED: u8 = 1;
/// Flag: the function section lists the numbers of the functions' types.
const NEW_FUNCTIONS: u8 = 2;
/// Flag: symbols and external names are those of the dynamic symbol table.
const DYNAMIC: u8 = 8;

/// In the number of a type, this bit distinguishes a child's own types from those of its parent. In
/// a name, it selects the string table of the symbols instead of the dictionary's own.
pub const OWN: u32 = 1 << 31;
/// Stands for a size that follows in two further words.
const LARGE: u32 = u32::MAX;
/// Structures of at least this size in bytes have members in a longer form.
const LARGE_RECORD: u64 = 0x2000_0000;

// Kinds of types.
pub const INTEGER: u32 = 1;
pub const FLOAT: u32 = 2;
pub const POINTER: u32 = 3;
pub const ARRAY: u32 = 4;
pub const FUNCTION: u32 = 5;
pub const STRUCT: u32 = 6;
pub const UNION: u32 = 7;
pub const ENUM: u32 = 8;
pub const FORWARD: u32 = 9;
pub const TYPEDEF: u32 = 10;
pub const VOLATILE: u32 = 11;
pub const CONST: u32 = 12;
pub const RESTRICT: u32 = 13;
pub const SLICE: u32 = 14;

/// A type as stored.
#[derive(Clone, Copy)]
pub struct Entry<'d> {
    pub name: u32,
    pub kind: u32,
    /// Whether the type can be looked up by name.
    pub is_root: bool,
    /// Number of its parts (members, constants or parameters).
    pub count: usize,
    /// Third word: the type that it refers to, the kind of a forward declaration, or the size
    /// ([`LARGE`] if that does not fit).
    pub target: u32,
    /// Size in bytes.
    pub size: u64,
    /// The tail that depends on the kind.
    pub parts: &'d [u8],
}

impl Entry<'_> {
    /// Whether its members have the longer form, whose offsets have 64 bits.
    pub fn is_large(&self) -> bool {
        self.size >= LARGE_RECORD
    }
}

/// A dictionary.
pub struct Dict {
    pub is_child: bool,
    /// Whether it uses the dynamic symbol table and its names.
    pub is_dynamic: bool,
    /// The data after the header.
    data: Vec<u8>,
    functions: Range<usize>,
    function_names: Range<usize>,
    texts: Range<usize>,
    /// Offset of each type in `data`.
    types: Vec<u32>,
}

impl Dict {
    /// Parses a dictionary, beginning with its header.
    pub fn parse(bytes: &[u8], budget: &Budget) -> Result<Self, Error> {
        let (header, rest) = bytes.split_at_checked(HEADER).ok_or(Error::Damaged)?;
        let (version, flags) = (header[2], header[3]);
        if header[..2] != MAGIC.to_le_bytes() || version != VERSION_3 {
            return Err(Error::Unsupported(
                "its types are of another version (.ctf)",
            ));
        }
        let field = |at: usize| word(header, at).map_or(0, |word| word as usize);
        let parent = field(8);
        let [functions, object_names, function_names, variables, types, texts, length] =
            [24, 28, 32, 36, 40, 44, 48].map(field);
        let end = texts.checked_add(length).ok_or(Error::Damaged)?;
        let data = match flags & PACKED {
            0 => {
                budget.keep(end)?;
                rest.get(..end).ok_or(Error::Damaged)?.to_vec()
            }
            _ => unpack(rest, end, budget)?,
        };
        let is_listed = flags & NEW_FUNCTIONS != 0;
        let order = [
            functions,
            object_names,
            function_names,
            variables,
            types,
            texts,
            end,
        ];
        if !order.is_sorted() || data.len() < end {
            return Err(Error::Damaged);
        }
        let mut dict = Self {
            is_child: parent != 0,
            is_dynamic: flags & DYNAMIC != 0,
            data,
            functions: functions..if is_listed { object_names } else { functions },
            function_names: function_names..variables,
            texts: texts..end,
            types: Vec::new(),
        };
        dict.find_types(types..texts, budget)?;
        Ok(dict)
    }

    fn find_types(&mut self, all: Range<usize>, budget: &Budget) -> Result<(), Error> {
        let mut at = all.start;
        while at < all.end {
            // Damaged data ends the list.
            let Some((_, end)) = self.entry_at(at) else {
                break;
            };
            budget.keep(size_of::<u32>())?;
            self.types.push(at as u32);
            at = end;
        }
        Ok(())
    }

    /// Number of types.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Returns the type with this number.
    pub fn entry(&self, number: u32) -> Option<Entry<'_>> {
        let at = *self.types.get((number as usize).checked_sub(1)?)?;
        self.entry_at(at as usize).map(|(entry, _)| entry)
    }

    /// Parses the type at an offset. Returns it and the offset of its end.
    fn entry_at(&self, at: usize) -> Option<(Entry<'_>, usize)> {
        let data = self.data.get(..self.texts.start)?.get(at..)?;
        let (name, info, target) = (word(data, 0)?, word(data, 4)?, word(data, 8)?);
        let (size, head) = match target {
            LARGE => (
                u64::from(word(data, 12)?) << 32 | u64::from(word(data, 16)?),
                20,
            ),
            _ => (u64::from(target), 12),
        };
        let (kind, count) = (info >> 26, (info & 0xff_ffff) as usize);
        let length = match kind {
            INTEGER | FLOAT => 4,
            SLICE => 8,
            ARRAY => 12,
            FUNCTION => 4 * count.next_multiple_of(2),
            STRUCT | UNION if size >= LARGE_RECORD => 16 * count,
            STRUCT | UNION => 12 * count,
            ENUM => 8 * count,
            _ => 0,
        };
        let entry = Entry {
            name,
            kind,
            is_root: info >> 25 & 1 != 0,
            count,
            target,
            size,
            parts: data.get(head..)?.get(..length)?,
        };
        Some((entry, at + head + length))
    }

    /// Returns the type numbers of functions, in the order of the symbols or of
    /// [`function_names`](Self::function_names).
    pub fn functions(&self) -> &[u8] {
        self.data.get(self.functions.clone()).unwrap_or_default()
    }

    /// Returns the names of these functions, if they are listed by name.
    pub fn function_names(&self) -> Option<&[u8]> {
        let names = self.data.get(self.function_names.clone())?;
        (!names.is_empty()).then_some(names)
    }

    /// Returns the bytes of a name. `symbols` is the string table of the symbols.
    pub fn bytes_at<'a>(&'a self, name: u32, symbols: &'a [u8]) -> Option<&'a [u8]> {
        let texts = match name & OWN {
            0 => self.data.get(self.texts.clone())?,
            _ => symbols,
        };
        let text = texts.get((name & !OWN) as usize..)?;
        let text = &text[..text.len().min(crate::dwarf::NAME_MAX + 1)];
        let end = text.iter().position(|byte| *byte == 0)?;
        text.get(..end)
    }
}

/// Unpacks data whose unpacked size should be `size` bytes; less is possible, more is cut off.
fn unpack(packed: &[u8], size: usize, budget: &Budget) -> Result<Vec<u8>, Error> {
    budget.keep(size)?;
    let mut data = Vec::new();
    let done = ZlibDecoder::new(packed)
        .take(size as u64)
        .read_to_end(&mut data);
    done.map_err(|_| Error::Damaged)?;
    Ok(data)
}

/// Returns the word at an offset.
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}
