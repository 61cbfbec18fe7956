// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Mappings of processes that have ended, from a source that records them.

use super::maps::{listed_path, Backing, Mapping, VDSO};
use dtrace_files::outside::path_of;
use nix::sys::stat::{major, minor};
use std::fmt::Debug;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;

/// A source that records the mappings of processes when they end or execute another program.
pub trait Remains: Debug {
    /// Returns the next mapping after number `after`, 0 at first, of the process that has number
    /// `pid` in records.
    fn next(&self, pid: u32, after: u64) -> io::Result<Option<Remnant>>;
}

/// A mapping of a process that has ended.
#[derive(Debug)]
pub struct Remnant {
    /// The mapping's number.
    pub number: u64,
    /// Start address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Offset of the mapping's start in the file, in bytes.
    pub offset: u64,
    /// Whether the mapping was executable.
    pub is_code: bool,
    /// What the mapping was backed by.
    pub of: Relic,
}

/// What a mapping of a process that has ended was backed by.
#[derive(Debug)]
pub enum Relic {
    /// An object that we may not access.
    Nothing,
    /// A file.
    File(File),
    /// The vDSO.
    Vdso,
}

impl Remnant {
    /// Returns the mapping as `/proc/PID/maps` would have listed it, except that some file systems
    /// list another device number.
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
                // The path is empty if the file itself was a mount point that our namespace does
                // not have.
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
