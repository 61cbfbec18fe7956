// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Notes of a program's probes, in sections that are not loaded.
//!
//! Those of SystemTap's kind, version 3, are in `.note.stapsdt`. A note has three addresses (its site, where the section `.stapsdt.base` was when the note was made, and the semaphore, or 0) and
//! three strings (provider, name, arguments). A linker that moves text later moves the base with it and not the notes, so addresses are
//! corrected by what the base has moved. `__` in a probe's name stands for `-`.
//!
//! Those of DTrace 2.0.7 are in `.note.usdt` (measured; its test programs). The owner is `usdt`; type 1 is a site, type 2 one where the
//! program asks whether the probe is enabled. A note has two addresses (the site, and the function's name as text) of 8 bytes, two strings
//! (provider and name), the number of arguments, a byte, and these as a string of the same grammar. Where the program asks, the one
//! argument is the address of an `int` that becomes 1. Notes of the owner `prov` ([`prov`]) say which types arguments have, and in which order
//! they are seen; they go with notes of either kind.
//!
//! Where a program asks by its semaphore, our own headers leave a note like SystemTap's in `.note.dtrace` (owner `dtrace`, type 1), for a program that
//! asks where it has no probe. Their notes of DTrace's kind tell the same sites again, for others.

use super::define::{said, Definition, Provider, PROVIDER_MAX};
use super::in_file;
use super::prov;
use crate::arch::x86_64::{arguments, Operand};
use crate::outside;
use crate::pid::{Code, FILE_MAX};
use dtrace_uapi::limits::NAMELEN;
use dtrace_uapi::types::ProviderAttributes;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::read::{ReadCache, ReadRef};
use object::{elf, Endianness, Object as _, ObjectSection as _};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;

/// Most notes of a file that are read.
const NOTES_MAX: usize = 100_000;
/// Most bytes of its notes.
const SIZE_MAX: usize = 16 << 20;
/// Most arguments of a probe that are read (`dtrace_uapi::process::PROBE_ARGS_MAX`).
const ARGUMENTS_MAX: usize = dtrace_uapi::process::PROBE_ARGS_MAX;
/// Smallest page of a processor, bytes.
const PAGE: u64 = 4096;
/// The type of notes of SystemTap's kind.
const STAPSDT: u64 = 3;
/// The types of notes of DTrace's kind.
const SITE: u64 = 1;
const ASKS: u64 = 2;
/// The type of ours.
const OWN_ASKS: u64 = 1;

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
    /// Whether the program only asks here whether the probe is enabled. The one argument is the address of an `int`.
    pub asks: bool,
    /// Its arguments, each if it can be read.
    pub arguments: Vec<Option<Operand>>,
    /// Their types where the file says, each as the program passes it and as it is to be seen.
    pub types: Vec<(String, String)>,
    /// How far it may be relied on, where the file says.
    pub attributes: Option<ProviderAttributes>,
}

/// The notes of a file; none of one that is no program. Of a very large one only those that take no table of its symbols.
pub fn read(file: &File) -> io::Result<Vec<Note>> {
    let mut notes = parse(&ReadCache::new(file));
    if outside::check(file, FILE_MAX).is_err() {
        return Ok(notes);
    }
    if !notes.is_empty() {
        name_functions(&mut notes, &outside::read(file, FILE_MAX)?);
    }
    notes.extend(in_file::parse(&ReadCache::new(file)));
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
    let notes = |name: &[u8]| {
        let (_, section) = sections.section_by_name(endian, name)?;
        let size: u64 = section.sh_size(endian).into();
        (size <= SIZE_MAX as u64).then(|| section.data(endian, data).ok())?
    };
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
                mapped_size(s.p_vaddr(endian).into(), s.p_filesz(endian).into()),
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
    let mut raw = Vec::new();
    let mut asked: Vec<Raw<'_>> = Vec::new();
    let mut again: Vec<Raw<'_>> = Vec::new();
    let mut providers = Vec::new();
    for section in [b".note.stapsdt", prov::SECTION.as_bytes(), b".note.dtrace"] {
        let rest = notes(section).unwrap_or_default();
        for entry in (Entries { file: &file, rest }).take(NOTES_MAX) {
            match (entry.owner, entry.kind) {
                (b"stapsdt\0", STAPSDT) => raw.extend(file.stapsdt(entry.description)),
                (b"dtrace\0", OWN_ASKS) => asked.extend(file.stapsdt(entry.description)),
                (b"usdt\0", SITE | ASKS) => again.extend(file.usdt(&entry)),
                (b"prov\0", prov::KIND) => providers.extend(prov::read(entry.description)),
                _ => {}
            }
        }
    }
    // Our own headers tell a site twice: these have no semaphore.
    let told: HashSet<Site<'_>> = raw.iter().chain(&asked).map(Raw::site).collect();
    raw.extend(again.into_iter().filter(|raw| !told.contains(&raw.site())));
    // The semaphore is counted where the probe is, if it is anywhere.
    let sites = raw.iter().filter(|raw| !raw.asks);
    let sites: HashSet<_> = sites.map(|raw| (raw.provider, raw.name)).collect();
    asked.retain(|asks| !sites.contains(&(asks.provider, asks.name)));
    raw.extend(asked.into_iter().map(|asks| Raw { asks: true, ..asks }));
    let wanted = raw.iter().flat_map(|note| words(note.arguments)).collect();
    let symbols = symbols(header, endian, data, &wanted);
    let find = |name: &str| symbols.get(name).copied().flatten();
    let mut notes: Vec<Note> = raw
        .iter()
        .filter_map(|note| file.note(note, &find))
        .collect();
    define(&mut notes, &providers);
    Some(notes)
}

