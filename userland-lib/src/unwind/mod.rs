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

use crate::arch::Registers;
use crate::interp::evaluators_of;
use crate::symbols::is_code;
use gimli::{BaseAddresses, DebugFrame, EhFrame, LittleEndian};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ReadCache, ReadRef};
use rows::Rows;
use std::borrow::Cow;
use std::fs::File;

/// The byte of a table that says whether evaluators follow.
const MORE: usize = 7;

/// Bytes of a section that are read.
const SECTION_MAX: u64 = 1 << 28;

/// Bytes of a file that is looked at.
const FILE_MAX: u64 = 1 << 30;
/// Parts of a file that are code.
const PLACES_MAX: usize = 64;

/// Makes the table of an open file. `None`: it is no ELF file, is larger than is looked at, or as [`table`].
pub fn table_of(file: &File) -> Option<Vec<u8>> {
    let size = file.metadata().ok()?.len();
    if size > FILE_MAX {
        return None;
    }
    let cache = ReadCache::new(file);
    let file = object::File::parse(&cache).ok()?;
    Some(with_evaluators(table(&file)?, &file))
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

/// The same of a file's bytes.
pub fn table_in(data: &[u8]) -> Option<Vec<u8>> {
    table(&object::File::parse(data).ok()?)
}

/// Makes the table of an ELF file. `None`: nothing is told, it is of another processor, or more than tables can be.
fn table<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> Option<Vec<u8>> {
    let registers = Registers::of(file.architecture())?;
    let mut rows = Rows::new(places(file));
    let bases = bases(file);
    let word = registers.word;
    if let Some(data) = section(file, ".eh_frame") {
        let mut frames = EhFrame::new(&data, LittleEndian);
        frames.set_address_size(word.bytes() as u8);
        cfi::read(&frames, &bases, &registers, &mut rows);
    } else if let Some(data) = section(file, ".debug_frame") {
        let mut frames = DebugFrame::new(&data, LittleEndian);
        frames.set_address_size(word.bytes() as u8);
        cfi::read(&frames, &bases, &registers, &mut rows);
    }
    rows.into_table(word)
}

/// What addresses in a file's `.eh_frame` may be relative to.
pub(crate) fn bases<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> BaseAddresses {
    let address = |name| file.section_by_name(name).map_or(0, |s| s.address());
    BaseAddresses::default()
        .set_eh_frame(address(".eh_frame"))
        .set_text(address(".text"))
        .set_got(address(".got"))
}

/// The bytes of a section that has any.
pub(crate) fn section<'a, R: ReadRef<'a>>(
    file: &object::File<'a, R>,
    name: &str,
) -> Option<Cow<'a, [u8]>> {
    let section = file.section_by_name(name)?;
    let data = (section.size() <= SECTION_MAX).then(|| section.uncompressed_data().ok())??;
    (!data.is_empty()).then_some(data)
}

/// Where code is in the file, by its addresses.
fn places<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> Vec<rows::Place> {
    let code = file.segments().filter(|segment| is_code(segment.flags()));
    let code = code.take(PLACES_MAX);
    code.map(|segment| {
        let (offset, size) = segment.file_range();
        rows::Place {
            address: segment.address(),
            size,
            offset,
        }
    })
    .collect()
}
