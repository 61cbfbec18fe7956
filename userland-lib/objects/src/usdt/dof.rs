// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! DOF of programs: what `dtrace -G` puts into them, in a section of their file (`.SUNW_dof`) or
//! registered at run time.
//!
//! An image has providers. A provider has probes, each in one function, with tables of the offsets
//! of its sites there, of its is-enabled sites, of the types that are passed, and of the types and
//! order that consumers see. A site was a call, which has become instructions that do nothing. So
//! the arguments lie where the calling convention puts them, but without a return address on the
//! stack. At an is-enabled site the result register becomes 1, or, since version 3, the `int` whose
//! address was passed.
//!
//! Addresses are relative to the address of the object. Relocations state which words these are.
//!
//! An image is not trusted, because anybody may have made it. One that is not well-formed is
//! refused as a whole, and the work and memory that it can cost are bounded.

use super::define::said;
use super::notes::{is_name, is_provider, Note};
use dtrace_files::arch::programs::{answer, passed, Shape};
use dtrace_uapi::dof::{
    self, Hdr, Probe, Provider, RelocDesc, RelocHdr, Sec, SecIdx, SecType, StrIdx,
};
use dtrace_uapi::ioctl::REGISTRATIONS_MAX;
use dtrace_uapi::limits::{ARGTYPELEN, FUNCNAMELEN};
use dtrace_uapi::process::PROBE_ARGS_MAX;
use dtrace_uapi::types::{Attribute, ProviderAttributes};
use zerocopy::FromBytes;

/// Most sections of an image.
const SECTIONS_MAX: u32 = 4096;
/// Most relocations, probes and sites of an image.
const RELOCATIONS_MAX: usize = 1_000_000;
const PROBES_MAX: usize = 100_000;
const SITES_MAX: usize = 100_000;
/// Most bytes of the names and types of its sites.
const TEXT_MAX: usize = 32 << 20;
/// Size of a provider before version 2, which has no is-enabled sites.
const FIRST_PROVIDER: usize = 40;

/// Why an image is refused.
pub type Refused = &'static str;

/// Returns the sites of an image whose object lies at `base`. Their addresses are those in the
/// process.
pub fn parse(data: &[u8], base: u64) -> Result<Vec<Note>, Refused> {
    let mut image = Image::new(data)?;
    image.relocate(base)?;
    let mut notes = Vec::new();
    let providers = image
        .sections
        .iter()
        .filter(|sec| is(sec, SecType::Provider));
    let providers: Vec<Sec> = providers.copied().collect();
    if providers.len() > REGISTRATIONS_MAX {
        return Err("too many providers");
    }
    let mut left = Left {
        probes: PROBES_MAX,
        text: TEXT_MAX,
    };
    for provider in providers {
        image.provider(&provider, &mut left, &mut notes)?;
    }
    Ok(notes)
}

/// Returns the sites of the images that follow each other in a section of a file. Stops at the
/// first image that is refused.
pub fn parse_all(mut data: &[u8]) -> Vec<Note> {
    let mut notes = Vec::new();
    while let Ok((header, _)) = Hdr::read_from_prefix(data) {
        let size = usize::try_from(header.filesz.max(header.loadsz)).unwrap_or(usize::MAX);
        let Some(image) = data.get(..size) else {
            break;
        };
        let Ok(more) = parse(image, 0) else {
            break;
        };
        notes.extend(more);
        if notes.len() > SITES_MAX {
            break;
        }
        let next = size.checked_next_multiple_of(8);
        data = next.and_then(|next| data.get(next..)).unwrap_or_default();
    }
    notes
}

fn is(sec: &Sec, ty: SecType) -> bool {
    sec.ty == ty as u32
}

/// How much an image may still cost.
struct Left {
    /// Probes.
    probes: usize,
    /// Bytes of names and types.
    text: usize,
}

/// An image.
struct Image {
    data: Vec<u8>,
    sections: Vec<Sec>,
    version: u8,
    is_long: bool,
}