/// Says of notes which types their arguments have, and puts these in the order in which they are seen.
fn define(notes: &mut [Note], providers: &[Provider]) {
    let mut known: HashMap<(&str, String), (&Definition, _)> = HashMap::new();
    for provider in providers {
        for probe in &provider.probes {
            known.insert(
                (&provider.name, probe.shown()),
                (probe, provider.attributes),
            );
        }
    }
    for note in notes.iter_mut().filter(|note| !note.asks) {
        let found = known.get(&(&note.provider, note.name.clone())).copied();
        if let Some((definition, attributes)) = found {
            note.arrange(definition);
            note.attributes = said(attributes);
        }
    }
}

impl Note {
    fn arrange(&mut self, definition: &Definition) {
        let native = |index: u8| definition.parameters.get(usize::from(index));
        let passed = std::mem::take(&mut self.arguments);
        for (ty, index) in definition.arguments.iter().take(ARGUMENTS_MAX) {
            let Some(native) = native(*index) else {
                continue;
            };
            self.arguments
                .push(passed.get(usize::from(*index)).copied().flatten());
            self.types.push((native.ty.clone(), ty.clone()));
        }
    }
}

/// How much of a segment is the file's when it is mapped: what is behind its end on the last page is zero, and may be a semaphore.
fn mapped_size(address: u64, size: u64) -> u64 {
    let end = address.saturating_add(size);
    end.checked_next_multiple_of(PAGE)
        .map_or(size, |end| end.wrapping_sub(address))
}

/// What may be names of symbols in arguments: registers have their sign before them, numbers begin with a digit.
fn words(arguments: &str) -> impl Iterator<Item = &str> {
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let words = arguments.split(['@', '+', '-', '(', ' ']);
    words.filter(is_name)
}

/// Symbols of a table that are looked at: more than large programs have with debugging symbols, and the time for them is bounded.
const SYMBOLS_MAX: usize = 1 << 22;

/// The addresses of those symbols that are wanted; nothing for those of several.
fn symbols<'d, H: FileHeader<Endian = Endianness>, R: ReadRef<'d>>(
    header: &H,
    endian: Endianness,
    data: R,
    wanted: &HashSet<&str>,
) -> HashMap<String, Option<u64>> {
    use object::read::elf::Sym;
    let mut found = HashMap::new();
    if wanted.is_empty() {
        return found;
    }
    let Ok(sections) = header.sections(endian, data) else {
        return found;
    };
    for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
        let Ok(table) = sections.symbols(endian, data, kind) else {
            continue;
        };
        for symbol in table.iter().take(SYMBOLS_MAX) {
            let name = table.symbol_name(endian, symbol).ok();
            let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else {
                continue;
            };
            if symbol.is_undefined(endian) || !wanted.contains(name) {
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

/// The probes that an object brings which is yet to be linked, so that addresses mean nothing: provider, name and number of arguments.
/// `None`: it is no object.
pub fn brought(data: &[u8]) -> Option<Vec<(String, String, usize)>> {
    let file = object::File::parse(data).ok()?;
    let layout = Layout {
        is_long: file.is_64(),
        is_big: !file.is_little_endian(),
        base: None,
        loads: Vec::new(),
    };
    let mut found = Vec::new();
    // Inline functions bring sections of their own.
    for section in file.sections() {
        if section.name() != Ok(".note.stapsdt") {
            continue;
        }
        let rest = section.data().unwrap_or_default();
        let file = &layout;
        for entry in (Entries { file, rest }).take(NOTES_MAX) {
            if let Some(raw) = layout.stapsdt(entry.description) {
                let count = arguments(raw.arguments, &|_| None).len();
                found.push((raw.provider.to_owned(), shown(raw.name), count));
            }
        }
    }
    Some(found)
}

/// A site as it is written.
struct Raw<'d> {
    asks: bool,
    /// Site, base, semaphore.
    addresses: [u64; 3],
    provider: &'d str,
    name: &'d str,
    arguments: &'d str,
}

/// What is the same in all notes of a site: the address, provider and name.
type Site<'d> = (u64, &'d str, String);

impl<'d> Raw<'d> {
    fn site(&self) -> Site<'d> {
        (self.addresses[0], self.provider, shown(self.name))
    }
}

