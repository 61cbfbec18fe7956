// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Structures and unions: members, layout, look-up.
//!
//! A kernel structure has the layout that its BTF describes. A structure that a program declares is
//! laid out here as the kernel's compiler would do it (the x86-64 and arm64 ABIs agree): members at
//! multiples of their alignment, bit-fields packed from the lowest bit up without crossing a unit
//! of their type, and the size rounded up to the largest alignment.

use super::kernel::Origin;
use super::process;
use super::{Kind, RecordId, Tag, Ty, Types, MAX_DEPTH};
use std::rc::Rc;

/// A structure or union whose members are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its tag; empty if it has none.
    pub name: String,
    /// Whether it is a union.
    pub is_union: bool,
    /// Its size in bytes.
    pub size: u64,
    /// The members in order.
    pub members: Vec<Member>,
}

/// A member of a structure or union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name; empty for an anonymous structure or union, whose members count as members of the
    /// outer one.
    pub name: String,
    /// Its position and type.
    pub path: Path,
}

/// The position and type of a part of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Offset from the start of the structure in bits. For a bit-field this is the offset of its
    /// lowest bit, as little-endian machines number bits.
    pub bit_offset: u64,
    /// Its type.
    pub ty: Ty,
    /// Width of a bit-field in bits; 0 for a plain member.
    pub bits: u32,
}

/// An entry of the table of records.
#[derive(Clone, Debug)]
pub(super) struct RecordEntry {
    pub name: String,
    pub is_union: bool,
    /// Whether a process defines it, also once its members are known.
    pub is_of_process: bool,
    pub body: Body,
}

/// What is known of a record.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// Only its name.
    Incomplete,
    /// The kernel defines it; its size in bytes.
    Kernel(Origin, u64),
    /// A process defines it; its size in bytes.
    Process(process::Origin, u64),
    /// Everything.
    Complete(Rc<Record>),
}

/// The state while a record's members are laid out one by one.
struct Layout {
    is_union: bool,
    /// First bit where the next member may start.
    next: u64,
    /// End of the record so far, in bits: of the last member of a structure, of the largest of a
    /// union.
    end: u64,
    /// The largest alignment so far, in bytes.
    align: u64,
    members: Vec<Member>,
}

/// Why a member cannot be laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LayoutError {
    /// Its type has no size.
    Incomplete,
    /// It is a bit-field, but its type is not an integer, or its width is 0 or exceeds its type.
    Width,
    /// The record is too large.
    Large,
    /// The record already has a member of that name.
    Duplicate,
}

impl LayoutError {
    /// Returns the error message about the member `name` of `record`.
    fn text(self, name: &str, record: &str) -> String {
        match self {
            Self::Incomplete => {
                format!("incomplete struct/union/enum or void type of member {name} of {record}")
            }
            Self::Width => format!("invalid bit-field width or type of member {name} of {record}"),
            Self::Large => format!("{record} is too large"),
            Self::Duplicate => format!("member redeclared: {name} of {record}"),
        }
    }
}

impl Layout {
    /// Starts a record without members.
    fn new(is_union: bool) -> Self {
        Self {
            is_union,
            next: 0,
            end: 0,
            align: 1,
            members: Vec::new(),
        }
    }

