// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Symbols of user processes.
//!
//! When a process is first seen, its list of mappings is read and each file that it executes code
//! from is opened as the process has it (see `files`). Names come from these open files, so they
//! are right in any mount namespace, after the file has been replaced or deleted, and after the
//! process has ended. Watched processes are read before they run and repeatedly as long as they
//! live; any other process is read when its first address is consumed. If it has ended by then, the
//! kernel may have recorded its mappings (see `remains`). A consumer may watch any number of
//! transient processes; room is kept for the most recent ones that have ended.
//!
//! A process may map other objects while it runs, execute another program, or end and leave its
//! process ID to another process. The time at which an address was recorded is not known when it is
//! looked up. Therefore all mappings ever seen under a process ID are kept, and an address that
//! belonged to two different objects gets no name.
//!
//! Names come from the files (see `image`), and for code without a file from what the program
//! writes down (see `compiled`). Zero-initialized variables are in no file, but in memory that the
//! kernel maps behind the file's data; these are found by the addresses that the file assigns to
//! its segments (see `segments`).

#[cfg(test)]
mod tests;

use super::compiled::{self, Compiled};
use super::files::{open_mapped, Files};
use super::image::Image;
use super::maps::{all_mappings_of, Backing, Mapping};
use super::remains::Remains;
use super::segments::Segments;
use blazesym::symbolize::{Input, Symbolizer};
use dtrace_files::dwarf::Inlined;
use dtrace_files::names::printable;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Room is made when this many more processes are known than after the last time: all but the
/// watched ones are forgotten and are read again if needed.
const PROCESSES_MAX: usize = 256;
/// The same limit for open files.
const FILES_MAX: usize = 256;
/// Number of transient processes that have ended and are kept when room is made, the most recently
/// read ones. Fewer are kept while [`FILES_MAX`] or more files are open.
const ENDED_MAX: usize = 4_096;
/// Maximum number of addresses cached for one process.
const ADDRESSES_MAX: usize = 65_536;
/// Maximum number of mappings kept for one process.
const RANGES_MAX: usize = 65_536;
/// Approximate memory that the inlined functions of all files may take before no more are looked
/// up, in bytes.
const INLINES_MAX: u64 = 1 << 30;
/// The file offset that is given to memory behind a file's data.
const BEHIND: u64 = u64::MAX;
/// For this long after it was read a list of mappings counts as current.
const FRESH: Duration = Duration::from_millis(50);

/// Time that may be spent on reading a process's mappings again before [`FRESH`] has passed: this
/// much, plus a fraction of 1 / `AGAIN_PART` of the time since they were first read.
const AGAIN: Duration = Duration::from_millis(100);
const AGAIN_PART: u32 = 8;

/// The meaning of an address of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserSymbol {
    /// The file name of the object that contains it.
    pub object: Option<String>,
    /// The name of the function, and the distance from its start in bytes.
    pub function: Option<(String, u64)>,
}

/// The symbols of all processes.
#[derive(Default)]
pub struct UserSymbols {
    symbolizer: RefCell<OnceCell<Symbolizer>>,
    files: Files,
    processes: RefCell<HashMap<u32, ProcessSymbols>>,
    /// The numbers of processes and files that remained when room was last made.
    left: Cell<(usize, usize)>,
    /// When a buffer was last taken from the kernel.
    taken: Cell<Option<Instant>>,
}

impl std::fmt::Debug for UserSymbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserSymbols").finish_non_exhaustive()
    }
}

/// What is known of the processes that have had one process ID.
#[derive(Default)]
struct ProcessSymbols {
    is_watched: bool,
    /// Whether it is a transient process, which is watched while it lives and kept afterwards while
    /// there is room.
    comes_by: bool,
    /// Its process ID in records, if that differs.
    in_records: Option<u32>,
    /// Number of the last recorded mapping of ended processes that was read.
    left: u64,
    /// When the mappings were first and last read.
    first: Option<Instant>,
    read: Option<Instant>,
    /// Time spent on reading them again before [`FRESH`] had passed.
    again: Duration,
    ranges: Vec<Range>,
    compiled: Compiled,
    known: HashMap<u64, UserSymbol>,
}

/// A mapping that was seen, and the file that was opened then.
struct Range {
    mapping: Mapping,
    file: Option<Rc<Image>>,
    /// The file's segments in the process, for mappings other than code.
    segments: Option<Rc<Segments>>,
}

impl UserSymbols {
    /// Sets the source that records the mappings of processes that end from now on.
    pub fn keep(&self, remains: Option<Box<dyn Remains>>) {
        self.files.keep(remains);
    }

