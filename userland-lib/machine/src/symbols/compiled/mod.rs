// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names of code that a program compiles while it runs.
//!
//! The kernel knows nothing of such code. Many runtimes can be configured to write down what they
//! compile: as lines of text in `/tmp/perf-PID.map` ([`perfmap`]), or as records in a file that
//! they map for this purpose alone ([`jitdump`]). Both grow while the program runs, so they are
//! read incrementally. Code memory is reused: the last entry for an address is valid.
//!
//! A file is trusted if it belongs to the program's user or to root, is not writable by others,
//! and was modified after the program started, because process IDs are reused. The map is looked up
//! in the program's root directory under the process ID that the program has in its own namespace.

mod jitdump;
mod perfmap;

use super::folder::folder_of;
use super::maps::Mapping;
use dtrace_files::names::printable;
use dtrace_files::outside::{self, is_stored, place};
use jitdump::Jitdump;
use nix::fcntl::{openat2, OFlag, OpenHow, ResolveFlag};
use perfmap::PerfMap;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

/// The object name of code without a file.
pub const OBJECT: &str = "[jit]";

/// Maximum number of pieces of code that one file of one process describes.
const PIECES_MAX: usize = 1 << 18;
/// Approximate memory that the pieces of all processes may take, in bytes.
const BYTES_MAX: usize = 1 << 28;
/// Approximate memory that a piece takes in addition to its name, in bytes.
const PIECE: usize = 64;
/// Maximum length of a name, in bytes.
const NAME_MAX: usize = 1024;
/// Maximum number of bytes read of a file in total, even if the program starts it anew.
const READ_MAX: u64 = 1 << 28;
/// Maximum difference between the clocks of files and of processes.
const SLACK: Duration = Duration::from_secs(1);

/// The memory that all pieces take, in bytes.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// The code that one process compiles.
#[derive(Debug, Default)]
pub struct Compiled {
    origin: Option<Origin>,
    has_ended: bool,
    map: Written<PerfMap>,
    dump: Written<Jitdump>,
}

/// The contents of one file that a process writes.
#[derive(Debug)]
struct Written<T> {
    /// The file, while the process may still write to it.
    file: Option<T>,
    /// Whether reading has ended for good.
    is_over: bool,
    pieces: Pieces,
}

impl<T> Default for Written<T> {
    fn default() -> Self {
        Self {
            file: None,
            is_over: false,
            pieces: Pieces::default(),
        }
    }
}

impl<T> Written<T> {
    /// Reads new entries, for the last time if the process has ended. Returns whether there were
    /// any.
    fn refresh(
        &mut self,
        has_ended: bool,
        read: impl FnOnce(&mut T, &mut Pieces) -> io::Result<()>,
    ) -> bool {
        let Some(file) = &mut self.file else {
            return false;
        };
        if read(file, &mut self.pieces).is_err() || has_ended {
            // Close the file, so that files do not stay open for ever.
            self.file = None;
            self.is_over = true;
        }
        std::mem::take(&mut self.pieces.are_new)
    }
}

/// Pieces of code by their start address. They do not overlap.
#[derive(Debug, Default)]
struct Pieces {
    by_start: BTreeMap<u64, Piece>,
    /// Whether pieces have changed since this was last reset.
    are_new: bool,
}

#[derive(Debug)]
struct Piece {
    end: u64,
    name: Box<str>,
}

impl Drop for Piece {
    fn drop(&mut self) {
        BYTES.fetch_sub(self.name.len() + PIECE, Ordering::Relaxed);
    }
}

impl Compiled {
    /// Looks for the map of the process, unless it is open already.
    pub fn look_for_map(&mut self, pid: u32) {
        let began = began(pid).ok();
        let before = self.origin.as_ref().map(|origin| origin.began);
        if before.is_some() && began.is_some() && began != before {
            // The process ID was reused by another process.
            *self = Self::default();
        }
        self.has_ended = began.is_none();
        if self.map.file.is_some() || self.map.is_over {
            return;
        }
        // If the process has ended, keep the origin that was read while it lived.
        if let Ok(now) = Origin::of(pid) {
            self.origin = Some(now);
        }
        let map = self.origin.as_ref().map(Origin::open_map);
        self.map.file = map.and_then(Result::ok).map(PerfMap::new);
    }

