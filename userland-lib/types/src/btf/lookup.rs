// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Looks up types by name.
//!
//! Since Linux 7.1, kernels sort the types of a BTF by name, with nameless types first. A sorted
//! BTF is searched by bisection, which takes a microsecond and no memory. Any other is scanned,
//! which takes half a millisecond for the kernel's BTF. After [`SCANS`] scans a hash table of the
//! names is built, which takes ten milliseconds.
//!
//! A sample of the names decides whether a BTF is sorted: hundreds of names are not in order by
//! chance, and a BTF that is made to deceive this check only hides types.

use super::wire::{pair, Info};
use super::{Btf, Kind, Malformed, Type, TypeId, MAX_NAME};
use dtrace_files::fnv::{fnv, FNV};
use std::cmp::Ordering;
use std::ffi::CStr;
use std::sync::{
    atomic::{AtomicU32, Ordering::Relaxed},
    OnceLock,
};

/// Number of scans before a hash table is built.
const SCANS: u32 = 16;

/// Minimum number of names in the sample that decides whether a BTF is sorted.
const SAMPLE: u32 = 512;

/// What is cached for look-ups by name.
#[derive(Default)]
pub struct Lookup {
    sorted: OnceLock<bool>,
    scans: AtomicU32,
    table: OnceLock<Table>,
}

/// The fields of a record that look-ups need.
struct Head {
    id: u32,
    kind: u8,
    name: u32,
}

impl Btf {
    /// Returns the first type of this name and kind: its own, else one of its base.
    pub fn find(&self, name: &str, kind: Kind) -> Result<Option<TypeId>, Malformed> {
        self.find_any(name, &[kind])
    }

    /// Returns the first type of this name and one of these kinds: its own, else one of its base.
    pub fn find_any(&self, name: &str, kinds: &[Kind]) -> Result<Option<TypeId>, Malformed> {
        if let Some(id) = self.find_own(name, kinds)? {
            return Ok(Some(id));
        }
        match &self.base {
            Some(base) => base.find_any(name, kinds),
            None => Ok(None),
        }
    }

    /// Returns the first type of this name and one of these kinds, without those of its base.
    pub fn find_own(&self, name: &str, kinds: &[Kind]) -> Result<Option<TypeId>, Malformed> {
        if name.is_empty() || name.as_bytes().contains(&0) {
            return Ok(None); // nameless types cannot be looked up by name
        }
        let end = self.end()?;
        let wanted = |kind: u8| kinds.iter().any(|&wanted| wanted as u8 == kind);
        let is_kind = |id: &u32| {
            self.record(TypeId(*id))
                .is_ok_and(|record| wanted(record.info.kind()))
        };
        let found = if *self.lookup.sorted.get_or_init(|| self.is_sorted(end)) {
            (self.lower_bound(name, end)..end)
                .take_while(|&id| self.compare(TypeId(id), name).is_eq())
                .find(is_kind)
        } else if self.lookup.scans.fetch_add(1, Relaxed) < SCANS {
            self.heads()?
                .find(|head| wanted(head.kind) && self.is_string(head.name, name.as_bytes()))
                .map(|head| head.id)
        } else {
            let heads = self.heads()?;
            let table = self.lookup.table.get_or_init(|| Table::new(self, heads));
            table
                .candidates(name.as_bytes())
                .filter(|id| is_kind(id) && self.compare(TypeId(*id), name).is_eq())
                .min()
        };
        Ok(found.map(TypeId))
    }

    /// Returns the first enumeration that has the constant `name`, and the constant's value,
    /// without the enumerations of its base.
    pub fn enumerator(&self, name: &str) -> Result<Option<(TypeId, i64)>, Malformed> {
        let enums = self
            .heads()?
            .filter(|head| head.kind == Kind::Enum as u8 || head.kind == Kind::Enum64 as u8)
            .map(|head| TypeId(head.id));
        for id in enums {
            let Type::Enum(enumeration) = self.get(id)? else {
                continue;
            };
            if let Some(found) = enumeration.enumerators().find(|found| found.name == name) {
                return Ok(Some((id, found.value)));
            }
        }
        Ok(None)
    }

