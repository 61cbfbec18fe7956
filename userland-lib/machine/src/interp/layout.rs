// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! HotSpot's description of its own layout.
//!
//! Its library has tables for debuggers, each behind an exported pointer. An entry of
//! `gHotSpotVMStructs` is a field: the names of type and field, which are in the file; whether the
//! field is static; its offset, which the library itself writes there when it is loaded, so that it
//! is not in the file; and the address of a static field. An entry of `gHotSpotVMTypes` is a type:
//! its name and its size. A table ends with an entry without a name.
//!
//! The pointers are relocations without a symbol: an addend to the library's load address. Files
//! are untrusted input: the number of a table's entries is limited, and names are compared only as
//! far as necessary.

use super::runtime::Elf;
use dtrace_files::arch::programs::RELATIVE;
use dtrace_files::elf::section::section;
use object::ReadRef;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// Size of a field's entry in bytes, and the positions of offset and address in it.
const FIELD: u64 = 48;
const FIELD_OFFSET: u64 = 32;
const FIELD_ADDRESS: u64 = 40;
/// Size of a type's entry in bytes, and the position of the size in it.
const TYPE: u64 = 40;
const TYPE_SIZE: u64 = 32;
/// Maximum number of entries of a table.
const ENTRIES_MAX: u64 = 4096;
/// Maximum length of a name, in bytes.
const NAME_MAX: u64 = 128;
/// Size of a relocation in bytes (`Elf64_Rela`: offset, kind and symbol, addend).
const RELOCATION: usize = 24;
/// Maximum number of relocations that are read.
const RELOCATIONS_MAX: usize = 1 << 20;

/// The tables that were read from a file, by the address of the word that points to each.
#[derive(Default)]
pub struct Tables<'a>(RefCell<HashMap<u64, Rc<Table<'a>>>>);

/// A table: two names for each entry, and the entry's address.
struct Table<'a> {
    entries: Vec<([&'a [u8]; 2], u64)>,
    /// The values of relocated pointers, by their addresses.
    pointers: HashMap<u64, u64>,
}

impl<'a> Tables<'a> {
    /// Returns the address at which the library will write the offset of a field. The word at
    /// `table` points to the table.
    pub fn offset<R: ReadRef<'a>>(
        &self,
        file: &Elf<'_, 'a, R>,
        table: u64,
        field: [&str; 2],
    ) -> Option<u64> {
        let (_, entry) = self.find(file, table, FIELD, field)?;
        entry.checked_add(FIELD_OFFSET)
    }

    /// Returns the address of a static field.
    pub fn static_field<R: ReadRef<'a>>(
        &self,
        file: &Elf<'_, 'a, R>,
        table: u64,
        field: [&str; 2],
    ) -> Option<u64> {
        let (table, entry) = self.find(file, table, FIELD, field)?;
        table.pointer(file, entry.checked_add(FIELD_ADDRESS)?)
    }

    /// Returns the size of a type.
    pub fn size<R: ReadRef<'a>>(
        &self,
        file: &Elf<'_, 'a, R>,
        table: u64,
        name: &str,
    ) -> Option<u64> {
        let (_, entry) = self.find(file, table, TYPE, [name, ""])?;
        file.word_at(entry.checked_add(TYPE_SIZE)?)
    }

    /// Returns a table with entries of `size` bytes, and the address of the entry with these names.
    /// An empty name matches any.
    fn find<R: ReadRef<'a>>(
        &self,
        file: &Elf<'_, 'a, R>,
        table: u64,
        size: u64,
        names: [&str; 2],
    ) -> Option<(Rc<Table<'a>>, u64)> {
        let mut known = self.0.borrow_mut();
        let read = known.entry(table);
        let table = read.or_insert_with(|| Rc::new(Table::read(file, table, size)));
        let is_it = |found: &[&[u8]; 2]| {
            let mut both = found.iter().zip(names);
            both.all(|(found, name)| {
                name.is_empty() || found.strip_prefix(name.as_bytes()).is_some_and(ends)
            })
        };
        let mut entries = table.entries.iter();
        let (_, at) = entries.find(|(names, _)| is_it(names))?;
        Some((Rc::clone(table), *at))
    }
}

/// Whether a name ends here.
fn ends(rest: &[u8]) -> bool {
    rest.first() == Some(&0)
}