    /// Looks for the dump of the process among its mappings, unless it is open already. `open`
    /// opens their files.
    pub fn look_for_dump<'m>(
        &mut self,
        pid: u32,
        mut mappings: impl Iterator<Item = &'m Mapping>,
        open: impl Fn(&Mapping) -> Option<File>,
    ) {
        let is_dump = |mapping: &&Mapping| mapping.is_code && jitdump::is_name(mapping.object());
        if self.dump.file.is_some() || self.dump.is_over {
            return;
        }
        let Some(mapping) = mappings.find(is_dump) else {
            return;
        };
        if self.origin.is_none() {
            self.origin = Origin::of(pid).ok();
        }
        let file = open(mapping).filter(|file| {
            let origin = self.origin.as_ref();
            origin.is_some_and(|origin| origin.owns(file))
        });
        self.dump.file = file.and_then(|file| Jitdump::new(file).ok());
    }

    /// Opens the file that the process has under `path`.
    pub fn open_seen(&mut self, pid: u32, path: &str) -> io::Result<File> {
        if self.origin.is_none() {
            self.origin = Some(Origin::of(pid)?);
        }
        let origin = self.origin.as_ref().ok_or(io::ErrorKind::NotFound)?;
        origin.open(path, |file| {
            file.metadata().is_ok_and(|about| about.is_file()) && is_stored(file)
        })
    }

    /// Reads new entries. Returns whether there were any.
    pub fn refresh(&mut self) -> bool {
        let (map, dump) = (&mut self.map, &mut self.dump);
        map.refresh(self.has_ended, PerfMap::read) | dump.refresh(self.has_ended, Jitdump::read)
    }

    /// Returns the name of the code at `address`, and the distance from its start.
    pub fn name(&self, address: u64) -> Option<(String, u64)> {
        let by_map = self.map.pieces.name(address);
        by_map.or_else(|| self.dump.pieces.name(address))
    }
}

impl Pieces {
    fn name(&self, address: u64) -> Option<(String, u64)> {
        let (start, piece) = self.by_start.range(..=address).next_back()?;
        (address < piece.end).then(|| (piece.name.to_string(), address - start))
    }

    /// Puts a piece at these addresses, in place of all pieces that overlap it.
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
        self.are_new = true;
        let name = shown(name);
        let is_full = BYTES.load(Ordering::Relaxed) + name.len() + PIECE > BYTES_MAX;
        if self.by_start.len() < PIECES_MAX && !is_full {
            BYTES.fetch_add(name.len() + PIECE, Ordering::Relaxed);
            self.by_start.insert(start, Piece { end, name });
        }
    }

    /// Moves the piece that starts at `from`.
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

/// Returns a name that is safe to print on a terminal.
fn shown(name: &[u8]) -> Box<str> {
    let name = String::from_utf8_lossy(&name[..name.len().min(NAME_MAX)]);
    printable(&name).into()
}

/// Properties of a process that distinguish its files from those of others.
#[derive(Debug)]
struct Origin {
    /// Its root directory, unless that is ours.
    root: Option<Arc<File>>,
    /// Its process ID in its own namespace.
    number: String,
    /// Its real and its effective user ID.
    owners: Vec<u32>,
    /// Its start time, in clock ticks since boot.
    began: u64,
    /// Its start time by the clock of files, minus [`SLACK`].
    since: SystemTime,
}

impl Origin {
    /// Reads the origin of a living process.
    fn of(pid: u32) -> io::Result<Self> {
        let users = field(pid, "Uid:")?;
        let users = users.split_ascii_whitespace().take(2);
        let numbers = field(pid, "NSpid:")?;
        let number = numbers.split_ascii_whitespace().next_back();
        let began = began(pid)?;
        Ok(Self {
            root: root(&folder_of(pid))?,
            number: number.unwrap_or_default().to_owned(),
            owners: users.filter_map(|id| id.parse().ok()).collect(),
            began,
            since: clock(began)
                .and_then(|time| time.checked_sub(SLACK))
                .ok_or(io::ErrorKind::InvalidData)?,
        })
    }

