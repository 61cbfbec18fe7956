// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What a file tells of its stacks.
//!
//! A table is made in two steps, so that what it depends on stands in one place: [`Told`] takes from the file all that a table is made
//! from, and the table is made from that alone. Each byte is read once.

use super::cfi;
use super::rows::{Place, Rows};
use crate::arch::Registers;
use crate::symbols::is_code;
use gimli::{BaseAddresses, DebugFrame, EhFrame, LittleEndian};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ReadRef};
use std::borrow::Cow;

/// Bytes of a section that are read.
const SECTION_MAX: u64 = 1 << 28;
/// Parts of a file that are code.
const PLACES_MAX: usize = 64;

/// All that a table is made from.
#[derive(Clone)]
pub(super) struct Told<'a> {
    registers: Registers,
    places: Vec<Place>,
    bases: BaseAddresses,
    /// The bytes are those of `.debug_frame`, not of `.eh_frame`.
    is_debug: bool,
    data: Cow<'a, [u8]>,
}

impl<'a> Told<'a> {
    /// What an ELF file tells. `None`: nothing, or it is of another processor.
    pub fn of<R: ReadRef<'a>>(file: &object::File<'a, R>) -> Option<Self> {
        let registers = Registers::of(file.architecture())?;
        let (is_debug, data) = match section(file, ".eh_frame") {
            Some(data) => (false, data),
            None => (true, section(file, ".debug_frame")?),
        };
        Some(Self {
            registers,
            places: places(file),
            bases: bases(file),
            is_debug,
            data,
        })
    }

    /// The table. `None`: there are no rules, or it is larger than tables can be.
    pub fn table(&self) -> Option<Vec<u8>> {
        let word = self.registers.word;
        let mut rows = Rows::new(self.places.clone());
        match self.is_debug {
            false => {
                let mut frames = EhFrame::new(&self.data, LittleEndian);
                frames.set_address_size(word.bytes() as u8);
                cfi::read(&frames, &self.bases, &self.registers, &mut rows);
            }
            true => {
                let mut frames = DebugFrame::new(&self.data, LittleEndian);
                frames.set_address_size(word.bytes() as u8);
                cfi::read(&frames, &self.bases, &self.registers, &mut rows);
            }
        }
        rows.into_table(word)
    }
}

/// What addresses in a file's `.eh_frame` may be relative to.
pub(crate) fn bases<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> BaseAddresses {
    let address = |name| file.section_by_name(name).map_or(0, |s| s.address());
    BaseAddresses::default()
        .set_eh_frame(address(".eh_frame"))
        .set_text(address(".text"))
        .set_got(address(".got"))
}

/// The bytes of a section that has any.
pub(crate) fn section<'a, R: ReadRef<'a>>(
    file: &object::File<'a, R>,
    name: &str,
) -> Option<Cow<'a, [u8]>> {
    let section = file.section_by_name(name)?;
    let data = (section.size() <= SECTION_MAX).then(|| section.uncompressed_data().ok())??;
    (!data.is_empty()).then_some(data)
}

/// Where code is in the file, by its addresses.
fn places<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> Vec<Place> {
    let code = file.segments().filter(|segment| is_code(segment.flags()));
    let code = code.take(PLACES_MAX);
    code.map(|segment| {
        let (offset, size) = segment.file_range();
        Place {
            address: segment.address(),
            size,
            offset,
        }
    })
    .collect()
}
