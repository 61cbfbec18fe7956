// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads types and functions of a program from CTF, the compact format that a compiler writes on
//! request (CTF 3, `gcc -gctf`).
//!
//! CTF is the section `.ctf` of the program's own file, where stripping leaves it, or of its
//! separate debug file. The section is a dictionary or an archive of several: the parent has the
//! types on which all compilation units agree, and its children have the types that a unit defines
//! differently under the same name. A type is identified by its dictionary and its number in that
//! dictionary. The types of functions are listed in the order of the function symbols, or by name.
//! The layout is that of `ctf.h` of binutils. The linker lists only functions of the dynamic symbol
//! table, and only for a file that exports some.
//!
//! The contents are untrusted. Every number is checked before use, and what cannot be interpreted
//! is left out. What unpacking may cost is limited, as for DWARF ([`Budget`]).

mod dict;
#[cfg(test)]
mod tests;
mod types;

use crate::dwarf::{Budget, Error, Prototype, TypeId, FILE_MAX};
use crate::elf::separate;
use dict::{word, Dict};
use object::elf::STT_FUNC;
use object::{Object as _, ObjectSection as _, ReadCache, ReadRef, SymbolFlags};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Name of the section.
const SECTION: &str = ".ctf";
/// Name of the parent dictionary in an archive; all others are its children.
const PARENT: &[u8] = b".ctf";
const ARCHIVE: u64 = 0x8b47_f2a4_d762_3eeb;
/// Size of an archive's header and of its entry for one dictionary, in bytes.
const ARCHIVE_HEADER: usize = 40;
const MEMBER: usize = 16;
/// Most dictionaries of an archive.
const DICTS_MAX: usize = 1 << 16;
/// Largest section that is read (`.ctf` as stored, or a string table), in bytes.
const SECTION_MAX: u64 = 1 << 28;
/// Approximate memory per function, in bytes.
const KEPT: usize = 128;
/// Symbols of the linker that have no entry in the list of types.
const BOUNDS: [&[u8]; 2] = [b"_START_", b"_END_"];

/// Types and functions of a file.
pub struct Ctf {
    dicts: Vec<Dict>,
    /// String table of the symbols.
    names: Vec<u8>,
    /// Size of an address, in bytes.
    address: u64,
    /// Dictionary and type number of each function, by the function's first address.
    functions: HashMap<u64, (usize, u32)>,
    named: OnceCell<types::Names>,
}

/// A function of the symbol table.
struct Symbol<'d> {
    name: &'d [u8],
    address: u64,
}

impl Ctf {
    /// Opens the CTF of the program in `file`. If that has none and `apart` is given, the program's
    /// separate debug file is used; `apart` is the path at which the process sees the program.
    pub fn open(file: &Path, apart: Option<&str>) -> Result<Self, Error> {
        Self::open_in(Path::new(separate::FOLDER), file, apart)
    }

    /// Like [`open`](Self::open), with another folder in place of the distribution's
    /// `/usr/lib/debug`.
    fn open_in(folder: &Path, file: &Path, apart: Option<&str>) -> Result<Self, Error> {
        let file = separate::open(file, FILE_MAX)?;
        let owner = file.metadata()?.uid();
        let cache = ReadCache::new(file);
        let program = object::File::parse(&cache).map_err(|_| Error::Damaged)?;
        if contents(&program, SECTION).is_some() {
            return Self::read(&program, &program);
        }
        let path = apart.ok_or(Error::None)?;
        let has = |file: &object::File<'_>| contents(file, SECTION).is_some();
        let found = separate::find(folder, &program, (path, owner), FILE_MAX, has);
        let (told, _) = found.ok_or(Error::None)?;
        let told = object::File::parse(&*told).map_err(|_| Error::Damaged)?;
        Self::read(&program, &told)
    }

