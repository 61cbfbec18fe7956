// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Probes that an object has as calls, for a program with DOF: of `__dtrace_PROVIDER___PROBE`, or
//! of `__dtraceenabled_PROVIDER___PROBE` where the program asks whether the probe is enabled.
//! Headers of `dtrace -h` contain such calls on request, those of other systems always.
//!
//! A call becomes instructions that do nothing, and its relocation one that does nothing. Both can
//! still be recognised when the object is linked again. The called symbol need no longer be
//! defined.
//!
//! DOF names a site by its function. That function may be local to the object, or another file's
//! function may take its place at run time. So each such function gets a second symbol that only
//! the linker uses. Of a COMDAT group that many objects bring, the linker keeps the copy of one of
//! them. Functions in such a group are named the same in all objects, by their own name or after
//! the group ([`super::copies`]).

use super::define::{Definition, Provider};
use dtrace_files::arch::programs::replaced::{
    replaced, CALL_SIZE, CALL_WORD, DONE, MACHINE, MACHINE_NAME,
};
use dtrace_files::fnv::{fnv, FNV};
use object::elf::{self, FileHeader64, SectionHeader64, Sym64};
use object::read::elf::{FileHeader, Rela as _, SectionHeader, SectionTable, Sym, SymbolTable};
use object::{Endianness, Object as _, ObjectSymbol as _, SectionIndex, SymbolIndex};
use std::collections::{BTreeSet, HashMap};

/// Prefixes of the functions that stand for a site and for an is-enabled site.
const FIRES: &str = "__dtrace_";
const ASKS: &str = "__dtraceenabled_";
/// Prefix of the symbols that we add for the linker.
const OURS: &str = "$dtrace";

/// A site in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The provider.
    pub provider: String,
    /// The probe's name as consumers see it.
    pub probe: String,
    /// The function.
    pub func: String,
    /// The symbol by which the linker finds the function.
    pub symbol: String,
    /// Whether the function is local to the object, so that others may have another one of its
    /// name.
    pub is_local: bool,
    /// The signature of the function's COMDAT group, if it is in one.
    pub group: Option<String>,
    /// The offset in the function.
    pub offset: u32,
    /// Whether it is an is-enabled site.
    pub asks: bool,
}

/// The result for one object.
#[derive(Debug, Default)]
pub struct Replaced {
    /// Its sites.
    pub sites: Vec<Site>,
    /// The signatures of its COMDAT groups with code, which other objects may bring as well.
    pub groups: BTreeSet<String>,
    /// The global functions that it defines.
    pub functions: BTreeSet<String>,
    /// The object with its calls replaced, if anything was replaced.
    pub object: Option<Vec<u8>>,
}

/// Replaces an object's calls of these providers' probes.
///
/// A call of a probe that is not defined is an error, or is left as it is if `unodefs`. Calls in an
/// object for another processor are an error as well.
pub fn replace(data: &[u8], providers: &[Provider], unodefs: bool) -> Result<Replaced, String> {
    let mut work = Work {
        data: data.to_vec(),
        brought: Replaced::default(),
        is_changed: false,
        added: Vec::new(),
        hash: fnv(data, FNV),
    };
    let header = FileHeader64::<Endianness>::parse(data);
    match header.ok().filter(|header| is_ours(header)) {
        Some(header) => work.file(data, header, providers, unodefs)?,
        None if calls(data, providers) => {
            return Err(format!(
                "probes can be called in objects of 64 bits for {MACHINE_NAME} alone"
            ));
        }
        None => {}
    }
    Ok(Replaced {
        object: work.is_changed.then_some(work.data),
        ..work.brought
    })
}

fn is_ours(header: &FileHeader64<Endianness>) -> bool {
    let endian = Endianness::Little;
    header.is_little_endian()
        && header.e_machine(endian) == MACHINE
        && header.e_type(endian) == elf::ET_REL
}

/// Whether an object calls these providers' probes.
fn calls(data: &[u8], providers: &[Provider]) -> bool {
    let is_called = |symbol: object::Symbol<'_, '_>| {
        let called = called(symbol.name_bytes().unwrap_or_default(), providers, true);
        symbol.is_undefined() && called.is_ok_and(|called| called.is_some())
    };
    object::File::parse(data).is_ok_and(|file| file.symbols().any(is_called))
}

/// An object while it is changed.
struct Work {
    data: Vec<u8>,
    brought: Replaced,
    is_changed: bool,
    /// The symbols to add, each with the function's own symbol.
    added: Vec<(String, Sym64<Endianness>)>,
    /// A hash of the object, which makes the names of its local functions' symbols unique.
    hash: u64,
}

