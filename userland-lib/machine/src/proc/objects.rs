// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lists the files from which a running process has mapped code.
//!
//! Files are opened as the process has them, not by their paths: a library may have been replaced
//! since, and the process may see other files under the same paths. Without the right to do that,
//! the path is resolved as the process sees it, provided that it leads to the file that is mapped.
//! Any other object has no code.

use super::Target;
use crate::symbols::{all_mappings_of, folder_of, mappings_of, path_to_mapped, vdso};
use crate::symbols::{Backing, Mapping};
use dtrace_files::names;
use dtrace_files::outside;
use dtrace_objects::pid::{Code, CodeMapping, Object, FILE_MAX, MADE, VDSO};
use dtrace_uapi::limits::MODNAMELEN;
use std::fs;
use std::io;

/// Returns the objects of the process `pid`, the program first.
pub fn objects(pid: u32) -> io::Result<Vec<Object>> {
    if pid == std::process::id() {
        return Err(io::Error::other("it is dtrace itself"));
    }
    // `/proc` has threads too, but only a process can be grabbed.
    Target::grab(pid)?;
    let folder = folder_of(pid);
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
        // A module name cannot be longer.
        if mapping.object().len() >= MODNAMELEN {
            continue;
        }
        objects.push(Object {
            name: names::module(mapping.object()).into_owned(),
            path: mapping.path.clone(),
            // The path stays empty if the mapped file cannot be identified with certainty.
            file: path_to_mapped(pid, mapping).unwrap_or_default(),
            is_program: mapping.path == program,
            code: vec![code],
        });
    }
    objects.sort_by_key(|object| !object.is_program);
    Ok(objects)
}

/// Returns code that the process `pid` runs and that is not in a file, as one object: the kernel's
/// [code for processes](VDSO), or the [code in memory without a file](MADE).
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
        // Code without a file is numbered by its addresses in the process.
        offset: match wanted {
            Backing::Vdso => 0,
            _ => mapping.start,
        },
    });
    Some(Object {
        name: name.to_owned(),
        path: format!("[{name}]"),
        file: folder_of(pid).join("mem"),
        is_program: false,
        code: code.collect(),
    })
}

/// Whether a mapping without a file was made by the program and not by the kernel.
fn is_made(path: &str) -> bool {
    path.is_empty() || path.starts_with("[anon:")
}

/// Reads functions and text of an object.
pub fn code(object: &Object) -> io::Result<Code> {
    if !object.is_file() {
        return match object.code.first().filter(|_| object.name == VDSO) {
            Some(mapping) => Code::parse(&vdso(&object.file, mapping.range.clone())?),
            None => Err(io::Error::other("nobody tells its functions")),
        };
    }
    Code::parse(&outside::read(&outside::open(&object.file)?, FILE_MAX)?)
}
