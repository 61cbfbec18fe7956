// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What ELF files say of their code and its functions.
//!
//! A file has a symbol table, or it was stripped: then its functions may be named by the table of what it exports, by a packed table
//! ([`packed`]), and by another file that was made of it ([`separate`]). Of what none of these names `.eh_frame` has at least the bounds
//! ([`frames`]).
//!
//! All of it is of whoever made the file: what is read, and how much, is limited.

pub mod frames;
pub mod packed;
pub mod separate;
pub mod shared;

use crate::names::printable;
use object::elf::{PF_X, STB_GLOBAL, STB_WEAK, STT_FUNC};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol, ReadRef};
use object::{SectionKind, SegmentFlags, SymbolFlags};

/// A part of a file that is code.
#[derive(Clone, Debug)]
pub struct Text {
    /// Where the file wants it.
    pub address: u64,
    /// Its bytes.
    pub size: u64,
    /// Where it is in the file.
    pub offset: u64,
}

/// Parts of a file that are code.
const TEXTS_MAX: usize = 64;

/// Where code is in a file.
pub fn texts<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> Vec<Text> {
    let code = file.segments().filter(|segment| is_code(segment.flags()));
    let texts = code.take(TEXTS_MAX).map(|segment| {
        let (offset, size) = segment.file_range();
        Text {
            address: segment.address(),
            size,
            offset,
        }
    });
    texts.collect()
}

/// Whether a segment is executable.
pub fn is_code(flags: SegmentFlags) -> bool {
    matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.contains(PF_X))
}

/// Who sees a name; the first is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    /// Every file, before all others' weak ones.
    Global,
    /// Every file that knows no other.
    Weak,
    /// The file alone.
    Local,
}

/// A name of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name, as it can be printed.
    pub name: String,
    /// Where it begins, as the file numbers its memory.
    pub address: u64,
    /// Bytes of code, never 0.
    pub size: u64,
    /// Who sees the name.
    pub binding: Binding,
}

/// Puts functions in the order of their addresses. Of several names of one the linker's choice is first: a global one before a weak one
/// before a local one, then the one with fewer underscores in front.
pub fn sort(functions: &mut [Function]) {
    let underscores = |f: &Function| f.name.bytes().take_while(|c| *c == b'_').count();
    functions.sort_by(|a, b| {
        let key = |f: &Function| (f.address, f.binding, underscores(f));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
}

/// Functions that are read of a table.
pub const FUNCTIONS_MAX: usize = 1 << 20;
/// Bytes of all their names, before any is left out.
const NAMES_MAX: usize = 1 << 28;
/// Parts of a file that are code, by its sections.
const SECTIONS_MAX: usize = 256;

/// The functions that symbols name, by names that are shorter than `most` bytes.
pub fn functions<'d, S: ObjectSymbol<'d>>(
    symbols: impl Iterator<Item = S>,
    most: usize,
) -> Vec<Function> {
    let mut read = 0_usize;
    let mut functions = Vec::new();
    for symbol in symbols {
        // To find the end of a name takes as long as the name is.
        read = read.saturating_add(symbol.name_bytes().map_or(0, <[u8]>::len));
        if read > NAMES_MAX || functions.len() >= FUNCTIONS_MAX {
            break;
        }
        functions.extend(function(&symbol, most));
    }
    functions
}

/// Gives sizes to functions that their symbols say none of, as of assembler: up to the next one, or to the end of the section. That is for
/// a table of all functions, or there may be others in between.
pub fn measure<'a, R: ReadRef<'a>>(functions: &mut [Function], file: &object::File<'a, R>) {
    let mut starts: Vec<u64> = functions.iter().map(|function| function.address).collect();
    starts.sort_unstable();
    let texts = file
        .sections()
        .filter(|section| section.kind() == SectionKind::Text);
    let texts = texts
        .take(SECTIONS_MAX)
        .map(|s| s.address()..s.address().saturating_add(s.size()));
    let texts: Vec<_> = texts.collect();
    let end_of_section = |address: u64| {
        let mut texts = texts.iter();
        texts
            .find(|range| range.contains(&address))
            .map(|range| range.end)
    };
    for function in functions.iter_mut().filter(|function| function.size == 0) {
        let next = starts[starts.partition_point(|start| *start <= function.address)..].first();
        let end = end_of_section(function.address);
        let end = end.map(|end| next.map_or(end, |next| end.min(*next)));
        function.size = end.map_or(0, |end| end - function.address);
    }
}

/// The function that a symbol names, by a name that is shorter than `most` bytes.
fn function<'d>(symbol: &impl ObjectSymbol<'d>, most: usize) -> Option<Function> {
    let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
        return None;
    };
    // An older version of a function is not what its name means; the newest one is marked with two signs.
    let name = symbol.name_bytes().ok().filter(|name| name.len() < most)?;
    let name = String::from_utf8_lossy(name);
    let name = name.split_once("@@").map_or(&*name, |(name, _)| name);
    let name = printable(name);
    // A byte that is no character takes three.
    let is_name = !name.is_empty() && !name.contains('@') && name.len() < most;
    let is_function = st_info.st_type() == STT_FUNC && !symbol.is_undefined();
    (is_name && is_function).then(|| Function {
        name: name.into_owned(),
        address: symbol.address(),
        size: symbol.size(),
        binding: match st_info.st_bind() {
            STB_GLOBAL => Binding::Global,
            STB_WEAK => Binding::Weak,
            _ => Binding::Local,
        },
    })
}
