// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The BPF Type Format: the kernel's own description of its types.
//!
//! A [`Btf`] reads its bytes in place ([`Image`]). Parsing checks only the header. The first use of
//! a type makes one pass that notes where each record starts and checks that none is cut off.
//! Everything else is decoded on use ([`Type`]). A program that names no kernel type therefore pays
//! nothing, and one that names a few pays for one pass over the records, not for a copy of a
//! hundred thousand types.
//!
//! The BTF of a module is *split*: its type numbers and string offsets continue those of its base,
//! the BTF of `vmlinux`.
//!
//! The bytes are not trusted. Whatever they hold, the result is a [`Malformed`] error, an empty
//! result or a wrong type, but never a panic, endless recursion or more memory than the size of the
//! input.

mod error;
mod file;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod image;
mod kernel;
mod lookup;
mod print;
mod prototype;
#[cfg(test)]
mod tests;
mod view;
mod wire;

pub use error::{Error, Malformed};
pub use file::Files;
pub use image::Image;
pub use kernel::KernelBtf;
pub use prototype::Function;
pub use view::{
    Array, Composite, DataSec, Enum, Enumerator, Int, Member, Param, Placed, Proto, Qualifier,
    Type, TypeId,
};
pub use wire::Kind;

use lookup::Lookup;
use std::ffi::CStr;
use std::fmt;
use std::sync::{Arc, OnceLock};
use view::Names;
use wire::{word, Info, Sections, Sizes, RECORD};

/// Maximum number of types between a name and the type that it stands for: the kernel's limit.
const MAX_DEPTH: u32 = 32;

/// Maximum length of a name in bytes: twice the kernel's limit.
const MAX_NAME: usize = 1024;

/// A BTF.
pub struct Btf {
    image: Image,
    sections: Sections,
    base: Option<Arc<Btf>>,
    /// Number of the first type that is not in the base.
    first: u32,
    /// Offset of the first string that is not in the base.
    first_string: u32,
    index: OnceLock<Result<Index, Malformed>>,
    lookup: Lookup,
}

/// Offsets of the type records in the type section, in bytes.
///
/// Invariant: every record, including its tail, lies within the section.
struct Index(Vec<u32>);

/// A record whose content has not been interpreted.
#[derive(Clone, Copy)]
struct Record<'a> {
    name: u32,
    info: Info,
    /// The size, or the type that it refers to, depending on the kind.
    word: u32,
    tail: &'a [u8],
}

impl Btf {
    /// Parses a BTF. With `base`, its numbers and offsets continue those of `base`.
    pub fn parse(image: impl Into<Image>, base: Option<Arc<Btf>>) -> Result<Self, Malformed> {
        let image = image.into();
        let sections = Sections::parse(&image)?;
        let strings = &image[sections.strings.clone()];
        let bounded = strings.last().is_none_or(|&end| end == 0)
            && (base.is_some() || strings.first() == Some(&0));
        if !bounded {
            return Err(Malformed::Strings);
        }
        let (first, first_string) = match &base {
            None => (1, 0),
            Some(base) => (base.end()?, base.end_string()),
        };
        if first_string.checked_add(strings.len() as u32).is_none() {
            return Err(Malformed::Large);
        }
        Ok(Self {
            image,
            sections,
            base,
            first,
            first_string,
            index: OnceLock::new(),
            lookup: Lookup::default(),
        })
    }

    /// Returns the base if this is a split BTF.
    pub fn base(&self) -> Option<&Arc<Btf>> {
        self.base.as_ref()
    }

    /// Returns the number of the first type that is not in the base.
    pub fn first(&self) -> TypeId {
        TypeId(self.first)
    }

    /// Returns the number of the last type plus one.
    pub fn end(&self) -> Result<u32, Malformed> {
        Ok(self.first + self.index()?.0.len() as u32)
    }

    /// Returns its own types, without those of its base.
    pub fn ids(&self) -> Result<impl ExactSizeIterator<Item = TypeId>, Malformed> {
        Ok((self.first..self.end()?).map(TypeId))
    }

