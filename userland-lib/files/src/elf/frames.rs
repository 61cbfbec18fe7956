// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds functions of a file without symbols from its unwind information (`.eh_frame`).
//!
//! Compilers emit this information for every function, and stripping leaves it, because programs
//! need it themselves. It gives a function's bounds but no name, so such a function is named by its
//! address. A function with a symbol keeps the symbol's name.

use super::section::{bases, section};
use super::{Binding, Function, FUNCTIONS_MAX};
use gimli::{CieOrFde, EhFrame, EndianSlice, RunTimeEndian, UnwindSection};
use object::{Object as _, ObjectSection as _, ReadRef};
use std::ops::ControlFlow;

/// Sections made by the linker. Each has one entry for many short pieces of code, which are no
/// functions.
const LINKAGE: &str = ".plt";
/// Most such sections of a file.
const LINKAGES_MAX: usize = 16;
/// Most bytes of common information entries (CIEs) that are parsed. A CIE is parsed again for each
/// entry that refers to it.
const COMMON_MAX: usize = 1 << 28;

/// Returns the functions that are known only from unwind information, in addition to `known`.
pub fn functions<'a, R: ReadRef<'a>>(
    file: &object::File<'a, R>,
    known: &[Function],
) -> Vec<Function> {
    let linkage = file.sections().filter(|section| {
        let name = section.name();
        name.is_ok_and(|name| name.starts_with(LINKAGE))
    });
    let linkage: Vec<_> = linkage
        .take(LINKAGES_MAX)
        .map(|s| s.address()..s.address().saturating_add(s.size()))
        .collect();
    let mut names: Vec<(u64, u64)> = known.iter().map(|f| (f.address, f.size)).collect();
    names.sort_unstable();
    let has_name = |address: u64| {
        let after = names.partition_point(|known| known.0 <= address);
        let before = after.checked_sub(1).and_then(|at| names.get(at));
        before.is_some_and(|(start, size)| address == *start || address - start < *size)
    };
    let mut functions = Vec::new();
    read(file, |address, size| {
        if !has_name(address) && !linkage.iter().any(|range| range.contains(&address)) {
            functions.push(Function {
                name: format!("{address:#x}"),
                address,
                size,
                binding: Binding::Local,
            });
        }
        match functions.len() < FUNCTIONS_MAX {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    functions
}

/// Returns the size of the function that begins at an address, if unwind information has one.
pub fn size_of<'a, R: ReadRef<'a>>(file: &object::File<'a, R>, begin: u64) -> Option<u64> {
    let mut found = None;
    read(file, |address, size| {
        if address != begin {
            return ControlFlow::Continue(());
        }
        found = Some(size);
        ControlFlow::Break(())
    });
    found
}

/// Calls `found` with address and size of each function of the unwind information until it breaks.
fn read<'a, R: ReadRef<'a>>(
    file: &object::File<'a, R>,
    mut found: impl FnMut(u64, u64) -> ControlFlow<()>,
) {
    let Some(data) = section(file, ".eh_frame") else {
        return;
    };
    let bases = bases(file);
    let endian = match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let mut frames = EhFrame::new(&data, endian);
    frames.set_address_size(if file.is_64() { 8 } else { 4 });
    let mut entries = frames.entries(&bases);
    let mut common = 0_usize;
    // Damaged data ends the list.
    while let Ok(Some(entry)) = entries.next() {
        if common > COMMON_MAX {
            break;
        }
        let CieOrFde::Fde(entry) = entry else {
            continue;
        };
        let Ok(entry) = entry.parse(
            |frames: &EhFrame<EndianSlice<'_, RunTimeEndian>>, bases, offset| {
                frames.cie_from_offset(bases, offset)
            },
        ) else {
            continue;
        };
        common = common.saturating_add(entry.cie().entry_len());
        // For the return code of a signal handler the entry begins one byte before the code.
        if !entry.is_signal_trampoline() && found(entry.initial_address(), entry.len()).is_break() {
            break;
        }
    }
}
