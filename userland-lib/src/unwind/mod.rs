// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Tables by which the module walks stacks of programs without frame pointers.
//!
//! What a file tells for unwinding (`.eh_frame`, else `.debug_frame`) is interpreted here, once, into the rules that
//! `dtrace-unwind` knows. Instructions whose caller cannot be told by such a rule have none, and are taken to have a frame pointer; of all that
//! Debian's files have that is a few in a hundred thousand, in hand-written code. Files are hostile: what is read, and how long, is limited.

mod cfi;
#[cfg(test)]
mod libdw_tests;
mod rows;
#[cfg(test)]
mod stopped;
#[cfg(test)]
mod tests;
mod told;

pub(crate) use told::{bases, section};

use crate::interp::evaluators_of;
use object::{ReadCache, ReadRef};
use std::fs::File;
use told::Told;

/// The byte of a table that says whether evaluators follow.
const MORE: usize = 7;

/// Bytes of a file that is looked at.
const FILE_MAX: u64 = 1 << 30;

/// Makes the table of an open file. `None`: it is no ELF file, is larger than is looked at, or as [`table_in`].
pub fn table_of(file: &File) -> Option<Vec<u8>> {
    let size = file.metadata().ok()?.len();
    if size > FILE_MAX {
        return None;
    }
    let reads = ReadCache::new(file);
    let elf = object::File::parse(&reads).ok()?;
    let table = Told::of(&elf)?.table()?;
    Some(with_evaluators(table, &elf))
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
    Told::of(&object::File::parse(data).ok()?)?.table()
}