/// The object as it was read.
struct Read<'d> {
    sections: SectionTable<'d, FileHeader64<Endianness>>,
    symbols: SymbolTable<'d, FileHeader64<Endianness>>,
    /// For each section with code in a COMDAT group, the signature of the group.
    groups: HashMap<SectionIndex, &'d str>,
}

impl<'d> Read<'d> {
    fn new(header: &FileHeader64<Endianness>, data: &'d [u8]) -> object::read::Result<Self> {
        let sections = header.sections(ENDIAN, data)?;
        let symbols = sections.symbols(ENDIAN, data, elf::SHT_SYMTAB)?;
        let mut groups = HashMap::new();
        for section in sections.iter() {
            let Some((elf::GRP_COMDAT, members)) = section.group(ENDIAN, data)? else {
                continue;
            };
            let index = SymbolIndex(section.sh_info(ENDIAN) as usize);
            let symbol = symbols.symbol(index)?;
            let name = match symbol.st_type() {
                elf::STT_SECTION => {
                    let own = symbols.symbol_section(ENDIAN, symbol, index)?;
                    let own = sections.section(own.unwrap_or(SectionIndex(0)))?;
                    sections.section_name(ENDIAN, own)?
                }
                _ => symbols.symbol_name(ENDIAN, symbol)?,
            };
            let Ok(name) = std::str::from_utf8(name) else {
                continue;
            };
            for member in members {
                let index = SectionIndex(member.get(ENDIAN) as usize);
                if is_code(sections.section(index)?) {
                    groups.insert(index, name);
                }
            }
        }
        Ok(Self {
            sections,
            symbols,
            groups,
        })
    }
}

fn is_code(section: &SectionHeader64<Endianness>) -> bool {
    section.sh_flags(ENDIAN).contains(elf::SHF_EXECINSTR)
}

/// A probe's function, parsed from the name of a called symbol.
struct Called<'p> {
    provider: &'p Provider,
    probe: &'p Definition,
    asks: bool,
}

const ENDIAN: Endianness = Endianness::Little;
const DAMAGED: &str = "it is damaged";

fn damaged<E>(_: E) -> String {
    DAMAGED.to_owned()
}

impl Work {
    /// Replaces all calls of an object.
    fn file(
        &mut self,
        data: &[u8],
        header: &FileHeader64<Endianness>,
        providers: &[Provider],
        unodefs: bool,
    ) -> Result<(), String> {
        let read = Read::new(header, data).map_err(damaged)?;
        self.shared(&read);
        for section in read.sections.iter() {
            let Some((relocations, _)) = section.rela(ENDIAN, data).map_err(damaged)? else {
                continue;
            };
            let target = section.info_link(ENDIAN);
            let code = read.sections.section(target).map_err(damaged)?;
            if !is_code(code) {
                continue;
            }
            let at = section.sh_offset(ENDIAN) as usize;
            for (n, relocation) in relocations.iter().enumerate() {
                let Some(index) = relocation.symbol(ENDIAN, false) else {
                    continue;
                };
                let symbol = read.symbols.symbol(index).map_err(damaged)?;
                // A function that the object itself defines is an ordinary function.
                if !symbol.is_undefined(ENDIAN) {
                    continue;
                }
                let name = read.symbols.symbol_name(ENDIAN, symbol).map_err(damaged)?;
                let Some(called) = called(name, providers, unodefs)? else {
                    continue;
                };
                let place = Place {
                    code,
                    target,
                    word: relocation.r_offset(ENDIAN),
                    kind: relocation.r_type(ENDIAN, false),
                };
                self.call(&read, &place, &called)?;
                if place.kind != DONE {
                    let info = relocation.r_info(ENDIAN, false) & !u64::from(u32::MAX);
                    let info = info | u64::from(DONE.0);
                    // An Elf64_Rela has 24 bytes; `r_info` is at 8.
                    self.put(at + n * 24 + 8, &info.to_le_bytes())?;
                    self.release(&read, index, symbol)?;
                }
            }
        }
        self.add_symbols(header, &read)
    }

    /// Notes the COMDAT groups and global functions, which other objects may have too.
    fn shared(&mut self, read: &Read<'_>) {
        let groups = read.groups.values();
        self.brought.groups = groups.map(|group| (*group).to_owned()).collect();
        for symbol in read.symbols.iter() {
            let is_defined = !symbol.is_undefined(ENDIAN) && symbol.st_type() == elf::STT_FUNC;
            if is_defined && symbol.st_bind() != elf::STB_LOCAL {
                let name = text(read, symbol).ok().map(str::to_owned);
                self.brought.functions.extend(name);
            }
        }
    }