    /// Parses the CTF of an ELF file.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let file = object::File::parse(bytes).map_err(|_| Error::Damaged)?;
        Self::read(&file, &file)
    }

    /// Reads the CTF in the file `told`, which is the program itself or its separate debug file.
    /// The dynamic symbols are always read from the program, because only that has them.
    fn read<'p, 't, P: ReadRef<'p>, T: ReadRef<'t>>(
        program: &object::File<'p, P>,
        told: &object::File<'t, T>,
    ) -> Result<Self, Error> {
        let bytes = contents(told, SECTION).ok_or(Error::None)?;
        let budget = Budget::limited();
        let dicts = archive(bytes, &budget)?;
        // The dictionaries of one file all refer to the same symbol table.
        let is_dynamic = dicts.iter().any(|dict| dict.is_dynamic);
        let names = match is_dynamic {
            true => contents(program, ".dynstr"),
            false => contents(told, ".strtab"),
        };
        let mut ctf = Self {
            dicts,
            names: names.unwrap_or_default().to_vec(),
            address: if program.is_64() { 8 } else { 4 },
            functions: HashMap::new(),
            named: OnceCell::new(),
        };
        let symbols = match is_dynamic {
            true => functions(program.dynamic_symbols(), &budget)?,
            false => functions(told.symbols(), &budget)?,
        };
        let mut known: HashMap<&[u8], Option<u64>> = HashMap::new();
        for symbol in &symbols {
            // A name that several functions have identifies none of them.
            let place = known.entry(symbol.name).or_insert(Some(symbol.address));
            *place = place.filter(|address| *address == symbol.address);
        }
        for (number, dict) in ctf.dicts.iter().enumerate() {
            let types = dict.functions().chunks_exact(4);
            let types = types.map_while(|ty| word(ty, 0));
            let mut symbols = symbols.iter();
            let mut names = dict.function_names().map(|names| names.chunks_exact(4));
            let mut address = || match &mut names {
                None => symbols.next().map(|symbol| (1, Some(symbol.address))),
                Some(names) => {
                    let name = dict.bytes_at(word(names.next()?, 0)?, &ctf.names);
                    let name = name.unwrap_or_default();
                    Some((name.len() + 1, known.get(name).copied().flatten()))
                }
            };
            for ty in types {
                let Some((work, address)) = address() else {
                    break;
                };
                budget.spend(work)?;
                // 0 means that the type of this symbol is not known.
                if let (Some(address), true) = (address, ty != 0) {
                    ctf.functions.entry(address).or_insert((number, ty));
                }
            }
        }
        Ok(ctf)
    }

    /// Returns the prototype of the function that begins at `address`. Its parameters have no
    /// names.
    pub fn function(&self, address: u64) -> Option<Prototype> {
        let (dict, ty) = *self.functions.get(&address)?;
        let (ret, params, _) = self.signature(self.id(dict, ty)?)?;
        Some(Prototype {
            ret,
            params: params.into_iter().map(|ty| (String::new(), ty)).collect(),
            promotes: false,
        })
    }

    /// Converts a dictionary's type number to an id. Returns `None` for `void` and for numbers that
    /// do not exist.
    fn id(&self, dict: usize, number: u32) -> Option<TypeId> {
        let own = number & dict::OWN - 1;
        let of = match self.dicts.get(dict)?.is_child {
            true if number & dict::OWN == 0 => 0,
            true => dict,
            // A parent has no types with the bit [`dict::OWN`].
            false => Some(dict).filter(|_| number == own)?,
        };
        let is_there = own > 0 && (own as usize) <= self.dicts.get(of)?.len();
        is_there.then(|| TypeId::of(of, own))
    }
}

/// Returns the contents of a section, unless it is empty or too large.
fn contents<'a, R: ReadRef<'a>>(file: &object::File<'a, R>, name: &str) -> Option<&'a [u8]> {
    let section = file.section_by_name(name)?;
    let data = (section.size() <= SECTION_MAX).then(|| section.data().ok())?;
    data.filter(|data| !data.is_empty())
}

/// Returns the functions for which types are listed, in the order of the symbol table.
fn functions<'d, S: object::ObjectSymbol<'d>>(
    symbols: impl Iterator<Item = S>,
    budget: &Budget,
) -> Result<Vec<Symbol<'d>>, Error> {
    let mut functions = Vec::new();
    for symbol in symbols {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
            continue;
        };
        if st_info.st_type() != STT_FUNC || symbol.is_undefined() {
            continue;
        }
        // Finding the end of a name takes time in proportion to its length.
        let name = symbol.name_bytes().unwrap_or_default();
        budget.spend(name.len())?;
        if !name.is_empty() && !BOUNDS.contains(&name) {
            budget.keep(KEPT)?;
            let address = symbol.address();
            functions.push(Symbol { name, address });
        }
    }
    Ok(functions)
}

/// Returns the dictionaries of a section, the parent first.
fn archive(bytes: &[u8], budget: &Budget) -> Result<Vec<Dict>, Error> {
    let long = |at: usize| {
        let bytes = bytes.get(at..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    };
    if long(0) != Some(ARCHIVE) {
        let dict = Dict::parse(bytes, budget)?;
        return match dict.is_child {
            true => Err(Error::Unsupported("its types are in another file (.ctf)")),
            false => Ok(vec![dict]),
        };
    }
    let place = |at: usize| usize::try_from(long(at)?).ok();
    let header = || Some((place(16)?, place(24)?, place(32)?));
    let (count, names, dicts) = header().ok_or(Error::Damaged)?;
    let member = |number: usize| {
        let at = ARCHIVE_HEADER + number * MEMBER;
        let name = bytes.get(names.checked_add(place(at)?)?..)?;
        let start = dicts.checked_add(place(at + 8)?)?;
        let size = place(start)?;
        let dict = bytes.get(start..)?.get(8..)?.get(..size)?;
        Some((name.starts_with(&[PARENT, b"\0"].concat()), dict))
    };
    let members = (0..count.min(DICTS_MAX)).map_while(member);
    let (parents, children): (Vec<_>, Vec<_>) = members.partition(|(is_parent, _)| *is_parent);
    let (_, parent) = parents.first().ok_or(Error::Damaged)?;
    let mut all = vec![Dict::parse(parent, budget)?];
    if all[0].is_child {
        return Err(Error::Damaged);
    }
    for (_, child) in children {
        // Skip a damaged child: the others are independent of it.
        all.extend(Dict::parse(child, budget).ok().filter(|dict| dict.is_child));
        if budget.is_spent() {
            break;
        }
    }
    Ok(all)
}