impl<'a> Table<'a> {
    /// Reads the table to which the word at `leads` points; empty if there is none.
    fn read<R: ReadRef<'a>>(file: &Elf<'_, 'a, R>, leads: u64, size: u64) -> Self {
        let mut table = Self {
            entries: Vec::new(),
            pointers: pointers(file, leads..leads.saturating_add(8)),
        };
        let Some(begin) = table.pointer(file, leads) else {
            return table;
        };
        let end = begin.saturating_add(ENTRIES_MAX.saturating_mul(size));
        table.pointers = pointers(file, begin..end);
        let mut at = begin;
        while at < end {
            let name = |by: u64| {
                let name = table.pointer(file, at.checked_add(by)?)?;
                file.bytes_from(name, NAME_MAX)
            };
            // A field entry without a field name still counts: it describes the elements of an
            // array.
            let Some(first) = name(0) else { break };
            let second = name(8).unwrap_or_default();
            table.entries.push(([first, second], at));
            at = at.saturating_add(size);
        }
        table
    }

    /// Returns the value of the pointer at an address: that of its relocation, else the word in the
    /// file unless it is zero.
    fn pointer<R: ReadRef<'a>>(&self, file: &Elf<'_, 'a, R>, at: u64) -> Option<u64> {
        let relocated = self.pointers.get(&at).copied();
        relocated.or_else(|| file.word_at(at).filter(|word| *word != 0))
    }
}

