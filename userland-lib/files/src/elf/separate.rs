// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds the separate file with a program's symbols and debug information, which was written when
//! those were stripped from the program.
//!
//! It is the file that the distribution ships for the program's build-id, or the file that the
//! program names, beside the program or in the distribution's folder. A file is accepted only if it
//! belongs to this program, that is, has the same build-id or checksum. However, anybody can
//! produce a file with a given checksum, and the path is the one at which one process sees the
//! program, while other users may run the same program. So a file outside of the distribution's
//! folder must be owned by the owner of the program or by root, and must not be writable by
//! everybody.

use crate::outside::{self, is_stored, place};
use object::{Object as _, ReadRef};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The distribution's folder of separate debug files.
pub const FOLDER: &str = "/usr/lib/debug";

/// Finds the separate file of `program`, and returns its contents and path. `owner` owns the
/// program, and its process sees it at `path`. `folder` is the distribution's folder. The file
/// satisfies `has` and has at most `most` bytes.
pub fn find<'a, R: ReadRef<'a>>(
    folder: &Path,
    program: &object::File<'a, R>,
    (path, owner): (&str, u32),
    most: u64,
    has: impl Fn(&object::File<'_>) -> bool,
) -> Option<(Vec<u8>, PathBuf)> {
    let good = |(bytes, _): &(Vec<u8>, PathBuf)| {
        let file = object::File::parse(&**bytes);
        file.is_ok_and(|file| has(&file))
    };
    let id = program.build_id().ok().flatten();
    let by_id = id.and_then(|id| of_build_id(folder, id, most).filter(good));
    by_id.or_else(|| {
        let (name, sum) = program.gnu_debuglink().ok().flatten()?;
        of_link(folder, (path, owner), (name, sum), most).filter(good)
    })
}

/// Returns the file for a build-id.
pub(super) fn of_build_id(folder: &Path, id: &[u8], most: u64) -> Option<(Vec<u8>, PathBuf)> {
    let text = hexadecimal(id);
    let (first, rest) = text.split_at_checked(2)?;
    let path = folder.join(format!(".build-id/{first}/{rest}.debug"));
    let bytes = read(&path, most).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let is_it = file.build_id().ok()? == Some(id);
    is_it.then_some((bytes, path))
}

/// Returns a build-id in hexadecimal, as tools print it.
pub fn hexadecimal(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the file with this name and checksum: beside the program at `path`, in the folder
/// `.debug` there, or in the distribution's folder.
fn of_link(
    folder: &Path,
    (path, owner): (&str, u32),
    (name, sum): (&[u8], u32),
    most: u64,
) -> Option<(Vec<u8>, PathBuf)> {
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
    places.into_iter().find_map(|place| {
        let file = open(&place, most).ok()?;
        let is_theirs = file
            .metadata()
            .is_ok_and(|about| outside::belongs(&about, &[owner]));
        if !is_theirs && !place.starts_with(folder) {
            return None;
        }
        let bytes = outside::read(&file, most).ok().filter(good)?;
        Some((bytes, place))
    })
}

/// Reads an untrusted file of at most `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    outside::read(&open(path, most)?, most)
}

/// Opens an untrusted file of at most `most` bytes.
pub fn open(path: &Path, most: u64) -> io::Result<File> {
    // Check the file's type before opening it, because opening a pipe would block.
    let place = place(path)?;
    let about = place.metadata()?;
    if !about.is_file() || about.len() == 0 || !is_stored(&place) {
        return Err(io::Error::other("it is no file"));
    }
    if about.len() > most {
        return Err(io::Error::other("the file is too large"));
    }
    outside::reopen(&place)
}
