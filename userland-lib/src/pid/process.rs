// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The files that a running process has mapped code of.
//!
//! They are opened as the process has them, not as their paths say: a library may have been replaced since, and the process
//! may see other files under the same paths. Who may not do that gets what the paths mean to the process, where that is what is
//! mapped; any other object has no code.

use super::{Code, CodeMapping, Object, MADE, VDSO};
use crate::names;
use crate::outside;
use crate::proc::Target;
use crate::symbols::{all_mappings_of, mappings_of, path_to_mapped, vdso, Backing, Mapping};
use dtrace_uapi::limits::MODNAMELEN;
use std::fs;
use std::io;
use std::path::PathBuf;

/// Bytes of a file that is read.
pub const FILE_MAX: u64 = 1 << 31;

/// The objects of the process `pid`, the program first.
pub fn objects(pid: u32) -> io::Result<Vec<Object>> {
    if pid == std::process::id() {
        return Err(io::Error::other("it is dtrace itself"));
    }
    // A thread has mappings too, but is no process.
    Target::grab(pid)?;
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let mappings = mappings_of(pid)?;
    if mappings.is_empty() {
        return Err(io::Error::other("it runs no program"));
    }
    let program = fs::read_link(folder.join("exe"))?;
    let program = program.to_string_lossy();
    let program = program.strip_suffix(" (deleted)").unwrap_or(&program);
    let mut objects: Vec<Object> = Vec::new();
    for mapping in mappings.iter().filter(|mapping| mapping.is_code) {
        let code = CodeMapping {
            range: mapping.start..mapping.end,
            offset: mapping.offset,
        };
        let mut known = objects.iter_mut();
        if let Some(object) = known.find(|object| object.path == mapping.path) {
            object.code.push(code);
            continue;
        }
        // A longer name is no module's.
        if mapping.object().len() >= MODNAMELEN {
            continue;
        }
        objects.push(Object {
            name: names::module(mapping.object()).into_owned(),
            path: mapping.path.clone(),
            // No path leads to what cannot be found for certain.
            file: path_to_mapped(pid, mapping).unwrap_or_default(),
            is_program: mapping.path == program,
            code: vec![code],
        });
    }
    objects.sort_by_key(|object| !object.is_program);
    Ok(objects)
}

/// What the process `pid` runs that is in no file, as one object: the kernel's [code for processes](VDSO), or [what it has made](MADE) to execute.
pub fn bare(pid: u32, name: &str) -> Option<Object> {
    let wanted = match name {
        VDSO => Backing::Vdso,
        MADE => Backing::Memory,
        _ => return None,
    };
    let is_wanted = |mapping: &Mapping| mapping.is_code && mapping.backing == wanted;
    let mut mappings = all_mappings_of(pid).ok()?;
    mappings.retain(|mapping| is_wanted(mapping) && (name == VDSO || is_made(&mapping.path)));
    let code = mappings.iter().map(|mapping| CodeMapping {
        range: mapping.start..mapping.end,
        // What is in no file is numbered as the process has it.
        offset: match wanted {
            Backing::Vdso => 0,
            _ => mapping.start,
        },
    });
    Some(Object {
        name: name.to_owned(),
        path: format!("[{name}]"),
        file: format!("/proc/{pid}/mem").into(),
        is_program: false,
        code: code.collect(),
    })
}

/// Whether a mapping without a file is one that a program makes; the kernel makes others.
fn is_made(path: &str) -> bool {
    path.is_empty() || path.starts_with("[anon:")
}

/// Functions and text of an object.
pub fn code(object: &Object) -> io::Result<Code> {
    if !object.is_file() {
        return match object.code.first().filter(|_| object.name == VDSO) {
            Some(mapping) => Code::parse(&vdso(&object.file, mapping.range.clone())?),
            None => Err(io::Error::other("nobody tells its functions")),
        };
    }
    Code::parse(&outside::read(&outside::open(&object.file)?, FILE_MAX)?)
}
