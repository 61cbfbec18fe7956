// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Symbols of user processes.
//!
//! Names come from blazesym, which reads the ELF files that a process has mapped and keeps them; the object that
//! an address lies in comes from the process' own list of mappings, because an address without a symbol still has
//! an object. Of processes that nobody watches nothing is read before their first address is printed.
//!
//! By the time a record is consumed its process may be gone. What was learned about a process while it lived is
//! kept for a while, and an object that it had mapped is read from its file. The mappings of watched processes are
//! read before they run and again as long as they live, whether anybody has asked for an address yet or not; any other
//! process that was never seen alive has no symbols, and its addresses are shown as numbers.

use crate::source::decoded;
use blazesym::symbolize::source::{Elf, Process, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use blazesym::Pid;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::io;

/// Processes that are remembered; with more of them all but the watched ones are forgotten and read again.
const PROCESSES_MAX: usize = 256;
/// Addresses that are remembered for one process.
const ADDRESSES_MAX: usize = 65_536;

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
    symbolizer: OnceCell<Symbolizer>,
    processes: RefCell<HashMap<u32, ProcessSymbols>>,
}

impl std::fmt::Debug for UserSymbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserSymbols").finish_non_exhaustive()
    }
}

/// What is known of one process.
#[derive(Default)]
struct ProcessSymbols {
    is_watched: bool,
    mappings: Vec<Mapping>,
    known: HashMap<u64, UserSymbol>,
}

impl UserSymbols {
    /// Reads the mappings of a watched process as they are now: it may end before any address of it is printed.
    pub fn watch(&self, pid: u32) {
        let mut processes = self.processes.borrow_mut();
        let process = processes.entry(pid).or_default();
        process.is_watched = true;
        process.read(pid);
    }

    /// What `address` is in the process `pid`.
    pub fn by_address(&self, pid: u32, address: u64) -> UserSymbol {
        let mut processes = self.processes.borrow_mut();
        if processes.len() >= PROCESSES_MAX && !processes.contains_key(&pid) {
            processes.retain(|_, process| process.is_watched);
        }
        let process = processes.entry(pid).or_default();
        if let Some(symbol) = process.known.get(&address) {
            return symbol.clone();
        }
        let mapping = process.mapping(pid, address);
        let function = self.function(pid, address);
        let symbol = UserSymbol {
            object: mapping.map(|mapping| mapping.object().to_owned()),
            function: function.or_else(|| self.function_of_file(mapping?, address)),
        };
        if process.known.len() >= ADDRESSES_MAX {
            process.known.clear();
        }
        process.known.insert(address, symbol.clone());
        symbol
    }

    fn function(&self, pid: u32, address: u64) -> Option<(String, u64)> {
        let mut process = Process::new(Pid::from(pid));
        // The ELF symbol tables name functions; reading DWARF for the same names would cost seconds.
        process.debug_syms = false;
        self.symbol(&Source::Process(process), Input::AbsAddr(address))
    }

    /// The function at an address that a process had mapped.
    fn function_of_file(&self, mapping: &Mapping, address: u64) -> Option<(String, u64)> {
        let mut file = Elf::new(&mapping.path);
        file.debug_syms = false;
        let offset = address - mapping.start + mapping.offset;
        self.symbol(&Source::Elf(file), Input::FileOffset(offset))
    }

    fn symbol(&self, source: &Source<'_>, input: Input<u64>) -> Option<(String, u64)> {
        let build = || {
            Symbolizer::builder()
                .enable_code_info(false)
                .enable_inlined_fns(false)
                .build()
        };
        match self
            .symbolizer
            .get_or_init(build)
            .symbolize_single(source, input)
            .ok()?
        {
            Symbolized::Sym(symbol) => Some((symbol.name.into_owned(), symbol.offset as u64)),
            Symbolized::Unknown(_) => None,
        }
    }
}

impl ProcessSymbols {
    /// The mapping that `address` lies in. A process maps objects while it runs, so a miss reads the list again.
    fn mapping(&mut self, pid: u32, address: u64) -> Option<&Mapping> {
        if find(&self.mappings, address).is_none() {
            self.read(pid);
        }
        find(&self.mappings, address)
    }

    fn read(&mut self, pid: u32) {
        let fresh = mappings_of(pid).unwrap_or_default();
        // The list of a process that is gone is empty or not there: what was known stays.
        if !fresh.is_empty() {
            self.mappings = fresh;
        }
    }
}