impl Image {
    fn new(data: &[u8]) -> Result<Self, Refused> {
        let (header, _) =
            Hdr::read_from_prefix(data).map_err(|_| "it is shorter than its header")?;
        let ident = &header.ident;
        if !ident.starts_with(&dof::MAGIC) {
            return Err("it is no DOF");
        }
        let is_long = match ident[dof::ID_MODEL] {
            dof::MODEL_LP64 => true,
            dof::MODEL_ILP32 => false,
            _ => return Err("its data model is not known"),
        };
        let version = ident[dof::ID_VERSION];
        let is_plain = ident[dof::ID_PAD..].iter().all(|byte| *byte == 0) && header.flags == 0;
        if ident[dof::ID_ENCODING] != dof::ENCODE_LSB || !is_plain {
            return Err("its order of bytes or its flags are not known");
        }
        if !(dof::VERSION_1..=dof::VERSION_3).contains(&version) {
            return Err("its version is not known");
        }
        let size = usize::try_from(header.loadsz).map_err(|_| "its size is wrong")?;
        let data = data.get(..size).ok_or("its size is wrong")?;
        let secsize = header.secsize as usize;
        if header.secnum > SECTIONS_MAX {
            return Err("it has too many sections");
        }
        if secsize < size_of::<Sec>() {
            return Err("its table of sections is wrong");
        }
        let mut sections = Vec::new();
        let begin = usize::try_from(header.secoff).map_err(|_| "its table of sections is wrong")?;
        for n in 0..header.secnum as usize {
            let at = n.checked_mul(secsize).and_then(|at| at.checked_add(begin));
            let rest = at.and_then(|at| data.get(at..));
            let sec = rest.and_then(|rest| Sec::read_from_prefix(rest).ok());
            let (sec, _) = sec.ok_or("its table of sections is cut off")?;
            let end = sec.offset.checked_add(sec.size);
            // A section that is not loaded may lie behind the end.
            if sec.flags & dof::SECF_LOAD != 0 && end.is_none_or(|end| end > size as u64) {
                return Err("a section is outside of it");
            }
            sections.push(sec);
        }
        Ok(Self {
            data: data.to_vec(),
            sections,
            version,
            is_long,
        })
    }

    fn section(&self, index: SecIdx, ty: SecType) -> Result<Sec, Refused> {
        let sec = self.sections.get(index as usize).copied();
        let is_meant = |sec: &Sec| is(sec, ty) && sec.flags & dof::SECF_LOAD != 0;
        sec.filter(is_meant).ok_or("a section is missing")
    }

    fn bytes(&self, sec: &Sec) -> &[u8] {
        let begin = sec.offset as usize;
        let end = begin.saturating_add(sec.size as usize);
        self.data.get(begin..end).unwrap_or_default()
    }

    /// Returns entry `n` of a table. The table states the size of an entry, which is at least that
    /// of `T`.
    fn entry<T: FromBytes>(&self, sec: &Sec, n: usize) -> Option<T> {
        let size = (sec.entsize as usize).max(size_of::<T>());
        let at = n.checked_mul(size)?;
        let (entry, _) = T::read_from_prefix(self.bytes(sec).get(at..)?).ok()?;
        Some(entry)
    }

    /// Adds `base` to all words that relocations name.
    fn relocate(&mut self, base: u64) -> Result<(), Refused> {
        let mut left = RELOCATIONS_MAX;
        for sec in self.sections.clone() {
            if !is(&sec, SecType::UrelHdr) || sec.flags & dof::SECF_LOAD == 0 {
                continue;
            }
            let head: RelocHdr = self
                .entry(&sec, 0)
                .ok_or("a head of relocations is cut off")?;
            let list = self.section(head.relsec, SecType::Reltab)?;
            let target = self.sections.get(head.tgtsec as usize).copied();
            let target = target.filter(|sec| sec.flags & dof::SECF_LOAD != 0);
            let target = target.ok_or("a section is missing")?;
            for n in 0.. {
                let Some(relocation) = self.entry::<RelocDesc>(&list, n) else {
                    break;
                };
                left = left.checked_sub(1).ok_or("too many relocations")?;
                match relocation.ty {
                    dof::RELO_NONE => {}
                    dof::RELO_SETX => self.add(&target, relocation.offset, base)?,
                    _ => return Err("a relocation is of a kind that is not known"),
                }
            }
        }
        Ok(())
    }

    /// Adds `base` to a word of a section.
    fn add(&mut self, target: &Sec, offset: u64, base: u64) -> Result<(), Refused> {
        let end = offset.checked_add(8).filter(|end| *end <= target.size);
        end.ok_or("a relocation is outside of its section")?;
        let at = (target.offset + offset) as usize;
        let word = self.data.get_mut(at..at + 8);
        let word: &mut [u8; 8] = word
            .and_then(|word| word.try_into().ok())
            .ok_or("a relocation is outside of its section")?;
        *word = u64::from_le_bytes(*word).wrapping_add(base).to_le_bytes();
        Ok(())
    }

