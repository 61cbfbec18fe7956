// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! DOF that lies in a file, in the section `.SUNW_dof`, as `dtrace -G` puts it there. Nobody need have registered it.
//!
//! Its addresses are those of the file, once the linker has put them in. Where it has left that to the dynamic linker, the relocation says them.

use super::dof::{parse_all, STACK};
use super::notes::Note;
use super::operand::Operand;
use object::read::{ReadCache, ReadRef};
use object::{
    elf, Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _,
    ObjectSymbolTable as _, RelocationFlags, RelocationTarget,
};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The section.
const SECTION: &str = ".SUNW_dof";
/// Most bytes of it.
const SIZE_MAX: u64 = 16 << 20;
/// The instruction that returns.
const RETURN: [u8; 1] = [0xc3];
/// Where a file says whether it is of 32 bits.
const CLASS: u64 = 4;
const CLASS_32: [u8; 1] = [1];

/// The sites that a file names so.
pub fn read(path: &Path) -> io::Result<Vec<Note>> {
    let mut notes = parse(&ReadCache::new(File::open(path)?));
    after_tail_calls(&mut notes, path);
    Ok(notes)
}

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
    notes
}

/// Where a call ended a function, and so was a jump, there is a return now: the stack begins with its address. The notes are of the file at
/// `path`, and know where in it they are.
pub fn after_tail_calls(notes: &mut [Note], path: &Path) {
    let open = || {
        File::open(path)
            .ok()
            .filter(|file| file.metadata().is_ok_and(|m| m.is_file()))
    };
    let mut file = None;
    for note in notes {
        let on_stack = note
            .arguments
            .iter_mut()
            .flatten()
            .filter(|operand| is_on_stack(operand));
        let on_stack: Vec<&mut Operand> = on_stack.collect();
        if on_stack.is_empty() {
            continue;
        }
        let Some(file) = file.get_or_insert_with(open) else {
            return;
        };
        let (mut code, mut class) = ([0], [0]);
        let is_read = file.read_exact_at(&mut code, note.offset).is_ok()
            && file.read_exact_at(&mut class, CLASS).is_ok();
        if is_read && code == RETURN {
            let word = if class == CLASS_32 { 4 } else { 8 };
            on_stack
                .into_iter()
                .for_each(|operand| operand.arg.value += word);
        }
    }
}

fn is_on_stack(operand: &Operand) -> bool {
    operand.arg.base == STACK && operand.arg.is_loaded != 0
}
