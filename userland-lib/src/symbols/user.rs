// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Symbols of user processes.
//!
//! When a process is first seen its list of mappings is read and each file that it runs code of is opened, as the process has it
//! (see `files`). Names come from what was opened, so they are right in whatever mount namespace the process is, when the
//! file has been replaced or deleted, and when the process has ended. Watched processes are read before they run and again as
//! long as they live; any other when the first address of it is consumed. Of one that has ended by then the kernel may know what it had
//! mapped (see `remains`). A consumer may watch any number of processes that come by and end, and has room for the last of them that have ended.
//!
//! A process maps other objects while it runs, executes another program, or ends and leaves its number to another one. When an address
//! was recorded nobody knows by then. So all that was ever seen under a number is kept, and an address that was two things is given no
//! name.
//!
//! Names come from the files (see `image`), and of code that has none from what the program writes down (see `compiled`). Variables that are zero at first lie in no file, but in memory that the
//! kernel maps behind what the file has: these are found by where the file wants its memory (see `segments`).

#[cfg(test)]
mod tests;

use super::compiled::{self, Compiled};
use super::files::{open_mapped, Files};
use super::image::Image;
use super::maps::{all_mappings_of, Backing, Mapping};
use super::remains::Remains;
use super::segments::Segments;
use crate::dwarf::Inlined;
use crate::names::printable;
use blazesym::symbolize::{Input, Symbolizer};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// When so many processes more are known than after it was last made room, all but the watched ones are forgotten, to be read again.
const PROCESSES_MAX: usize = 256;
/// The same of open files.
const FILES_MAX: usize = 256;
/// Of processes that have come by and ended so many are remembered when room is made, those that were read last; fewer, where the files of
/// the others take more than [`FILES_MAX`].
const ENDED_MAX: usize = 4_096;
/// Addresses that are remembered for one process.
const ADDRESSES_MAX: usize = 65_536;
/// Mappings that are remembered for one process.
const RANGES_MAX: usize = 65_536;
/// Bytes of memory that all files' inlined functions may take before no more are looked up, about.
const INLINES_MAX: u64 = 1 << 30;
/// The offset that memory behind a file's data is given.
const BEHIND: u64 = u64::MAX;
/// For so long a list of mappings is taken to be as it was.
const FRESH: Duration = Duration::from_millis(50);

/// For so long they are read again sooner, and one in so many parts of all time besides.
const AGAIN: Duration = Duration::from_millis(100);
const AGAIN_PART: u32 = 8;

/// What an address of a process is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserSymbol {
    /// The file name of the object that it lies in.
    pub object: Option<String>,
    /// The function's name and the distance from its beginning.
    pub function: Option<(String, u64)>,
}

/// The symbols of all processes.
#[derive(Default)]
pub struct UserSymbols {
    symbolizer: RefCell<OnceCell<Symbolizer>>,
    files: Files,
    processes: RefCell<HashMap<u32, ProcessSymbols>>,
    /// How many processes and files were left when room was last made.
    left: Cell<(usize, usize)>,
    /// When a buffer was taken from the kernel.
    taken: Cell<Option<Instant>>,
}

impl std::fmt::Debug for UserSymbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserSymbols").finish_non_exhaustive()
    }
}

/// What is known of the processes of one number.
#[derive(Default)]
struct ProcessSymbols {
    is_watched: bool,
    /// It is watched as long as it lives, and as long as there is room.
    comes_by: bool,
    /// Its number in records, where that is another one.
    in_records: Option<u32>,
    /// What was read of those that have ended.
    left: u64,
    /// When the mappings were read first, and last.
    first: Option<Instant>,
    read: Option<Instant>,
    /// What it took to read them when [`FRESH`] had not passed.
    again: Duration,
    ranges: Vec<Range>,
    compiled: Compiled,
    known: HashMap<u64, UserSymbol>,
}

/// A mapping that was seen, and the file that was opened then.
struct Range {
    mapping: Mapping,
    file: Option<Rc<Image>>,
    /// Where the process has the memory of the file, for what is not code.
    segments: Option<Rc<Segments>>,
}

impl UserSymbols {
    /// Has who notes what processes have mapped that end from now on.
    pub fn keep(&self, remains: Option<Box<dyn Remains>>) {
        self.files.keep(remains);
    }

    /// A process that is watched has another number in records.
    pub fn alias(&self, pid: u32, in_records: u32) {
        let mut processes = self.processes.borrow_mut();
        let process = processes.entry(pid).or_default();
        process.is_watched = true;
        process.in_records = Some(in_records);
    }

    /// Reads the mappings of a watched process as they are now: it may end before any address of it is printed.
    pub fn watch(&self, pid: u32) {
        self.with(pid, |process| {
            process.is_watched = true;
            process.comes_by = false;
            process.read(pid, &self.files);
        });
    }

    /// The same of one of many that come by.
    pub fn meet(&self, pid: u32) {
        self.with(pid, |process| {
            process.comes_by |= !process.is_watched;
            process.is_watched = true;
            process.read(pid, &self.files);
        });
    }

    /// Reads the mappings of a process of which a record has come.
    pub fn note(&self, pid: u32) {
        self.with(pid, |process| process.refresh(pid, &self.files));
    }

