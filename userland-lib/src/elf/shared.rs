// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The file of the debugging information that several programs share.
//!
//! A tool (dwz) moves what several files tell alike to one, which each of them names: by a path, and by what is in that file and no
//! other. That is its build-id (`.gnu_debugaltlink`), or, as DWARF 5 has it, a number that stands in both (`.debug_sup`). Distributions do so for the
//! programs of a package.

use super::separate::{of_build_id, read};
use object::{Object as _, ObjectSection as _};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Where DWARF 5 has a file named, and what it names itself by.
const SECTION: &str = ".debug_sup";
const VERSION: u16 = 5;
/// Bytes of a number that stands for a file.
const ID_MAX: usize = 64;

/// What a file names another by.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Id {
    Build(Vec<u8>),
    Number(Vec<u8>),
}

/// The file that `file` names: the path, and what is to be in it.
pub struct Name {
    path: PathBuf,
    id: Id,
}

/// What a file of debugging information says is in another.
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

/// The bytes of that file, `most` at most. A relative path begins in the folder of the file that names it, which is `by`.
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
    // The folder of build-ids has links to the files.
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

/// What the section of DWARF 5 says.
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
    // Its length, in a form of which a byte is enough here.
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
