// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What a file tells of its stacks.
//!
//! A table is made in two steps, so that what it depends on stands in one place: [`Told`] takes from the file all that a table is made
//! from, and the table is made from that alone. Each byte is read once. So the hash of what is told, the [`Key`], stands for the table.
//!
//! Invariant: whatever [`Told::table`] looks at is a part of [`Told::key`], and so is whatever makes a table of it: its layout, and the
//! sources that are compiled here ([`COMPILER`]). Nobody has to remember to raise a number.

use super::cfi;
use super::rows::Rows;
use crate::arch::Registers;
use crate::elf::{texts, Text};
use crate::fnv::{fnv, FNV};
use dtrace_unwind::table::VERSION;
use gimli::{BaseAddresses, DebugFrame, EhFrame, LittleEndian, SectionBaseAddresses};
use object::{Object as _, ObjectSection as _, ReadRef};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::fmt;

/// Bytes of a section that are read.
const SECTION_MAX: u64 = 1 << 28;
/// Bytes of a build-id's note that are looked at.
const BUILD_MAX: u64 = 1 << 10;

/// What makes a table of what is told: our sources, and the versions of others'.
const COMPILER: u64 = fingerprint(&[
    include_bytes!("cfi.rs"),
    include_bytes!("rows.rs"),
    include_bytes!("told.rs"),
    include_bytes!("../arch/registers.rs"),
    include_bytes!("../../../kmod/unwind/src/rule.rs"),
    include_bytes!("../../../kmod/unwind/src/table.rs"),
    include_bytes!("../../../kmod/unwind/src/walk.rs"),
    include_bytes!("../../../Cargo.lock"),
]);

/// A hash of texts. They are ours, so nobody looks for two with the same one.
const fn fingerprint(texts: &[&[u8]]) -> u64 {
    let mut hash = FNV;
    let mut n = 0;
    while n < texts.len() {
        hash = fnv(texts[n], hash);
        n += 1;
    }
    hash
}

/// The hash of what a table is made from, and of what makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(pub [u8; 32]);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// All that a table is made from.
#[derive(Clone)]
pub(super) struct Told<'a> {
    registers: Registers,
    places: Vec<Text>,
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
            places: texts(file),
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

    /// How many bytes a table is made from.
    pub fn size(&self) -> usize {
        self.data.len()
    }

    /// The key of the table, of a file of this size with this build-id. These two are not needed to tell tables apart: files that differ
    /// in them share nothing, should something have been forgotten here.
    pub fn key(&self, size: u64, build_id: &[u8]) -> Key {
        let Self {
            registers,
            places,
            bases,
            is_debug,
            data,
        } = self;
        let Registers {
            word,
            sp,
            fp,
            return_address,
        } = registers;
        let mut numbers = vec![VERSION.into(), COMPILER, size, (*is_debug).into()];
        numbers.push(word.bytes());
        numbers.extend([sp, fp, return_address].map(|register| u64::from(register.0)));
        for base in [&bases.eh_frame_hdr, &bases.eh_frame] {
            let SectionBaseAddresses {
                section,
                text,
                data,
            } = base;
            for address in [section, text, data] {
                numbers.extend([address.is_some().into(), address.unwrap_or_default()]);
            }
        }
        for Text {
            address,
            size,
            offset,
        } in places
        {
            numbers.extend([address, size, offset]);
        }
        let mut hash = Sha256::new();
        // Of each part its size: where one ends and the next begins is hashed too.
        let sizes = [numbers.len(), build_id.len(), data.len()].map(|size| size as u64);
        let numbers = sizes.iter().chain(&numbers);
        numbers.for_each(|number| hash.update(number.to_le_bytes()));
        hash.update(build_id);
        hash.update(data);
        Key(hash.finalize().into())
    }
}

/// What a file says that identifies its build, as it lies there; empty if it says nothing.
pub(super) fn build_id<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> Cow<'a, [u8]> {
    bytes_of(file, ".note.gnu.build-id", BUILD_MAX).unwrap_or_default()
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
    bytes_of(file, name, SECTION_MAX)
}

/// The same of a section of `most` bytes.
fn bytes_of<'a, R: ReadRef<'a>>(
    file: &object::File<'a, R>,
    name: &str,
    most: u64,
) -> Option<Cow<'a, [u8]>> {
    let section = file.section_by_name(name)?;
    let data = (section.size() <= most).then(|| section.uncompressed_data().ok())??;
    (!data.is_empty()).then_some(data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::Architecture;

    fn told() -> Told<'static> {
        let (address, size, offset) = (1, 2, 3);
        Told {
            registers: Registers::of(Architecture::X86_64).unwrap(),
            places: vec![Text {
                address,
                size,
                offset,
            }],
            bases: BaseAddresses::default().set_text(0),
            is_debug: false,
            data: Cow::Borrowed(b"rules"),
        }
    }

    #[test]
    fn whatever_a_table_is_made_from_is_in_its_key() {
        let key = |change: &dyn Fn(&mut Told<'static>)| {
            let mut changed = told();
            change(&mut changed);
            changed.key(4, b"id")
        };
        let keys = [
            key(&|_| ()),
            key(&|told| told.registers = Registers::of(Architecture::I386).unwrap()),
            key(&|told| told.registers.word = dtrace_unwind::Word::Four),
            key(&|told| told.registers.sp.0 += 1),
            key(&|told| told.registers.fp.0 += 1),
            key(&|told| told.registers.return_address.0 += 1),
            key(&|told| told.places[0].address += 1),
            key(&|told| told.places[0].size += 1),
            key(&|told| told.places[0].offset += 1),
            key(&|told| told.places.push(told.places[0].clone())),
            key(&|told| told.places.clear()),
            key(&|told| told.bases.eh_frame.section = Some(0)),
            key(&|told| told.bases.eh_frame.text = None),
            key(&|told| told.bases.eh_frame.text = Some(1)),
            key(&|told| told.bases.eh_frame.data = Some(0)),
            key(&|told| told.is_debug = true),
            key(&|told| told.data = Cow::Borrowed(b"other")),
            key(&|told| told.data = Cow::Borrowed(b"rule")),
            told().key(5, b"id"),
            told().key(4, b"ID"),
            // Where one part ends and the next begins.
            key(&|told| told.data = Cow::Borrowed(b"idrules")),
            {
                let mut shifted = told();
                shifted.data = Cow::Borrowed(b"drules");
                shifted.key(4, b"i")
            },
        ];
        for (n, one) in keys.iter().enumerate() {
            assert!(!keys[..n].contains(one), "{n}");
        }
        assert_eq!(told().key(4, b"id"), keys[0]);
    }

    #[test]
    fn sources_are_told_apart() {
        assert_eq!(fingerprint(&[b"a"]), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(fingerprint(&[b"a", b"b"]), fingerprint(&[b"a", b"c"]));
        let version = include_bytes!("cfi.rs");
        assert_ne!(COMPILER, fingerprint(&[version]));
    }
}
