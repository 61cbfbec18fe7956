// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Symbols of user processes.
//!
//! When a process is first seen its list of mappings is read and each file that it runs code of is opened, as the process has it
//! (see `files`). Names come from what was opened, so they are right in whatever mount namespace the process is, when the
//! file has been replaced or deleted, and when the process has ended. Watched processes are read before they run and again as
//! long as they live; any other when the first address of it is consumed. Of one that has ended by then the kernel may know what it had
//! mapped (see `remains`).
//!
//! A process maps other objects while it runs, executes another program, or ends and leaves its number to another one. When an address
//! was recorded nobody knows by then. So all that was ever seen under a number is kept, and an address that was two things is given no
//! name.
//!
//! Names come from the files (see `image`), and of code that has none from what the program writes down (see `compiled`). Variables that are zero at first lie in no file, but in memory that the
//! kernel maps behind what the file has: these are found by where the file wants its memory (see `segments`).

use super::compiled::{self, Compiled};
use super::files::{open_mapped, Files};
use super::image::Image;
use super::maps::{all_mappings_of, Backing, Mapping};
use super::remains::Remains;
use super::segments::Segments;
use blazesym::symbolize::{Input, Symbolizer};
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Processes that are remembered; with more of them all but the watched ones are forgotten and read again.
const PROCESSES_MAX: usize = 256;
/// Files that are open when a process comes; with more of them as well.
const FILES_MAX: usize = 256;
/// Addresses that are remembered for one process.
const ADDRESSES_MAX: usize = 65_536;
/// Mappings that are remembered for one process.
const RANGES_MAX: usize = 65_536;
/// The offset that memory behind a file's data is given.
const BEHIND: u64 = u64::MAX;
/// For so long a list of mappings is taken to be as it was.
const FRESH: Duration = Duration::from_millis(50);

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
    /// Its number in records, where that is another one.
    in_records: Option<u32>,
    /// What was read of those that have ended.
    left: u64,
    read: Option<Instant>,
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
        let mut processes = self.processes.borrow_mut();
        let process = processes.entry(pid).or_default();
        process.is_watched = true;
        process.read(pid, &self.files);
    }

    /// Reads the mappings of a process of which a record has come.
    pub fn note(&self, pid: u32) {
        self.with(pid, |process| process.refresh(pid, &self.files));
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
            if symbol.function.is_none() && process.reads_on(pid) {
                symbol = self.symbol(process, address);
            }
            if process.known.len() >= ADDRESSES_MAX {
                process.known.clear();
            }
            process.known.insert(address, symbol.clone());
            symbol
        })
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

    fn with<T>(&self, pid: u32, look: impl FnOnce(&mut ProcessSymbols) -> T) -> T {
        let mut processes = self.processes.borrow_mut();
        let is_new = !processes.contains_key(&pid);
        if is_new && (processes.len() >= PROCESSES_MAX || self.files.count() >= FILES_MAX) {
            processes.retain(|_, process| process.is_watched);
            // It keeps open what it has read.
            self.symbolizer.take();
        }
        look(processes.entry(pid).or_default())
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
            object: has_name.then(|| mapping.object().to_owned()),
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

#[cfg(test)]
mod tests {
    use super::super::maps::mappings_of;
    use super::*;
    use crate::fixture::copy_program;
    use crate::options::EvalTime;
    use crate::proc::Target;

    #[inline(never)]
    fn landmark() -> u64 {
        landmark as *const () as usize as u64
    }

    /// A process that runs a copy of this very program at `path`, and where its `landmark()` is.
    fn twin(path: &std::path::Path) -> (Target, u64) {
        let here = mappings_of(std::process::id()).expect("mappings");
        let here = here.iter().find(|m| m.contains(landmark())).expect("text");
        let command = format!("'{}' --list", path.display());
        let twin = Target::create(&command, &[], EvalTime::Exec).expect("a twin");
        let there = mappings_of(twin.pid()).expect("mappings");
        let mut there = there.iter();
        let there = there.find(|m| m.is_code && m.offset == here.offset);
        let address = landmark() - here.start + there.expect("its text").start;
        (twin, address)
    }

    fn copy(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("dtrace-{name}-{}", std::process::id()));
        let own = std::env::current_exe().expect("a program");
        copy_program(&own, &path);
        path
    }

    fn name(symbols: &UserSymbols, pid: u32, address: u64) -> String {
        let symbol = symbols.by_address(pid, address);
        symbol.function.map_or_else(String::new, |(name, _)| name)
    }

    #[test]
    fn this_process_has_symbols_and_one_that_is_gone_has_none() {
        let symbols = UserSymbols::default();
        let symbol = symbols.by_address(std::process::id(), landmark());
        assert!(symbol.object.unwrap().starts_with("dtrace"));
        let (name, offset) = symbol.function.unwrap();
        assert!(name.contains("landmark"), "{name}");
        assert_eq!(offset, 0);
        assert_eq!(
            symbols.by_address(u32::MAX - 1, landmark()),
            UserSymbol::default()
        );
    }

    #[test]
    fn what_no_function_has_is_not_named_by_a_version() {
        let symbols = UserSymbols::default();
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let is_linker = |line: &&str| line.contains("r-xp") && line.contains("/ld-linux");
        let text = maps.lines().find(is_linker).expect("the dynamic linker");
        let (start, rest) = text.split_once('-').expect("a range");
        let end = rest.split(' ').next().expect("its end");
        let number = |text| u64::from_str_radix(text, 16).expect("an address");
        for address in (number(start)..number(end)).step_by(256) {
            let name = name(&symbols, std::process::id(), address);
            assert!(!name.starts_with("GLIBC_"), "{address:#x}: {name}");
        }
    }

    #[test]
    fn variables_have_names_in_whatever_memory_they_are() {
        static ZERO: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        static DATA: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(7);
        let symbols = UserSymbols::default();
        for (variable, name) in [(&ZERO, "ZERO"), (&DATA, "DATA")] {
            let address = std::ptr::from_ref(variable) as usize as u64;
            let symbol = symbols.by_address(std::process::id(), address);
            let (found, offset) = symbol.function.expect(name);
            assert!(found.contains(name), "{found}");
            assert_eq!(offset, 0);
        }
        let memory = Box::new(1);
        let address = std::ptr::from_ref(&*memory) as usize as u64;
        assert_eq!(
            symbols.by_address(std::process::id(), address).function,
            None
        );
    }

    #[test]
    fn a_watched_process_keeps_its_symbols_when_it_is_gone() {
        let (twin, address) = twin(&std::env::current_exe().expect("a program"));
        let pid = twin.pid();
        let symbols = UserSymbols::default();
        symbols.watch(pid);
        drop(twin);
        symbols.watch(pid);
        for other in 1..2 * PROCESSES_MAX as u32 {
            symbols.by_address(u32::MAX - other, 0);
        }
        let (name, offset) = symbols.by_address(pid, address).function.expect("a name");
        assert!(name.contains("landmark"), "{name}");
        assert_eq!(offset, 0);
    }

    #[test]
    fn a_file_that_was_replaced_or_deleted_is_read_as_it_was() {
        for is_replaced in [false, true] {
            let path = copy(if is_replaced { "replaced" } else { "deleted" });
            let (twin, address) = twin(&path);
            let pid = twin.pid();
            std::fs::remove_file(&path).expect("no file");
            let symbols = UserSymbols::default();
            symbols.watch(pid);
            drop(twin);
            if is_replaced {
                std::fs::copy("/bin/sh", &path).expect("another file");
            }
            let found = name(&symbols, pid, address);
            let _ = std::fs::remove_file(&path);
            assert!(found.contains("landmark"), "{found}");
        }
    }

    /// A process that ended unseen, or whose file could not be opened, has no names; those of a file that is at the same path
    /// least of all.
    #[test]
    fn a_path_names_nothing() {
        let path = std::env::current_exe().expect("a program");
        let (twin, address) = twin(&path);
        let symbols = UserSymbols::default();
        symbols.watch(twin.pid());
        for range in &mut symbols
            .processes
            .borrow_mut()
            .get_mut(&twin.pid())
            .unwrap()
            .ranges
        {
            range.file = None;
        }
        let symbol = symbols.by_address(twin.pid(), address);
        assert!(symbol.object.is_some());
        assert_eq!(symbol.function, None);
    }

    /// The same number, another program: an address that was both has no name, any other keeps its own.
    #[test]
    fn an_address_that_was_two_things_has_no_name() {
        let path = std::env::current_exe().expect("a program");
        let (first, address) = twin(&path);
        let symbols = UserSymbols::default();
        symbols.watch(first.pid());
        let known = name(&symbols, first.pid(), address);
        assert!(known.contains("landmark"), "{known}");
        let other = std::process::Command::new("sleep").arg("60").spawn();
        let mut other = other.expect("a process");
        let read = |pid| {
            let mut process = ProcessSymbols::default();
            while process.ranges.len() < 2 {
                process.read(pid, &symbols.files);
            }
            process.ranges
        };
        let mut successor = read(other.id());
        other.kill().expect("an end");
        other.wait().expect("an end");
        let mut later = |start, end| {
            let mut processes = symbols.processes.borrow_mut();
            let process = processes.get_mut(&first.pid()).expect("a process");
            let mut range = successor.pop().expect("a mapping");
            (range.mapping.start, range.mapping.end) = (start, end);
            process.known.clear();
            process.ranges.push(range);
        };
        later(1 << 20, 2 << 20);
        assert_eq!(name(&symbols, first.pid(), address), known);
        later(address, address + 1);
        assert_eq!(
            symbols.by_address(first.pid(), address),
            UserSymbol::default()
        );
    }

    /// One that executes another program at the same number is read again.
    #[test]
    fn who_executes_another_program_is_seen_to() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read x; exec sleep 60"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("a process");
        let pid = child.id();
        let symbols = UserSymbols::default();
        let has = |object: &str| {
            std::thread::sleep(2 * FRESH);
            symbols.note(pid);
            let processes = symbols.processes.borrow();
            let mut ranges = processes[&pid].ranges.iter();
            ranges.any(|range| range.mapping.object() == object)
        };
        assert!(!has("sleep"));
        let mut stdin = child.stdin.take().expect("a pipe");
        std::io::Write::write_all(&mut stdin, b"x\n").expect("a line");
        while !has("sleep") {}
        let _ = child.kill();
        let _ = child.wait();
    }

    #[test]
    fn the_code_that_the_kernel_gives_has_names() {
        let all = all_mappings_of(std::process::id()).expect("mappings");
        let mut all = all.iter();
        let Some(vdso) = all.find(|mapping| mapping.backing == Backing::Vdso) else {
            return;
        };
        let symbols = UserSymbols::default();
        let named = (vdso.start..vdso.end).step_by(16).any(|address| {
            let symbol = symbols.by_address(std::process::id(), address);
            assert_eq!(symbol.object.as_deref(), Some("[vdso]"));
            symbol
                .function
                .is_some_and(|(name, _)| name.contains("clock_gettime"))
        });
        assert!(named);
    }
}
