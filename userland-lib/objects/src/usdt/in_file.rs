// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! DOF in a file's section `.SUNW_dof`, where `dtrace -G` puts it. It need not be registered.
//!
//! Its addresses are those of the file once the linker has filled them in. If the linker leaves
//! that to the dynamic linker, they are computed from the relocations.
//!
//! DOF may not match the code: the linker keeps one of the copies of an inline function, and that
//! copy may come from another compiler or from other options. A breakpoint within an instruction
//! would crash the program. So a site counts only if an instruction is there that replaces a call.

use super::dof::parse_all;
use super::notes::Note;
use dtrace_files::arch::programs::{below_return, is_ours, replaced, ABSOLUTE, RELATIVE};
use dtrace_uapi::process::ANSWER;
use object::elf::Machine;
use object::read::ReadRef;
use object::{
    Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, ObjectSymbolTable as _,
    RelocationFlags, RelocationTarget,
};

/// Name of the section that contains the DOF.
pub const SECTION: &str = ".SUNW_dof";

/// Most bytes of the section.
const SIZE_MAX: u64 = 16 << 20;
/// Offsets in an ELF file: of its class (32 or 64 bits) and of its machine.
const CLASS: u64 = 4;
const CLASS_32: u8 = 1;
const MACHINE: u64 = 18;

/// Returns the notes for the DOF in a file of these contents. Empty if it is not a program.
pub fn parse<'d, R: ReadRef<'d>>(data: R) -> Vec<Note> {
    let Ok(file) = object::File::parse(data) else {
        return Vec::new();
    };
    let section = file.section_by_name(SECTION);
    let section = section.filter(|section| section.size() <= SIZE_MAX);
    let Some((section, bytes)) = section.and_then(|s| s.data().ok().map(|bytes| (s, bytes))) else {
        return Vec::new();
    };
    let mut bytes = bytes.to_vec();
    let symbol = |index| file.dynamic_symbol_table()?.symbol_by_index(index).ok();
    for (address, relocation) in file.dynamic_relocations().into_iter().flatten() {
        let base = match (relocation.flags(), relocation.target()) {
            (RelocationFlags::Elf { r_type }, _) if r_type == RELATIVE => Some(0),
            // The symbol may be another file's at run time, but this file's function is meant.
            (RelocationFlags::Elf { r_type }, RelocationTarget::Symbol(index))
                if r_type == ABSOLUTE =>
            {
                symbol(index)
                    .filter(|symbol| symbol.is_definition())
                    .map(|symbol| symbol.address())
            }
            _ => None,
        };
        let at = address.checked_sub(section.address());
        let at = at.and_then(|at| usize::try_from(at).ok());
        let word = at.and_then(|at| bytes.get_mut(at..at.checked_add(8)?));
        if let (Some(word), Some(base)) = (word, base) {
            let value = base.wrapping_add_signed(relocation.addend());
            word.copy_from_slice(&value.to_le_bytes());
        }
    }
    let mut notes = parse_all(&bytes);
    let offset = |address: u64| {
        file.segments().find_map(|segment| {
            let (offset, size) = segment.file_range();
            let within = address.checked_sub(segment.address())?;
            (within < size).then(|| offset.checked_add(within))?
        })
    };
    notes.retain_mut(|note| {
        let found = offset(note.address);
        note.offset = found.unwrap_or_default();
        found.is_some()
    });
    look(&mut notes, data);
    notes
}

/// Removes the sites at which no instruction replaces a call in the file of these contents. The
/// notes' offsets must be set. Files of other machines are not checked.
///
/// Where the call was the last instruction of its function (a jump), there is a return. The
/// arguments on the stack are then behind the return address, so they are adjusted.
pub fn look<'d, R: ReadRef<'d>>(notes: &mut Vec<Note>, data: R) {
    let bytes = |at, size| data.read_bytes_at(at, size).ok();
    let machine = bytes(MACHINE, 2).and_then(|machine| machine.try_into().ok());
    if !machine.is_some_and(|machine| is_ours(Machine(u16::from_le_bytes(machine)))) {
        return;
    }
    let is_long = bytes(CLASS, 1) != Some(&[CLASS_32]);
    notes.retain_mut(|note| {
        // A site of one byte may be the last byte of the file.
        let code = bytes(note.offset, 2).or_else(|| bytes(note.offset, 1));
        let code = code.unwrap_or_default();
        if replaced::is_return(code) {
            let operands = note.arguments.iter_mut().flatten();
            operands.for_each(|operand| below_return(operand, is_long));
        }
        let is_zero = || {
            let size = replaced::ZERO_SIZE as u64;
            let before = note.offset.checked_sub(size);
            let before = before.and_then(|at| bytes(at, size));
            before.is_some_and(replaced::is_zero)
        };
        replaced::is_site(code) && (!is_answered(note) || is_zero())
    });
}

/// Whether this is an is-enabled site whose answer is the result register.
fn is_answered(note: &Note) -> bool {
    let mut operands = note.arguments.iter().flatten();
    note.asks && operands.any(|operand| operand.arg.form == ANSWER)
}
