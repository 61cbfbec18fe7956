// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The file that has the debugging information of a program, and its sections.
//!
//! That is the program's own, or the one that was made of it when it was stripped.

use super::{Budget, Bytes, Error};
use crate::elf::separate::{self, read, FOLDER};
use flate2::read::ZlibDecoder;
use gimli::{Dwarf, RunTimeEndian, SectionId};
use object::{CompressionFormat, Object as _, ObjectSection as _};
use ruzstd::decoding::StreamingDecoder;
use std::io::Read as _;
use std::path::Path;
use std::rc::Rc;

/// Bytes of a file that is read for who asks for it.
pub const FILE_MAX: u64 = 1 << 31;
/// Bytes of all sections of a file that are unpacked.
const UNPACKED_MAX: u64 = 1 << 31;
/// The section that has the entries.
const ENTRIES: &str = ".debug_info";

/// The file of at most `most` bytes that tells of the program in `file`, which its process sees at `path`.
pub fn find(file: &Path, path: &str, most: u64) -> Result<Vec<u8>, Error> {
    find_in(Path::new(FOLDER), file, path, most)
}

/// The same where the distribution's folder is another one.
pub(super) fn find_in(folder: &Path, file: &Path, path: &str, most: u64) -> Result<Vec<u8>, Error> {
    let bytes = read(file, most)?;
    let program = object::File::parse(&*bytes).map_err(|_| Error::Damaged)?;
    if program.section_by_name(ENTRIES).is_some() {
        return Ok(bytes);
    }
    let has_entries = |file: &object::File<'_>| file.section_by_name(ENTRIES).is_some();
    separate::find(folder, &program, path, most, has_entries).ok_or(Error::None)
}

/// The sections of an ELF file that debugging information is in.
pub fn sections(bytes: &Rc<[u8]>, budget: &Budget) -> Result<Dwarf<Bytes>, Error> {
    let file = object::File::parse(&**bytes).map_err(|_| Error::Damaged)?;
    let endian = match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let most = UNPACKED_MAX.min(budget.room());
    let mut room = most;
    let dwarf = Dwarf::load(|id: SectionId| section(&file, bytes, endian, id, &mut room))?;
    budget.keep(usize::try_from(most - room).unwrap_or(usize::MAX))?;
    Ok(dwarf)
}

fn section(
    file: &object::File<'_>,
    bytes: &Rc<[u8]>,
    endian: RunTimeEndian,
    id: SectionId,
    room: &mut u64,
) -> Result<Bytes, Error> {
    let Some(section) = file.section_by_name(id.name()) else {
        return Ok(Bytes::new(Rc::default(), endian));
    };
    let packed = section.compressed_data().map_err(|_| Error::Damaged)?;
    match packed.format {
        CompressionFormat::None => {
            // The file's bytes are there once.
            let (start, size) = section.file_range().unwrap_or_default();
            let range = usize::try_from(start).ok().zip(usize::try_from(size).ok());
            let (start, size) = range.ok_or(Error::Damaged)?;
            let end = start.checked_add(size).ok_or(Error::Damaged)?;
            if end > bytes.len() {
                return Err(Error::Damaged);
            }
            Ok(Bytes::new(bytes.clone(), endian).range(start..end))
        }
        format => {
            let size = packed.uncompressed_size;
            *room = room.checked_sub(size).ok_or(Error::Unsupported(
                "its sections are too large when they are unpacked",
            ))?;
            let unpacked = unpack(format, packed.data, size)?;
            Ok(Bytes::new(unpacked.into(), endian))
        }
    }
}

/// What a section has packed, of which it says that these are so many bytes.
fn unpack(format: CompressionFormat, packed: &[u8], size: u64) -> Result<Vec<u8>, Error> {
    let mut unpacked = Vec::new();
    let done = match format {
        CompressionFormat::Zlib => ZlibDecoder::new(packed)
            .take(size)
            .read_to_end(&mut unpacked),
        CompressionFormat::Zstandard => StreamingDecoder::new(packed)
            .map_err(|_| Error::Damaged)?
            .take(size)
            .read_to_end(&mut unpacked),
        _ => {
            return Err(Error::Unsupported(
                "its sections are packed in a way that is not known",
            ))
        }
    };
    done.map_err(|_| Error::Damaged)?;
    Ok(unpacked)
}
