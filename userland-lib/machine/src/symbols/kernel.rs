// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The kernel's symbols, from `/proc/kallsyms`.
//!
//! That file has some 200,000 lines. It is therefore read at the first look-up, and again only when
//! modules have been loaded or unloaded: a look-up of an address outside of the kernel proper
//! checks the list of modules, at most once every [`PAUSE`]. The table is an arena of names and an
//! array sorted by address. Symbols with the same address keep the file's order, whose first name
//! is the one that the kernel itself uses. The file states no sizes: a symbol reaches to its
//! neighbour, but never further than its [module](Modules), so that a stray address is not given an
//! unrelated name. A module that has been unloaded keeps its names in records from before.
//!
//! Invariant: `entries` is sorted by address, and each entry's name lies within `names` and its
//! module within `modules`.

use super::modules::{Modules, REACH};
use dtrace_types::VMLINUX;
use std::cell::RefCell;
use std::io::{self, BufRead};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Minimum time between two checks of the list of modules.
const PAUSE: Duration = Duration::from_millis(100);

/// A symbol that was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The module that contains it.
    pub module: String,
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: u64,
}

/// The symbols of the running kernel, read when they are first needed.
#[derive(Debug)]
pub struct KernelSymbols {
    path: PathBuf,
    /// Path of the list of modules, if there is one.
    modules: Option<PathBuf>,
    pause: Duration,
    known: RefCell<Option<Known>>,
    /// The previous contents, which name modules that have been unloaded.
    before: RefCell<Option<Known>>,
}

/// The symbols and modules as read at one time.
#[derive(Debug)]
struct Known {
    table: Table,
    modules: Modules,
    /// When the list of modules was last checked.
    looked: Instant,
}

impl Default for KernelSymbols {
    fn default() -> Self {
        Self {
            modules: Some("/proc/modules".into()),
            ..Self::at("/proc/kallsyms")
        }
    }
}

impl KernelSymbols {
    /// Returns the symbols listed in the file `path`, for a kernel whose modules are unknown and do
    /// not change.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            modules: None,
            pause: PAUSE,
            known: RefCell::default(),
            before: RefCell::default(),
        }
    }

    /// Returns the symbol that contains `address`.
    pub fn by_address(&self, address: u64) -> Option<Symbol> {
        let mut known = self.known.borrow_mut();
        let known = known.get_or_insert_with(|| self.read());
        let found = known.by_address(address);
        // The symbols of the kernel proper never change.
        let stays = found
            .as_ref()
            .is_some_and(|symbol| symbol.module == VMLINUX);
        if stays {
            return found;
        }
        let mut before = self.before.borrow_mut();
        if self.is_stale(known) {
            *before = Some(std::mem::replace(known, self.read()));
        }
        let gone = || before.as_ref()?.by_address(address);
        known.by_address(address).or_else(gone)
    }

    /// Returns the symbol `name` of `module`, or of any module, with the kernel proper first.
    pub fn by_name(&self, module: Option<&str>, name: &str) -> Option<Symbol> {
        let mut known = self.known.borrow_mut();
        let known = known.get_or_insert_with(|| self.read());
        known.table.by_name(module, name)
    }

    /// Reads the symbols. A file that cannot be read counts as empty; addresses are then shown as
    /// numbers.
    fn read(&self) -> Known {
        // The modules are read first. A module that is loaded in between is then missing in the
        // list, so that the next check finds the list changed.
        let modules = self.listed();
        let table = std::fs::File::open(&self.path)
            .and_then(|file| Table::read(io::BufReader::with_capacity(1 << 16, file)))
            .unwrap_or_default();
        Known {
            table,
            modules,
            looked: Instant::now(),
        }
    }

    fn listed(&self) -> Modules {
        let path = self.modules.as_deref();
        path.map(Modules::read).unwrap_or_default()
    }

    /// Whether modules have been loaded or unloaded. Checks at most once every `pause`.
    fn is_stale(&self, known: &mut Known) -> bool {
        if known.looked.elapsed() < self.pause {
            return false;
        }
        known.looked = Instant::now();
        self.listed() != known.modules
    }
}