    /// Adds a member. An unnamed bit-field only takes up space; an unnamed one of width 0 ends the
    /// current unit.
    fn add(
        &mut self,
        types: &mut Types<'_>,
        name: &str,
        ty: Ty,
        width: Option<u32>,
    ) -> Result<(), LayoutError> {
        let open_array = matches!(types.base(ty), Kind::Array(_, None));
        let size = types.size(ty).ok_or(LayoutError::Incomplete)?;
        if !name.is_empty() && self.members.iter().any(|member| member.name == name) {
            return Err(LayoutError::Duplicate);
        }
        let align = types.align(ty).max(1);
        let unit = size.checked_mul(8).ok_or(LayoutError::Large)?;
        let start = if self.is_union { 0 } else { self.next };
        let (at, length, bits) = match width {
            None if open_array => (round_up(start, align * 8)?, 0, 0),
            None => (round_up(start, align * 8)?, unit, 0),
            Some(0) if name.is_empty() => (round_up(start, unit)?, 0, 0),
            Some(width) => {
                types.int(ty).ok_or(LayoutError::Width)?;
                if width == 0 || u64::from(width) > unit {
                    return Err(LayoutError::Width);
                }
                let crosses = start / unit != (start + u64::from(width) - 1) / unit;
                let at = if crosses {
                    round_up(start, unit)?
                } else {
                    start
                };
                (at, u64::from(width), width)
            }
        };
        self.next = at.checked_add(length).ok_or(LayoutError::Large)?;
        self.end = self.end.max(self.next);
        if width.is_none() || !name.is_empty() {
            self.align = self.align.max(align);
            self.members.push(Member {
                name: name.to_owned(),
                path: Path {
                    bit_offset: at,
                    ty,
                    bits,
                },
            });
        }
        Ok(())
    }

    /// Returns the record of the members added so far.
    fn finish(self, name: &str) -> Result<Record, LayoutError> {
        Ok(Record {
            name: name.to_owned(),
            is_union: self.is_union,
            size: round_up(self.end, self.align * 8)? / 8,
            members: self.members,
        })
    }
}

fn round_up(value: u64, unit: u64) -> Result<u64, LayoutError> {
    value
        .checked_next_multiple_of(unit.max(1))
        .ok_or(LayoutError::Large)
}

