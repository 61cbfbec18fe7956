// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A D program as an image, for programs of the VM that use the device by hand.

use dtrace::dof;
use dtrace::handle::{DevDtrace, Given, Handle, KernelWorld, PATH};
use dtrace::source::Source;
use std::path::Path;

/// Compiles `text` for this machine. `size`: of each buffer, as the options have it.
pub fn compile(text: &str, size: &str) -> Result<Vec<u8>, String> {
    let device = DevDtrace::open(Path::new(PATH)).map_err(|e| format!("{PATH}: {e}"))?;
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).map_err(|e| e.to_string())?;
    for name in ["bufsize", "aggsize", "dynvarsize", "specsize"] {
        let set = handle.set_option(name, Some(size));
        set.map_err(|e| e.to_string())?;
    }
    let read = handle.read(&Source::argument(text), Given::default());
    let program = read.and_then(|script| handle.compile(&script));
    let program = program.map_err(|e| e.to_string())?;
    Ok(dof::emit(&program, &handle.options.for_kernel()))
}
