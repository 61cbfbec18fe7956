// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Tables by which the module walks stacks of programs without frame pointers.
//!
//! What a file tells for unwinding (`.eh_frame`, else `.debug_frame`) is interpreted here, once, into the rules that
//! `dtrace-unwind` knows. Instructions whose caller cannot be told by such a rule have none, and are taken to have a frame pointer; of all that
//! Debian's files have that is a few in a hundred thousand, in hand-written code. Files are hostile: what is read, and how long, is limited.

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
pub(crate) use told::{bases, section};

use crate::interp::evaluators_of;
use object::{ReadCache, ReadRef};
use std::fs::File;
use told::Told;

/// The byte of a table that says whether evaluators follow.
const MORE: usize = 7;

/// Bytes of a file that is looked at.
const FILE_MAX: u64 = 1 << 30;

/// Bytes that a table is made from, if it is to be kept. Of fewer it is made in half a millisecond, and most files have fewer: to write an
/// entry takes half as long.
const KEPT_MIN: usize = 32 << 10;

/// Makes the table of an open file, or has it from those that were made before. `None`: it is no ELF file, is larger than is looked at, or
/// as [`table_in`].
pub fn table_of(file: &File, cache: Option<&Cache>) -> Option<Vec<u8>> {
    let size = file.metadata().ok()?.len();
    if size > FILE_MAX {
        return None;
    }
    let reads = ReadCache::new(file);
    let elf = object::File::parse(&reads).ok()?;
    Some(with_evaluators(rules(&elf, size, cache)?, &elf))
}

/// The table of a file of so many bytes, without evaluators, which other versions of the library know otherwise.
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

/// A table, with what the file says of an interpreter's evaluators, if it has any.
fn with_evaluators<'a, R: ReadRef<'a>>(mut table: Vec<u8>, file: &object::File<'a, R>) -> Vec<u8> {
    if let Some(told) = evaluators_of(file) {
        if let Some(more) = table.get_mut(MORE) {
            *more = 1;
            table.extend(told);
        }
    }
    table
}

/// Makes the table of an ELF file's bytes. `None`: nothing is told, it is of another processor, or more than tables can be.
pub fn table_in(data: &[u8]) -> Option<Vec<u8>> {
    let elf = object::File::parse(data).ok()?;
    Some(with_evaluators(Told::of(&elf)?.table()?, &elf))
}
