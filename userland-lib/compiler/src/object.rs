// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The object file with which an application is linked (`dtrace -G`): descriptions of its
//! providers, in notes that are not loaded, and DOF.
//!
//! The DOF is in one allocated section, so that it is mapped with the application and needs no
//! separate file. The section's name, `.SUNW_dof`, is the same in every DTrace, and so is that of
//! the symbol `___SUNW_dof`, by which the application may register the DOF. The symbol is hidden,
//! and weak because several objects that are linked each define it. The section is marked to be
//! retained although nothing refers to it. The linker fills in the addresses of functions. (The
//! section's type is not illumos' `SHT_SUNW_dof`, because on Linux that number means a section
//! about stack frames.)

use crate::dof::Linkable;
use dtrace_files::arch::HOST;
use dtrace_objects::usdt::{self, DOF_SECTION as SECTION};
use object::elf::{
    SectionFlags as Flags, ELFOSABI_GNU, SHF_ALLOC, SHF_GNU_RETAIN, SHF_WRITE, SHT_NOTE,
    SHT_PROGBITS,
};
use object::write::{Object, Relocation, SectionId, Symbol, SymbolSection};
use object::{
    BinaryFormat, Endianness, FileFlags, RelocationFlags, SectionFlags, SectionKind, SymbolFlags,
    SymbolKind, SymbolScope,
};

/// Name of the symbol at its start.
pub const SYMBOL: &str = "___SUNW_dof";
/// Alignment of a DOF image: that of its largest numbers.
const ALIGN: u64 = 8;

/// Returns an ELF object for this machine with these notes and this DOF. The error says which limit
/// they exceed.
pub fn write(notes: &[u8], dof: Option<&Linkable>) -> Result<Vec<u8>, object::write::Error> {
    let endianness = if cfg!(target_endian = "big") {
        Endianness::Big
    } else {
        Endianness::Little
    };
    let mut object = Object::new(BinaryFormat::Elf, HOST.architecture, endianness);
    object.flags = FileFlags::Elf {
        os_abi: ELFOSABI_GNU,
        abi_version: 0,
        e_flags: Default::default(),
    };
    // None of its code needs an executable stack.
    section(&mut object, ".note.GNU-stack", SHT_PROGBITS, Flags(0));
    if !notes.is_empty() {
        let section = section(&mut object, usdt::PROVIDERS, SHT_NOTE, Flags(0));
        object.set_section_data(section, notes, 4);
    }
    if let Some(dof) = dof {
        add(&mut object, dof)?;
    }
    object.write()
}

fn section(
    object: &mut Object<'_>,
    name: &str,
    sh_type: object::elf::SectionType,
    sh_flags: Flags,
) -> SectionId {
    let section = object.add_section(Vec::new(), name.into(), SectionKind::Other);
    object.section_mut(section).flags = SectionFlags::Elf { sh_type, sh_flags };
    section
}

fn add<'d>(object: &mut Object<'d>, dof: &'d Linkable) -> Result<(), object::write::Error> {
    let mut flags = SHF_ALLOC | SHF_GNU_RETAIN;
    if !dof.addresses.is_empty() {
        // If the program is position-independent, the dynamic linker relocates the addresses.
        flags |= SHF_WRITE;
    }
    let section = section(object, SECTION, SHT_PROGBITS, flags);
    object.set_section_data(section, &*dof.bytes, ALIGN);
    object.add_symbol(Symbol {
        name: SYMBOL.as_bytes().to_vec(),
        value: 0,
        size: dof.bytes.len() as u64,
        kind: SymbolKind::Data,
        // Visible in everything that is linked into one file, but not outside of it: hidden.
        scope: SymbolScope::Linkage,
        weak: true,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
    for (offset, name) in &dof.addresses {
        let name = name.as_bytes();
        let symbol = object.symbol_id(name).unwrap_or_else(|| {
            object.add_symbol(Symbol {
                name: name.to_vec(),
                value: 0,
                size: 0,
                kind: SymbolKind::Text,
                scope: SymbolScope::Unknown,
                weak: false,
                section: SymbolSection::Undefined,
                flags: SymbolFlags::None,
            })
        });
        let relocation = Relocation {
            offset: *offset,
            symbol,
            addend: 0,
            flags: RelocationFlags::Elf {
                r_type: HOST.address,
            },
        };
        object.add_relocation(section, relocation)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::read::elf::ElfFile64;
    use object::{Object as _, ObjectKind, ObjectSection as _, ObjectSymbol as _};

    fn image(addresses: &[(u64, &str)]) -> Linkable {
        Linkable {
            bytes: (0..100).collect(),
            addresses: addresses
                .iter()
                .map(|(at, name)| (*at, (*name).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn a_program_is_one_section_and_one_hidden_symbol() {
        let dof = image(&[]);
        let file = write(&[], Some(&dof)).unwrap();
        let elf = ElfFile64::<Endianness>::parse(&*file).unwrap();
        assert_eq!(elf.kind(), ObjectKind::Relocatable);
        let section = elf.section_by_name(SECTION).unwrap();
        assert_eq!(section.data().unwrap(), dof.bytes);
        assert_eq!((section.align(), section.size()), (ALIGN, 100));
        let symbol = elf.symbol_by_name(SYMBOL).unwrap();
        assert_eq!((symbol.address(), symbol.size()), (0, 100));
        assert_eq!(symbol.section_index(), Some(section.index()));
        assert_eq!(symbol.scope(), SymbolScope::Linkage);
        assert!(elf.section_by_name(usdt::PROVIDERS).is_none());
        assert!(elf.section_by_name(".note.GNU-stack").is_some());
    }

    #[test]
    fn the_linker_is_asked_for_addresses() {
        let file = write(b"notes", Some(&image(&[(8, "f"), (16, "g"), (24, "f")]))).unwrap();
        let elf = ElfFile64::<Endianness>::parse(&*file).unwrap();
        let section = elf.section_by_name(SECTION).unwrap();
        let asked = section.relocations().map(|(at, relocation)| {
            let object::RelocationTarget::Symbol(index) = relocation.target() else {
                panic!("no symbol");
            };
            (at, elf.symbol_by_index(index).unwrap().name().unwrap())
        });
        assert_eq!(asked.collect::<Vec<_>>(), [(8, "f"), (16, "g"), (24, "f")]);
        let notes = elf.section_by_name(usdt::PROVIDERS).unwrap();
        assert_eq!(notes.data().unwrap(), b"notes");
    }
}
