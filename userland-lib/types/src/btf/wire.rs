// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The layout of the BPF Type Format as specified: header, kinds, sizes of records.
//!
//! Two sections follow the header: the type records, numbered from 1 in order, and the strings that
//! they name. A record is three words (name, info, size or type) and a tail. The kind and the count
//! give the length of the tail; nothing else tells where the next record starts.
//!
//! Since Linux 7.1, a third section may give the sizes of the tails for every kind that the encoder
//! knew, so that a reader can skip kinds that it does not know. It is used for nothing else here.
//! Also since 7.1, the info word has 24 bits for the count and 7 for the kind; the added bits were
//! always zero before, so one decoding serves both.
//!
//! Everything is read as unaligned bytes in the byte order of the machine, because the kernel
//! publishes its own BTF.

use super::error::Malformed;
use std::ops::Range;

const MAGIC: u16 = 0xeb9f;
const VERSION: u8 = 1;

/// Length of the header without the fields of the layout section.
const HEADER: usize = 24;
/// Length of the header with the fields of the layout section.
const HEADER_LAYOUT: usize = 32;

/// Size of a type record without its tail, in bytes.
pub const RECORD: usize = 12;

/// The kinds of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // named as in C
#[repr(u8)]
pub enum Kind {
    Int = 1,
    Ptr = 2,
    Array = 3,
    Struct = 4,
    Union = 5,
    Enum = 6,
    Fwd = 7,
    Typedef = 8,
    Volatile = 9,
    Const = 10,
    Restrict = 11,
    Func = 12,
    FuncProto = 13,
    Var = 14,
    DataSec = 15,
    Float = 16,
    DeclTag = 17,
    TypeTag = 18,
    Enum64 = 19,
}

/// Every kind, at the index of its number less one.
pub const KINDS: [Kind; 19] = [
    Kind::Int,
    Kind::Ptr,
    Kind::Array,
    Kind::Struct,
    Kind::Union,
    Kind::Enum,
    Kind::Fwd,
    Kind::Typedef,
    Kind::Volatile,
    Kind::Const,
    Kind::Restrict,
    Kind::Func,
    Kind::FuncProto,
    Kind::Var,
    Kind::DataSec,
    Kind::Float,
    Kind::DeclTag,
    Kind::TypeTag,
    Kind::Enum64,
];

impl Kind {
    /// Returns the kind of this number if this reader knows it.
    pub fn from_number(number: u8) -> Option<Self> {
        KINDS.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Returns the size of the tail of a record: a fixed part, and a part for each counted entry.
    const fn tail(self) -> Tail {
        let (fixed, each) = match self {
            Self::Int | Self::Var | Self::DeclTag => (4, 0),
            Self::Array => (12, 0),
            Self::Struct | Self::Union | Self::DataSec | Self::Enum64 => (0, 12),
            Self::Enum | Self::FuncProto => (0, 8),
            Self::Ptr
            | Self::Fwd
            | Self::Typedef
            | Self::Volatile
            | Self::Const
            | Self::Restrict
            | Self::Func
            | Self::Float
            | Self::TypeTag => (0, 0),
        };
        Tail { fixed, each }
    }
}

/// Size of a tail in bytes: a fixed part, and a part for each counted entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    fixed: u8,
    each: u8,
}

/// The info word of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info(pub u32);

impl Info {
    /// Returns the number of the kind.
    pub const fn kind(self) -> u8 {
        (self.0 >> 24) as u8 & 0x7f
    }

    /// Returns the number of entries in the tail.
    pub const fn count(self) -> usize {
        (self.0 & 0x00ff_ffff) as usize
    }

    /// Returns the flag whose meaning depends on the kind.
    pub const fn flag(self) -> bool {
        self.0 >> 31 != 0
    }
}

/// Sizes of the records of all kinds, known and unknown.
///
/// Building the index takes one look-up here for each type of the kernel, so a look-up reads two
/// words and does not branch.
pub struct Sizes {
    /// Size that does not depend on the count, in bytes; 0 for a kind of unknown size.
    fixed: [u32; 128],
    /// Size of each counted entry in bytes.
    each: [u32; 128],
}

impl Sizes {
    /// Combines the known kinds with those that the layout section `layout` adds.
    pub fn new(layout: &[u8]) -> Self {
        let mut sizes = Self {
            fixed: [0; 128],
            each: [0; 128],
        };
        let added = layout.chunks_exact(4).enumerate().take(128).skip(1); // 0 is not a kind
        for (kind, entry) in added {
            sizes.set(
                kind,
                Tail {
                    fixed: entry[0],
                    each: entry[1],
                },
            );
        }
        for kind in KINDS {
            sizes.set(kind as usize, kind.tail());
        }
        sizes
    }

    fn set(&mut self, kind: usize, tail: Tail) {
        self.fixed[kind] = RECORD as u32 + u32::from(tail.fixed);
        self.each[kind] = u32::from(tail.each);
    }

    /// Returns the length of the record that `info` describes; 0 for a kind of unknown size.
    pub fn length(&self, info: Info) -> usize {
        let kind = usize::from(info.kind() & 0x7f);
        // At most 12 + 255 + 255 times a 24-bit count, which fits.
        self.fixed[kind] as usize + self.each[kind] as usize * info.count()
    }
}

/// The positions of the sections.
///
/// Invariant: all three ranges lie within the bytes from which they were parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sections {
    /// The type records.
    pub types: Range<usize>,
    /// The strings.
    pub strings: Range<usize>,
    /// The sizes of the kinds' tails; often empty.
    pub layout: Range<usize>,
}

impl Sections {
    /// Parses the header and checks it against the length of `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let (magic, version) = match *bytes {
            [a, b, version, _, ..] => (u16::from_ne_bytes([a, b]), version),
            _ => return Err(Malformed::Short),
        };
        match magic {
            MAGIC => {}
            _ if magic == MAGIC.swap_bytes() => return Err(Malformed::ForeignOrder),
            _ => return Err(Malformed::Magic(magic)),
        }
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let field = |at| word(bytes, at).ok_or(Malformed::Short);
        let header = field(4)? as usize;
        if header < HEADER {
            return Err(Malformed::Header(header));
        }
        let section = |at: usize, name: &'static str| -> Result<Range<usize>, Malformed> {
            let (start, length) = (field(at)? as usize, field(at + 4)? as usize);
            let start = start.saturating_add(header);
            let end = start.saturating_add(length);
            if end > bytes.len() {
                return Err(Malformed::Section(name));
            }
            Ok(start..end)
        };
        Ok(Self {
            types: section(8, "type")?,
            strings: section(16, "string")?,
            layout: if header >= HEADER_LAYOUT {
                section(24, "layout")?
            } else {
                0..0
            },
        })
    }
}

/// Returns the word at `at`.
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// Returns the two words at `at`; zeroes if they are out of range.
pub fn pair(bytes: &[u8], at: usize) -> (u32, u32) {
    let pair = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>());
    let &[a, b, c, d, e, f, g, h] = pair.unwrap_or(&[0; 8]);
    (
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
    )
}

/// Splits the tail of a record into entries of `N` words (two or three).
pub fn tuples<const N: usize>(
    bytes: &[u8],
) -> impl ExactSizeIterator<Item = [u32; N]> + Clone + '_ {
    bytes
        .chunks_exact(N * 4)
        .map(|chunk| std::array::from_fn(|i| word(chunk, i * 4).unwrap_or(0)))
}
