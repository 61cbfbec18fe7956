// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tables from which the kernel module walks the stacks of programs without frame pointers.
//!
//! This module interprets a file's unwind information (`.eh_frame`, else `.debug_frame`) once and
//! compiles it into the rules that `dtrace-unwind` knows. Instructions whose caller no such rule
//! can describe get no rule, and the walk assumes that they have a frame pointer. In Debian's files
//! these are a few in a hundred thousand, in hand-written code.
//!
//! Files are untrusted input: both the bytes read and the work done are limited.

mod cache;
mod cfi;
mod folder;
#[cfg(test)]
mod libdw_tests;
mod rows;
#[cfg(test)]
mod stopped;
#[cfg(test)]
mod tests;
mod told;

pub use cache::Cache;

use crate::interp::evaluators_of;
use object::{ReadCache, ReadRef};
use std::fs::File;
use told::Told;

/// The byte of a table's header that says whether evaluators follow.
const MORE: usize = 7;

/// Maximum size of a file, in bytes. Larger ones get no table.
const FILE_MAX: u64 = 1 << 30;

/// Minimum size of the unwind information of a table that is worth caching, in bytes. From less, a
/// table is built in half a millisecond, and writing a cache entry takes half as long. Most files
/// have less.
const KEPT_MIN: usize = 32 << 10;

/// Returns the unwind table of an open file, from the cache if it is there. `None` if it is not an
/// ELF file, is larger than `FILE_MAX`, or for the reasons of [`table_in`].
pub fn table_of(file: &File, cache: Option<&Cache>) -> Option<Vec<u8>> {
    let size = file.metadata().ok()?.len();
    if size > FILE_MAX {
        return None;
    }
    let reads = ReadCache::new(file);
    let elf = object::File::parse(&reads).ok()?;
    Some(with_evaluators(rules(&elf, size, cache)?, &elf))
}

/// Returns the table of a file of `size` bytes, without evaluators. Evaluators are not cached
/// because other versions of the library may recognize other ones.
fn rules<'a, R: ReadRef<'a>>(
    elf: &object::File<'a, R>,
    size: u64,
    cache: Option<&Cache>,
) -> Option<Vec<u8>> {
    let told = Told::of(elf)?;
    let Some(cache) = cache.filter(|_| told.size() >= KEPT_MIN) else {
        return told.table();
    };
    let key = told.key(size, &told::build_id(elf));
    cache.load(&key).or_else(|| {
        let table = told.table()?;
        cache.store(&key, &table);
        Some(table)
    })
}

/// Appends the file's description of an interpreter's evaluators to its table, if it has any.
fn with_evaluators<'a, R: ReadRef<'a>>(mut table: Vec<u8>, file: &object::File<'a, R>) -> Vec<u8> {
    if let Some(told) = evaluators_of(file) {
        if let Some(more) = table.get_mut(MORE) {
            *more = 1;
            table.extend(told);
        }
    }
    table
}

/// Builds the table of the ELF file in `data`. `None` if it has no unwind information, is for an
/// unsupported processor, or exceeds the limits of a table.
pub fn table_in(data: &[u8]) -> Option<Vec<u8>> {
    let elf = object::File::parse(data).ok()?;
    Some(with_evaluators(Told::of(&elf)?.table()?, &elf))
}