/// A probe's name, as those know it who trace.
fn shown(name: &str) -> String {
    name.replace("__", "-")
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

    /// The description of a note of SystemTap's kind.
    fn stapsdt<'d>(&self, bytes: &'d [u8]) -> Option<Raw<'d>> {
        let word = if self.is_long { 8 } else { 4 };
        let address = |n: usize| Some(self.number(bytes.get(n * word..(n + 1) * word)?));
        let addresses = [address(0)?, address(1)?, address(2)?];
        let mut strings = Strings(bytes.get(3 * word..)?);
        Some(Raw {
            asks: false,
            addresses,
            provider: strings.next()?,
            name: strings.next()?,
            arguments: strings.next()?,
        })
    }

    /// A note of DTrace's kind.
    fn usdt<'d>(&self, entry: &Entry<'d>) -> Option<Raw<'d>> {
        let bytes = entry.description;
        let site = self.number(bytes.get(..8)?);
        let mut strings = Strings(bytes.get(16..)?);
        let (provider, name) = (strings.next()?, strings.next()?);
        let (count, rest) = strings.0.split_first()?;
        let arguments = match count {
            0 => "",
            _ => Strings(rest).next()?,
        };
        Some(Raw {
            asks: entry.kind == ASKS,
            addresses: [site, 0, 0],
            provider,
            name,
            arguments,
        })
    }

    fn note(&self, raw: &Raw<'_>, symbols: &dyn Fn(&str) -> Option<u64>) -> Option<Note> {
        let [site, noted, semaphore] = raw.addresses;
        let moved = match self.base {
            Some(base) if noted != 0 => base.wrapping_sub(noted),
            _ => 0,
        };
        let address = site.wrapping_add(moved);
        let name = shown(raw.name);
        let is_good = is_name(&name) && is_provider(raw.provider);
        let mut arguments = arguments(raw.arguments, symbols);
        arguments.truncate(ARGUMENTS_MAX);
        is_good.then_some(Note {
            func: String::new(),
            asks: raw.asks,
            types: Vec::new(),
            attributes: None,
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

/// Whether a description can spell this name of a probe.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() < NAMELEN && is_plain(name)
}

/// Whether a part of a description can be spelled so.
pub(super) fn is_plain(part: &str) -> bool {
    part.chars()
        .all(|c| c.is_ascii_graphic() && !"/:*?[]\\`\"".contains(c))
}

/// Whether the kernel takes this name of a provider.
pub(super) fn is_provider(name: &str) -> bool {
    let is_spelled = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    !name.is_empty()
        && name.len() <= PROVIDER_MAX
        && name != "pid"
        && name.chars().all(is_spelled)
        && !name.ends_with(|c: char| c.is_ascii_digit())
}

/// Strings that end with NUL, one after the other.
struct Strings<'d>(&'d [u8]);

impl<'d> Strings<'d> {
    fn next(&mut self) -> Option<&'d str> {
        let len = self.0.iter().position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(&self.0[..len]).ok()?;
        self.0 = &self.0[len + 1..];
        Some(text)
    }
}

/// A note, of whomever.
struct Entry<'d> {
    owner: &'d [u8],
    kind: u64,
    description: &'d [u8],
}

/// The notes of a section, as far as they are well-formed.
struct Entries<'f, 'd> {
    file: &'f Layout,
    rest: &'d [u8],
}

impl<'d> Iterator for Entries<'_, 'd> {
    type Item = Entry<'d>;

    fn next(&mut self) -> Option<Entry<'d>> {
        let word = |n: usize| Some(self.file.number(self.rest.get(n * 4..n * 4 + 4)?));
        let [name_size, size, kind] = [word(0)?, word(1)?, word(2)?];
        let name_size = usize::try_from(name_size).ok()?;
        let size = usize::try_from(size).ok()?;
        let begin = 12usize.checked_add(name_size.checked_next_multiple_of(4)?)?;
        let owner = self.rest.get(12..12usize.checked_add(name_size)?)?;
        let description = self.rest.get(begin..begin.checked_add(size)?)?;
        let next = begin.checked_add(size.checked_next_multiple_of(4)?)?;
        self.rest = self.rest.get(next..).unwrap_or_default();
        Some(Entry {
            owner,
            kind,
            description,
        })
    }
}