    /// A buffer was taken: lists of mappings that were read before may be older than its records.
    pub fn taken(&self) {
        self.taken.set(Some(Instant::now()));
    }

    /// What `address` is in the process `pid`.
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

    /// Opens the file that a process has under a path, also when it has ended and was seen before.
    pub fn open_seen(&self, pid: u32, path: &str) -> io::Result<File> {
        self.with(pid, |process| process.compiled.open_seen(pid, path))
    }

    /// Which build of a program `address` is in, in the process `pid`, and where in its file.
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

    /// The functions that are inlined at `address` in the process `pid`, the innermost first; none where that was two things.
    pub fn inlined(&self, pid: u32, address: u64) -> Rc<[Inlined]> {
        self.with(pid, |process| {
            process.refresh(pid, &self.files);
            let mut all = holding(&process.ranges, address).map(|range| {
                let file = range.file.as_ref().filter(|_| range.mapping.is_code)?;
                let offset = range.mapping.offset_of(address)?;
                Some(file.inlined(offset, || self.files.inlines_kept() < INLINES_MAX))
            });
            let first = all.next().flatten().unwrap_or_default();
            // A file that was removed meanwhile is read twice, and says the same.
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
        // It keeps open what it has read.
        self.symbolizer.take();
        self.left.set((processes.len(), self.files.count()));
    }

    /// What all of the ranges that hold `address` say of it, or the program that made the code there.
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
        // Memory behind a file's data is the file's only as far as the file wants it.
        let has_name = mapping.backing != Backing::Memory && (input.is_some() || !is_behind);
        UserSymbol {
            object: has_name.then(|| printable(mapping.object()).into_owned()),
            function: (range.file.as_ref().zip(input))
                .and_then(|(file, input)| self.name(file, input)),
        }
    }

    /// The function or the variable at a place of a file.
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

/// Whether there is no process of that number, not even one that waits for its parent to ask how it has ended.
fn has_ended(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

/// The ranges that hold `address`.
fn holding(ranges: &[Range], address: u64) -> impl Iterator<Item = &Range> {
    let ranges = ranges.iter();
    ranges.filter(move |range| range.mapping.contains(address))
}

/// The mappings of a process; none of one that is gone. Memory behind a file's data is listed as that file's, at [`BEHIND`]: variables that
/// are zero at first may be there.
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
    /// Reads the mappings if none is known that holds `address`.
    fn look(&mut self, pid: u32, address: u64, files: &Files) {
        if holding(&self.ranges, address).next().is_none() {
            self.read(pid, files);
        }
    }

    /// Reads the mappings unless that was just done.
    fn refresh(&mut self, pid: u32, files: &Files) {
        if self.read.is_none_or(|read| read.elapsed() >= FRESH) {
            self.read(pid, files);
        }
    }

    /// Looks once more for who names `address`; whether there is something new. When the mappings were listed, the process may have made the
    /// code already, and not yet mapped the file that tells of it: `taken` is when the records were.
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

    /// Whether to read the mappings once more does not take too much of all time: a program that compiles may have thousands.
    fn has_time(&self) -> bool {
        let since = self.first.map_or(Duration::ZERO, |first| first.elapsed());
        self.again <= AGAIN + since / AGAIN_PART
    }

    /// Reads what the process writes down of code that it makes; whether there is something new.
    fn reads_on(&mut self, pid: u32) -> bool {
        self.compiled.look_for_map(pid);
        let is_new = self.compiled.refresh();
        if is_new {
            self.known.clear();
        }
        is_new
    }

    /// Adds what the process has mapped now, and what those had that have ended. Of one that is gone nothing is listed, and what was known
    /// stays.
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
            // What was unmapped meanwhile may have been opened as something else.
            let still: HashSet<Mapping> = listed(pid).into_iter().collect();
            fresh.retain(|range| still.contains(&range.mapping));
            self.add(fresh);
        }
        let mut left = files.left(self.in_records.unwrap_or(pid), &mut self.left);
        // What we have from when it lived has the names that the process had for it, and may be what the kernel does not give.
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

    /// Those of the mappings that are not known yet, with their files, which `open` opens.
    fn fresh(
        &self,
        mut mappings: Vec<Mapping>,
        open: impl Fn(&Mapping) -> Option<Rc<Image>>,
    ) -> Vec<Range> {
        let code: Vec<Mapping> = mappings.iter().filter(|m| m.is_code).cloned().collect();
        // Of memory only code can be mistaken for something else.
        mappings.retain(|mapping| mapping.is_code || mapping.backing != Backing::Memory);
        // A program that compiles at run time has thousands of them.
        let seen: HashSet<&Mapping> = self.ranges.iter().map(|range| &range.mapping).collect();
        mappings.retain(|mapping| !seen.contains(mapping));
        let mut fresh: Vec<Range> = Vec::new();
        for mapping in mappings {
            let same = |range: &&Range| range.mapping.is_of_file(&mapping);
            let mut known = self.ranges.iter().chain(&fresh).filter(same);
            let file = match mapping.backing {
                Backing::Memory => None,
                _ => known.find_map(|range| range.file.clone()).or_else(|| {
                    // No other file has symbols.
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