    /// Notes that a watched process has another process ID in records.
    pub fn alias(&self, pid: u32, in_records: u32) {
        let mut processes = self.processes.borrow_mut();
        let process = processes.entry(pid).or_default();
        process.is_watched = true;
        process.in_records = Some(in_records);
    }

    /// Reads the current mappings of a watched process, because it may end before any of its
    /// addresses is printed.
    pub fn watch(&self, pid: u32) {
        self.with(pid, |process| {
            process.is_watched = true;
            process.comes_by = false;
            process.read(pid, &self.files);
        });
    }

    /// Like [`Self::watch`], for a transient process.
    pub fn meet(&self, pid: u32) {
        self.with(pid, |process| {
            process.comes_by |= !process.is_watched;
            process.is_watched = true;
            process.read(pid, &self.files);
        });
    }

    /// Reads the mappings of a process because a record of it has arrived.
    pub fn note(&self, pid: u32) {
        self.with(pid, |process| process.refresh(pid, &self.files));
    }

    /// Notes that a buffer was taken: mappings that were read earlier may be older than its
    /// records.
    pub fn taken(&self) {
        self.taken.set(Some(Instant::now()));
    }

    /// Returns the symbol of `address` in the process `pid`.
    pub fn by_address(&self, pid: u32, address: u64) -> UserSymbol {
        self.with(pid, |process| {
            process.refresh(pid, &self.files);
            if let Some(symbol) = process.known.get(&address) {
                return symbol.clone();
            }
            process.look(pid, address, &self.files);
            let mut symbol = self.symbol(process, address);
            if symbol.function.is_none()
                && process.looks_again(pid, address, self.taken.get(), &self.files)
            {
                symbol = self.symbol(process, address);
            }
            if process.known.len() >= ADDRESSES_MAX {
                process.known.clear();
            }
            process.known.insert(address, symbol.clone());
            symbol
        })
    }

    /// Opens the file that a process has under `path`. Works after it has ended if it was seen
    /// before.
    pub fn open_seen(&self, pid: u32, path: &str) -> io::Result<File> {
        self.with(pid, |process| process.compiled.open_seen(pid, path))
    }

    /// Returns the build ID of the program that contains `address` in the process `pid`, and the
    /// file offset of the address. `None` if the process has had different files there.
    pub fn build(&self, pid: u32, address: u64) -> Option<(Rc<str>, u64)> {
        self.with(pid, |process| {
            process.refresh(pid, &self.files);
            let mut all = holding(&process.ranges, address).map(|range| {
                let id = range.file.as_ref()?.build_id()?;
                Some((id, range.mapping.offset_of(address)?))
            });
            let first = all.next()??;
            all.all(|other| other.as_ref() == Some(&first))
                .then_some(first)
        })
    }

    /// Returns the functions inlined at `address` in the process `pid`, innermost first. Empty if
    /// the process has had different code there.
    pub fn inlined(&self, pid: u32, address: u64) -> Rc<[Inlined]> {
        self.with(pid, |process| {
            process.refresh(pid, &self.files);
            let mut all = holding(&process.ranges, address).map(|range| {
                let file = range.file.as_ref().filter(|_| range.mapping.is_code)?;
                let offset = range.mapping.offset_of(address)?;
                Some(file.inlined(offset, || self.files.inlines_kept() < INLINES_MAX))
            });
            let first = all.next().flatten().unwrap_or_default();
            // A file that was removed in the meantime is listed as two mappings, with equal
            // results.
            match all.all(|other| other.as_ref() == Some(&first)) {
                true => first,
                false => Rc::default(),
            }
        })
    }

    fn with<T>(&self, pid: u32, look: impl FnOnce(&mut ProcessSymbols) -> T) -> T {
        let mut processes = self.processes.borrow_mut();
        if !processes.contains_key(&pid) && self.is_full(&processes) {
            self.make_room(&mut processes);
        }
        look(processes.entry(pid).or_default())
    }

    fn is_full(&self, processes: &HashMap<u32, ProcessSymbols>) -> bool {
        let (left, files_left) = self.left.get();
        processes.len() >= left + PROCESSES_MAX || self.files.count() >= files_left + FILES_MAX
    }

    fn make_room(&self, processes: &mut HashMap<u32, ProcessSymbols>) {
        processes.retain(|_, process| process.is_watched);
        let over = processes.iter();
        let over = over.filter(|(pid, process)| process.comes_by && has_ended(**pid));
        let mut over: Vec<_> = over.map(|(pid, process)| (process.read, *pid)).collect();
        over.sort_unstable();
        let mut over = over.into_iter();
        while over.len() > ENDED_MAX || self.files.count() >= FILES_MAX {
            let Some((_, pid)) = over.next() else {
                break;
            };
            processes.remove(&pid);
        }
        // The symbolizer keeps open the files that it has read.
        self.symbolizer.take();
        self.left.set((processes.len(), self.files.count()));
    }