    fn text(&self, strtab: &Sec, at: StrIdx) -> Result<&str, Refused> {
        let rest = self.bytes(strtab).get(at as usize..);
        let rest = rest.ok_or("a string is outside of its table")?;
        let len = rest.iter().position(|c| *c == 0);
        let text = &rest[..len.ok_or("a string does not end")?];
        std::str::from_utf8(text).map_err(|_| "a string is no text")
    }

    fn provider(&self, sec: &Sec, left: &mut Left, notes: &mut Vec<Note>) -> Result<(), Refused> {
        let mut whole = [0; size_of::<Provider>()];
        let bytes = self.bytes(sec);
        let has_asks = self.version > dof::VERSION_1;
        let size = if has_asks {
            whole.len()
        } else {
            FIRST_PROVIDER
        };
        let bytes = bytes.get(..size).ok_or("a provider is cut off")?;
        whole[..size].copy_from_slice(bytes);
        let provider = Provider::read_from_bytes(&whole).map_err(|_| "a provider is cut off")?;
        let strtab = self.section(provider.strtab, SecType::Strtab)?;
        let name = self.text(&strtab, provider.name)?;
        if !is_provider(name) {
            return Err("a provider's name is none");
        }
        let optional = |index, ty| match index {
            dof::SECIDX_NONE => Ok(None),
            index => self.section(index, ty).map(Some),
        };
        let of = Of {
            image: self,
            name,
            strtab,
            args: optional(provider.prargs, SecType::Prargs)?,
            offsets: self.section(provider.proffs, SecType::Proffs)?,
            asked: match has_asks {
                // The word is 0 if there are no is-enabled sites.
                true if provider.prenoffs != 0 => optional(provider.prenoffs, SecType::Prenoffs)?,
                _ => None,
            },
            attributes: attributes(&provider),
        };
        let list = self.section(provider.probes, SecType::Probes)?;
        for n in 0.. {
            let Some(probe) = self.entry::<Probe>(&list, n) else {
                return Ok(());
            };
            left.probes = left.probes.checked_sub(1).ok_or("too many probes")?;
            of.probe(&probe, &mut left.text, notes)?;
        }
        Ok(())
    }
}

fn attributes(provider: &Provider) -> ProviderAttributes {
    let part = |word: u32| Attribute {
        name: (word >> 24) as u8,
        data: (word >> 16) as u8,
        class: (word >> 8) as u8,
    };
    ProviderAttributes {
        provider: part(provider.provattr),
        module: part(provider.modattr),
        func: part(provider.funcattr),
        name: part(provider.nameattr),
        args: part(provider.argsattr),
    }
}

/// A provider of an image.
struct Of<'i> {
    image: &'i Image,
    name: &'i str,
    strtab: Sec,
    args: Option<Sec>,
    offsets: Sec,
    asked: Option<Sec>,
    attributes: ProviderAttributes,
}

