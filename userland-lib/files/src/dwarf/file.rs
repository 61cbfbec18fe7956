// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds the files with the debug information of a program, and loads their sections.
//!
//! The information is in the program's own file, or in the separate file that was written when the
//! program was stripped. What it has in common with other programs may be in a further file.

use super::{Budget, Bytes, Error};
use crate::elf::separate::{self, FOLDER};
use crate::elf::shared;
use crate::outside;
use flate2::read::ZlibDecoder;
use gimli::{Dwarf, Reader as _, RunTimeEndian, Section as _, SectionId};
use object::{CompressionFormat, Object as _, ObjectSection as _};
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Largest file that is read if the user requested it, in bytes.
pub const FILE_MAX: u64 = 1 << 31;
/// Most bytes that are unpacked from all sections of a file together.
const UNPACKED_MAX: u64 = 1 << 31;
const TOO_LARGE: Error = Error::Unsupported("its sections are too large when they are unpacked");
/// The section with the entries.
const ENTRIES: &str = ".debug_info";

/// The files with the debug information of a program.
pub struct Found {
    /// The program's own file, or its separate debug file.
    pub own: Rc<[u8]>,
    /// The file that it shares with other programs.
    pub shared: Option<Rc<[u8]>>,
    /// The program refers to a shared file, but that was not found.
    pub is_partial: bool,
    /// Paths of the program and of its separate debug file. Split units (`.dwo`, `.dwp`) are looked
    /// for beside these.
    pub by: Vec<PathBuf>,
    /// Most bytes that may be read from all files of split units together.
    pub most: u64,
}

impl Found {
    /// A file by itself: no other is looked for.
    pub fn alone(own: Rc<[u8]>) -> Self {
        let file = object::File::parse(&*own);
        Self {
            is_partial: file.is_ok_and(|file| shared::named(&file).is_some()),
            shared: None,
            own,
            by: Vec::new(),
            most: 0,
        }
    }
}

/// Finds the debug information of the program in `file`, which its process sees at `path`. Each
/// file may have at most `most` bytes.
pub fn find(file: &Path, path: &str, most: u64) -> Result<Found, Error> {
    find_in(Path::new(FOLDER), file, path, most)
}

/// Like [`find`], with another folder in place of the distribution's `/usr/lib/debug`.
pub(super) fn find_in(folder: &Path, file: &Path, path: &str, most: u64) -> Result<Found, Error> {
    let file = separate::open(file, most)?;
    let owner = file.metadata()?.uid();
    let bytes = outside::read(&file, most)?;
    let program = object::File::parse(&*bytes).map_err(|_| Error::Damaged)?;
    let has_entries = |file: &object::File<'_>| file.section_by_name(ENTRIES).is_some();
    let (own, by) = match has_entries(&program) {
        true => (bytes, PathBuf::from(path)),
        false => {
            separate::find(folder, &program, (path, owner), most, has_entries).ok_or(Error::None)?
        }
    };
    let told = object::File::parse(&*own).map_err(|_| Error::Damaged)?;
    let name = shared::named(&told);
    let shared = name
        .as_ref()
        .and_then(|name| shared::find(folder, name, &by, most));
    let mut places = vec![path.into(), by];
    places.dedup();
    Ok(Found {
        by: places,
        most,
        is_partial: name.is_some() && shared.is_none(),
        shared: shared.map(Into::into),
        own: own.into(),
    })
}

/// Loads the debug sections of an ELF file.
pub fn sections(bytes: &Rc<[u8]>, budget: &Budget) -> Result<Dwarf<Bytes>, Error> {
    load(bytes, budget, |id| Some(id.name()), |get| Dwarf::load(get))
}

/// Loads sections of an ELF file by the names that `name` gives them, and passes them to `make`.
/// What is unpacked is charged to the budget.
pub fn load<T>(
    bytes: &Rc<[u8]>,
    budget: &Budget,
    name: impl Fn(SectionId) -> Option<&'static str>,
    make: impl FnOnce(&mut dyn FnMut(SectionId) -> Result<Bytes, Error>) -> Result<T, Error>,
) -> Result<T, Error> {
    let file = object::File::parse(&**bytes).map_err(|_| Error::Damaged)?;
    let endian = match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let most = UNPACKED_MAX.min(budget.room());
    let mut room = most;
    let made = make(&mut |id| section(&file, bytes, endian, name(id), &mut room))?;
    budget.keep(usize::try_from(most - room).unwrap_or(usize::MAX))?;
    Ok(made)
}