    /// Returns the symbol on which all ranges that contain `address` agree, or else the name that
    /// the program gave to code it generated there.
    fn symbol(&self, process: &ProcessSymbols, address: u64) -> UserSymbol {
        let mut all = holding(&process.ranges, address);
        let Some(first) = all.next() else {
            return UserSymbol::default();
        };
        let mut symbol = self.symbol_in(first, address);
        for range in all {
            let other = self.symbol_in(range, address);
            if other.object != symbol.object {
                return UserSymbol::default();
            }
            if other.function != symbol.function {
                symbol.function = None;
            }
        }
        let is_made = holding(&process.ranges, address).all(|range| range.mapping.is_made());
        if symbol.function.is_none() && is_made {
            if let Some(made) = process.compiled.name(address) {
                symbol.object = Some(compiled::OBJECT.to_owned());
                symbol.function = Some(made);
            }
        }
        symbol
    }

    fn symbol_in(&self, range: &Range, address: u64) -> UserSymbol {
        let mapping = &range.mapping;
        let is_behind = mapping.offset == BEHIND;
        let segments = range.segments.as_ref();
        let input = match segments.and_then(|segments| segments.of_address(address)) {
            Some(there) => Some(Input::VirtOffset(there)),
            None if is_behind => None,
            None => mapping.offset_of(address).map(Input::FileOffset),
        };
        // Memory behind a file's data belongs to the file only as far as the file's segments reach.
        let has_name = mapping.backing != Backing::Memory && (input.is_some() || !is_behind);
        UserSymbol {
            object: has_name.then(|| printable(mapping.object()).into_owned()),
            function: (range.file.as_ref().zip(input))
                .and_then(|(file, input)| self.name(file, input)),
        }
    }

    /// Returns the function or the variable at a place of a file, and the distance from its start.
    fn name(&self, image: &Image, place: Input<u64>) -> Option<(String, u64)> {
        let build = || {
            Symbolizer::builder()
                .enable_code_info(false)
                .enable_inlined_fns(false)
                .enable_demangling(false)
                .build()
        };
        let symbolizer = self.symbolizer.borrow();
        image.name(symbolizer.get_or_init(build), place)
    }
}

