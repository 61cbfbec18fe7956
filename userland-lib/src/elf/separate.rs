// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The file that was made of a program's symbols and debugging information when those were stripped from it.
//!
//! That is the one that a distribution ships for the program's build-id; or the one that the program names, beside it or in the
//! distribution's folder. They are of this program: they have the build-id, or the checksum. A checksum anybody can make, and the path is what one
//! process calls the program, which others may run as well: so a file beside it is believed if it is the program's owner's, or root's.

use crate::outside;
use crate::symbols::{is_stored, place};
use object::{Object as _, ReadRef};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Where distributions keep such files.
pub const FOLDER: &str = "/usr/lib/debug";

/// The separate file of `program`, which is `owner`'s and which its process sees at `path`, below the distribution's `folder`, and where it is. It
/// has what `has` looks for, and not more than `most` bytes.
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

/// The file for a build-id.
pub(super) fn of_build_id(folder: &Path, id: &[u8], most: u64) -> Option<(Vec<u8>, PathBuf)> {
    let text = hexadecimal(id);
    let (first, rest) = text.split_at_checked(2)?;
    let path = folder.join(format!(".build-id/{first}/{rest}.debug"));
    let bytes = read(&path, most).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let is_it = file.build_id().ok()? == Some(id);
    is_it.then_some((bytes, path))
}

/// A build-id as people write it.
pub fn hexadecimal(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The file of this name and checksum: beside the program at `path`, in a folder there, or in the distribution's.
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

/// Reads a file that anybody may have put there, of `most` bytes at most.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    outside::read(&open(path, most)?, most)
}

/// Opens such a file.
pub fn open(path: &Path, most: u64) -> io::Result<File> {
    // What it is is looked at before it is opened: to open a pipe waits for somebody.
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
