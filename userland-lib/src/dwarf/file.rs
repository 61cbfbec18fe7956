// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The file that has the debugging information of a program, and its sections.
//!
//! That is the program's own; or the one that a distribution ships for the program's build-id; or the one that the program names,
//! beside it or in the distribution's folder. Of the latter two it is certain that they are of this program: they have the build-id, or
//! the checksum.

use super::{Bytes, Error};
use flate2::read::ZlibDecoder;
use gimli::{Dwarf, RunTimeEndian, SectionId};
use object::{CompressionFormat, Object as _, ObjectSection as _};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Where distributions keep debugging information.
const FOLDER: &str = "/usr/lib/debug";
/// Bytes of a file that is read.
const FILE_MAX: u64 = 1 << 31;
/// Bytes of all sections of a file that are unpacked.
const UNPACKED_MAX: u64 = 1 << 31;
/// The section that has the entries.
const ENTRIES: &str = ".debug_info";

/// The file that tells of the program in `file`, which its process sees at `path`.
pub fn find(file: &Path, path: &str) -> Result<Vec<u8>, Error> {
    find_in(Path::new(FOLDER), file, path)
}

/// The same where the distribution's folder is another one.
pub(super) fn find_in(folder: &Path, file: &Path, path: &str) -> Result<Vec<u8>, Error> {
    let bytes = read(file)?;
    let program = object::File::parse(&*bytes).map_err(|_| Error::Damaged)?;
    if program.section_by_name(ENTRIES).is_some() {
        return Ok(bytes);
    }
    let id = program.build_id().ok().flatten();
    if let Some(found) = id.and_then(|id| of_build_id(folder, id)) {
        return Ok(found);
    }
    let link = program.gnu_debuglink().ok().flatten();
    link.and_then(|(name, sum)| of_link(folder, path, name, sum))
        .ok_or(Error::None)
}

/// The file for a build-id.
fn of_build_id(folder: &Path, id: &[u8]) -> Option<Vec<u8>> {
    let text: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = text.split_at_checked(2)?;
    let path = folder.join(format!(".build-id/{first}/{rest}.debug"));
    let bytes = read(&path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let is_it = file.build_id().ok()? == Some(id) && file.section_by_name(ENTRIES).is_some();
    is_it.then_some(bytes)
}

/// The file of this name and checksum: beside the program at `path`, in a folder there, or in the distribution's.
fn of_link(folder: &Path, path: &str, name: &[u8], sum: u32) -> Option<Vec<u8>> {
    let name = std::str::from_utf8(name).ok()?;
    if name.is_empty() || name.contains('/') {
        return None;
    }
    let beside = Path::new(path).parent()?;
    let below: PathBuf = beside.strip_prefix("/").unwrap_or(beside).into();
    let places = [
        beside.join(name),
        beside.join(".debug").join(name),
        folder.join(below).join(name),
    ];
    let good = |bytes: &Vec<u8>| crc32fast::hash(bytes) == sum;
    places.iter().find_map(|p| read(p).ok().filter(good))
}

/// Reads a file that anybody may have put there.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    if metadata.len() > FILE_MAX {
        return Err(io::Error::other("the file is too large"));
    }
    fs::read(path)
}

/// The sections of an ELF file that debugging information is in.
pub fn sections(bytes: &Rc<[u8]>) -> Result<Dwarf<Bytes>, Error> {
    let file = object::File::parse(&**bytes).map_err(|_| Error::Damaged)?;
    let endian = match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let mut room = UNPACKED_MAX;
    let dwarf = Dwarf::load(|id: SectionId| section(&file, bytes, endian, id, &mut room))?;
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
        CompressionFormat::Zlib => {
            let size = packed.uncompressed_size;
            *room = room.checked_sub(size).ok_or(Error::Unsupported(
                "its sections are too large when they are unpacked",
            ))?;
            let mut unpacked = Vec::new();
            ZlibDecoder::new(packed.data)
                .take(size)
                .read_to_end(&mut unpacked)
                .map_err(|_| Error::Damaged)?;
            Ok(Bytes::new(unpacked.into(), endian))
        }
        _ => Err(Error::Unsupported(
            "its sections are packed in a way that is not known",
        )),
    }
}
