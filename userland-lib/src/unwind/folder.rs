// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A folder of small files that may go at any time, of one user alone.
//!
//! Whoever could write there could tell us what to do, so the folder is used only if it and the one above it are its user's, if nobody else
//! can write to the upper one, and if nobody else can even look into the lower one. Both are opened without following a link, and
//! all that is done then is done by the descriptor: nobody can exchange the folder afterwards. A file is written under another name and then
//! renamed, so that each is whole. It is not synced: what a crash makes of it is the reader's to notice.
//!
//! What was not used for longest goes when room is needed. The time of a file's last change says when it was used. Files are looked
//! through only where one is written. What a writer that was killed has left counts as any other file, and goes in its turn.

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

/// The folder's name, and that of the one above it.
const NAMES: [&str; 2] = ["dtrace", "unwind"];
/// What is asked of a folder and of a file: no link is followed, and nothing is waited for.
const FLAGS: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_CLOEXEC);
/// Bytes of a disk that a file takes are a multiple of this.
const BLOCK: u64 = 4096;
/// What the name of a file that is being written begins with.
const NEW: &str = "new-";

/// A folder of its user's.
pub(super) struct Folder {
    dir: OwnedFd,
    owner: Uid,
    /// Bytes of a disk that all files together may take.
    most: u64,
}

/// A file: when it was used, what it takes, its name.
type Kept = ((i64, i64), u64, CString);

impl Folder {
    /// The folder `dtrace/unwind` below `base`, which is made where it is missing. An error: it cannot be, or others might write to it.
    pub fn open(base: &Path, owner: Uid, most: u64) -> io::Result<Self> {
        let [upper, lower] = NAMES;
        let base = File::open(base)?;
        // Others look for what they have above it.
        let upper = enter(&base, upper, owner, 0o755, 0o022)?;
        let dir = enter(&upper, lower, owner, 0o700, 0o077)?;
        Ok(Self { dir, owner, most })
    }

    /// The bytes of a file, `most` at most, which is in use now. [`InvalidData`](io::ErrorKind::InvalidData): it is none that was written here.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let file = match openat(&self.dir, name, FLAGS, Mode::empty()) {
            // A link.
            Err(Errno::ELOOP) => return Err(io::ErrorKind::InvalidData.into()),
            opened => opened?,
        };
        let about = fstat(&file)?;
        let size = u64::try_from(about.st_size).unwrap_or(u64::MAX);
        if !(is_file(&about) && is_of(&about, self.owner, 0o022) && size <= most) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let file = File::from(file);
        // It can be read where it cannot be written.
        let _ = file.set_modified(SystemTime::now());
        let mut bytes = Vec::with_capacity(size as usize);
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Puts a file there, of these bytes one behind the other.
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

    /// Removes a file. One that cannot be removed stays, and is refused the next time too.
    pub fn remove(&self, name: &str) {
        let _ = unlinkat(&self.dir, name, UnlinkatFlags::NoRemoveDir);
    }

    /// Removes what was not used for longest, until a file of this size has room.
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
                // Another writer may have made the same room.
                Ok(()) | Err(Errno::ENOENT) => left = left.saturating_sub(*size),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn files(&self) -> io::Result<Vec<Kept>> {
        let mut files = Vec::new();
        // A descriptor of its own, which begins with the first name.
        let mut dir = Dir::openat(&self.dir, ".", FLAGS | OFlag::O_DIRECTORY, Mode::empty())?;
        for entry in dir.iter() {
            let name = entry?.file_name().to_owned();
            // It may have gone meanwhile.
            let about = fstatat(&self.dir, name.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW);
            if let Some(about) = about.ok().filter(is_file) {
                let size = on_disk(u64::try_from(about.st_size).unwrap_or(0));
                files.push(((about.st_mtime, about.st_mtime_nsec), size, name));
            }
        }
        Ok(files)
    }
}

/// Opens a folder of `owner`'s, to whom alone the bits `denied` may be given. It is made with `mode` where it is missing.
fn enter(above: impl AsFd, name: &str, owner: Uid, mode: u32, denied: u32) -> io::Result<OwnedFd> {
    // Where that fails the folder is there, or opening it fails too.
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

/// What a file of this size takes of a disk.
fn on_disk(size: u64) -> u64 {
    size.div_ceil(BLOCK).saturating_mul(BLOCK)
}

#[cfg(test)]
#[path = "folder_tests.rs"]
pub(super) mod tests;
