// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What processes that have ended had mapped, from who notes that.

use super::files::path_of;
use super::maps::{listed_path, Backing, Mapping, VDSO};
use nix::sys::stat::{major, minor};
use std::fmt::Debug;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;

/// Who notes what processes have mapped when they end or execute another program.
pub trait Remains: Debug {
    /// The next mapping of the process that has this number in records, after the one numbered `after`, which is 0 at first.
    fn next(&self, pid: u32, after: u64) -> io::Result<Option<Remnant>>;
}

/// A mapping of a process that has ended.
#[derive(Debug)]
pub struct Remnant {
    /// Its number.
    pub number: u64,
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// It could be executed.
    pub is_code: bool,
    /// Of what it is.
    pub of: Relic,
}

/// What a process that has ended had mapped.
#[derive(Debug)]
pub enum Relic {
    /// Something that we may not have.
    Nothing,
    /// A file.
    File(File),
    /// The kernel's own code for processes.
    Vdso,
}

impl Remnant {
    /// The mapping as `/proc/PID/maps` would have listed it, but for the device's number in some file systems.
    pub(super) fn mapping(&self) -> io::Result<Mapping> {
        let mut mapping = Mapping {
            start: self.start,
            end: self.end,
            offset: self.offset,
            path: String::new(),
            is_deleted: false,
            is_code: self.is_code,
            backing: Backing::Memory,
        };
        match &self.of {
            Relic::Nothing => {}
            Relic::Vdso => {
                mapping.path = VDSO.to_owned();
                mapping.backing = Backing::Vdso;
            }
            Relic::File(file) => {
                let data = file.metadata()?;
                let path = fs::read_link(path_of(file))?;
                (mapping.path, mapping.is_deleted) = listed_path(&path.to_string_lossy());
                // A file that was mounted by itself, where we do not see that.
                if mapping.object().is_empty() {
                    mapping.path = format!("/[{}]", data.ino());
                }
                mapping.backing = Backing::File {
                    device: (major(data.dev()) as u32, minor(data.dev()) as u32),
                    inode: data.ino(),
                };
            }
        }
        Ok(mapping)
    }
}