    /// Opens its map, if it is trusted.
    fn open_map(&self) -> io::Result<File> {
        self.open(&perfmap::path(&self.number), |file| self.owns(file))
    }

    /// Opens a file for reading by its path in the process's root, if `good` accepts it.
    fn open(&self, path: &str, good: impl Fn(&File) -> bool) -> io::Result<File> {
        let ours;
        let root = match &self.root {
            Some(root) => &**root,
            None => {
                ours = place(Path::new("/"))?;
                &ours
            }
        };
        // A symbolic link there must not lead to a file of ours, for example through procfs.
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let resolve = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        let how = OpenHow::new().flags(flags).resolve(resolve);
        let place = File::from(openat2(root, path, how)?);
        match good(&place) {
            true => outside::reopen(&place),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Whether the contents of a file are trusted to be about the process.
    fn owns(&self, file: &File) -> bool {
        let Ok(about) = file.metadata() else {
            return false;
        };
        let is_fresh = about
            .modified()
            .is_ok_and(|modified| modified >= self.since);
        let others_write = is_written_by_others(about.mode(), about.uid(), about.gid());
        let is_theirs = outside::belongs(&about, &self.owners) && !others_write;
        about.is_file() && is_theirs && is_fresh && is_stored(file)
    }
}

/// Whether others than the owner of a file may write to it. A group with the number of a user is
/// that user's alone, and where users have such groups their files are writable by them
/// (`usergroups`, pam_umask(8)).
fn is_written_by_others(mode: u32, owner: u32, group: u32) -> bool {
    mode & 0o002 != 0 || (mode & 0o020 != 0 && group != owner)
}

/// Device, inode and mount of a directory. While the directory is open no other one has the same.
type Place = (u64, u64, u64);

/// The root directories that are open.
static ROOTS: Mutex<Vec<(Place, Weak<File>)>> = Mutex::new(Vec::new());

/// Opens the root directory of a process, given its procfs directory. `None` if it is ours.
fn root(process: &Path) -> io::Result<Option<Arc<File>>> {
    let root = place(&process.join("root"))?;
    let theirs = place_of(&root)?;
    let is_ours = theirs == place_of(&place(Path::new("/"))?)?;
    Ok((!is_ours).then(|| shared(theirs, root)))
}

fn place_of(directory: &File) -> io::Result<Place> {
    let about = directory.metadata()?;
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", directory.as_raw_fd()))?;
    let mount = told.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    let mount = mount.and_then(|number| number.trim().parse().ok());
    Ok((
        about.dev(),
        about.ino(),
        mount.ok_or(io::ErrorKind::InvalidData)?,
    ))
}

/// Returns one shared descriptor for all processes with the same root. A container may have
/// thousands of processes.
fn shared(place: Place, root: File) -> Arc<File> {
    let mut roots = ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
    roots.retain(|(_, root)| root.strong_count() > 0);
    let mut same = roots.iter().filter(|(other, _)| *other == place);
    if let Some(known) = same.find_map(|(_, root)| root.upgrade()) {
        return known;
    }
    let root = Arc::new(root);
    roots.push((place, Arc::downgrade(&root)));
    root
}

/// Returns the value of a field of `/proc/PID/status`.
fn field(pid: u32, name: &str) -> io::Result<String> {
    let status = fs::read(format!("/proc/{pid}/status"))?;
    let status = String::from_utf8_lossy(&status);
    let mut lines = status.lines();
    let found = lines.find_map(|line| line.strip_prefix(name));
    found
        .map(str::to_owned)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Returns the start time of a process, in clock ticks since boot.
fn began(pid: u32) -> io::Result<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat"))?;
    let stat = String::from_utf8_lossy(&stat);
    // The process's name is in parentheses and may contain any character. The start time is the
    // twentieth field after it (proc_pid_stat(5)).
    let ticks = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(19));
    let ticks = ticks.and_then(|ticks| ticks.parse().ok());
    ticks.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Converts clock ticks since boot to a time by the clock of files.
fn clock(ticks: u64) -> Option<SystemTime> {
    let second = rustix::param::clock_ticks_per_second().max(1);
    let since_boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let up = Duration::new(since_boot.tv_sec as u64, since_boot.tv_nsec as u32);
    let began = Duration::from_millis(ticks.saturating_mul(1000) / second);
    SystemTime::now().checked_sub(up.saturating_sub(began))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_writes_to_a_map() {
        let others_write = |mode| is_written_by_others(mode, 1000, 100);
        assert_eq!([0o100600, 0o100644, 0o100755].map(others_write), [false; 3]);
        assert_eq!([0o100664, 0o100620, 0o100646].map(others_write), [true; 3]);
        assert!(!is_written_by_others(0o100664, 1000, 1000));
        assert!(is_written_by_others(0o100666, 1000, 1000));
    }

    #[test]
    fn what_was_written_last_holds() {
        let mut pieces = Pieces::default();
        pieces.put(0x1000, 0x100, b"first");
        pieces.put(0x1100, 0x100, b"second");
        pieces.put(0x1200, 0x100, b"third");
        pieces.put(0x1180, 0x100, b"over\x1b[2J\xff");
        let at = |address| pieces.name(address);
        assert_eq!(at(0x10ff), Some(("first".to_owned(), 0xff)));
        assert_eq!(at(0x1110), None);
        assert_eq!(at(0x127f), Some(("over?[2J\u{fffd}".to_owned(), 0xff)));
        assert_eq!(at(0x1280), None);
        pieces.put(u64::MAX, 1, b"at the end of all");
        pieces.put(0x1000, 0, b"nothing");
        pieces.move_to(0x1000, 0x5000, 0x100);
        assert_eq!(pieces.name(0x1000), None);
        assert_eq!(pieces.name(0x5001), Some(("first".to_owned(), 1)));
        assert_eq!(pieces.by_start.len(), 2);
    }

    #[test]
    fn this_process_began_a_moment_ago() {
        let began = began(std::process::id()).expect("a time");
        let age = clock(began).expect("a time").elapsed().unwrap_or_default();
        assert!(age < Duration::from_secs(3600), "{age:?}");
        let users = [nix::unistd::getuid(), nix::unistd::geteuid()].map(nix::unistd::Uid::as_raw);
        let origin = Origin::of(std::process::id()).expect("this process");
        assert_eq!(origin.owners, users);
        assert!(origin.root.is_none());
    }

    #[test]
    fn processes_with_one_root_share_its_descriptor() {
        let open = || place(Path::new("/proc")).expect("a directory");
        let at = |n| shared((n, 1, 1), open());
        let (one, other) = (at(u64::MAX), at(u64::MAX - 1));
        assert!(Arc::ptr_eq(&one, &at(u64::MAX)));
        assert!(!Arc::ptr_eq(&one, &other));
        let gone = Arc::downgrade(&one);
        drop(one);
        assert_eq!(gone.strong_count(), 0);
    }

    #[test]
    fn files_of_others_are_not_believed() {
        use nix::sys::memfd::{memfd_create, MFdFlags};
        use nix::sys::stat::{fchmod, futimens, Mode};
        use nix::sys::time::TimeSpec;
        let origin = Origin::of(std::process::id()).expect("this process");
        let file = File::from(memfd_create(c"map", MFdFlags::MFD_CLOEXEC).expect("a file"));
        fchmod(&file, Mode::from_bits_truncate(0o600)).expect("a mode");
        assert!(origin.owns(&file));
        for (seconds, is_own) in [(i64::MAX, true), (0, false), (i64::MIN, false)] {
            let time = TimeSpec::new(seconds, 0);
            futimens(&file, &time, &time).expect("a time");
            assert_eq!(origin.owns(&file), is_own, "{seconds}");
        }
        futimens(&file, &TimeSpec::UTIME_NOW, &TimeSpec::UTIME_NOW).expect("a time");
        fchmod(&file, Mode::from_bits_truncate(0o602)).expect("a mode");
        assert!(!origin.owns(&file));
        for other in ["/dev/null", "/proc/self/stat", "/"] {
            assert!(
                !origin.owns(&place(Path::new(other)).expect("a file")),
                "{other}"
            );
        }
    }
}
