// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Names of code that a program compiles while it runs.
//!
//! The kernel knows nothing of such code. Many runtimes can be told to write down what they compile: as lines of text in `/tmp/perf-PID.map`
//! ([`perfmap`]), or as records in a file that they map for this purpose alone ([`jitdump`]). Both grow while the program runs, so they
//! are read on. Memory of code is used again: what was written last of an address holds.
//!
//! A file is believed if it is of the program's user or of root, nobody else may write to it, and it was written to since the
//! program began: numbers of processes are used again. A map is looked for where the program would see it, by the number that it has for itself.

mod jitdump;
mod perfmap;

use super::maps::Mapping;
use jitdump::Jitdump;
use nix::fcntl::OFlag;
use perfmap::PerfMap;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::time::{Duration, SystemTime};

/// What code without a file is called by.
pub const OBJECT: &str = "[jit]";

/// Pieces of code of one process that are remembered.
const PIECES_MAX: usize = 1 << 20;
/// Bytes of a name.
const NAME_MAX: usize = 1024;
/// Bytes that are read of a file.
const READ_MAX: u64 = 1 << 28;
/// By how much the clocks of files and processes may differ.
const SLACK: Duration = Duration::from_secs(1);
/// The bit of a file's mode by which everybody may write to it.
const WRITABLE: u32 = 0o002;

/// What one process compiles.
#[derive(Debug, Default)]
pub struct Compiled {
    origin: Option<Origin>,
    map: Option<PerfMap>,
    dump: Option<Jitdump>,
    pieces: Pieces,
}

/// Pieces of code, by where they begin. No two have an address in common.
#[derive(Debug, Default)]
struct Pieces {
    by_start: BTreeMap<u64, Piece>,
    /// Some came since somebody asked.
    are_new: bool,
}

#[derive(Debug)]
struct Piece {
    end: u64,
    name: Box<str>,
}

impl Compiled {
    /// Looks for the map of the process, unless that is open.
    pub fn look_for_map(&mut self, pid: u32) {
        if self.map.is_some() {
            return;
        }
        // Of one that has ended we know what we have seen.
        if let Ok(origin) = Origin::of(pid) {
            self.origin = Some(origin);
        }
        let file = self.origin.as_ref().and_then(|origin| {
            let file = perfmap::open(&origin.root, &origin.number).ok()?;
            origin.owns(&file).then_some(file)
        });
        self.map = file.map(PerfMap::new);
    }

    /// Looks for the dump of the process among its mappings, whose files `open` gives, unless that is open.
    pub fn look_for_dump<'m>(
        &mut self,
        mut mappings: impl Iterator<Item = &'m Mapping>,
        open: impl Fn(&Mapping) -> Option<File>,
    ) {
        let is_dump = |mapping: &&Mapping| mapping.is_code && jitdump::is_name(mapping.object());
        if self.dump.is_some() {
            return;
        }
        let file = mappings.find(is_dump).and_then(open);
        let file = file.filter(|file| self.origin.as_ref().is_none_or(|origin| origin.owns(file)));
        self.dump = file.and_then(|file| Jitdump::new(file).ok());
    }

    /// Reads on; whether there is something new.
    pub fn refresh(&mut self) -> bool {
        // What cannot be read says nothing more.
        if let Some(map) = &mut self.map {
            let _ = map.read(&mut self.pieces);
        }
        if let Some(dump) = &mut self.dump {
            let _ = dump.read(&mut self.pieces);
        }
        std::mem::take(&mut self.pieces.are_new)
    }

    /// The name of the code at `address`, and the distance from its beginning.
    pub fn name(&self, address: u64) -> Option<(String, u64)> {
        let (start, piece) = self.pieces.by_start.range(..=address).next_back()?;
        (address < piece.end).then(|| (piece.name.to_string(), address - start))
    }
}

impl Pieces {
    /// From now on this is at these addresses.
    fn put(&mut self, start: u64, size: u64, name: &[u8]) {
        let Some(end) = start.checked_add(size).filter(|end| *end > start) else {
            return;
        };
        let over = self.by_start.range(..end).rev();
        let over = over.take_while(|(_, piece)| piece.end > start);
        let over: Vec<u64> = over.map(|(start, _)| *start).collect();
        for start in over {
            self.by_start.remove(&start);
        }
        if self.by_start.len() < PIECES_MAX {
            let name = printable(name);
            self.by_start.insert(start, Piece { end, name });
        }
        self.are_new = true;
    }

    /// What began at one address is at another now.
    fn move_to(&mut self, from: u64, to: u64, size: u64) {
        if let Some(piece) = self.by_start.remove(&from) {
            self.put(to, size, piece.name.as_bytes());
        }
    }