impl Of<'_> {
    /// Adds the sites of a probe to `notes`.
    fn probe(&self, probe: &Probe, left: &mut usize, notes: &mut Vec<Note>) -> Result<(), Refused> {
        let image = self.image;
        let name = image.text(&self.strtab, probe.name)?.replace("__", "-");
        let func = image.text(&self.strtab, probe.func)?;
        if !is_name(&name) || !(func.is_empty() || is_function(func)) {
            return Err("a probe's name is none");
        }
        let sites = usize::from(probe.noffs) + usize::from(probe.nenoffs);
        if notes.len() + sites > SITES_MAX {
            return Err("too many sites");
        }
        let native = self.types(probe.nargv, probe.nargc)?;
        let seen = self.types(probe.xargv, probe.xargc)?;
        let shapes = native.iter().map(|ty| shape(ty, image.is_long));
        let passed = passed(shapes, image.is_long);
        let (mut arguments, mut types) = (Vec::new(), Vec::new());
        for (n, ty) in seen.iter().take(PROBE_ARGS_MAX).enumerate() {
            let at = probe.argidx as usize + n;
            let index = self.args.and_then(|args| image.bytes(&args).get(at));
            let index = usize::from(*index.ok_or("an argument is outside of its table")?);
            let own = native.get(index).ok_or("an argument is none")?;
            arguments.push(passed[index]);
            types.push(((*own).to_owned(), (*ty).to_owned()));
        }
        let text = types.iter().map(|(own, seen)| own.len() + seen.len());
        let text = text.sum::<usize>() + name.len() + func.len() + size_of::<Note>();
        *left = (left.checked_sub(text.saturating_mul(sites))).ok_or("too many sites")?;
        let site = |offset: u32| Note {
            provider: self.name.to_owned(),
            name: name.clone(),
            address: probe.addr.wrapping_add(u64::from(offset)),
            offset: 0,
            semaphore: 0,
            func: func.to_owned(),
            asks: false,
            arguments: arguments.clone(),
            types: types.clone(),
            attributes: said(self.attributes),
        };
        for n in 0..usize::from(probe.noffs) {
            let offset = image.entry(&self.offsets, probe.offidx as usize + n);
            notes.push(site(offset.ok_or("a site is outside of its table")?));
        }
        for n in 0..usize::from(probe.nenoffs) {
            let asked = self.asked.ok_or("a site is outside of its table")?;
            let offset = image.entry(&asked, probe.enoffidx as usize + n);
            notes.push(Note {
                asks: true,
                arguments: vec![Some(answer(image.version >= dof::VERSION_3, image.is_long))],
                types: Vec::new(),
                ..site(offset.ok_or("a site is outside of its table")?)
            });
        }
        Ok(())
    }

    /// Returns `count` types, whose strings follow one another.
    fn types(&self, first: StrIdx, count: u8) -> Result<Vec<&str>, Refused> {
        let mut at = first;
        let mut types = Vec::new();
        for _ in 0..count {
            let ty = self.image.text(&self.strtab, at)?;
            if ty.is_empty() || !is_type(ty) {
                return Err("a type is none");
            }
            at = at.saturating_add(ty.len() as u32 + 1);
            types.push(ty);
        }
        Ok(types)
    }
}

/// Whether a text may be the name of a type. The compiler has not parsed it then.
pub(super) fn is_type(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_graphic() || c == ' ';
    text.len() < ARGTYPELEN && text.chars().all(is_plain)
}

/// Whether this name of a function may be in an image.
pub fn is_function(name: &str) -> bool {
    name.len() < FUNCNAMELEN && name.chars().all(|c| c.is_ascii_graphic() && c != '/')
}

/// Returns how a value of a type is passed. `None` if in a way that is not known, as structures
/// are.
pub(super) fn shape(ty: &str, is_long: bool) -> Option<Shape> {
    let shape = |size, is_signed, is_float| {
        Some(Shape {
            size,
            is_signed,
            is_float,
        })
    };
    let word = if is_long { 8 } else { 4 };
    if ty.ends_with('*') || ty.ends_with(']') {
        return shape(word, false, false);
    }
    let mut words: Vec<&str> = ty.split(' ').collect();
    words.retain(|word| !matches!(*word, "const" | "volatile" | "" | "int"));
    let is_unsigned = words.contains(&"unsigned");
    words.retain(|word| !matches!(*word, "unsigned" | "signed"));
    let number = |size| shape(size, !is_unsigned, false);
    match words[..] {
        [] => number(4),
        ["char"] => number(1),
        ["short"] => number(2),
        ["long"] => number(word),
        ["long", "long"] => number(8),
        ["_Bool" | "bool" | "uint8_t" | "uchar_t"] => shape(1, false, false),
        ["uint16_t" | "ushort_t"] => shape(2, false, false),
        ["uint32_t" | "uint_t" | "uid_t" | "gid_t"] => shape(4, false, false),
        ["uint64_t"] => shape(8, false, false),
        ["int8_t"] => shape(1, true, false),
        ["int16_t"] => shape(2, true, false),
        ["int32_t" | "pid_t"] => shape(4, true, false),
        ["int64_t" | "longlong_t"] => shape(8, true, false),
        ["ssize_t" | "intptr_t" | "ptrdiff_t"] => shape(word, true, false),
        ["float"] => shape(4, false, true),
        ["double"] => shape(8, false, true),
        ["long", "double"] | ["struct" | "union", ..] => None,
        // Any other name is taken for a number or an address.
        _ => shape(word, false, false),
    }
}
