// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The functions and the instructions of an ELF file.
//!
//! Names come from the file's symbol table, or, if it was stripped, from the table of what it exports and from a packed one; what none
//! of them names is called by its address. Several names may stand for one function.
//!
//! Invariant: functions are in the order of their addresses, and each begins in executable text.

use crate::arch::Instructions;
use crate::elf::{self, Function};
use dtrace_uapi::limits::FUNCNAMELEN;
use object::{Object as _, ObjectSegment as _};
use std::io;

/// Segments of executable text that are read. Linkers make one or two; who makes more could have the file copied for each.
const TEXTS_MAX: usize = 16;

/// A range of executable text.
#[derive(Clone, Debug)]
pub struct Text {
    /// Where it begins, as the file numbers its memory.
    pub address: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// The code.
    pub bytes: Vec<u8>,
}

/// Functions and text of a file.
#[derive(Clone, Debug)]
pub struct Code {
    functions: Vec<Function>,
    /// Of each function how far it and those before it reach.
    reach: Vec<u64>,
    texts: Vec<Text>,
    pub(super) instructions: Instructions,
}

impl Code {
    /// Puts functions into their text; those that lie elsewhere, or are empty, are left out.
    pub fn new(mut functions: Vec<Function>, texts: Vec<Text>, instructions: Instructions) -> Self {
        let has_code = |function: &Function| {
            let mut texts = texts.iter();
            function.size > 0 && texts.any(|text| text.at(function.address).is_some())
        };
        functions.retain(has_code);
        elf::sort(&mut functions);
        let farther = |reach: &mut u64, function: &Function| {
            *reach = (*reach).max(function.address.saturating_add(function.size));
            Some(*reach)
        };
        let reach = functions.iter().scan(0, farther).collect();
        Self {
            functions,
            reach,
            texts,
            instructions,
        }
    }

    /// Reads an ELF file.
    pub fn parse(bytes: &[u8]) -> io::Result<Self> {
        let invalid = |error: object::Error| io::Error::other(error.to_string());
        let file = object::File::parse(bytes).map_err(invalid)?;
        let instructions = Instructions::of(file.architecture());
        let instructions =
            instructions.ok_or_else(|| io::Error::other("code of an unknown machine"))?;
        let mut texts = Vec::new();
        // Segments that have the same bytes would have these copied again and again.
        let mut left = bytes.len();
        let segments = file
            .segments()
            .filter(|segment| elf::is_code(segment.flags()));
        for segment in segments.take(TEXTS_MAX) {
            let text = segment.data().map_err(invalid)?;
            let rest = left.checked_sub(text.len());
            left = rest.ok_or_else(|| io::Error::other("more text than the file has"))?;
            texts.push(Text {
                address: segment.address(),
                offset: segment.file_range().0,
                bytes: text.to_vec(),
            });
        }
        // A probe cannot be called by a longer name.
        let mut functions = elf::functions(file.symbols(), FUNCNAMELEN);
        elf::measure(&mut functions, &file);
        if functions.is_empty() {
            functions = elf::functions(file.dynamic_symbols(), FUNCNAMELEN);
            functions.extend(elf::packed::functions(&file, FUNCNAMELEN));
            functions.extend(elf::frames::functions(&file, &functions));
        }
        Ok(Self::new(functions, texts, instructions))
    }

    /// The functions in the order of their addresses, each with all its names, the preferred one first.
    pub fn functions(&self) -> impl Iterator<Item = &[Function]> {
        self.functions.chunk_by(|a, b| a.address == b.address)
    }

    /// The function of this name, by the name that is preferred.
    pub fn function(&self, name: &str) -> Option<&Function> {
        let named = self.functions.iter().find(|f| f.name == name)?;
        let first = self
            .functions
            .partition_point(|f| f.address < named.address);
        self.functions.get(first)
    }

    /// The function that the byte at `address` is of, the first of several.
    pub fn function_at(&self, address: u64) -> Option<&Function> {
        // The first that makes them reach farther than that reaches so far itself.
        let at = self.reach.partition_point(|reach| *reach <= address);
        let function = self.functions.get(at);
        function.filter(|function| function.address <= address)
    }

    /// Where in the file the byte of text at `address` is.
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        let mut texts = self.texts.iter();
        texts.find_map(|text| Some(text.offset + text.at(address)? as u64))
    }

    /// Whether it is of a program of 64 bits.
    pub(crate) fn is_wide(&self) -> bool {
        self.instructions.is_wide()
    }

    /// The text at `address`, `most` bytes or up to its end.
    pub(super) fn bytes(&self, address: u64, most: usize) -> Option<&[u8]> {
        let mut texts = self.texts.iter();
        let bytes = texts.find_map(|text| text.bytes.get(text.at(address)?..))?;
        Some(&bytes[..bytes.len().min(most)])
    }

    /// Where the instructions of a function begin, from its own beginning on. They end before what is none.
    pub fn instructions(&self, function: &Function) -> impl Iterator<Item = u64> + use<'_> {
        let size = usize::try_from(function.size).unwrap_or(usize::MAX);
        let bytes = self.bytes(function.address, size).unwrap_or_default();
        let offsets = self.instructions.offsets(bytes, function.address);
        offsets.map(|offset| offset as u64)
    }
}

impl Text {
    /// Which of its bytes is at `address`.
    fn at(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.address)?).ok()?;
        (offset < self.bytes.len()).then_some(offset)
    }
}