/// A range of addresses that an object is mapped to.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Where the range begins in the object's file.
    pub offset: u64,
    pub path: String,
    /// It may be executed.
    pub is_code: bool,
}

impl Mapping {
    /// The object's file name.
    pub fn object(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

fn find(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    mappings
        .iter()
        .find(|mapping| (mapping.start..mapping.end).contains(&address))
}

/// The mappings of objects in a process.
pub fn mappings_of(pid: u32) -> io::Result<Vec<Mapping>> {
    let text = std::fs::read(format!("/proc/{pid}/maps"))?;
    Ok(mappings(&decoded(text)))
}

/// The mappings of objects in the text of `/proc/PID/maps`.
fn mappings(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(mapping).collect()
}

fn mapping(line: &str) -> Option<Mapping> {
    // Range, permissions, offset, device and inode stand before the path, which may hold blanks.
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let is_code = fields.next()?.contains('x');
    let offset = fields.next()?;
    let path = fields.nth(2)?.trim_start();
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        start: number(start)?,
        end: number(end)?,
        offset: number(offset)?,
        path: path.starts_with('/').then(|| path.to_owned())?,
        is_code,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::EvalTime;
    use crate::proc::Target;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::process::Command;

    #[test]
    fn maps_list_objects_with_blanks_and_deleted_ones() {
        let text = "\
55d0e0000000-55d0e0001000 r-xp 00001000 fd:00 123456                     /usr/bin/my prog
7f0000000000-7f0000002000 r-xp 00000000 fd:00 77                         /usr/lib/libgone.so (deleted)
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
7ffd00030000-7ffd00031000 rw-p 00000000 00:00 0 
";
        let all = mappings(text);
        assert_eq!(all.len(), 2);
        assert_eq!(find(&all, 0x55d0e0000fff).unwrap().object(), "my prog");
        assert_eq!(find(&all, 0x7f0000000000).unwrap().object(), "libgone.so");
        assert!(find(&all, 0x55d0e0001000).is_none());
        assert_eq!(all[0].offset, 0x1000);
        assert!(all[0].is_code);
    }

    #[test]
    fn this_process_has_symbols_and_one_that_is_gone_has_none() {
        let symbols = UserSymbols::default();
        let address = mapping as fn(&str) -> Option<Mapping> as usize as u64;
        let symbol = symbols.by_address(std::process::id(), address);
        assert!(symbol.object.unwrap().starts_with("dtrace"));
        let (name, offset) = symbol.function.unwrap();
        assert!(name.contains("mapping"), "{name}");
        assert_eq!(offset, 0);
        assert_eq!(
            symbols.by_address(u32::MAX - 1, address),
            UserSymbol::default()
        );
    }

    #[test]
    fn a_watched_process_keeps_its_symbols_when_it_is_gone() {
        let own = mapping as fn(&str) -> Option<Mapping> as usize as u64;
        let mappings_of = |pid| mappings_of(pid).expect("a list of mappings");
        let here = mappings_of(std::process::id());
        let here = find(&here, own).expect("our own text");
        // The same program, at other addresses.
        let program = std::env::current_exe().expect("a program");
        let command = format!("'{}' --list", program.display());
        let twin = Target::create(&command, &[], EvalTime::Exec).expect("a twin");
        let pid = twin.pid();
        let there = mappings_of(pid);
        let there = there
            .iter()
            .find(|mapping| (&mapping.path, mapping.offset) == (&here.path, here.offset))
            .expect("its text");
        let address = own - here.start + there.start;
        let symbols = UserSymbols::default();
        symbols.watch(pid);
        drop(twin);
        symbols.watch(pid);
        for other in 1..2 * PROCESSES_MAX as u32 {
            symbols.by_address(u32::MAX - other, 0);
        }
        let (name, offset) = symbols.by_address(pid, address).function.expect("a name");
        assert!(name.contains("mapping"), "{name}");
        assert_eq!(offset, 0);
    }

    #[test]
    fn a_file_name_that_is_not_utf_8_hides_no_other() {
        let name = format!("symbols-{}-", std::process::id()).into_bytes();
        let name = [&name[..], b"\xe9"].concat();
        let program = std::env::temp_dir().join(OsStr::from_bytes(&name));
        std::fs::copy("/bin/sleep", &program).expect("a copy");
        let mut child = Command::new(&program).arg("60").spawn().expect("a child");
        let has = |found: &[Mapping], end: &str| {
            let mut objects = found.iter().map(Mapping::object);
            objects.any(|object| object.ends_with(end))
        };
        // It takes a moment until all is mapped.
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
