// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Reading the debug information of a program's file that any user may have made (functions,
//! inlined functions, types and lines) must end without a failure.

use dtrace::dwarf::{DebugInfo, Tag, Type, TypeId};
use dtrace::pid::{Code, Told};
use std::collections::HashSet;
use std::ops::Range;

/// Maximum number of types that are visited.
const TYPES_MAX: usize = 1000;

/// The input is an ELF file.
pub fn dwarf(data: &[u8]) {
    let code = Code::parse(data);
    if let Ok(unasked) = DebugInfo::parse_unasked(data.into()) {
        for address in 0x1000..0x1100 {
            let _ = unasked.inlined(address);
        }
    }
    let alone = DebugInfo::parse(data.into());
    // Use the file as its own supplementary file.
    let both = DebugInfo::parse_both(data.into(), data.into());
    for debug in alone.into_iter().chain(both) {
        look(&debug, code.as_ref().ok());
    }
}

fn look(debug: &DebugInfo, code: Option<&Code>) {
    take_apart(debug, 0x1000..0x1100);
    let lines = debug.lines("prog.c", 10);
    for address in lines.addresses {
        if let Some(code) = code {
            let _ = code.file_offset(address);
        }
    }
}

/// Visits the types of the functions at these addresses, one type by its name, and all types that
/// they consist of.
pub fn take_apart(told: &dyn Told, addresses: Range<u64>) {
    let mut types = Vec::new();
    for address in addresses {
        if let Ok(Some(found)) = told.function(address) {
            types.extend(found.ret);
            types.extend(found.params.iter().filter_map(|param| param.1));
        }
    }
    types.extend(told.named(Tag::Struct, "point"));
    let mut seen = HashSet::new();
    while let (Some(id), true) = (types.pop(), seen.len() < TYPES_MAX) {
        if seen.insert(id) {
            types.extend(parts(told, id));
        }
    }
}

/// The types that a type directly refers to.
fn parts(told: &dyn Told, id: TypeId) -> Vec<TypeId> {
    let mut parts: Vec<TypeId> = match told.ty(id) {
        Ok(
            Type::Pointer(to, _)
            | Type::Array(to, _)
            | Type::Typedef(_, to)
            | Type::Const(to)
            | Type::Same(to),
        ) => to.into_iter().collect(),
        Ok(Type::Function(ret, params, _)) => ret
            .into_iter()
            .chain(params.into_iter().flatten())
            .collect(),
        _ => Vec::new(),
    };
    for member in told.members(id).unwrap_or_default() {
        parts.extend(member.ty);
    }
    parts
}