/// Whether no process has this process ID, not even a zombie.
fn has_ended(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

/// Returns the ranges that contain `address`.
fn holding(ranges: &[Range], address: u64) -> impl Iterator<Item = &Range> {
    let ranges = ranges.iter();
    ranges.filter(move |range| range.mapping.contains(address))
}

/// Returns the mappings of a process; none if it has ended. Memory behind a file's data is listed
/// as that file's, at offset [`BEHIND`], because zero-initialized variables may be there.
fn listed(pid: u32) -> Vec<Mapping> {
    let mut mappings = all_mappings_of(pid).unwrap_or_default();
    for at in 1..mappings.len() {
        let [before, here] = &mut mappings[at - 1..=at] else {
            continue;
        };
        let is_data = matches!(before.backing, Backing::File { .. }) && !before.is_code;
        let is_behind = here.backing == Backing::Memory && here.path.is_empty() && !here.is_code;
        if is_data && is_behind && before.end == here.start {
            here.path.clone_from(&before.path);
            here.is_deleted = before.is_deleted;
            here.backing = before.backing;
            here.offset = BEHIND;
        }
    }
    mappings
}

impl ProcessSymbols {
    /// Reads the mappings if no known one contains `address`.
    fn look(&mut self, pid: u32, address: u64, files: &Files) {
        if holding(&self.ranges, address).next().is_none() {
            self.read(pid, files);
        }
    }

    /// Reads the mappings unless they are current.
    fn refresh(&mut self, pid: u32, files: &Files) {
        if self.read.is_none_or(|read| read.elapsed() >= FRESH) {
            self.read(pid, files);
        }
    }

    /// Searches once more for a name of `address`. Returns whether anything new was read. `taken`
    /// is when the records were taken from the kernel. When the mappings were listed, the process
    /// may already have generated the code but not yet mapped the file that describes it.
    fn looks_again(
        &mut self,
        pid: u32,
        address: u64,
        taken: Option<Instant>,
        files: &Files,
    ) -> bool {
        let is_made = holding(&self.ranges, address).any(|range| range.mapping.is_made());
        let is_older = is_made && self.read < taken && self.has_time();
        if is_older {
            let begun = Instant::now();
            self.read(pid, files);
            self.again += begun.elapsed();
        }
        self.reads_on(pid) || is_older
    }

    /// Whether there is time to read the mappings once more. A program with a JIT compiler may have
    /// thousands of them.
    fn has_time(&self) -> bool {
        let since = self.first.map_or(Duration::ZERO, |first| first.elapsed());
        self.again <= AGAIN + since / AGAIN_PART
    }

    /// Reads what the process has written down about code that it generates. Returns whether there
    /// is anything new.
    fn reads_on(&mut self, pid: u32) -> bool {
        self.compiled.look_for_map(pid);
        let is_new = self.compiled.refresh();
        if is_new {
            self.known.clear();
        }
        is_new
    }

    /// Adds the current mappings of the process, and those of processes with its ID that have
    /// ended. A process that has ended lists nothing, and what is known of it stays.
    fn read(&mut self, pid: u32, files: &Files) {
        self.read = Some(Instant::now());
        self.first = self.first.or(self.read);
        let open = |mapping: &Mapping| files.get(pid, mapping).ok();
        let all = listed(pid);
        if self.is_watched || all.iter().any(Mapping::is_made) {
            self.reads_on(pid);
        }
        (self.compiled).look_for_dump(pid, all.iter(), |mapping| open_mapped(pid, mapping).ok());
        let mut fresh = self.fresh(all, open);
        if !fresh.is_empty() {
            // A file that was unmapped in the meantime may have been opened as another one.
            let still: HashSet<Mapping> = listed(pid).into_iter().collect();
            fresh.retain(|range| still.contains(&range.mapping));
            self.add(fresh);
        }
        let mut left = files.left(self.in_records.unwrap_or(pid), &mut self.left);
        // Mappings that we read while the process lived have the path that the process saw, and may
        // have a file that the kernel does not give us.
        let is_known = |mapping: &Mapping| {
            let mut known = self.ranges.iter().map(|range| &range.mapping);
            known.any(|known| known.shows_what(mapping))
        };
        left.retain(|(mapping, _)| !is_known(mapping));
        if !left.is_empty() {
            let mappings = left.iter().map(|(mapping, _)| mapping);
            self.compiled.look_for_dump(pid, mappings, |dump| {
                let image = left.iter().find(|(mapping, _)| mapping == dump)?.1.as_ref();
                image?.file().try_clone().ok()
            });
            let left: HashMap<Mapping, Option<Rc<Image>>> = left.into_iter().collect();
            let open = |mapping: &Mapping| left.get(mapping).cloned().flatten();
            let fresh = self.fresh(left.keys().cloned().collect(), open);
            self.add(fresh);
        }
    }

    fn add(&mut self, fresh: Vec<Range>) {
        if self.ranges.len() >= RANGES_MAX {
            self.ranges.clear();
        }
        self.known.clear();
        self.ranges.extend(fresh);
    }

    /// Returns those of the mappings that are not known yet, with their files, which `open` opens.
    fn fresh(
        &self,
        mut mappings: Vec<Mapping>,
        open: impl Fn(&Mapping) -> Option<Rc<Image>>,
    ) -> Vec<Range> {
        let code: Vec<Mapping> = mappings.iter().filter(|m| m.is_code).cloned().collect();
        // Plain memory matters only if it is code, which could be mistaken for another object's.
        mappings.retain(|mapping| mapping.is_code || mapping.backing != Backing::Memory);
        // A set, because a program with a JIT compiler has thousands of mappings.
        let seen: HashSet<&Mapping> = self.ranges.iter().map(|range| &range.mapping).collect();
        mappings.retain(|mapping| !seen.contains(mapping));
        let mut fresh: Vec<Range> = Vec::new();
        for mapping in mappings {
            let same = |range: &&Range| range.mapping.is_of_file(&mapping);
            let mut known = self.ranges.iter().chain(&fresh).filter(same);
            let file = match mapping.backing {
                Backing::Memory => None,
                _ => known.find_map(|range| range.file.clone()).or_else(|| {
                    // Only files from which code is mapped have symbols.
                    let mut code = code.iter();
                    let is_code = code.any(|m| *m == mapping || m.is_of_file(&mapping));
                    is_code.then(|| open(&mapping))?
                }),
            };
            let segments = file.as_ref().filter(|_| !mapping.is_code).and_then(|file| {
                let mut known = self.ranges.iter().chain(&fresh).filter(same);
                let known = known.find_map(|range| range.segments.clone());
                let mut code = code.iter().filter(|m| m.is_of_file(&mapping));
                known.or_else(|| {
                    code.find_map(|code| Segments::of(file.file(), code))
                        .map(Rc::new)
                })
            });
            fresh.push(Range {
                mapping,
                file,
                segments,
            });
        }
        fresh
    }
}
