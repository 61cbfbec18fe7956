// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Functions and instructions of an ELF file.
//!
//! Names come from the file's symbol table. If the file was stripped, they come from the table of
//! its exported symbols and from a packed table, and a function that neither names is named by its
//! address. A function may have several names.
//!
//! Invariant: functions are sorted by address, and each begins in executable text.

use dtrace_files::arch::Instructions;
use dtrace_files::elf::{self, Function};
use dtrace_uapi::limits::FUNCNAMELEN;
use object::{Object as _, ObjectSegment as _};
use std::io;

/// Most executable segments that are read. Linkers make one or two; many could force a copy of the
/// file for each.
const TEXTS_MAX: usize = 16;

/// Largest file that is read, in bytes.
pub const FILE_MAX: u64 = 1 << 31;

/// A range of executable text.
#[derive(Clone, Debug)]
pub struct Text {
    /// Address of its beginning in the file's numbering.
    pub address: u64,
    /// Offset of its beginning in the file.
    pub offset: u64,
    /// The code.
    pub bytes: Vec<u8>,
}

/// Functions and text of a file.
#[derive(Clone, Debug)]
pub struct Code {
    functions: Vec<Function>,
    /// For each function, the greatest end of it and of those before it.
    reach: Vec<u64>,
    texts: Vec<Text>,
    pub(super) instructions: Instructions,
}

impl Code {
    /// Combines functions with text. Functions outside of the text and empty functions are left
    /// out.
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

    /// Parses an ELF file.
    pub fn parse(bytes: &[u8]) -> io::Result<Self> {
        let invalid = |error: object::Error| io::Error::other(error.to_string());
        let file = object::File::parse(bytes).map_err(invalid)?;
        let instructions = Instructions::of(file.architecture());
        let instructions =
            instructions.ok_or_else(|| io::Error::other("code of an unknown machine"))?;
        let mut texts = Vec::new();
        // Several segments may refer to the same bytes. Limit the total, so that these are not
        // copied again and again.
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
        // A probe's function name cannot be longer.
        let mut functions = elf::functions(file.symbols(), FUNCNAMELEN);
        elf::measure(&mut functions, &file);
        if functions.is_empty() {
            functions = elf::functions(file.dynamic_symbols(), FUNCNAMELEN);
            functions.extend(elf::packed::functions(&file, FUNCNAMELEN));
            functions.extend(elf::frames::functions(&file, &functions));
        }
        Ok(Self::new(functions, texts, instructions))
    }

    /// Returns the functions in the order of their addresses, each with all its names, the
    /// preferred one first.
    pub fn functions(&self) -> impl Iterator<Item = &[Function]> {
        self.functions.chunk_by(|a, b| a.address == b.address)
    }

    /// Returns the function of this name, under its preferred name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        let named = self.functions.iter().find(|f| f.name == name)?;
        let first = self
            .functions
            .partition_point(|f| f.address < named.address);
        self.functions.get(first)
    }

    /// Returns the function that contains the byte at `address`; of several, the first.
    pub fn function_at(&self, address: u64) -> Option<&Function> {
        // Where the greatest end first exceeds the address, it is that function's own end.
        let at = self.reach.partition_point(|reach| *reach <= address);
        let function = self.functions.get(at);
        function.filter(|function| function.address <= address)
    }

    /// Returns the offset in the file of the byte of text at `address`.
    pub fn file_offset(&self, address: u64) -> Option<u64> {
        let mut texts = self.texts.iter();
        texts.find_map(|text| Some(text.offset + text.at(address)? as u64))
    }

    /// Whether it is code of a 64-bit program.
    pub fn is_wide(&self) -> bool {
        self.instructions.is_wide()
    }

    /// Returns the text from `address` on, at most `most` bytes.
    pub(super) fn bytes(&self, address: u64, most: usize) -> Option<&[u8]> {
        let mut texts = self.texts.iter();
        let bytes = texts.find_map(|text| text.bytes.get(text.at(address)?..))?;
        Some(&bytes[..bytes.len().min(most)])
    }

    /// Returns the offsets in a function at which its instructions begin. The list ends at the
    /// first byte that does not begin a valid instruction.
    pub fn instructions(&self, function: &Function) -> impl Iterator<Item = u64> + use<'_> {
        let size = usize::try_from(function.size).unwrap_or(usize::MAX);
        let bytes = self.bytes(function.address, size).unwrap_or_default();
        let offsets = self.instructions.offsets(bytes, function.address);
        offsets.map(|offset| offset as u64)
    }
}

impl Text {
    /// Returns the index of the byte at `address`.
    fn at(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.address)?).ok()?;
        (offset < self.bytes.len()).then_some(offset)
    }
}
