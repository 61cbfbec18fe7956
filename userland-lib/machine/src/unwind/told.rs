// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A file's unwind information.
//!
//! A table is built in two steps, so that all of its inputs are in one place: [`Told`] extracts
//! from the file everything that a table is built from, and the table is built from that alone.
//! Each byte is read once. Thus the hash of the input, the [`Key`], identifies the table.
//!
//! Invariant: everything that [`Told::table`] reads is part of [`Told::key`], and so is everything
//! that determines how a table is built: its layout, and the sources that are compiled here
//! ([`COMPILER`]). This makes it unnecessary to raise a version number by hand.

use super::cfi;
use super::rows::Rows;
use dtrace_files::arch::Registers;
use dtrace_files::elf::section::{bases, bytes_of, section};
use dtrace_files::elf::{texts, Text};
use dtrace_files::fnv::{fnv, FNV};
use dtrace_unwind::table::VERSION;
use gimli::{BaseAddresses, DebugFrame, EhFrame, LittleEndian, SectionBaseAddresses};
use object::{Object as _, ReadRef};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::fmt;

/// Maximum size of a build ID's note, in bytes.
const BUILD_MAX: u64 = 1 << 10;

/// Fingerprint of the table compiler: our sources, and the versions of the dependencies.
const COMPILER: u64 = fingerprint(&[
    include_bytes!("cfi.rs"),
    include_bytes!("rows.rs"),
    include_bytes!("told.rs"),
    include_bytes!("../../../files/src/arch/registers.rs"),
    include_bytes!("../../../files/src/elf/section.rs"),
    include_bytes!("../../../../kmod/unwind/src/rule.rs"),
    include_bytes!("../../../../kmod/unwind/src/table.rs"),
    include_bytes!("../../../../kmod/unwind/src/walk.rs"),
    include_bytes!("../../../../Cargo.lock"),
]);

/// Hashes texts. A non-cryptographic hash suffices because the texts are our own, so nobody
/// attempts a collision.
const fn fingerprint(texts: &[&[u8]]) -> u64 {
    let mut hash = FNV;
    let mut n = 0;
    while n < texts.len() {
        hash = fnv(texts[n], hash);
        n += 1;
    }
    hash
}

/// The hash of a table's input and of its compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(pub [u8; 32]);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Everything that a table is built from.
#[derive(Clone)]
pub(super) struct Told<'a> {
    registers: Registers,
    places: Vec<Text>,
    bases: BaseAddresses,
    /// Whether the bytes are those of `.debug_frame` rather than of `.eh_frame`.
    is_debug: bool,
    data: Cow<'a, [u8]>,
}

impl<'a> Told<'a> {
    /// Extracts the unwind information of an ELF file. `None` if it has none or is for an
    /// unsupported processor.
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

    /// Builds the table. `None` if there are no rules or the table would exceed its limits.
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

    /// Returns the size of the unwind information in bytes.
    pub fn size(&self) -> usize {
        self.data.len()
    }

    /// Returns the key of the table for a file of `size` bytes with this build ID. These two are
    /// not needed to tell tables apart. They are a safeguard: should an input be missing here,
    /// files that differ in them still share no entry.
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
        // The size of each part is hashed too, so that the boundaries between the parts matter.
        let sizes = [numbers.len(), build_id.len(), data.len()].map(|size| size as u64);
        let numbers = sizes.iter().chain(&numbers);
        numbers.for_each(|number| hash.update(number.to_le_bytes()));
        hash.update(build_id);
        hash.update(data);
        Key(hash.finalize().into())
    }
}

/// Returns the file's build ID note as it is stored; empty if there is none.
pub(super) fn build_id<'a, R: ReadRef<'a>>(file: &object::File<'a, R>) -> Cow<'a, [u8]> {
    bytes_of(file, ".note.gnu.build-id", BUILD_MAX).unwrap_or_default()
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
            // The same bytes, divided differently between build ID and data.
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
