// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads code and functions of ELF files.
//!
//! A file has a symbol table unless it was stripped. The functions of a stripped file may be named
//! by the table of its exported symbols, by a packed table ([`packed`]), and by a separate file
//! ([`separate`]). For functions that none of these names, `.eh_frame` gives at least the bounds
//! ([`frames`]).
//!
//! The contents are untrusted: what is read, and how much, is limited.

pub mod frames;
pub mod packed;
pub mod section;
pub mod separate;
pub mod shared;

use crate::names::printable;
use object::elf::{PF_X, STB_GLOBAL, STB_WEAK, STT_FUNC};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol, ReadRef};
use object::{SectionKind, SegmentFlags, SymbolFlags};

/// A part of a file that is code.
#[derive(Clone, Debug)]
pub struct Text {
    /// Its address in the file's numbering.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Offset in the file.
    pub offset: u64,
}

/// Most segments of code of a file.
const TEXTS_MAX: usize = 64;

/// Returns the segments of a file that contain code.
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

/// Visibility of a name; the variants are in the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    /// Visible to all files; preferred to weak symbols.
    Global,
    /// Visible to all files, used if there is no global symbol of that name.
    Weak,
    /// Visible in its own file only.
    Local,
}

/// A function under one of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The name in a printable form.
    pub name: String,
    /// Address of its beginning in the file's numbering.
    pub address: u64,
    /// Size in bytes; 0 if the symbol has none and [`measure`] found none.
    pub size: u64,
    /// Visibility of the name.
    pub binding: Binding,
}

/// Sorts functions by address. Of several names of one address the linker's choice comes first: a
/// global one before a weak one before a local one, then the one with fewer leading underscores.
pub fn sort(functions: &mut [Function]) {
    let underscores = |f: &Function| f.name.bytes().take_while(|c| *c == b'_').count();
    functions.sort_by(|a, b| {
        let key = |f: &Function| (f.address, f.binding, underscores(f));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
}

/// Most functions that are read from a table.
pub const FUNCTIONS_MAX: usize = 1 << 20;
/// Most bytes of all names of a table together, including names that are left out.
const NAMES_MAX: usize = 1 << 28;
/// Most code sections of a file.
const SECTIONS_MAX: usize = 256;

/// Returns the functions of a symbol table whose names are shorter than `most` bytes.
pub fn functions<'d, S: ObjectSymbol<'d>>(
    symbols: impl Iterator<Item = S>,
    most: usize,
) -> Vec<Function> {
    let mut read = 0_usize;
    let mut functions = Vec::new();
    for symbol in symbols {
        // Finding the end of a name takes time in proportion to its length.
        read = read.saturating_add(symbol.name_bytes().map_or(0, <[u8]>::len));
        if read > NAMES_MAX || functions.len() >= FUNCTIONS_MAX {
            break;
        }
        functions.extend(function(&symbol, most));
    }
    functions
}

/// Sets the size of functions whose symbols have none, as in assembler: up to the next function or
/// to the end of the section. The table must contain all functions, because otherwise there may be
/// others in between.
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

/// Returns the function that a symbol names, if the name is shorter than `most` bytes.
fn function<'d>(symbol: &impl ObjectSymbol<'d>, most: usize) -> Option<Function> {
    let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
        return None;
    };
    // `name@@VERSION` is the default version of a function and stands for `name`. `name@VERSION` is
    // an older version, which the plain name does not mean.
    let name = symbol.name_bytes().ok().filter(|name| name.len() < most)?;
    let name = String::from_utf8_lossy(name);
    let name = name.split_once("@@").map_or(&*name, |(name, _)| name);
    let name = printable(name);
    // Check the length again: an invalid byte became a character of three bytes.
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
