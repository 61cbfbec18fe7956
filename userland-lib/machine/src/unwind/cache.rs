// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A cache of unwind tables on disk.
//!
//! Interpreting the unwind information of a large library takes a tenth of a second, and each
//! tracing session begins with it. Reading and hashing that information and reading its table takes
//! a tenth of that (`examples/table_cost.rs`). The table is therefore cached under the hash
//! ([`Key`]) of everything that it is built from. The hash is a cryptographic one because files are
//! untrusted input: an attacker who could produce another file's hash could alter the stacks of its
//! programs. The build ID, which a file states about itself, is hashed with the rest and decides
//! nothing alone.
//!
//! The superuser's cache is in a fixed place and private, regardless of the environment, and so is
//! each other user's: see [`Folder`]. Entries are verified nevertheless. An entry is used only if
//! it is exactly what was written for this key and is a valid table; otherwise it is removed.
//! Whenever something fails, the table is built from the file: the cache affects only how long this
//! takes.
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

/// The magic number at the start of an entry.
const MAGIC: [u8; 8] = *b"DTUWKEPT";
/// The version of this layout.
const VERSION: u32 = 1;
/// Size of the header, in bytes.
const HEADER: usize = 56;
/// Maximum disk space that all entries together take, in bytes.
const MOST: u64 = 64 << 20;
/// The superuser's base folder.
const SYSTEM: &str = "/var/cache";

/// A cache of unwind tables.
pub struct Cache {
    folder: Folder,
}

impl Cache {
    /// Opens the user's own cache: below `/var/cache` for the superuser, for others below
    /// `$XDG_CACHE_HOME` or `~/.cache`. `None` if the user has no such folder or if other users
    /// might write to it.
    pub fn usual() -> Option<Self> {
        let user = Uid::effective();
        let own = ["XDG_CACHE_HOME", "HOME"].map(std::env::var_os);
        let base = base(user, own)?;
        if !user.is_root() {
            // If this fails, either the folder exists or opening the cache fails too.
            let _ = DirBuilder::new().mode(0o700).create(&base);
        }
        Self::below(&base)
    }

    /// Opens the cache below `base`, which must exist.
    pub fn below(base: &Path) -> Option<Self> {
        let folder = Folder::open(base, Uid::effective(), MOST).ok()?;
        Some(Self { folder })
    }

    /// Returns the cached table for `key`. Removes an entry that is not valid.
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

    /// Stores a table under `key` if there is room.
    pub(super) fn store(&self, key: &Key, table: &[u8]) {
        // If this fails, the table is built again the next time.
        let _ = self
            .folder
            .write(&key.to_string(), &[&header(key, table), table]);
    }
}

/// Returns the header of an entry for `table`.
fn header(key: &Key, table: &[u8]) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER);
    header.extend(MAGIC);
    header.extend(VERSION.to_le_bytes());
    header.extend(crc32fast::hash(table).to_le_bytes());
    header.extend((table.len() as u64).to_le_bytes());
    header.extend(key.0);
    header
}

/// Returns the base folder of a user's caches, given the values of `XDG_CACHE_HOME` and `HOME`.
/// According to the XDG Base Directory Specification a path that is not absolute is ignored. The
/// superuser's environment is ignored because it may be another user's.
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