impl Types<'_> {
    /// Declares a structure or union. The tag alone may be declared any number of times; the
    /// members (name, type, width of a bit-field) at most once. Declare the tag before you look up
    /// the members' types, because they may point to it. Fails with a message about the member or
    /// the redeclaration.
    pub fn declare_record(
        &mut self,
        is_union: bool,
        tag: Option<&str>,
        members: Option<Vec<(String, Ty, Option<u32>)>>,
    ) -> Result<Ty, String> {
        let space = if is_union { Tag::Union } else { Tag::Struct };
        let ty = match tag.and_then(|tag| self.declared_tag(space, tag)) {
            Some(declared) => declared,
            None => {
                let ty = self.new_record(RecordEntry {
                    name: tag.unwrap_or_default().to_owned(),
                    is_union,
                    is_of_process: false,
                    body: Body::Incomplete,
                });
                if let Some(tag) = tag {
                    self.tags.insert((space, tag.to_owned()), ty);
                }
                ty
            }
        };
        if let Some(members) = members {
            self.complete_record(ty, is_union, tag.unwrap_or_default(), members)?;
        }
        Ok(ty)
    }

    fn complete_record(
        &mut self,
        ty: Ty,
        is_union: bool,
        tag: &str,
        members: Vec<(String, Ty, Option<u32>)>,
    ) -> Result<(), String> {
        let text = self.name(ty);
        let mut layout = Layout::new(is_union);
        for (name, member, width) in members {
            layout
                .add(self, &name, member, width)
                .map_err(|error| error.text(&name, &text))?;
        }
        let record = layout.finish(tag).map_err(|error| error.text(tag, &text))?;
        let Kind::Record(RecordId(id)) = *self.base(ty) else {
            return Err(format!("type redeclared: {text}"));
        };
        let entry = &mut self.records[id as usize];
        if !matches!(entry.body, Body::Incomplete) {
            return Err(format!("type redeclared: {text}"));
        }
        entry.body = Body::Complete(Rc::new(record));
        Ok(())
    }

    pub(super) fn new_record(&mut self, entry: RecordEntry) -> Ty {
        let id = RecordId(self.records.len() as u32);
        self.records.push(entry);
        self.enter(Kind::Record(id))
    }

    /// Whether `ty` is a structure or union.
    pub fn is_record(&self, ty: Ty) -> bool {
        matches!(self.base(ty), Kind::Record(_))
    }

    /// Returns the kind and the tag of a structure, union or enumeration. The tag is empty if it
    /// has none.
    pub fn tag(&self, ty: Ty) -> Option<(Tag, &str)> {
        match *self.base(ty) {
            Kind::Record(RecordId(id)) => {
                let entry = &self.records[id as usize];
                let tag = if entry.is_union {
                    Tag::Union
                } else {
                    Tag::Struct
                };
                Some((tag, &entry.name))
            }
            Kind::Enum(id) => Some((Tag::Enum, &self.enums[id.0 as usize].name)),
            _ => None,
        }
    }

    pub(super) fn record_size(&self, id: RecordId) -> Option<u64> {
        match &self.records[id.0 as usize].body {
            Body::Incomplete => None,
            Body::Kernel(_, size) | Body::Process(_, size) => Some(*size),
            Body::Complete(record) => Some(record.size),
        }
    }

    /// Returns the structure or union `ty`; `None` if `ty` is another type or its members are not
    /// known.
    pub fn record(&mut self, ty: Ty) -> Option<Rc<Record>> {
        let Kind::Record(RecordId(id)) = *self.base(ty) else {
            return None;
        };
        let entry = self.records[id as usize].clone();
        let record = Rc::new(match entry.body {
            Body::Incomplete => return None,
            Body::Complete(record) => return Some(record),
            Body::Kernel(origin, _) => self.import_record(origin)?,
            Body::Process(origin, size) => self.record_of_process(origin, &entry, size)?,
        });
        self.records[id as usize].body = Body::Complete(record.clone());
        Some(record)
    }

    /// Finds the member `name` of the structure or union `ty`, including the members of its
    /// anonymous members.
    pub fn member(&mut self, ty: Ty, name: &str) -> Option<Path> {
        self.member_at(ty, name, 0, MAX_DEPTH)
    }

    fn member_at(&mut self, ty: Ty, name: &str, base: u64, depth: u32) -> Option<Path> {
        let record = self.record(ty)?;
        let shifted = |path: Path| {
            Some(Path {
                bit_offset: base.checked_add(path.bit_offset)?,
                ..path
            })
        };
        if let Some(member) = record.members.iter().find(|member| member.name == name) {
            return shifted(member.path);
        }
        let depth = depth.checked_sub(1)?;
        let anonymous = record
            .members
            .iter()
            .filter(|member| member.name.is_empty());
        for member in anonymous {
            let base = shifted(member.path)?.bit_offset;
            if let Some(path) = self.member_at(member.path.ty, name, base, depth) {
                return Some(path);
            }
        }
        None
    }

    /// Returns the names of all members, including those of anonymous members, for suggestions.
    pub fn member_names(&mut self, ty: Ty) -> Vec<String> {
        let mut names = Vec::new();
        let mut pending = vec![(ty, 0)];
        while let Some((ty, depth)) = pending.pop() {
            let Some(record) = self.record(ty) else {
                continue;
            };
            for member in &record.members {
                if !member.name.is_empty() {
                    names.push(member.name.clone());
                } else if depth < MAX_DEPTH {
                    pending.push((member.path.ty, depth + 1));
                }
            }
        }
        names
    }

    /// Returns the alignment of values of this type in bytes.
    pub fn align(&mut self, ty: Ty) -> u64 {
        self.align_at(ty, MAX_DEPTH)
    }

    fn align_at(&mut self, ty: Ty, depth: u32) -> u64 {
        let Some(depth) = depth.checked_sub(1) else {
            return 1;
        };
        match *self.base(ty) {
            Kind::Array(element, _) => self.align_at(element, depth),
            Kind::Record(_) => self.record_align(ty, depth),
            Kind::String => 1,
            _ => self.size(ty).unwrap_or(1).clamp(1, self.model.alignment()),
        }
    }

    /// Returns the alignment of a record in bytes. BTF does not state it, so this is the largest
    /// alignment of a member that agrees with the member's offset and with the record's size.
    fn record_align(&mut self, ty: Ty, depth: u32) -> u64 {
        let Some(record) = self.record(ty) else {
            return 1;
        };
        let mut align = 1;
        for member in &record.members {
            let own = self.align_at(member.path.ty, depth);
            let fits = member.path.bits != 0 || member.path.bit_offset % (own * 8) == 0;
            if fits && record.size % own == 0 {
                align = align.max(own);
            }
        }
        align
    }
}