    /// Returns the heads of its own records, without their tails. This is faster than [`Btf::get`]
    /// for a pass over all types.
    fn heads(&self) -> Result<impl ExactSizeIterator<Item = Head> + '_, Malformed> {
        let types = &self.image[self.sections.types.clone()];
        let first = self.first;
        Ok(self
            .index()?
            .0
            .iter()
            .enumerate()
            .map(move |(own, &start)| {
                let (name, info) = pair(types, start as usize);
                Head {
                    id: first + own as u32, // `build_index` checked the sum
                    kind: Info(info).kind(),
                    name,
                }
            }))
    }

    /// Whether the string at `offset` is `text`.
    fn is_string(&self, offset: u32, text: &[u8]) -> bool {
        self.string_bytes(offset)
            .and_then(|bytes| bytes.strip_prefix(text))
            .is_some_and(|rest| rest.first() == Some(&0))
    }

    /// Compares a type's name with `name`, which must not contain a zero byte.
    fn compare(&self, id: TypeId, name: &str) -> Ordering {
        let theirs = self.name_bytes(id);
        let name = name.as_bytes();
        // The shorter name is the smaller one. `theirs` ends with a zero byte or with the section;
        // a missing byte counts as zero.
        for (at, &ours) in name.iter().enumerate() {
            match theirs.get(at).copied().unwrap_or(0).cmp(&ours) {
                Ordering::Equal => {}
                order => return order,
            }
        }
        theirs.get(name.len()).copied().unwrap_or(0).cmp(&0)
    }

    /// Returns a type's name followed by the rest of the string section.
    fn name_bytes(&self, id: TypeId) -> &[u8] {
        self.record(id)
            .ok()
            .and_then(|record| self.string_bytes(record.name))
            .unwrap_or_default()
    }

    /// Returns the string at `offset`, cut off after `MAX_NAME` + 1 bytes; empty if there is none.
    fn short_string(&self, offset: u32) -> &[u8] {
        let bytes = self.string_bytes(offset).unwrap_or_default();
        let bytes = &bytes[..bytes.len().min(MAX_NAME + 1)];
        CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes)
    }

    fn is_sorted(&self, end: u32) -> bool {
        let step = ((end - self.first) / SAMPLE).max(1) as usize;
        let sample = (self.first..end).step_by(step).map(|id| {
            self.record(TypeId(id))
                .map_or(&[][..], |record| self.short_string(record.name))
        });
        sample.is_sorted()
    }

    /// Returns the first type whose name is not less than `name`. The types must be sorted by name.
    fn lower_bound(&self, name: &str, end: u32) -> u32 {
        let (mut low, mut high) = (self.first, end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.compare(TypeId(middle), name).is_lt() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// A hash table of the types that have names, with open addressing; 0 is an empty slot.
///
/// Invariant: the length is a power of two, and at least one slot is empty.
struct Table(Vec<u32>);

impl Table {
    fn new(btf: &Btf, heads: impl ExactSizeIterator<Item = Head>) -> Self {
        let places = (heads.len() * 2 + 1).next_power_of_two();
        let mut table = vec![0; places];
        for head in heads {
            let name = btf.short_string(head.name);
            if name.is_empty() {
                continue;
            }
            let mut at = hash(name) & (places - 1);
            while table[at] != 0 {
                at = (at + 1) & (places - 1);
            }
            table[at] = head.id;
        }
        Self(table)
    }

    /// Returns the types whose names may be `name`; the caller must compare the names.
    fn candidates(&self, name: &[u8]) -> impl Iterator<Item = u32> + '_ {
        let start = hash(name) & (self.0.len() - 1);
        let (before, after) = self.0.split_at(start);
        after
            .iter()
            .chain(before)
            .copied()
            .take_while(|&id| id != 0)
    }
}

fn hash(name: &[u8]) -> usize {
    let hash = fnv(name, FNV);
    (hash ^ hash >> 32) as usize
}