impl Known {
    fn by_address(&self, address: u64) -> Option<Symbol> {
        let symbol = self.table.by_address(address)?;
        let end = match symbol.module == VMLINUX {
            true => symbol.address.saturating_add(REACH),
            false => self.modules.end(&symbol.module, symbol.address),
        };
        (address < end).then_some(symbol)
    }
}

#[derive(Debug, Default)]
struct Table {
    entries: Vec<Entry>,
    names: String,
    /// Names of modules; the first is [`VMLINUX`].
    modules: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    address: u64,
    name: u32,
    length: u16,
    module: u16,
}

impl Entry {
    fn range(&self) -> Range<usize> {
        let start = self.name as usize;
        start..start + usize::from(self.length)
    }
}

/// Parses a line of kallsyms: address, type, name, and the module in brackets.
fn parse(line: &str) -> Option<(u64, char, &str, Option<&str>)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let kind = words.next()?.chars().next()?;
    let name = words.next()?;
    let module = words
        .next()
        .and_then(|word| word.strip_prefix('[')?.strip_suffix(']'));
    Some((address, kind, name, module))
}

impl Table {
    fn read(mut file: impl BufRead) -> io::Result<Self> {
        let mut table = Self {
            modules: vec![VMLINUX.to_owned()],
            ..Self::default()
        };
        let mut line = String::new();
        while file.read_line(&mut line)? != 0 {
            if let Some((address, kind, name, module)) = parse(&line) {
                table.add(address, kind, name, module);
            }
            line.clear();
        }
        table.entries.sort_by_key(|entry| entry.address);
        table.entries.shrink_to_fit();
        Ok(table)
    }

    fn add(&mut self, address: u64, kind: char, name: &str, module: Option<&str>) {
        // Skip absolute symbols, which are numbers rather than addresses, and address zero, which
        // the kernel shows to users who may not see addresses. A table that outgrows its indices
        // cannot come from a kernel.
        let Ok(start) = u32::try_from(self.names.len()) else {
            return;
        };
        let Ok(length) = u16::try_from(name.len()) else {
            return;
        };
        if address == 0 || kind.eq_ignore_ascii_case(&'a') {
            return;
        }
        let Some(module) = self.module(module.unwrap_or(VMLINUX)) else {
            return;
        };
        self.names.push_str(name);
        self.entries.push(Entry {
            address,
            name: start,
            length,
            module,
        });
    }

    /// Returns the index of a module's name. The lines of a module are adjacent, so the last one is
    /// tried first.
    fn module(&mut self, name: &str) -> Option<u16> {
        let index = match self.modules.iter().rposition(|known| known == name) {
            Some(index) => index,
            None => {
                self.modules.push(name.to_owned());
                self.modules.len() - 1
            }
        };
        u16::try_from(index).ok()
    }

    fn symbol(&self, entry: &Entry) -> Symbol {
        Symbol {
            module: self.modules[usize::from(entry.module)].clone(),
            name: self.names[entry.range()].to_owned(),
            address: entry.address,
        }
    }

    /// Returns the symbol at or below `address`, however far below.
    fn by_address(&self, address: u64) -> Option<Symbol> {
        let end = self
            .entries
            .partition_point(|entry| entry.address <= address);
        let last = self.entries[..end].last()?.address;
        let first = self.entries[..end].partition_point(|entry| entry.address < last);
        let symbol = self.symbol(&self.entries[first]);
        // `_end` ends the kernel's image; what follows does not belong to it.
        (symbol.name != "_end" || symbol.address == address).then_some(symbol)
    }

