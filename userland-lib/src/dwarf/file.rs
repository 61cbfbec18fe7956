// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The file that has the debugging information of a program, and its sections.
//!
//! That is the program's own, or the one that was made of it when it was stripped. What it tells alike with others may be in one more.

use super::{Budget, Bytes, Error};
use crate::elf::separate::{self, read, FOLDER};
use crate::elf::shared;
use flate2::read::ZlibDecoder;
use gimli::{Dwarf, Reader as _, RunTimeEndian, Section as _, SectionId};
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

/// The files that tell of a program.
pub struct Found {
    /// The program's own, or the one that was made of it.
    pub own: Rc<[u8]>,
    /// The one that it shares with others.
    pub shared: Option<Rc<[u8]>>,
    /// There should be one that is shared, and is not.
    pub is_partial: bool,
}

impl Found {
    /// A file by itself.
    pub fn alone(own: Rc<[u8]>) -> Self {
        let file = object::File::parse(&*own);
        Self {
            is_partial: file.is_ok_and(|file| shared::named(&file).is_some()),
            shared: None,
            own,
        }
    }
}

/// The files, each of at most `most` bytes, that tell of the program in `file`, which its process sees at `path`.
pub fn find(file: &Path, path: &str, most: u64) -> Result<Found, Error> {
    find_in(Path::new(FOLDER), file, path, most)
}

/// The same where the distribution's folder is another one.
pub(super) fn find_in(folder: &Path, file: &Path, path: &str, most: u64) -> Result<Found, Error> {
    let bytes = read(file, most)?;
    let program = object::File::parse(&*bytes).map_err(|_| Error::Damaged)?;
    let has_entries = |file: &object::File<'_>| file.section_by_name(ENTRIES).is_some();
    let (own, by) = match has_entries(&program) {
        true => (bytes, path.into()),
        false => separate::find(folder, &program, path, most, has_entries).ok_or(Error::None)?,
    };
    let told = object::File::parse(&*own).map_err(|_| Error::Damaged)?;
    let name = shared::named(&told);
    let shared = name
        .as_ref()
        .and_then(|name| shared::find(folder, name, &by, most));
    Ok(Found {
        is_partial: name.is_some() && shared.is_none(),
        shared: shared.map(Into::into),
        own: own.into(),
    })
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

/// Has `own` find the texts that are in the file which it shares.
pub fn share_texts(own: &mut Dwarf<Bytes>, shared: &Dwarf<Bytes>) -> Result<(), Error> {
    let texts = shared.debug_str.reader();
    own.load_sup(|id| {
        Ok(match id {
            SectionId::DebugStr => texts.clone(),
            _ => Bytes::new(Rc::default(), texts.endian()),
        })
    })
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
