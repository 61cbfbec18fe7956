// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A compiled program as a relocatable object, which is how an application carries it (`dtrace -G`).
//!
//! The program's DOF is one allocated section, so that it is mapped with the application and needs no file of its own.
//! Names and numbers are those of every DTrace, by which tools find the program in a file: section `.SUNW_dof` of a type
//! of its own, and symbol `___SUNW_dof`, hidden, because each object that is linked may bring a program.

use object::elf::{SectionType, SHF_ALLOC};
use object::write::{Object, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, SectionFlags, SectionKind, SymbolFlags, SymbolKind,
    SymbolScope,
};

/// Name of the section that holds a program.
pub const SECTION: &str = ".SUNW_dof";
/// Its type, `SHT_SUNW_dof` (illumos `sys/elf.h`).
pub const SECTION_TYPE: u32 = 0x6fff_fff4;
/// Name of the symbol that stands for the program.
pub const SYMBOL: &str = "___SUNW_dof";
/// A DOF image is aligned as its largest numbers are.
const ALIGN: u64 = 8;

/// An ELF object of this machine that holds the DOF image `dof`; the error says what the image is too large for.
pub fn embed(dof: &[u8]) -> Result<Vec<u8>, object::write::Error> {
    let architecture = if cfg!(target_arch = "aarch64") {
        Architecture::Aarch64
    } else {
        Architecture::X86_64
    };
    let endianness = if cfg!(target_endian = "big") {
        Endianness::Big
    } else {
        Endianness::Little
    };
    let mut object = Object::new(BinaryFormat::Elf, architecture, endianness);
    let name = SECTION.as_bytes().to_vec();
    let section = object.add_section(Vec::new(), name, SectionKind::ReadOnlyData);
    object.section_mut(section).flags = SectionFlags::Elf {
        sh_type: SectionType(SECTION_TYPE),
        sh_flags: SHF_ALLOC,
    };
    object.set_section_data(section, dof, ALIGN);
    object.add_symbol(Symbol {
        name: SYMBOL.as_bytes().to_vec(),
        value: 0,
        size: dof.len() as u64,
        kind: SymbolKind::Data,
        // Of the whole that is linked, and no further: hidden.
        scope: SymbolScope::Linkage,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
    object.write()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::read::elf::ElfFile64;
    use object::{Object as _, ObjectKind, ObjectSection as _, ObjectSymbol as _};

    #[test]
    fn a_program_is_one_section_and_one_hidden_symbol() {
        let dof: Vec<u8> = (0..100).collect();
        let file = embed(&dof).unwrap();
        let elf = ElfFile64::<Endianness>::parse(&*file).unwrap();
        assert_eq!(elf.kind(), ObjectKind::Relocatable);
        let section = elf.section_by_name(SECTION).unwrap();
        assert_eq!(section.data().unwrap(), dof);
        assert_eq!((section.align(), section.size()), (ALIGN, 100));
        let header = section.elf_section_header();
        assert_eq!(header.sh_type.get(Endianness::Little).0, SECTION_TYPE);
        let symbol = elf.symbol_by_name(SYMBOL).unwrap();
        assert_eq!((symbol.address(), symbol.size()), (0, 100));
        assert_eq!(symbol.section_index(), Some(section.index()));
        assert_eq!(symbol.scope(), SymbolScope::Linkage);
    }
}
