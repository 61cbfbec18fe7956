// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The kernel's symbols, from `/proc/kallsyms`.
//!
//! The kernel writes some 200,000 lines there, so nothing is read before the first look-up, and then once. The
//! table is an arena of names and an array sorted by address; ties keep the file's order, whose first name is the
//! one that the kernel itself uses for an address. Symbols have no sizes there: one reaches to its neighbour, but
//! never further than [`REACH`], so that a stray address is not given the name of something far away.
//!
//! Invariant: `table` is sorted by address, and every `name`/`module` range lies within `names`.

use std::io::{self, BufRead};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The module that the kernel proper is.
pub const VMLINUX: &str = "vmlinux";

/// How far behind its own address a symbol may be the name of another.
const REACH: u64 = 1 << 20;

/// A symbol that was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The module it belongs to.
    pub module: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its address.
    pub address: u64,
}

/// The symbols of the running kernel, read when they are first needed.
#[derive(Debug)]
pub struct KernelSymbols {
    path: PathBuf,
    table: OnceLock<Table>,
}

impl Default for KernelSymbols {
    fn default() -> Self {
        Self::at("/proc/kallsyms")
    }
}

impl KernelSymbols {
    /// The symbols listed in the file `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            table: OnceLock::new(),
        }
    }

    /// The symbol that `address` lies in.
    pub fn by_address(&self, address: u64) -> Option<Symbol<'_>> {
        self.table().by_address(address)
    }

    /// The symbol `name`, of `module` or of any; the kernel proper goes first.
    pub fn by_name(&self, module: Option<&str>, name: &str) -> Option<Symbol<'_>> {
        self.table().by_name(module, name)
    }

    /// A file that cannot be read is one without symbols: addresses are shown as numbers then.
    fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            std::fs::File::open(&self.path)
                .and_then(|file| Table::read(io::BufReader::with_capacity(1 << 16, file)))
                .unwrap_or_default()
        })
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

/// A line of kallsyms: address, type, name, and the module in brackets.
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
        // Absolute symbols are numbers, not places; zero is an address that was hidden from this user; a table
        // that outgrows its indices is no kernel's.
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

    /// The index of a module's name. A module's lines stand together, so the last one is tried first.
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

    fn symbol(&self, entry: &Entry) -> Symbol<'_> {
        Symbol {
            module: &self.modules[usize::from(entry.module)],
            name: &self.names[entry.range()],
            address: entry.address,
        }
    }

    fn by_address(&self, address: u64) -> Option<Symbol<'_>> {
        let end = self
            .entries
            .partition_point(|entry| entry.address <= address);
        let last = self.entries[..end].last()?.address;
        if address - last > REACH {
            return None;
        }
        let first = self.entries[..end].partition_point(|entry| entry.address < last);
        let symbol = self.symbol(&self.entries[first]);
        // `_end` closes the kernel's image; what follows it is somebody else's.
        (symbol.name != "_end" || symbol.address == address).then_some(symbol)
    }

    fn by_name(&self, module: Option<&str>, name: &str) -> Option<Symbol<'_>> {
        // "kernel" and "vmlinux" both name the kernel proper in D.
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
        let table = table();
        let symbol = table.by_address(address)?;
        Some((
            format!("{}`{}", symbol.module, symbol.name),
            address - symbol.address,
        ))
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
}