    /// Overwrites bytes of the object.
    fn put(&mut self, at: usize, bytes: &[u8]) -> Result<(), String> {
        let room = self.data.get_mut(at..at.saturating_add(bytes.len()));
        room.ok_or(DAMAGED)?.copy_from_slice(bytes);
        self.is_changed = true;
        Ok(())
    }

    /// Makes the called symbol weak and hidden, so that it need not be defined.
    fn release(
        &mut self,
        read: &Read<'_>,
        index: SymbolIndex,
        symbol: &Sym64<Endianness>,
    ) -> Result<(), String> {
        let table = read.sections.section(read.symbols.section());
        let table = table.map_err(damaged)?.sh_offset(ENDIAN) as usize;
        let info = elf::SymbolInfo::new(elf::STB_WEAK, symbol.st_type());
        let at = table + index.0 * size_of::<Sym64<Endianness>>();
        // `st_info` and `st_other`.
        self.put(at + 4, &[info.0, elf::STV_HIDDEN.0])
    }

    /// Replaces one call and notes its site.
    fn call(
        &mut self,
        read: &Read<'_>,
        place: &Place<'_>,
        called: &Called<'_>,
    ) -> Result<(), String> {
        let begin = place.word.checked_sub(CALL_WORD as u64).ok_or(DAMAGED)?;
        let end = begin.checked_add(CALL_SIZE as u64);
        end.filter(|end| *end <= place.code.sh_size(ENDIAN))
            .ok_or(DAMAGED)?;
        let at = (place.code.sh_offset(ENDIAN).saturating_add(begin)) as usize;
        let bytes = self
            .data
            .get(at..at.saturating_add(CALL_SIZE))
            .ok_or(DAMAGED)?;
        let (shown, name) = (called.probe.shown(), &called.provider.name);
        let new = replaced(bytes, place.kind, called.asks).ok_or_else(|| {
            format!("probe {name}:::{shown} is not called in a way that can be replaced")
        })?;
        if new.is_done && bytes != new.code {
            return Err(DAMAGED.to_owned());
        }
        let (func, symbol) = self
            .function(read, place, begin)?
            .ok_or_else(|| format!("probe {name}:::{shown} is in no function"))?;
        let group = read.groups.get(&place.target);
        let within = begin + new.site - func.st_value(ENDIAN);
        let site = Site {
            provider: name.clone(),
            probe: shown,
            func: text(read, func)?.to_owned(),
            symbol,
            is_local: func.st_bind() == elf::STB_LOCAL,
            group: group.map(|group| (*group).to_owned()),
            offset: u32::try_from(within).map_err(damaged)?,
            asks: called.asks,
        };
        if !new.is_done {
            self.put(at, &new.code)?;
        }
        self.brought.sites.push(site);
        Ok(())
    }

