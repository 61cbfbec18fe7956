// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The files that a running process has mapped code of.
//!
//! They are opened as the process has them, not as their paths say: a library may have been replaced since, and the process
//! may see other files under the same paths. Who may not do that gets what the paths mean to the process, where that is what is
//! mapped; any other object has no code.

use super::{Code, CodeMapping, Object};
use crate::proc::Target;
use crate::symbols::{mappings_of, path_to_mapped};
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
            name: mapping.object().to_owned(),
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

/// Functions and text of an object.
pub fn code(object: &Object) -> io::Result<Code> {
    // Whose process it is may have made a file for us to choke on, or something in its place that never ends.
    let metadata = fs::metadata(&object.file)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    if metadata.len() > FILE_MAX {
        return Err(io::Error::other("the file is too large"));
    }
    Code::parse(&fs::read(&object.file)?)
}