    fn by_name(&self, module: Option<&str>, name: &str) -> Option<Symbol> {
        // In D both "kernel" and "vmlinux" name the kernel proper.
        let module = module.map(|module| if module == "kernel" { VMLINUX } else { module });
        self.entries
            .iter()
            .filter(|entry| &self.names[entry.range()] == name)
            .filter(|entry| {
                module.is_none_or(|wanted| self.modules[usize::from(entry.module)] == wanted)
            })
            .min_by_key(|entry| entry.module != 0)
            .map(|entry| self.symbol(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000100 T __do_sys_getppid
ffffffff81000100 T __x64_sys_getppid
ffffffff81000200 t helper
ffffffff82000000 B _end
ffffffffc0000000 t helper\t[ext4]
ffffffffc0000040 T ext4_read\t[ext4]
not a line
ffffffffc0200000 T dtrace_probe\t[dtrace]
";

    fn table() -> Table {
        Table::read(LINES.as_bytes()).unwrap()
    }

    fn at(address: u64) -> Option<(String, u64)> {
        let known = Known {
            table: table(),
            modules: Modules::default(),
            looked: Instant::now(),
        };
        Some(shown(known.by_address(address)?, address))
    }

    fn shown(symbol: Symbol, address: u64) -> (String, u64) {
        let Symbol { module, name, .. } = symbol;
        (format!("{module}`{name}"), address - symbol.address)
    }

    #[test]
    fn addresses_get_the_first_name_at_or_below_them() {
        assert_eq!(at(0xffffffff81000000), Some(("vmlinux`_stext".into(), 0)));
        assert_eq!(
            at(0xffffffff81000123),
            Some(("vmlinux`__do_sys_getppid".into(), 0x23))
        );
        assert_eq!(at(0xffffffffc0000041), Some(("ext4`ext4_read".into(), 1)));
        assert_eq!(
            at(0xffffffffc0200000),
            Some(("dtrace`dtrace_probe".into(), 0))
        );
    }

    #[test]
    fn strays_have_no_name() {
        for address in [
            0,
            0x1000,
            0xffffffff80ffffff,
            0xffffffff82000001,
            0xffffffffc0400000,
            u64::MAX,
        ] {
            assert_eq!(at(address), None, "{address:x}");
        }
    }

    #[test]
    fn names_prefer_the_kernel_proper() {
        let table = table();
        let address = |module, name| table.by_name(module, name).map(|symbol| symbol.address);
        assert_eq!(address(None, "helper"), Some(0xffffffff81000200));
        assert_eq!(address(Some("ext4"), "helper"), Some(0xffffffffc0000000));
        assert_eq!(address(Some("kernel"), "helper"), Some(0xffffffff81000200));
        assert_eq!(address(Some("ext4"), "nothing"), None);
        assert_eq!(address(None, "fixed_percpu_data"), None);
    }

    #[test]
    fn a_file_that_is_not_there_has_no_symbols() {
        let symbols = KernelSymbols::at("/nonexistent/kallsyms");
        assert_eq!(symbols.by_address(0xffffffff81000000), None);
    }

    #[test]
    fn modules_that_come_later_get_their_own_names() {
        let dir = std::env::temp_dir().join(format!("symbols-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (lines, list) = (dir.join("kallsyms"), dir.join("modules"));
        let old = "first 4096 0 - Live 0xffffffffc0000000\n";
        let new = "second 4096 0 - Live 0xffffffffc0002000\n";
        let write = |symbols: &str, modules: &str| {
            std::fs::write(&lines, symbols).unwrap();
            std::fs::write(&list, modules).unwrap();
        };
        write("ffffffffc0000000 t one\t[first]\n", old);
        let symbols = KernelSymbols {
            modules: Some(list.clone()),
            pause: Duration::ZERO,
            ..KernelSymbols::at(&lines)
        };
        let at = |address| Some(shown(symbols.by_address(address)?, address));
        assert_eq!(at(0xffffffffc0000010), Some(("first`one".into(), 0x10)));
        // Behind the module's end, though near.
        assert_eq!(at(0xffffffffc0002010), None);
        write(
            "ffffffffc0000000 t one\t[first]\nffffffffc0002000 t two\t[second]\n",
            &format!("{old}{new}"),
        );
        assert_eq!(at(0xffffffffc0002010), Some(("second`two".into(), 0x10)));
        // Another module is loaded at the address of the first.
        let other = old.replace("first", "third");
        write("ffffffffc0000000 t three\t[third]\n", &other);
        assert_eq!(at(0xffffffffc0000010), Some(("third`three".into(), 0x10)));
        // A module that was unloaded and not replaced keeps its names.
        assert_eq!(at(0xffffffffc0002010), Some(("second`two".into(), 0x10)));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
