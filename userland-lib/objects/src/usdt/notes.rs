// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Notes of a program's probes, in sections that are not loaded.
//!
//! SystemTap's notes, version 3, are in `.note.stapsdt`. A note has three addresses (its site;
//! where the section `.stapsdt.base` was when the note was made; the semaphore, or 0) and three
//! strings (provider, name, arguments). A tool that moves text after linking moves the base too but
//! does not change the notes, so addresses are corrected by the distance that the base has moved.
//! `__` in a probe's name stands for `-`.
//!
//! The notes of DTrace 2.0.7 are in `.note.usdt` (measured; its test programs). Their owner is
//! `usdt`. Type 1 is a site, type 2 an is-enabled site, where the program asks whether the probe is
//! enabled. A note has two addresses of 8 bytes (the site; the function's name as text), two
//! strings (provider and name), the number of arguments as a byte, and the arguments as one string
//! of the same grammar. At an is-enabled site the one argument is the address of an `int` that
//! becomes 1. Notes of the owner `prov` ([`prov`]) state the types of arguments and the order in
//! which consumers see them. They apply to notes of both kinds.
//!
//! Where a program asks by its semaphore, headers of our `dtrace -h` make a note in SystemTap's
//! format in `.note.dtrace` (owner `dtrace`, type 1), because a program may ask without having a
//! site of the probe. For other tools these headers repeat the same sites in notes of DTrace's
//! kind.

use super::define::{said, Definition, Provider, PROVIDER_MAX};
use super::in_file;
use super::prov;
use crate::pid::{Code, FILE_MAX};
use dtrace_files::arch::programs::{arguments, Operand};
use dtrace_files::outside;
use dtrace_uapi::limits::NAMELEN;
use dtrace_uapi::types::ProviderAttributes;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::read::{ReadCache, ReadRef};
use object::{elf, Endianness, Object as _, ObjectSection as _};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;

/// Most notes that are read of one section.
const NOTES_MAX: usize = 100_000;
/// Most bytes of a section of notes. A larger one is not read.
const SIZE_MAX: usize = 16 << 20;
/// Most arguments that are read of a probe.
const ARGUMENTS_MAX: usize = dtrace_uapi::process::PROBE_ARGS_MAX;
/// Smallest page size of the processor, bytes.
const PAGE: u64 = 4096;
/// The type of SystemTap's notes.
const STAPSDT: u64 = 3;
/// The types of DTrace's notes: a site, and an is-enabled site.
const SITE: u64 = 1;
const ASKS: u64 = 2;
/// The type of our own notes, which are is-enabled sites.
const OWN_ASKS: u64 = 1;

/// A site of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The provider, without the process ID.
    pub provider: String,
    /// The probe.
    pub name: String,
    /// Its address as in the file's headers; in a registration, its address in the process.
    pub address: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// The file offset of the semaphore, which counts the consumers that have enabled the probe; 0
    /// if it has none.
    pub semaphore: u64,
    /// The function that it is in; empty if unknown.
    pub func: String,
    /// Whether this is an is-enabled site. Its one argument is the answer: the address of an `int`,
    /// or the result register itself.
    pub asks: bool,
    /// Its arguments, in the order in which a consumer sees them; `None` if one cannot be read.
    pub arguments: Vec<Option<Operand>>,
    /// The types of the arguments if the file states them: each as the program passes it and as a
    /// consumer sees it.
    pub types: Vec<(String, String)>,
    /// The stability of the provider's parts, if the file states it.
    pub attributes: Option<ProviderAttributes>,
}

/// Returns the notes of a file. Empty if it is not a program. Functions and DOF are read only from
/// a file that has at most `FILE_MAX` bytes and is not mostly holes.
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

/// Sets the functions of notes, from the file's symbols.
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

/// Returns the notes in a file's sections of notes. What is not well-formed is left out.
pub fn parse<'d, R: ReadRef<'d>>(data: R) -> Vec<Note> {
    let notes = match object::FileKind::parse(data) {
        Ok(object::FileKind::Elf64) => of::<elf::FileHeader64<Endianness>, R>(data),
        Ok(object::FileKind::Elf32) => of::<elf::FileHeader32<Endianness>, R>(data),
        _ => None,
    };
    notes.unwrap_or_default()
}

/// Returns the notes of an ELF file. `None` if its headers are damaged.
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
    // Our own headers note a site twice. Drop the note of DTrace's kind, because it has no
    // semaphore.
    let told: HashSet<Site<'_>> = raw.iter().chain(&asked).map(Raw::site).collect();
    raw.extend(again.into_iter().filter(|raw| !told.contains(&raw.site())));
    // If the probe has a site, the semaphore is counted there. Drop these notes then.
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

