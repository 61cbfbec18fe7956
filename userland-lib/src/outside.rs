// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Files of those who are traced. Whoever's process it is may have made one for us to choke on, may change it while it is read, and may put another one
//! in its place: so a file is opened once, and what is known of it is known by its descriptor.

use crate::symbols::{path_of, place};
use nix::sys::memfd::{memfd_create, MFdFlags};
use std::ffi::CStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// So much a file may have without being looked at for holes, bytes: one in memory costs its owner nothing where it has none.
const SMALL: u64 = 1 << 28;
/// A larger one is on the disk with so great a part of its bytes. It may be packed there.
const PACKED: u64 = 8;
/// The bit of a file's mode by which everybody may write to it.
const WRITABLE: u32 = 0o002;
/// Bytes of a block, as they are counted.
const BLOCK: u64 = 512;

/// Opens a file to read it. Waits for nobody: what it is is looked at before, and who holds a lease on it (`WouldBlock`) is not asked for it.
pub fn open(path: &Path) -> io::Result<File> {
    reopen(&place(path)?)
}

/// The same of what is at a place.
pub fn reopen(place: &File) -> io::Result<File> {
    // To open a device or a pipe would do something to it.
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

/// Whether a file is root's or one of these users', and not for everybody to write.
pub fn belongs(about: &Metadata, owners: &[u32]) -> bool {
    let is_theirs = about.uid() == 0 || owners.contains(&about.uid());
    is_theirs && about.mode() & WRITABLE == 0
}

/// Whether a file is one whose bytes may be taken into memory, `most` at most; how many they are.
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

/// Reads all of a file, if it may be.
pub fn read(mut file: &File, most: u64) -> io::Result<Vec<u8>> {
    let size = check(file, most)?;
    let mut bytes = Vec::new();
    file.rewind()?;
    // It may have grown.
    file.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file of these bytes in memory, which nobody else has.
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
        // It would wait for a writer.
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
        // From its beginning, whoever has read it before.
        assert_eq!(read(&file, 4).expect("it is read"), b"text");
        assert_eq!(why(read(&file, 3)), "the file is too large");
        let large = File::create(folder.0.join("large")).expect("a file");
        large.set_len(1 << 29).expect("holes");
        assert_eq!(why(check(&large, u64::MAX)), "the file is mostly holes");
    }
}
