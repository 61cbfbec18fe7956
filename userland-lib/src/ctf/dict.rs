// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A dictionary: types, one after another.
//!
//! A type is three words (name, kind, and size or the type that it refers to) and what its kind adds. The first has the number 1. A name is
//! a place in the dictionary's own texts, or in those of the symbol table.

use crate::dwarf::{Budget, Error};
use flate2::read::ZlibDecoder;
use std::io::Read as _;
use std::ops::Range;

const MAGIC: u16 = 0xdff2;
const VERSION_3: u8 = 4;
/// Bytes of the header.
const HEADER: usize = 52;
/// What follows the header is packed.
const PACKED: u8 = 1;
/// Functions are listed as their types' numbers.
const NEW_FUNCTIONS: u8 = 2;
/// The symbols are the dynamic ones.
const DYNAMIC: u8 = 8;

/// The bit of a number, or a name, that is of the dictionary itself and not of its parent, or of the symbol table's texts.
pub const OWN: u32 = 1 << 31;
/// Stands for a size that needs two more words.
const LARGE: u32 = u32::MAX;
/// Structures from this size on have members of another form.
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

/// A type as it lies there.
#[derive(Clone, Copy)]
pub struct Entry<'d> {
    pub name: u32,
    pub kind: u32,
    /// Whether it is found by its name.
    pub is_root: bool,
    /// How many parts it has.
    pub count: usize,
    /// The type that it refers to, or its bytes if these are no more than a word tells.
    pub target: u32,
    /// Its bytes.
    pub size: u64,
    /// What its kind adds.
    pub parts: &'d [u8],
}

impl Entry<'_> {
    /// Whether its members are of the form that has far ones.
    pub fn is_large(&self) -> bool {
        self.size >= LARGE_RECORD
    }
}

/// A dictionary.
pub struct Dict {
    pub is_child: bool,
    /// Whether symbols and their names are the dynamic ones.
    pub is_dynamic: bool,
    /// What follows the header.
    data: Vec<u8>,
    functions: Range<usize>,
    function_names: Range<usize>,
    texts: Range<usize>,
    /// Where the types are.
    types: Vec<u32>,
}

impl Dict {
    /// A dictionary that begins with its header.
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
            // What is damaged ends the list.
            let Some((_, end)) = self.entry_at(at) else {
                break;
            };
            budget.keep(size_of::<u32>())?;
            self.types.push(at as u32);
            at = end;
        }
        Ok(())
    }

    /// How many types it has.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// The type of a number, as it is told.
    pub fn entry(&self, number: u32) -> Option<Entry<'_>> {
        let at = *self.types.get((number as usize).checked_sub(1)?)?;
        self.entry_at(at as usize).map(|(entry, _)| entry)
    }

    /// The type at a place, and where it ends.
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

    /// The types of functions, in the order of the symbols or of their names.
    pub fn functions(&self) -> &[u8] {
        self.data.get(self.functions.clone()).unwrap_or_default()
    }

    /// The names of these, if they are listed so.
    pub fn function_names(&self) -> Option<&[u8]> {
        let names = self.data.get(self.function_names.clone())?;
        (!names.is_empty()).then_some(names)
    }

    /// The bytes of a name; `symbols` has those that symbols have too.
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

/// What is packed, which is `size` bytes.
fn unpack(packed: &[u8], size: usize, budget: &Budget) -> Result<Vec<u8>, Error> {
    budget.keep(size)?;
    let mut data = Vec::new();
    let done = ZlibDecoder::new(packed)
        .take(size as u64)
        .read_to_end(&mut data);
    done.map_err(|_| Error::Damaged)?;
    Ok(data)
}

/// The word at a place.
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}
