// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Notes of SystemTap's kind, version 3: section `.note.stapsdt`, which is not loaded.
//!
//! A note has three addresses (its site, where the section `.stapsdt.base` was when the note was made, and the semaphore, or 0) and
//! three strings (provider, name, arguments). A linker that moves text later moves the base with it and not the notes, so addresses are
//! corrected by what the base has moved. `__` in a probe's name stands for `-`.

use super::operand::{arguments, Operand};
use crate::pid::{Code, FILE_MAX};
use dtrace_uapi::limits::{NAMELEN, PROVNAMELEN};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::read::{ReadCache, ReadRef};
use object::{elf, Endianness};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Most notes of a file that are read.
const NOTES_MAX: usize = 100_000;
/// Most bytes of its notes.
const SIZE_MAX: usize = 16 << 20;
/// Most arguments of a probe that are read (`dtrace_uapi::process::PROBE_ARGS_MAX`).
const ARGUMENTS_MAX: usize = dtrace_uapi::process::PROBE_ARGS_MAX;
/// What a provider's name leaves for the number of a process.
const NUMBER_MAX: usize = 12;
/// The type of such notes.
const KIND: u32 = 3;

/// A site of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The provider, without the number of a process.
    pub provider: String,
    /// The probe.
    pub name: String,
    /// Where it is, as the file numbers its memory.
    pub address: u64,
    /// Where that is in the file.
    pub offset: u64,
    /// Where in the file the number is of those who have enabled it; 0: it has none.
    pub semaphore: u64,
    /// The function that it is in; empty where that is not known.
    pub func: String,
    /// Its arguments, each if it can be read.
    pub arguments: Vec<Option<Operand>>,
}

/// The notes of a file; none of one that is no program.
pub fn read(path: &Path) -> io::Result<Vec<Note>> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    // Whose process it is may have put something there that never ends.
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut notes = parse(&ReadCache::new(file));
    if !notes.is_empty() && metadata.len() <= FILE_MAX {
        name_functions(&mut notes, &fs::read(path)?);
    }
    Ok(notes)
}

/// Says of notes which functions they are in.
fn name_functions(notes: &mut [Note], data: &[u8]) {
    let Ok(code) = Code::parse(data) else {
        return;
    };
    for note in notes {
        if let Some(func) = code.function_at(note.address) {
            note.func.clone_from(&func.name);
        }
    }
}

/// The notes of a file; what is not well-formed is left out.
pub fn parse<'d, R: ReadRef<'d>>(data: R) -> Vec<Note> {
    let notes = match object::FileKind::parse(data) {
        Ok(object::FileKind::Elf64) => of::<elf::FileHeader64<Endianness>, R>(data),
        Ok(object::FileKind::Elf32) => of::<elf::FileHeader32<Endianness>, R>(data),
        _ => None,
    };
    notes.unwrap_or_default()
}

fn of<'d, H: FileHeader<Endian = Endianness>, R: ReadRef<'d>>(data: R) -> Option<Vec<Note>> {
    let header = H::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let (_, section) = sections.section_by_name(endian, b".note.stapsdt")?;
    let size: u64 = section.sh_size(endian).into();
    if size > SIZE_MAX as u64 {
        return None;
    }
    let bytes = section.data(endian, data).ok()?;
    let base = sections.section_by_name(endian, b".stapsdt.base");
    let base = base.map(|(_, section)| section.sh_addr(endian).into());
    let loads: Vec<[u64; 3]> = header
        .program_headers(endian, data)
        .ok()?
        .iter()
        .filter(|segment| segment.p_type(endian) == elf::PT_LOAD)
        .map(|s| {
            [
                s.p_vaddr(endian).into(),
                s.p_filesz(endian).into(),
                s.p_offset(endian).into(),
            ]
        })
        .collect();
    let file = Layout {
        is_long: header.is_class_64(),
        is_big: header.is_big_endian(),
        base,
        loads,
    };
    let raw: Vec<Raw<'_>> = Raws {
        file: &file,
        rest: bytes,
    }
    .take(NOTES_MAX)
    .collect();
    let needs_symbols = raw.iter().any(|note| names_symbol(note.arguments));
    let symbols = match needs_symbols {
        true => symbols(header, endian, data),
        false => HashMap::new(),
    };
    let find = |name: &str| symbols.get(name).copied().flatten();
    Some(
        raw.iter()
            .filter_map(|note| file.note(note, &find))
            .collect(),
    )
}

