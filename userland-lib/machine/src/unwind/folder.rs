// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A cache folder of small files that belongs to one user. Any of the files may disappear at any
//! time.
//!
//! Anyone who could write to the folder could influence what DTrace does. It is therefore used only
//! if the user owns it and its parent, if nobody else can write to the parent, and if nobody else
//! has any access to the folder itself. Both are opened without following a link, and all later
//! operations are relative to the descriptor, so that nobody can replace the folder afterwards. A
//! file is written under a temporary name and then renamed, so that each file is complete. It is
//! not synced: the reader must detect what a crash leaves.
//!
//! When room is needed, the least recently used files are removed. A file's modification time is
//! the time of its last use. Files are listed only when one is written. The temporary files of a
//! writer that was killed count like any other file and are removed in their turn.

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{openat, renameat, AtFlags, OFlag};
use nix::libc::{S_IFMT, S_IFREG};
use nix::sys::stat::{fstat, fstatat, mkdirat, FileStat, Mode};
use nix::unistd::{unlinkat, Uid, UnlinkatFlags};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The names of the parent folder and of the folder.
const NAMES: [&str; 2] = ["dtrace", "unwind"];
/// Flags for opening a folder or a file: do not follow a link, do not block (on a pipe).
const FLAGS: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_CLOEXEC);
/// Disk space is allocated in multiples of this many bytes.
const BLOCK: u64 = 4096;
/// Prefix of the temporary names under which files are written.
const NEW: &str = "new-";

/// An open cache folder.
pub(super) struct Folder {
    dir: OwnedFd,
    owner: Uid,
    /// Maximum disk space that all files together may take, in bytes.
    most: u64,
}

/// A file: its last use, its disk space in bytes, its name.
type Kept = ((i64, i64), u64, CString);

impl Folder {
    /// Opens the folder `dtrace/unwind` below `base` and creates it if it is missing. Fails if it
    /// cannot be created or opened, or if other users might write to it.
    pub fn open(base: &Path, owner: Uid, most: u64) -> io::Result<Self> {
        let [upper, lower] = NAMES;
        let base = File::open(base)?;
        // Users other than the owner may look for their own files in the parent.
        let upper = enter(&base, upper, owner, 0o755, 0o022)?;
        let dir = enter(&upper, lower, owner, 0o700, 0o077)?;
        Ok(Self { dir, owner, most })
    }

    /// Returns the contents of a file and marks it as used. The error is
    /// [`InvalidData`](io::ErrorKind::InvalidData) if it is not a regular file that the owner alone
    /// can write to, or has more than `most` bytes.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let file = match openat(&self.dir, name, FLAGS, Mode::empty()) {
            // It is a symbolic link.
            Err(Errno::ELOOP) => return Err(io::ErrorKind::InvalidData.into()),
            opened => opened?,
        };
        let about = fstat(&file)?;
        let size = u64::try_from(about.st_size).unwrap_or(u64::MAX);
        if !(is_file(&about) && is_of(&about, self.owner, 0o022) && size <= most) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let file = File::from(file);
        // The folder may be readable but not writable, for example on a read-only file system.
        let _ = file.set_modified(SystemTime::now());
        let mut bytes = Vec::with_capacity(size as usize);
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes a file of these byte strings, one after the other. Replaces an existing file.
    pub fn write(&self, name: &str, bytes: &[&[u8]]) -> io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let size = bytes.iter().map(|part| part.len() as u64).sum();
        self.make_room(size)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let new = format!("{NEW}{}-{number}", std::process::id());
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        let mut file = File::from(openat(&self.dir, new.as_str(), flags, mode)?);
        let mut parts = bytes.iter();
        let written = parts.try_for_each(|part| file.write_all(part));
        let placed = written.and_then(|()| Ok(renameat(&self.dir, new.as_str(), &self.dir, name)?));
        if placed.is_err() {
            self.remove(&new);
        }
        placed
    }

    /// Removes a file. Errors are ignored: `read` rejects a bad file that stays again the next
    /// time.
    pub fn remove(&self, name: &str) {
        let _ = unlinkat(&self.dir, name, UnlinkatFlags::NoRemoveDir);
    }

    /// Removes the least recently used files until a file of `size` bytes fits.
    fn make_room(&self, size: u64) -> io::Result<()> {
        let mut files = self.files()?;
        files.sort();
        let mut left = files.iter().map(|(_, size, _)| *size).sum::<u64>();
        let room = self.most.checked_sub(on_disk(size));
        let room = room.ok_or(io::ErrorKind::FileTooLarge)?;
        for (_, size, name) in &files {
            if left <= room {
                break;
            }
            match unlinkat(&self.dir, name.as_c_str(), UnlinkatFlags::NoRemoveDir) {
                // A concurrent writer may have removed the same file.
                Ok(()) | Err(Errno::ENOENT) => left = left.saturating_sub(*size),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn files(&self) -> io::Result<Vec<Kept>> {
        let mut files = Vec::new();
        // A separate descriptor, whose directory position starts at the first name.
        let mut dir = Dir::openat(&self.dir, ".", FLAGS | OFlag::O_DIRECTORY, Mode::empty())?;
        for entry in dir.iter() {
            let name = entry?.file_name().to_owned();
            // The file may have been removed since it was listed.
            let about = fstatat(&self.dir, name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
            if let Some(about) = about.ok().filter(is_file) {
                let size = on_disk(u64::try_from(about.st_size).unwrap_or(0));
                files.push(((about.st_mtime, about.st_mtime_nsec), size, name));
            }
        }
        Ok(files)
    }
}

/// Opens a folder that `owner` owns and whose mode has none of the bits `denied`. Creates it with
/// `mode` if it is missing.
fn enter(above: impl AsFd, name: &str, owner: Uid, mode: u32, denied: u32) -> io::Result<OwnedFd> {
    // If this fails, either the folder exists or opening it fails too.
    let _ = mkdirat(&above, name, Mode::from_bits_truncate(mode));
    let dir = openat(&above, name, FLAGS | OFlag::O_DIRECTORY, Mode::empty())?;
    match is_of(&fstat(&dir)?, owner, denied) {
        true => Ok(dir),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

fn is_of(about: &FileStat, owner: Uid, denied: u32) -> bool {
    about.st_uid == owner.as_raw() && about.st_mode & denied == 0
}

fn is_file(about: &FileStat) -> bool {
    about.st_mode & S_IFMT == S_IFREG
}

/// Disk space that a file of this size takes, in bytes.
fn on_disk(size: u64) -> u64 {
    size.div_ceil(BLOCK).saturating_mul(BLOCK)
}

#[cfg(test)]
#[path = "folder_tests.rs"]
pub(super) mod tests;