/// Sets the types and attributes of notes by the providers' definitions, and sorts their arguments
/// into the order in which consumers see them.
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
    /// Sorts the arguments as the definition maps them, and sets their types.
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

/// Returns how many bytes of a segment its mapped pages have, which is more than the file's data:
/// the zeros behind these on the last page may hold a semaphore.
fn mapped_size(address: u64, size: u64) -> u64 {
    let end = address.saturating_add(size);
    end.checked_next_multiple_of(PAGE)
        .map_or(size, |end| end.wrapping_sub(address))
}

/// Returns the words of arguments that may be names of symbols. Registers begin with `%` and
/// numbers with a digit.
fn words(arguments: &str) -> impl Iterator<Item = &str> {
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let words = arguments.split(['@', '+', '-', '(', ' ']);
    words.filter(is_name)
}

/// Most symbols of a table that are searched, to bound the time. Large programs with debugging
/// symbols have fewer.
const SYMBOLS_MAX: usize = 1 << 22;

/// Returns the addresses of the wanted symbols. `None` if several symbols of that name have
/// different addresses.
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

/// Returns the probes of SystemTap's notes in an object: provider, name and number of arguments.
/// `None` if it is not an object. It is not linked yet, so that addresses mean nothing.
pub fn brought(data: &[u8]) -> Option<Vec<(String, String, usize)>> {
    let file = object::File::parse(data).ok()?;
    let layout = Layout {
        is_long: file.is_64(),
        is_big: !file.is_little_endian(),
        base: None,
        loads: Vec::new(),
    };
    let mut found = Vec::new();
    // Inline functions have their own sections of notes.
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

/// The raw contents of a site's note.
struct Raw<'d> {
    asks: bool,
    /// Site, base, semaphore.
    addresses: [u64; 3],
    provider: &'d str,
    name: &'d str,
    arguments: &'d str,
}

/// What all notes of a site have in common: the address, the provider and the name.
type Site<'d> = (u64, &'d str, String);

impl<'d> Raw<'d> {
    fn site(&self) -> Site<'d> {
        (self.addresses[0], self.provider, shown(self.name))
    }
}

/// Returns a probe's name as consumers see it.
fn shown(name: &str) -> String {
    name.replace("__", "-")
}

/// The layout of a file.
struct Layout {
    is_long: bool,
    is_big: bool,
    base: Option<u64>,
    /// Address, size and file offset of each loaded segment.
    loads: Vec<[u64; 3]>,
}

impl Layout {
    /// The file offset of an address.
    fn offset(&self, address: u64) -> Option<u64> {
        self.loads.iter().find_map(|[start, size, offset]| {
            let within = address.checked_sub(*start).filter(|within| within < size)?;
            offset.checked_add(within)
        })
    }

    /// A number of these bytes, in the file's byte order.
    fn number(&self, bytes: &[u8]) -> u64 {
        let sum = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        match self.is_big {
            true => bytes.iter().fold(0, sum),
            false => bytes.iter().rev().fold(0, sum),
        }
    }

    /// Parses the description of a note in SystemTap's format.
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

    /// Parses a note of DTrace's kind.
    fn usdt<'d>(&self, entry: &Entry<'d>) -> Option<Raw<'d>> {
        let bytes = entry.description;
        let site = self.number(bytes.get(..8)?);
        // The second address, of the function's name, is not needed: symbols tell the function.
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

    /// Turns a raw note into a site. `None` if its names are not valid or it is outside of the
    /// file.
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

/// Whether this text is printable and has no separator, glob or quote of a description.
pub(super) fn is_plain(part: &str) -> bool {
    part.chars()
        .all(|c| c.is_ascii_graphic() && !"/:*?[]\\`\"".contains(c))
}

/// Whether the kernel accepts this name of a provider.
pub(super) fn is_provider(name: &str) -> bool {
    let is_spelled = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    !name.is_empty()
        && name.len() <= PROVIDER_MAX
        && name != "pid"
        && name.chars().all(is_spelled)
        && !name.ends_with(|c: char| c.is_ascii_digit())
}

/// Strings that end with NUL, one after another.
struct Strings<'d>(&'d [u8]);

impl<'d> Strings<'d> {
    fn next(&mut self) -> Option<&'d str> {
        let len = self.0.iter().position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(&self.0[..len]).ok()?;
        self.0 = &self.0[len + 1..];
        Some(text)
    }
}

/// A note of any owner.
struct Entry<'d> {
    owner: &'d [u8],
    kind: u64,
    description: &'d [u8],
}

/// The notes of a section, up to the first that is not well-formed.
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
