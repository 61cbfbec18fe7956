// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Files of traced processes. Their owners are not trusted: a file may be crafted to overload the
//! reader, may change while it is read, and may be replaced. Therefore a file is opened only once,
//! and everything known of it is obtained through its descriptor.

use nix::fcntl::OFlag;
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::statfs::FsType;
use std::ffi::CStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Files up to this size, in bytes, are not checked for holes. The check is needed because holes
/// cost the file's owner nothing, but take memory here.
const SMALL: u64 = 1 << 28;
/// A larger file must occupy at least this fraction (1 / `PACKED`) of its size on disk. It may be
/// compressed there.
const PACKED: u64 = 8;
/// The mode bit that allows everybody to write to a file.
const WRITABLE: u32 = 0o002;
/// Unit of a file's block count, in bytes.
const BLOCK: u64 = 512;

/// The magic numbers of procfs, tracefs, debugfs, sysfs, cgroup2, configfs, efivarfs and bpffs
/// (`linux/magic.h`). The kernel generates their files on reading, which may block or consume data.
/// FUSE is not listed because virtiofs, from which whole machines run, has the same number.
const MADE: [nix::libc::__fsword_t; 8] = [
    0x9fa0,
    0x7472_6163,
    0x6462_6720,
    0x6265_6572,
    0x6367_7270,
    0x6265_6570,
    0xde5e_81e4,
    0xcafe_4a11,
];

/// Whether a file is stored, so that reading it has no side effects.
pub fn is_stored(file: &File) -> bool {
    nix::sys::statfs::fstatfs(file)
        .is_ok_and(|about| !MADE.map(FsType).contains(&about.filesystem_type()))
}

/// Opens a path with `O_PATH`, which locates the file without opening it.
pub fn place(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_PATH.bits();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Returns a path from which an open file can be opened again.
pub fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Opens a file for reading. Never blocks: the file's type is checked first, and if another process
/// holds a lease on it, the error is `WouldBlock`.
pub fn open(path: &Path) -> io::Result<File> {
    reopen(&place(path)?)
}

/// Like [`open`], for a file that was located with `O_PATH`.
pub fn reopen(place: &File) -> io::Result<File> {
    // Opening a device or a pipe could have side effects.
    if !place.metadata()?.is_file() {
        return Err(no_file());
    }
    OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(path_of(place))
}

fn no_file() -> io::Error {
    io::Error::other("it is no file")
}

/// Whether a file belongs to root or to one of these users and is not writable by everybody.
pub fn belongs(about: &Metadata, owners: &[u32]) -> bool {
    let is_theirs = about.uid() == 0 || owners.contains(&about.uid());
    is_theirs && about.mode() & WRITABLE == 0
}

/// Checks that a file's contents may be read into memory, `most` bytes at most. Returns its size.
pub fn check(file: &File, most: u64) -> io::Result<u64> {
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(no_file());
    }
    if about.len() > most {
        return Err(io::Error::other("the file is too large"));
    }
    if about.len() > SMALL && about.blocks().saturating_mul(BLOCK) < about.len() / PACKED {
        return Err(io::Error::other("the file is mostly holes"));
    }
    Ok(about.len())
}

/// Reads a whole file, subject to [`check`].
pub fn read(mut file: &File, most: u64) -> io::Result<Vec<u8>> {
    let size = check(file, most)?;
    let mut bytes = Vec::new();
    file.rewind()?;
    // The file may have grown since it was checked.
    file.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Creates a private file with these bytes in memory.
pub fn in_memory(name: &CStr, bytes: &[u8]) -> io::Result<File> {
    let file = File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC)?);
    file.write_all_at(bytes, 0)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::{check, open, read};
    use std::fs::{self, File};
    use std::io;
    use std::path::PathBuf;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("outside-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn why(result: io::Result<impl Sized>) -> String {
        result.err().map_or_else(String::new, |e| e.to_string())
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        let folder = Folder::new("pipe");
        let pipe = folder.0.join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600))
            .expect("a pipe");
        // Opening it for real would wait for a writer.
        assert_eq!(why(open(&pipe)), "it is no file");
        assert_eq!(why(open(&folder.0)), "it is no file");
    }

    #[test]
    fn a_file_is_read_whole_if_it_has_its_bytes() {
        let folder = Folder::new("holes");
        let path = folder.0.join("file");
        fs::write(&path, b"text").expect("a file");
        let file = open(&path).expect("it opens");
        assert_eq!(read(&file, 4).expect("it is read"), b"text");
        // Reads start at the beginning, regardless of earlier reads.
        assert_eq!(read(&file, 4).expect("it is read"), b"text");
        assert_eq!(why(read(&file, 3)), "the file is too large");
        let large = File::create(folder.0.join("large")).expect("a file");
        large.set_len(1 << 29).expect("holes");
        assert_eq!(why(check(&large, u64::MAX)), "the file is mostly holes");
    }
}