    fn clear(&mut self) {
        self.by_start.clear();
        self.are_new = true;
    }
}

/// A name that a terminal can be given.
fn printable(name: &[u8]) -> Box<str> {
    let name = String::from_utf8_lossy(&name[..name.len().min(NAME_MAX)]);
    name.replace(char::is_control, "?").into()
}

/// What tells the files of a process from those of others.
#[derive(Debug)]
struct Origin {
    /// Its root.
    root: File,
    /// What it is for itself.
    number: String,
    /// The users that it is of: the real one and the effective one.
    owners: Vec<u32>,
    /// When it began.
    began: SystemTime,
}

impl Origin {
    /// That of a process that lives.
    fn of(pid: u32) -> io::Result<Self> {
        let users = field(pid, "Uid:")?;
        let users = users.split_ascii_whitespace().take(2);
        let numbers = field(pid, "NSpid:")?;
        let number = numbers.split_ascii_whitespace().next_back();
        let root = OpenOptions::new()
            .read(true)
            .custom_flags(OFlag::O_PATH.bits())
            .open(format!("/proc/{pid}/root"))?;
        Ok(Self {
            root,
            number: number.unwrap_or_default().to_owned(),
            owners: users.filter_map(|id| id.parse().ok()).collect(),
            began: began(pid)?,
        })
    }

    /// Whether what a file says can be believed of the process.
    fn owns(&self, file: &File) -> bool {
        let Ok(about) = file.metadata() else {
            return false;
        };
        let is_own = about.uid() == 0 || self.owners.contains(&about.uid());
        let is_closed = about.mode() & WRITABLE == 0;
        let is_fresh = (about.modified()).is_ok_and(|modified| modified + SLACK >= self.began);
        about.is_file() && is_own && is_closed && is_fresh
    }
}

/// A line of what the kernel tells of a process, without its name.
fn field(pid: u32, name: &str) -> io::Result<String> {
    let status = fs::read(format!("/proc/{pid}/status"))?;
    let status = String::from_utf8_lossy(&status);
    let mut lines = status.lines();
    let found = lines.find_map(|line| line.strip_prefix(name));
    found
        .map(str::to_owned)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// When a process began.
fn began(pid: u32) -> io::Result<SystemTime> {
    let stat = fs::read(format!("/proc/{pid}/stat"))?;
    let stat = String::from_utf8_lossy(&stat);
    // The name stands in brackets and may have any character. Of what follows the start is the twentieth (proc_pid_stat(5)).
    let ticks = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(19));
    let ticks: u64 = ticks
        .and_then(|ticks| ticks.parse().ok())
        .ok_or(io::ErrorKind::InvalidData)?;
    let second = rustix::param::clock_ticks_per_second();
    let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let up = Duration::new(since_boot.tv_sec as u64, since_boot.tv_nsec as u32);
    let began = Duration::from_millis(ticks.saturating_mul(1000) / second.max(1));
    Ok(SystemTime::now() - up.saturating_sub(began))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(pieces: &Pieces, address: u64) -> Option<(String, u64)> {
        let (start, piece) = pieces.by_start.range(..=address).next_back()?;
        (address < piece.end).then(|| (piece.name.to_string(), address - start))
    }

    #[test]
    fn what_was_written_last_holds() {
        let mut pieces = Pieces::default();
        pieces.put(0x1000, 0x100, b"first");
        pieces.put(0x1100, 0x100, b"second");
        pieces.put(0x1200, 0x100, b"third");
        pieces.put(0x1180, 0x100, b"over\x1b[2J\xff");
        let at = |address| named(&pieces, address);
        assert_eq!(at(0x10ff), Some(("first".to_owned(), 0xff)));
        assert_eq!(at(0x1110), None);
        assert_eq!(at(0x127f), Some(("over?[2J\u{fffd}".to_owned(), 0xff)));
        assert_eq!(at(0x1280), None);
        pieces.put(u64::MAX, 1, b"at the end of all");
        pieces.put(0x1000, 0, b"nothing");
        pieces.move_to(0x1000, 0x5000, 0x100);
        assert_eq!(named(&pieces, 0x1000), None);
        assert_eq!(named(&pieces, 0x5001), Some(("first".to_owned(), 1)));
        assert_eq!(pieces.by_start.len(), 2);
    }

    #[test]
    fn this_process_began_a_moment_ago() {
        let began = began(std::process::id()).expect("a time");
        let age = began.elapsed().unwrap_or_default();
        assert!(age < Duration::from_secs(3600), "{age:?}");
        let users = [nix::unistd::getuid(), nix::unistd::geteuid()].map(nix::unistd::Uid::as_raw);
        let origin = Origin::of(std::process::id()).expect("this process");
        assert_eq!(origin.owners, users);
    }
}