    /// Decodes a type.
    pub fn get(&self, id: TypeId) -> Result<Type<'_>, Malformed> {
        if id == TypeId::VOID {
            return Ok(Type::Void);
        }
        let record = self.record(id)?;
        let Some(kind) = Kind::from_number(record.info.kind()) else {
            return Ok(Type::Unknown(record.info.kind()));
        };
        let name = self.string(record.name)?;
        let target = TypeId(record.word);
        let cut = Malformed::Record(id);
        Ok(match kind {
            Kind::Int => Type::Int(int(name, &record).ok_or(cut)?),
            Kind::Ptr => Type::Ptr(target),
            Kind::Array => Type::Array(array(&record).ok_or(cut)?),
            Kind::Struct => Type::Struct(self.composite(name, &record)?),
            Kind::Union => Type::Union(self.composite(name, &record)?),
            Kind::Enum | Kind::Enum64 => Type::Enum(self.enumeration(name, &record, kind)?),
            Kind::Fwd => Type::Fwd {
                name,
                is_union: record.info.flag(),
            },
            Kind::Typedef => Type::Typedef { name, target },
            Kind::Volatile => Type::Qualified(Qualifier::Volatile, target),
            Kind::Const => Type::Qualified(Qualifier::Const, target),
            Kind::Restrict => Type::Qualified(Qualifier::Restrict, target),
            Kind::TypeTag => Type::Qualified(Qualifier::Tag(name), target),
            Kind::Func => Type::Func {
                name,
                proto: target,
            },
            Kind::FuncProto => Type::FuncProto(self.proto(&record)?),
            Kind::Var => Type::Var { name, ty: target },
            Kind::DataSec => Type::DataSec(DataSec {
                name,
                size: record.word,
                tail: record.tail,
            }),
            Kind::Float => Type::Float {
                name,
                size: record.word,
            },
            Kind::DeclTag => Type::DeclTag {
                name,
                target,
                component: word(record.tail, 0).filter(|&at| at != u32::MAX),
            },
        })
    }

    /// Returns a type's name; empty if it has none.
    pub fn name(&self, id: TypeId) -> Result<&str, Malformed> {
        if id == TypeId::VOID {
            return Ok("void");
        }
        self.string(self.record(id)?.name)
    }

    /// Returns the type for which `id` stands, without typedefs, qualifiers and tags.
    pub fn resolve(&self, id: TypeId) -> Result<TypeId, Malformed> {
        let mut at = id;
        for _ in 0..MAX_DEPTH {
            match self.get(at)? {
                Type::Typedef { target, .. } | Type::Qualified(_, target) => at = target,
                _ => return Ok(at),
            }
        }
        Err(Malformed::Cycle(id))
    }

    /// Returns the size of a value of type `id` in bytes; `None` if the type has no size.
    pub fn size(&self, id: TypeId) -> Result<Option<u64>, Malformed> {
        let mut elements: u64 = 1;
        let mut at = id;
        for _ in 0..MAX_DEPTH {
            let size = match self.get(self.resolve(at)?)? {
                Type::Int(int) => u64::from(int.size),
                Type::Ptr(_) => 8,
                Type::Struct(composite) | Type::Union(composite) => u64::from(composite.size),
                Type::Enum(enumeration) => u64::from(enumeration.size),
                Type::Float { size, .. } => u64::from(size),
                Type::DataSec(section) => u64::from(section.size),
                Type::Var { ty, .. } => {
                    at = ty;
                    continue;
                }
                Type::Array(array) => {
                    elements = elements
                        .checked_mul(array.count.into())
                        .ok_or(Malformed::Large)?;
                    at = array.element;
                    continue;
                }
                _ => return Ok(None),
            };
            return elements.checked_mul(size).ok_or(Malformed::Large).map(Some);
        }
        Err(Malformed::Cycle(id))
    }

    /// Returns the string at `offset`.
    fn string(&self, offset: u32) -> Result<&str, Malformed> {
        let missing = Malformed::Name(offset);
        let bytes = self.string_bytes(offset).ok_or(missing)?;
        CStr::from_bytes_until_nul(&bytes[..bytes.len().min(MAX_NAME + 1)])
            .ok()
            .and_then(|name| name.to_str().ok())
            .ok_or(missing)
    }

    /// Returns the string section from `offset` on.
    fn string_bytes(&self, offset: u32) -> Option<&[u8]> {
        match (offset.checked_sub(self.first_string), &self.base) {
            (Some(offset), _) => self.strings().get(offset as usize..),
            (None, Some(base)) => base.string_bytes(offset),
            (None, None) => None,
        }
    }

    fn strings(&self) -> &[u8] {
        &self.image[self.sections.strings.clone()]
    }

    fn end_string(&self) -> u32 {
        // `parse` checked the sum.
        self.first_string + self.sections.strings.len() as u32
    }

    fn index(&self) -> Result<&Index, Malformed> {
        self.index
            .get_or_init(|| self.build_index())
            .as_ref()
            .map_err(|&malformed| malformed)
    }

    fn build_index(&self) -> Result<Index, Malformed> {
        let types = &self.image[self.sections.types.clone()];
        let sizes = Sizes::new(&self.image[self.sections.layout.clone()]);
        // A record has 25 bytes on average, so the vector rarely grows.
        let mut starts: Vec<u32> = Vec::with_capacity(types.len() / 24);
        let own = |starts: &Vec<u32>| TypeId(self.first.saturating_add(starts.len() as u32));
        let mut at = 0;
        while let Some(info) = word(types, at + 4).map(Info) {
            let size = sizes.length(info);
            if size == 0 {
                return Err(Malformed::Kind(own(&starts), info.kind()));
            }
            starts.push(at as u32); // the length of the section is a 32-bit word
            at += size;
        }
        if at < types.len() {
            return Err(Malformed::Record(own(&starts)));
        }
        if at > types.len() {
            starts.pop();
            return Err(Malformed::Record(own(&starts)));
        }
        // Type numbers are 32-bit words too.
        let count = u32::try_from(starts.len()).map_err(|_| Malformed::Large)?;
        self.first.checked_add(count).ok_or(Malformed::Large)?;
        Ok(Index(starts))
    }

    /// Returns the record of a type other than `void`.
    fn record(&self, id: TypeId) -> Result<Record<'_>, Malformed> {
        let Some(own) = id.0.checked_sub(self.first) else {
            return match &self.base {
                Some(base) => base.record(id),
                None => Err(Malformed::Missing(id)),
            };
        };
        let index = self.index()?;
        let start = *index.0.get(own as usize).ok_or(Malformed::Missing(id))? as usize;
        let types = &self.image[self.sections.types.clone()];
        let end = index
            .0
            .get(own as usize + 1)
            .map_or(types.len(), |&next| next as usize);
        let bytes = types.get(start..end).ok_or(Malformed::Record(id))?;
        let field = |at| word(bytes, at).ok_or(Malformed::Record(id));
        Ok(Record {
            name: field(0)?,
            info: Info(field(4)?),
            word: field(8)?,
            tail: bytes.get(RECORD..).unwrap_or_default(),
        })
    }

    /// Checks the names of the entries in a tail. An entry has `N` words; the first is the name.
    fn check_names<const N: usize>(&self, tail: &[u8]) -> Result<(), Malformed> {
        wire::tuples::<N>(tail).try_for_each(|entry| self.string(entry[0]).map(|_| ()))
    }

    fn composite<'a>(
        &'a self,
        name: &'a str,
        record: &Record<'a>,
    ) -> Result<Composite<'a>, Malformed> {
        self.check_names::<3>(record.tail)?;
        Ok(Composite {
            name,
            size: record.word,
            packed: record.info.flag(),
            names: Names(self),
            tail: record.tail,
        })
    }

    fn enumeration<'a>(
        &'a self,
        name: &'a str,
        record: &Record<'a>,
        kind: Kind,
    ) -> Result<Enum<'a>, Malformed> {
        let wide = kind == Kind::Enum64;
        if wide {
            self.check_names::<3>(record.tail)?;
        } else {
            self.check_names::<2>(record.tail)?;
        }
        Ok(Enum {
            name,
            size: record.word,
            signed: record.info.flag(),
            wide,
            names: Names(self),
            tail: record.tail,
        })
    }

    fn proto<'a>(&'a self, record: &Record<'a>) -> Result<Proto<'a>, Malformed> {
        self.check_names::<2>(record.tail)?;
        // A last parameter without name and type stands for `…`.
        let last = record.tail.len().checked_sub(8);
        let variadic = last.is_some_and(|last| record.tail[last..].iter().all(|&byte| byte == 0));
        Ok(Proto {
            ret: TypeId(record.word),
            variadic,
            names: Names(self),
            tail: match last {
                Some(last) if variadic => &record.tail[..last],
                _ => record.tail,
            },
        })
    }
}

impl fmt::Debug for Btf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Btf")
            .field("sections", &self.sections)
            .field("first", &self.first)
            .finish_non_exhaustive()
    }
}

fn int<'a>(name: &'a str, record: &Record<'a>) -> Option<Int<'a>> {
    let [bits, bit_offset, _, encoding] = word(record.tail, 0)?.to_le_bytes();
    Some(Int {
        name,
        size: record.word,
        bits,
        bit_offset,
        signed: encoding & 1 != 0,
        is_char: encoding & 2 != 0,
        is_bool: encoding & 4 != 0,
    })
}

fn array(record: &Record<'_>) -> Option<Array> {
    Some(Array {
        element: TypeId(word(record.tail, 0)?),
        index: TypeId(word(record.tail, 4)?),
        count: word(record.tail, 8)?,
    })
}
