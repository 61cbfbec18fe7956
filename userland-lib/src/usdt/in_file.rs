// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! DOF that lies in a file, in the section `.SUNW_dof`, as `dtrace -G` puts it there. Nobody need have registered it.
//!
//! Its addresses are those of the file, once the linker has put them in. Where it has left that to the dynamic linker, the relocation says them.
//!
//! DOF may be wrong about the code: the linker keeps one of the copies of an inline function, and another compiler, or other options, may have
//! made that. A breakpoint within an instruction would end the program. So a site is one only if an instruction is there that takes the place of
//! a call.

use super::dof::parse_all;
use super::notes::Note;
use crate::arch::x86_64::{below_return, is_ours, replaced};
use crate::object::SECTION;
use dtrace_uapi::process::ANSWER;
use object::elf::{self, Machine};
use object::read::ReadRef;
use object::{
    Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, ObjectSymbolTable as _,
    RelocationFlags, RelocationTarget,
};

/// Most bytes of it.
const SIZE_MAX: u64 = 16 << 20;
/// Where a file says whether it is of 32 bits, and of which processor.
const CLASS: u64 = 4;
const CLASS_32: u8 = 1;
const MACHINE: u64 = 18;

/// Those that a file names whose contents these are; none of one that is no program.
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
            (RelocationFlags::Elf { r_type }, _) if r_type == elf::R_X86_64_RELATIVE => Some(0),
            // Of a function that may be another's when the program runs: the one of this file is meant.
            (RelocationFlags::Elf { r_type }, RelocationTarget::Symbol(index))
                if r_type == elf::R_X86_64_64 =>
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

/// Looks at the instructions of sites in the file of these contents; the notes know where in it they are. Those that are none go.
///
/// Where a call ended a function there is a return now, and what was passed on the stack is behind its address.
pub fn look<'d, R: ReadRef<'d>>(notes: &mut Vec<Note>, data: R) {
    let bytes = |at, size| data.read_bytes_at(at, size).ok();
    let machine = bytes(MACHINE, 2).and_then(|machine| machine.try_into().ok());
    if !machine.is_some_and(|machine| is_ours(Machine(u16::from_le_bytes(machine)))) {
        return;
    }
    let is_long = bytes(CLASS, 1) != Some(&[CLASS_32]);
    notes.retain_mut(|note| {
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

/// Whether the program asks here, and its result register is the answer.
fn is_answered(note: &Note) -> bool {
    let mut operands = note.arguments.iter().flatten();
    note.asks && operands.any(|operand| operand.arg.form == ANSWER)
}