/// Returns the values of the words in an address range that have relocations without a symbol.
fn pointers<'a, R: ReadRef<'a>>(file: &Elf<'_, 'a, R>, range: Range<u64>) -> HashMap<u64, u64> {
    let relocations = section(file.file, ".rela.dyn").unwrap_or_default();
    let all = relocations.chunks_exact(RELOCATION).take(RELOCATIONS_MAX);
    let found = all.filter_map(|relocation| {
        let word = |n: usize| {
            let word = relocation.get(n..)?.first_chunk()?;
            Some(u64::from_le_bytes(*word))
        };
        let (at, kind) = (word(0)?, word(8)?);
        let is_it = range.contains(&at) && kind == u64::from(RELATIVE.0);
        Some((at, word(16)?)).filter(|_| is_it)
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::evaluators_of;
    use super::super::runtime::{Runtime, ALL};
    use dtrace_files::testing::Folder;
    use dtrace_unwind::Evaluators;
    use object::{Object as _, ObjectSymbol as _};

    fn hotspot() -> &'static Runtime {
        let mut all = ALL.iter();
        all.find(|runtime| runtime.name == "hotspot-21.d").unwrap()
    }

    /// Returns what the walker looks up in the tables: the kind of line, and the type and its
    /// fields or the types.
    fn asked() -> Vec<(&'static str, Vec<&'static str>)> {
        let lines = hotspot().text.lines();
        let told = lines.filter_map(|line| line.strip_prefix("#pragma walker "));
        let told = told.filter_map(|line| line.split_once(' '));
        let told = told.filter(|(kind, _)| ["says", "static", "offsets", "sizes"].contains(kind));
        told.map(|(kind, rest)| (kind, rest.split(' ').skip(1).collect()))
            .collect()
    }

    const TYPES: &str = "
        struct field { const char *type, *name, *kind; int is_static; unsigned long offset; void *address; };
        struct type { const char *name, *super; int is[3]; unsigned long size; };
        int version = VERSION, here[100];
        struct field fields[] = { FIRST
        ";

    /// Returns the source of a library with tables like HotSpot's, with all fields that the walker
    /// looks up except `but`.
    fn library(but: &str) -> String {
        let mut fields = String::new();
        let mut sizes = String::new();
        for (kind, words) in asked() {
            match kind {
                "sizes" => words.iter().enumerate().for_each(|(n, name)| {
                    sizes += &format!("{{ \"{name}\", 0, {{ 0, 0, 0 }}, {} }},\n", n + 100);
                }),
                "says" => {
                    let [of, field, ..] = words[..] else { panic!() };
                    fields += &format!("{{ \"{of}\", \"{field}\", 0, 1, 0, &version }},\n");
                }
                _ => words[1..]
                    .iter()
                    .filter(|name| **name != but)
                    .for_each(|name| {
                        // A longer name with the same prefix must not match.
                        fields += &format!("{{ \"{0}\", \"{name}s\", 0, 0, 0, 0 }},\n", words[0]);
                        fields +=
                            &format!("{{ \"{0}\", \"{name}\", 0, 1, 0, here + 7 }},\n", words[0]);
                    }),
            }
        }
        format!(
            "{TYPES}{fields} LAST }};\n struct type types[] = {{ {sizes} {{ 0 }} }};\n\
            struct field *gHotSpotVMStructs = POINTER;\n struct type *gHotSpotVMTypes = types;\n\
            int code(void) {{ return version; }}\n"
        )
    }

    /// Compiles such a library and returns its bytes.
    fn built(folder: &Folder, text: &str, more: &[&str]) -> Vec<u8> {
        let usual = [
            "-shared",
            "-fPIC",
            "-Wl,-Bsymbolic",
            "-DVERSION=21",
            "-DFIRST=",
            "-DLAST={0}",
            "-DPOINTER=fields",
        ];
        let options = [&usual[..], more].concat();
        std::fs::read(folder.compile(text, &options)).unwrap()
    }

    fn told(bytes: &[u8]) -> Option<Vec<u8>> {
        evaluators_of(&object::File::parse(bytes).ok()?)
    }

    #[test]
    fn a_layout_is_read_from_the_tables() {
        let folder = Folder::new("hotspot");
        let text = library("");
        for relative in [&[][..], &["-Wl,-z,pack-relative-relocs"]] {
            let bytes = built(&folder, &text, relative);
            let file = object::File::parse(&*bytes).unwrap();
            let at = |name| file.symbol_by_name(name).unwrap().address();
            let told = told(&bytes).expect("it is HotSpot");
            let told = Evaluators::new(&told).unwrap();
            assert_eq!(told.walker(), hotspot().number());
            assert!(told.tell_callers() && !told.cover(at("code")));
            let mut n = 0;
            // The first entry is the version. Each field has two entries, of which the second is
            // the right one.
            let mut entry = at("fields") + 48;
            for (kind, words) in asked() {
                for size in 100..100 + words.len() as u64 {
                    let expected = match (kind, size) {
                        ("says", _) | (_, 100) if kind != "sizes" => continue,
                        ("sizes", size) => size,
                        _ => {
                            entry += 96;
                            match kind {
                                "static" => at("here") + 28,
                                _ => entry - 48 + 32,
                            }
                        }
                    };
                    assert_eq!(told.constant(n), Some(expected), "{n}: {kind} {words:?}");
                    n += 1;
                }
            }
            assert_eq!(told.constant(n), None);
        }
    }

    #[test]
    fn what_is_not_such_a_layout_is_none() {
        let folder = Folder::new("hotspot-not");
        let text = library("");
        let is_told = |text: &str, more: &[&str]| told(&built(&folder, text, more)).is_some();
        assert!(is_told(&text, &[]));
        for more in [
            "-DVERSION=22",
            "-DPOINTER=0",
            // A pointer to nothing in the file, a table that ends at once, one without an end, and
            // one whose names are nowhere in the file.
            "-DPOINTER=(void *)0x7fffffffff",
            "-DFIRST={0},",
            "-DFIRST=[0 ... 4999] = {\"a\",\"b\"},",
            "-DFIRST={(void *)-1l, (void *)-1l},",
        ] {
            assert!(!is_told(&text, &[more]), "{more}");
        }
        assert!(is_told(&text, &["-DFIRST={\"a\"},{\"a\", (void *)-1l},"]));
        assert!(!is_told(&library("_segmap"), &[]));
        // A table at the end of the file's data, without an end mark.
        is_told(&text, &["-DLAST={\"a\",\"b\"}"]);
    }

    #[test]
    fn damaged_files_are_looked_at() {
        let folder = Folder::new("hotspot-damaged");
        let bytes = built(&folder, &library(""), &[]);
        for size in (0..bytes.len()).step_by(67) {
            told(&bytes[..size]);
        }
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        for _ in 0..300 {
            let mut damaged = bytes.clone();
            for _ in 0..40 {
                let (at, byte) = (random(bytes.len()), random(256));
                damaged[at] = byte as u8;
            }
            told(&damaged);
        }
    }
}