/// Lets `own` resolve strings that are in the file that it shares.
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
    name: Option<&str>,
    room: &mut u64,
) -> Result<Bytes, Error> {
    let mut parts = file.sections().filter(|section| {
        let own = section.name_bytes().ok();
        own.is_some() && own == name.map(str::as_bytes)
    });
    let Some(first) = parts.next() else {
        return Ok(Bytes::new(Rc::default(), endian));
    };
    let first = contents(&first, bytes, endian, room)?;
    let mut whole = Vec::new();
    // In a file that no linker has processed each type unit has a section of its own.
    let are_many = [SectionId::DebugInfo, SectionId::DebugTypes].map(|id| id.dwo_name());
    for part in parts.filter(|_| are_many.contains(&name)) {
        if whole.is_empty() {
            take(&first, room, &mut whole)?;
        }
        take(&contents(&part, bytes, endian, room)?, room, &mut whole)?;
    }
    match whole.is_empty() {
        true => Ok(first),
        false => Ok(Bytes::new(whole.into(), endian)),
    }
}

/// Appends a section's bytes to `whole`.
fn take(part: &Bytes, room: &mut u64, whole: &mut Vec<u8>) -> Result<(), Error> {
    *room = room.checked_sub(part.len() as u64).ok_or(TOO_LARGE)?;
    whole.extend_from_slice(part);
    Ok(())
}

/// Returns a section's contents, unpacked.
fn contents(
    section: &object::Section<'_, '_>,
    bytes: &Rc<[u8]>,
    endian: RunTimeEndian,
    room: &mut u64,
) -> Result<Bytes, Error> {
    let packed = section.compressed_data().map_err(|_| Error::Damaged)?;
    match packed.format {
        CompressionFormat::None => {
            // Refer to the file's bytes instead of copying them.
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
            *room = room.checked_sub(size).ok_or(TOO_LARGE)?;
            let unpacked = unpack(format, packed.data, size)?;
            Ok(Bytes::new(unpacked.into(), endian))
        }
    }
}

/// Unpacks a section. `size` is the unpacked size that its header claims; any other size is an
/// error.
fn unpack(format: CompressionFormat, packed: &[u8], size: u64) -> Result<Vec<u8>, Error> {
    let mut unpacked = Vec::new();
    let done = match format {
        CompressionFormat::Zlib => ZlibDecoder::new(packed)
            .take(size)
            .read_to_end(&mut unpacked),
        CompressionFormat::Zstandard => unpack_zstd(packed, size, &mut unpacked),
        _ => {
            return Err(Error::Unsupported(
                "its sections are packed in a way that is not known",
            ))
        }
    };
    done.map_err(|_| Error::Damaged)?;
    match unpacked.len() as u64 == size {
        true => Ok(unpacked),
        false => Err(Error::Damaged),
    }
}

/// Unpacks all frames in turn: linkers that compress in parallel write several.
fn unpack_zstd(mut packed: &[u8], size: u64, to: &mut Vec<u8>) -> io::Result<usize> {
    while !packed.is_empty() {
        let frame = StreamingDecoder::new(&mut packed).map_err(io::Error::other)?;
        // Read one byte more than fits, to detect data that is longer than claimed.
        let left = size.saturating_sub(to.len() as u64);
        frame.take(left + 1).read_to_end(to)?;
        if to.len() as u64 > size {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(to.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{compress_to_vec, CompressionLevel};

    #[test]
    fn what_is_packed_in_parts_is_whole() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let (first, second) = text.split_at(123_456);
        let parts = [first, second].map(|part| compress_to_vec(part, CompressionLevel::Fastest));
        let packed = parts.concat();
        let unpack = |packed: &[u8], size| unpack(CompressionFormat::Zstandard, packed, size);
        let size = text.len() as u64;
        assert!(unpack(&packed, size).is_ok_and(|unpacked| unpacked == text));
        for wrong in [first.len() as u64, size - 1, size + 1] {
            assert!(matches!(unpack(&packed, wrong), Err(Error::Damaged)));
        }
        let cut = &packed[..packed.len() - 20];
        assert!(matches!(unpack(cut, size), Err(Error::Damaged)));
        assert!(matches!(unpack(&parts[0], size), Err(Error::Damaged)));
    }
}
