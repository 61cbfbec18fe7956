// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The file that has the debugging information of a program, and its sections.
//!
//! That is the program's own, or the one that was made of it when it was stripped. What it tells alike with others may be in one more.

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

/// Bytes of a file that is read for who asks for it.
pub const FILE_MAX: u64 = 1 << 31;
/// Bytes of all sections of a file that are unpacked.
const UNPACKED_MAX: u64 = 1 << 31;
const TOO_LARGE: Error = Error::Unsupported("its sections are too large when they are unpacked");
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
    /// Where the program is, and the file that was made of it: beside these there may be more.
    pub by: Vec<PathBuf>,
    /// Bytes of each of those at most.
    pub most: u64,
}

impl Found {
    /// A file by itself.
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

/// The files, each of at most `most` bytes, that tell of the program in `file`, which its process sees at `path`.
pub fn find(file: &Path, path: &str, most: u64) -> Result<Found, Error> {
    find_in(Path::new(FOLDER), file, path, most)
}

/// The same where the distribution's folder is another one.
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

/// The sections of an ELF file that debugging information is in.
pub fn sections(bytes: &Rc<[u8]>, budget: &Budget) -> Result<Dwarf<Bytes>, Error> {
    load(bytes, budget, |id| Some(id.name()), |get| Dwarf::load(get))
}

/// Makes something of the sections of an ELF file that have these names.
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
    // A file that no linker has seen has a section for each type.
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

/// Takes the bytes of a section.
fn take(part: &Bytes, room: &mut u64, whole: &mut Vec<u8>) -> Result<(), Error> {
    *room = room.checked_sub(part.len() as u64).ok_or(TOO_LARGE)?;
    whole.extend_from_slice(part);
    Ok(())
}

/// What a section has, unpacked.
fn contents(
    section: &object::Section<'_, '_>,
    bytes: &Rc<[u8]>,
    endian: RunTimeEndian,
    room: &mut u64,
) -> Result<Bytes, Error> {
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
            *room = room.checked_sub(size).ok_or(TOO_LARGE)?;
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

/// Unpacks one frame after the other, as linkers that pack in parallel write them.
fn unpack_zstd(mut packed: &[u8], size: u64, to: &mut Vec<u8>) -> io::Result<usize> {
    while !packed.is_empty() {
        let frame = StreamingDecoder::new(&mut packed).map_err(io::Error::other)?;
        // One byte more tells of a frame that is too large.
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