/// Whether arguments may name a symbol: registers have their sign before them, numbers begin with a digit.
fn names_symbol(arguments: &str) -> bool {
    let mut words = arguments.split(['@', '+', '(', ' ']);
    words.any(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

/// The addresses of symbols; nothing for those of several.
fn symbols<'d, H: FileHeader<Endian = Endianness>, R: ReadRef<'d>>(
    header: &H,
    endian: Endianness,
    data: R,
) -> HashMap<String, Option<u64>> {
    use object::read::elf::Sym;
    let mut found = HashMap::new();
    let Ok(sections) = header.sections(endian, data) else {
        return found;
    };
    for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
        let Ok(table) = sections.symbols(endian, data, kind) else {
            continue;
        };
        for symbol in table.iter() {
            let name = table.symbol_name(endian, symbol).ok();
            let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else {
                continue;
            };
            if symbol.is_undefined(endian) || name.is_empty() {
                continue;
            }
            let address: u64 = symbol.st_value(endian).into();
            let known = found.entry(name.to_owned()).or_insert(Some(address));
            if *known != Some(address) {
                *known = None;
            }
        }
    }
    found
}

/// A note as it is written.
struct Raw<'d> {
    /// Site, base, semaphore.
    addresses: [u64; 3],
    provider: &'d str,
    name: &'d str,
    arguments: &'d str,
}

/// How a file is laid out.
struct Layout {
    is_long: bool,
    is_big: bool,
    base: Option<u64>,
    /// Address, size and offset of what is loaded.
    loads: Vec<[u64; 3]>,
}

impl Layout {
    fn offset(&self, address: u64) -> Option<u64> {
        self.loads.iter().find_map(|[start, size, offset]| {
            let within = address.checked_sub(*start).filter(|within| within < size)?;
            offset.checked_add(within)
        })
    }

    fn number(&self, bytes: &[u8]) -> u64 {
        let sum = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        match self.is_big {
            true => bytes.iter().fold(0, sum),
            false => bytes.iter().rev().fold(0, sum),
        }
    }

    fn note(&self, raw: &Raw<'_>, symbols: &dyn Fn(&str) -> Option<u64>) -> Option<Note> {
        let [site, noted, semaphore] = raw.addresses;
        let moved = match self.base {
            Some(base) if noted != 0 => base.wrapping_sub(noted),
            _ => 0,
        };
        let address = site.wrapping_add(moved);
        let name = raw.name.replace("__", "-");
        let is_plain = |c: char| c.is_ascii_graphic() && !"/:*?[]\\`\"".contains(c);
        let is_good = !name.is_empty()
            && name.len() < NAMELEN
            && name.chars().all(is_plain)
            && is_provider(raw.provider);
        let mut arguments = arguments(raw.arguments, symbols);
        arguments.truncate(ARGUMENTS_MAX);
        is_good.then_some(Note {
            func: String::new(),
            provider: raw.provider.to_owned(),
            name,
            address,
            offset: self.offset(address)?,
            semaphore: match semaphore {
                0 => 0,
                address => self.offset(address.wrapping_add(moved))?,
            },
            arguments,
        })
    }
}

/// Whether the kernel takes this name of a provider.
fn is_provider(name: &str) -> bool {
    let is_spelled = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    !name.is_empty()
        && name.len() <= PROVNAMELEN - NUMBER_MAX
        && name != "pid"
        && name.chars().all(is_spelled)
        && !name.ends_with(|c: char| c.is_ascii_digit())
}

/// The notes of a section, up to the first that is not whole.
struct Raws<'l, 'd> {
    file: &'l Layout,
    rest: &'d [u8],
}

impl<'d> Iterator for Raws<'_, 'd> {
    type Item = Raw<'d>;

    fn next(&mut self) -> Option<Raw<'d>> {
        loop {
            let word = |n: usize| Some(self.file.number(self.rest.get(n * 4..n * 4 + 4)?));
            let [name_size, size, kind] = [word(0)?, word(1)?, word(2)?];
            let name_size = usize::try_from(name_size).ok()?;
            let size = usize::try_from(size).ok()?;
            let begin = 12usize.checked_add(name_size.checked_next_multiple_of(4)?)?;
            let owner = self.rest.get(12..12usize.checked_add(name_size)?)?;
            let description = self.rest.get(begin..begin.checked_add(size)?)?;
            let next = begin.checked_add(size.checked_next_multiple_of(4)?)?;
            self.rest = self.rest.get(next..).unwrap_or_default();
            if owner == b"stapsdt\0" && kind == u64::from(KIND) {
                if let Some(raw) = self.description(description) {
                    return Some(raw);
                }
            }
        }
    }
}

impl<'d> Raws<'_, 'd> {
    fn description(&self, bytes: &'d [u8]) -> Option<Raw<'d>> {
        let word = if self.file.is_long { 8 } else { 4 };
        let address = |n: usize| Some(self.file.number(bytes.get(n * word..(n + 1) * word)?));
        let addresses = [address(0)?, address(1)?, address(2)?];
        let mut strings = bytes.get(3 * word..)?.split(|byte| *byte == 0);
        let mut string = || std::str::from_utf8(strings.next()?).ok();
        Some(Raw {
            addresses,
            provider: string()?,
            name: string()?,
            arguments: string()?,
        })
    }
}