    /// Returns the function at an address of a section, and the symbol by which the linker finds
    /// it. A global name is preferred to a local one. `None` if no function is there.
    fn function<'d>(
        &mut self,
        read: &Read<'d>,
        place: &Place<'_>,
        address: u64,
    ) -> Result<Option<(&'d Sym64<Endianness>, String)>, String> {
        let mut found: Option<&Sym64<Endianness>> = None;
        let mut known = None;
        for (index, symbol) in read.symbols.enumerate() {
            let section = read.symbols.symbol_section(ENDIAN, symbol, index);
            let within = address.checked_sub(symbol.st_value(ENDIAN));
            if section != Ok(Some(place.target))
                || symbol.st_type() != elf::STT_FUNC
                || within.is_none_or(|within| within >= symbol.st_size(ENDIAN))
            {
                continue;
            }
            let name = text(read, symbol)?;
            if name.starts_with(OURS) {
                known = Some(name);
            } else if found.is_none_or(|found| found.st_bind() == elf::STB_LOCAL) {
                found = Some(symbol);
            }
        }
        let Some(func) = found else {
            return Ok(None);
        };
        let name = text(read, func)?;
        let group = read.groups.get(&place.target);
        let symbol = match (known, group) {
            (Some(known), _) => known.to_owned(),
            (None, Some(_)) if func.st_bind() != elf::STB_LOCAL => name.to_owned(),
            (None, Some(group)) => self.add(&format!("{OURS}.{group}.{name}"), func),
            (None, None) => self.add(&format!("{OURS}{:016x}.{name}", self.hash), func),
        };
        Ok(Some((func, symbol)))
    }

    /// Adds a second symbol for a function and returns its name: `name`, or a similar one if
    /// another function has that already.
    fn add(&mut self, name: &str, func: &Sym64<Endianness>) -> String {
        let place = |func: &Sym64<Endianness>| (func.st_shndx(ENDIAN), func.st_value(ENDIAN));
        let mut ours = name.to_owned();
        let mut count = 0;
        while let Some((_, other)) = self.added.iter().find(|(name, _)| *name == ours) {
            if place(other) == place(func) {
                return ours;
            }
            count += 1;
            ours = format!("{name}.{count}");
        }
        self.added.push((ours.clone(), *func));
        ours
    }

    /// Writes the symbol table and its strings again, behind all else, with the added symbols.
    /// Existing symbols keep their numbers.
    fn add_symbols(
        &mut self,
        header: &FileHeader64<Endianness>,
        read: &Read<'_>,
    ) -> Result<(), String> {
        if self.added.is_empty() {
            return Ok(());
        }
        let [mut symbols, mut strings] = [read.symbols.section(), read.symbols.string_section()]
            .map(|index| {
                let section = read.sections.section(index).ok()?;
                let begin = section.sh_offset(ENDIAN) as usize;
                let end = begin.checked_add(section.sh_size(ENDIAN) as usize)?;
                self.data.get(begin..end).map(<[u8]>::to_vec)
            });
        let (symbols, strings) = (
            symbols.as_mut().ok_or(DAMAGED)?,
            strings.as_mut().ok_or(DAMAGED)?,
        );
        for (name, func) in std::mem::take(&mut self.added) {
            // Fails for a section whose number does not fit into the symbol.
            let section = func.st_shndx(ENDIAN);
            section.index().ok_or("it has too many sections")?;
            let at = u32::try_from(strings.len()).map_err(damaged)?;
            let info = elf::SymbolInfo::new(elf::STB_GLOBAL, elf::STT_FUNC);
            symbols.extend(at.to_le_bytes());
            symbols.extend([info.0, elf::STV_HIDDEN.0]);
            symbols.extend(section.0.to_le_bytes());
            symbols.extend(func.st_value(ENDIAN).to_le_bytes());
            symbols.extend(func.st_size(ENDIAN).to_le_bytes());
            strings.extend(name.bytes());
            strings.push(0);
        }
        let table = header.e_shoff(ENDIAN) as usize;
        for (index, contents) in [
            (read.symbols.section(), &symbols),
            (read.symbols.string_section(), &strings),
        ] {
            self.data.resize(self.data.len().next_multiple_of(8), 0);
            let place = [self.data.len() as u64, contents.len() as u64];
            self.data.extend_from_slice(contents);
            // `sh_offset` and `sh_size` are at 24.
            let at = table + index.0 * size_of::<SectionHeader64<Endianness>>() + 24;
            self.put(at, &place.map(u64::to_le_bytes).concat())?;
        }
        Ok(())
    }
}

/// The place of a call in an object.
struct Place<'d> {
    code: &'d SectionHeader64<Endianness>,
    target: SectionIndex,
    /// The offset of the word that its relocation changes.
    word: u64,
    kind: elf::RelocationType,
}

fn text<'d>(read: &Read<'d>, symbol: &Sym64<Endianness>) -> Result<&'d str, String> {
    let name = read.symbols.symbol_name(ENDIAN, symbol).map_err(damaged)?;
    std::str::from_utf8(name).map_err(damaged)
}

/// Returns the probe that a symbol stands for. Symbols of other providers are ignored.
fn called<'p>(
    symbol: &[u8],
    providers: &'p [Provider],
    unodefs: bool,
) -> Result<Option<Called<'p>>, String> {
    let Ok(symbol) = std::str::from_utf8(symbol) else {
        return Ok(None);
    };
    let (rest, asks) = match (symbol.strip_prefix(FIRES), symbol.strip_prefix(ASKS)) {
        (Some(rest), _) => (rest, false),
        (_, Some(rest)) => (rest, true),
        _ => return Ok(None),
    };
    // A name may begin or end with underscores like those of the separator, so that several
    // providers may fit. The longest one that has such a probe is meant.
    let meant = providers.iter().filter_map(|own| {
        let probe = rest.strip_prefix(&*own.name)?.strip_prefix("___")?;
        let shown = probe.replace("__", "-");
        let probe = own.probes.iter().find(|probe| probe.shown() == shown);
        Some((own, shown, probe))
    });
    let meant = meant.max_by_key(|(own, _, probe)| (probe.is_some(), own.name.len()));
    let Some((provider, shown, probe)) = meant else {
        return Ok(None);
    };
    match probe {
        Some(probe) => Ok(Some(Called {
            provider,
            probe,
            asks,
        })),
        None if unodefs => Ok(None),
        None => Err(super::undefined(&provider.name, &shown)),
    }
}
