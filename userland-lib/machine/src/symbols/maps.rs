// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The mappings of a process, from `/proc/PID/maps`.

use super::folder::folder_of;
use dtrace_files::text::decoded;
use std::io;

/// The suffix that the kernel appends to the path of a file that has been deleted.
const DELETED: &str = " (deleted)";
/// The path of the vDSO, the code that the kernel maps into every process.
pub(super) const VDSO: &str = "[vdso]";
/// Prefix of the paths of files that exist only in memory (`memfd_create`).
const MEMORY: &str = "/memfd:";
/// Path of the area from which a process executes the slots of its probes: `kmod/helpers/areas.c`.
const AREA: &str = "/dtrace-slots";

/// What a mapping is backed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backing {
    /// A file, by the numbers that the kernel lists.
    File {
        /// Major and minor number of its device.
        device: (u32, u32),
        /// Its inode number.
        inode: u64,
    },
    /// The vDSO.
    Vdso,
    /// Anonymous or special memory.
    Memory,
}

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The address behind its last one.
    pub end: u64,
    /// Offset of the mapping's start in the object's file, in bytes.
    pub offset: u64,
    /// The file's path as the process saw it when it mapped the file.
    pub path: String,
    /// Whether the path no longer leads to the file.
    pub is_deleted: bool,
    /// Whether the mapping is executable.
    pub is_code: bool,
    /// What it is backed by.
    pub backing: Backing,
}

impl Mapping {
    /// Returns the object's file name.
    pub fn object(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether `other` is a mapping of the same file.
    pub fn is_of_file(&self, other: &Self) -> bool {
        matches!(self.backing, Backing::File { .. })
            && (self.backing, &self.path, self.is_deleted)
                == (other.backing, &other.path, other.is_deleted)
    }

    /// Whether `other` is the same range of the same file, under any name, or of an unknown object.
    pub fn shows_what(&self, other: &Self) -> bool {
        let inode = |mapping: &Self| match mapping.backing {
            Backing::File { inode, .. } => Some(inode),
            _ => None,
        };
        (self.start, self.end, self.offset) == (other.start, other.end, other.offset)
            && (other.backing == Backing::Memory || inode(self) == inode(other))
    }

    /// Whether this is code that the program generated at run time.
    pub fn is_made(&self) -> bool {
        self.is_code && (self.backing == Backing::Memory || self.path.starts_with(MEMORY))
    }

    /// Returns the file offset of `address`, which must lie in the mapping.
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        self.offset.checked_add(address.checked_sub(self.start)?)
    }

    /// Whether an address is in the mapping.
    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// Returns a process's mappings of files, except for the module's slot areas.
pub fn mappings_of(pid: u32) -> io::Result<Vec<Mapping>> {
    let mut mappings = all_mappings_of(pid)?;
    let is_file = |mapping: &Mapping| matches!(mapping.backing, Backing::File { .. });
    let is_area = |mapping: &Mapping| mapping.path == AREA && mapping.is_deleted;
    mappings.retain(|mapping| is_file(mapping) && !is_area(mapping));
    Ok(mappings)
}

/// Returns all mappings of a process.
pub fn all_mappings_of(pid: u32) -> io::Result<Vec<Mapping>> {
    let text = std::fs::read(folder_of(pid).join("maps"))?;
    Ok(mappings(&decoded(text)))
}

/// Parses the text of `/proc/PID/maps`.
fn mappings(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(mapping).collect()
}

fn mapping(line: &str) -> Option<Mapping> {
    // The range, permissions, offset, device and inode precede the path, which may contain blanks.
    let mut fields = line.splitn(6, ' ');
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (start, end) = fields.next()?.split_once('-')?;
    let is_code = fields.next()?.contains('x');
    let offset = number(fields.next()?)?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let part = |text| u32::from_str_radix(text, 16).ok();
    let device = (part(major)?, part(minor)?);
    let inode = fields.next()?.parse().ok()?;
    let whole = fields.next().unwrap_or_default().trim_start();
    let (path, is_deleted) = listed_path(whole);
    Some(Mapping {
        start: number(start)?,
        end: number(end)?,
        offset,
        backing: match path.as_str() {
            VDSO => Backing::Vdso,
            path if path.starts_with('/') => Backing::File { device, inode },
            _ => Backing::Memory,
        },
        path,
        is_deleted,
        is_code,
    })
}

/// Splits a path as the kernel lists it into the path proper and whether the kernel marks it as
/// deleted.
pub(super) fn listed_path(whole: &str) -> (String, bool) {
    let path = whole.strip_suffix(DELETED).unwrap_or(whole);
    (path.to_owned(), path.len() < whole.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;

    #[test]
    fn maps_list_objects_with_blanks_and_deleted_ones() {
        let text = "\
55d0e0000000-55d0e0001000 r-xp 00001000 fd:1a 123456                     /usr/bin/my prog
7f0000000000-7f0000002000 r-xp 00000000 fd:00 77                         /usr/lib/libgone.so (deleted)
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
7ffd00030000-7ffd00031000 rw-p 00000000 00:00 0 
7ffd00040000-7ffd00042000 r-xp 00000000 00:00 0                          [vdso]
";
        let all = mappings(text);
        let seen: Vec<_> = all
            .iter()
            .map(|m| (m.object(), m.is_deleted, m.backing))
            .collect();
        let file = |minor, inode| Backing::File {
            device: (0xfd, minor),
            inode,
        };
        assert_eq!(
            seen,
            [
                ("my prog", false, file(0x1a, 123_456)),
                ("libgone.so", true, file(0, 77)),
                ("[stack]", false, Backing::Memory),
                ("", false, Backing::Memory),
                ("[vdso]", false, Backing::Vdso),
            ]
        );
        assert!(all[0].contains(0x55d0_e000_0fff) && !all[0].contains(0x55d0_e000_1000));
        assert_eq!(all[0].offset, 0x1000);
        assert!(all[0].is_code);
    }

    #[test]
    fn a_file_name_that_is_not_utf_8_hides_no_other() {
        let name = format!("symbols-{}-", std::process::id()).into_bytes();
        let name = [&name[..], b"\xe9"].concat();
        let program = std::env::temp_dir().join(OsStr::from_bytes(&name));
        dtrace_files::testing::copy_program("/bin/sleep".as_ref(), &program);
        let mut child = Command::new(&program).arg("60").spawn().expect("a child");
        let has = |found: &[Mapping], end: &str| {
            let mut objects = found.iter().map(Mapping::object);
            objects.any(|object| object.ends_with(end))
        };
        // It takes a moment until the loader has mapped everything.
        let found = loop {
            let found = mappings_of(child.id()).expect("mappings");
            if has(&found, "libc.so.6") || child.try_wait().expect("a state").is_some() {
                break found;
            }
        };
        child.kill().expect("an end");
        child.wait().expect("an end");
        std::fs::remove_file(&program).expect("removed");
        let is_whole = has(&found, "-\u{fffd}") && has(&found, "libc.so.6");
        assert!(is_whole, "{found:?}");
    }
}
