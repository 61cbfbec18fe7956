// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Tables that were made before, on disk.
//!
//! Interpreting what a large library tells takes a tenth of a second, and each tracing begins with it. Reading and hashing it and reading
//! its table takes a tenth of that (`examples/table_cost.rs`), so the table is kept, by the hash ([`Key`]) of all that it is made from. The
//! hash is a cryptographic one: files are hostile, and whoever could make another file's hash could alter the stacks of its programs.
//! What a file says of itself, its build-id, is hashed with the rest and decides nothing alone.
//!
//! The superuser's tables are his alone, whoever's environment he has, and so are each other user's: see [`Folder`]. An entry is
//! not trusted for that. It is used if all of it is what was written for this very key, and is a table; else it is removed. Whatever
//! goes wrong, the table is made from the file: the cache changes how long something takes, and nothing else.
//!
//! An entry's numbers are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | [`MAGIC`] |
//! | 4 | [`VERSION`] |
//! | 4 | the CRC-32 of the table |
//! | 8 | bytes of the table |
//! | 32 | the key |
//! | … | the table |

use super::folder::Folder;
use super::told::Key;
use dtrace_unwind::{table::SIZE_MAX, Table};
use nix::unistd::Uid;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// What an entry begins with.
const MAGIC: [u8; 8] = *b"DTUWKEPT";
/// Of this layout.
const VERSION: u32 = 1;
/// Bytes in front of the table.
const HEADER: usize = 56;
/// Bytes of a disk that all entries together take.
const MOST: u64 = 64 << 20;
/// Where the superuser's caches are.
const SYSTEM: &str = "/var/cache";

/// Tables that were made before.
pub struct Cache {
    folder: Folder,
}

impl Cache {
    /// The user's own: below `/var/cache` for the superuser, for others below `$XDG_CACHE_HOME` or `~/.cache`. `None`: he has none, or
    /// others might write to it.
    pub fn usual() -> Option<Self> {
        let user = Uid::effective();
        let own = ["XDG_CACHE_HOME", "HOME"].map(std::env::var_os);
        let base = base(user, own)?;
        if !user.is_root() {
            // There it is, or has no place.
            let _ = DirBuilder::new().mode(0o700).create(&base);
        }
        Self::below(&base)
    }

    /// That of a folder, which must be there.
    pub fn below(base: &Path) -> Option<Self> {
        let folder = Folder::open(base, Uid::effective(), MOST).ok()?;
        Some(Self { folder })
    }

    /// The table that was kept by this key.
    pub(super) fn load(&self, key: &Key) -> Option<Vec<u8>> {
        let name = key.to_string();
        let most = (HEADER + SIZE_MAX) as u64;
        let read = self.folder.read(&name, most);
        let read = read.and_then(|mut entry| {
            let header = header(key, entry.get(HEADER..).unwrap_or_default());
            let is_ours = entry.starts_with(&header);
            let table = is_ours.then(|| entry.split_off(HEADER));
            let table = table.filter(|table| Table::check(table).is_ok());
            table.ok_or_else(|| io::ErrorKind::InvalidData.into())
        });
        if matches!(&read, Err(error) if error.kind() == io::ErrorKind::InvalidData) {
            self.folder.remove(&name);
        }
        read.ok()
    }

    /// Keeps a table by a key, if there is room.
    pub(super) fn store(&self, key: &Key, table: &[u8]) {
        // Where it fails the table is made anew the next time.
        let _ = self
            .folder
            .write(&key.to_string(), &[&header(key, table), table]);
    }
}

/// What stands before a table.
fn header(key: &Key, table: &[u8]) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER);
    header.extend(MAGIC);
    header.extend(VERSION.to_le_bytes());
    header.extend(crc32fast::hash(table).to_le_bytes());
    header.extend((table.len() as u64).to_le_bytes());
    header.extend(key.0);
    header
}

/// Where a user's caches are, who has these `XDG_CACHE_HOME` and `HOME` (XDG Base Directory Specification: a path that is not absolute is
/// none). The superuser may have another user's environment.
fn base(user: Uid, [caches, home]: [Option<OsString>; 2]) -> Option<PathBuf> {
    if user.is_root() {
        return Some(SYSTEM.into());
    }
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let caches = caches.and_then(absolute);
    caches.or_else(|| Some(home.and_then(absolute)?.join(".cache")))
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
