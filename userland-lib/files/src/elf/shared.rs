// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds the file of debug information that several programs share.
//!
//! The tool dwz moves information that several files have in common into one file. Each of them
//! names that file by a path and by an id that no other file has: its build-id
//! (`.gnu_debugaltlink`), or, in DWARF 5, a number that is in both files (`.debug_sup`).
//! Distributions use this for the programs of a package.

use super::separate::{of_build_id, read};
use object::{Object as _, ObjectSection as _};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Section of DWARF 5 that names the shared file, or, in the shared file, gives its own id.
const SECTION: &str = ".debug_sup";
const VERSION: u16 = 5;
/// Longest id, in bytes.
const ID_MAX: usize = 64;

/// How a file identifies the shared file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Id {
    Build(Vec<u8>),
    Number(Vec<u8>),
}

/// Path and id of a shared file.
pub struct Name {
    path: PathBuf,
    id: Id,
}

/// Returns the path and id of the shared file that `file` refers to.
pub fn named(file: &object::File<'_>) -> Option<Name> {
    let (path, id) = match altlink(file) {
        Some((path, id)) if !id.is_empty() => (path, Id::Build(id)),
        _ => {
            let told = supplementary(file)?;
            (!told.is_shared).then_some((told.path, Id::Number(told.number)))?
        }
    };
    let path = OsStr::from_bytes(&path);
    (!path.is_empty()).then(|| Name {
        path: path.into(),
        id,
    })
}

/// Returns the contents of the shared file, which has at most `most` bytes. A relative path starts
/// at the folder of the file `by`, which names it. `folder` is the distribution's folder.
pub fn find(folder: &Path, name: &Name, by: &Path, most: u64) -> Option<Vec<u8>> {
    let good = |bytes: &Vec<u8>| {
        let file = object::File::parse(&**bytes);
        file.is_ok_and(|file| is_it(&file, &name.id))
    };
    if let Id::Build(id) = &name.id {
        if let Some((bytes, _)) = of_build_id(folder, id, most) {
            return Some(bytes);
        }
    }
    // The distribution's build-id folder contains symbolic links, so try the link's target as well.
    let real = by.canonicalize().ok();
    let named = [Some(by), real.as_deref()];
    let named = named.into_iter().flatten().filter_map(Path::parent);
    let named = named.map(|beside| beside.join(&name.path));
    let of_folder = name.path.file_name();
    let of_folder = of_folder.map(|own| folder.join(".dwz").join(own));
    let mut places = named.chain(of_folder);
    places.find_map(|place| read(&place, most).ok().filter(good))
}

fn is_it(file: &object::File<'_>, id: &Id) -> bool {
    match id {
        Id::Build(id) => file.build_id().ok().flatten() == Some(id),
        Id::Number(number) => {
            supplementary(file).is_some_and(|told| told.is_shared && told.number == *number)
        }
    }
}

fn altlink(file: &object::File<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let (path, id) = file.gnu_debugaltlink().ok().flatten()?;
    (id.len() <= ID_MAX).then(|| (path.to_vec(), id.to_vec()))
}

/// Contents of `.debug_sup`.
struct Supplementary {
    is_shared: bool,
    path: Vec<u8>,
    number: Vec<u8>,
}

fn supplementary(file: &object::File<'_>) -> Option<Supplementary> {
    let section = file.section_by_name(SECTION)?;
    let bytes = section.data().ok()?;
    let (version, bytes) = bytes.split_first_chunk()?;
    let version = match file.is_little_endian() {
        true => u16::from_le_bytes(*version),
        false => u16::from_be_bytes(*version),
    };
    let (is_shared, bytes) = bytes.split_first()?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let (path, bytes) = (bytes.get(..end)?, bytes.get(end + 1..)?);
    // The length of the id is a LEB128 number; one byte suffices for the lengths that are accepted.
    let (length, bytes) = bytes.split_first()?;
    let number = bytes.get(..usize::from(*length))?;
    let is_known =
        version == VERSION && *is_shared <= 1 && !number.is_empty() && number.len() <= ID_MAX;
    is_known.then(|| Supplementary {
        is_shared: *is_shared == 1,
        path: path.to_vec(),
        number: number.to_vec(),
    })
}
