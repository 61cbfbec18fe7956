// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A D program as an image, for programs of the VM that use the device by hand.

use dtrace::dof;
use dtrace::handle::{DevDtrace, Given, Handle, KernelWorld, PATH};
use dtrace::program::{Clause, Program};
use dtrace::source::Source;
use std::path::Path;

/// Compiles `text` for this machine. `size`: of each buffer, as the options have it.
pub fn compile(text: &str, size: &str) -> Result<Vec<u8>, String> {
    let set = ["bufsize", "aggsize", "dynvarsize", "specsize"].map(|name| (name, size));
    compiled(text, &set, |program, handle| {
        dof::emit(&program, &handle.options.for_kernel())
    })
}

/// The same, clause by clause, with options as usual.
pub fn clauses(text: &str) -> Result<Vec<Clause>, String> {
    compiled(text, &[], |program, _| program.clauses)
}

fn compiled<T>(
    text: &str,
    set: &[(&str, &str)],
    take: impl FnOnce(Program, &Handle<'_>) -> T,
) -> Result<T, String> {
    let device = DevDtrace::open(Path::new(PATH)).map_err(|e| format!("{PATH}: {e}"))?;
    let world = KernelWorld::new(&device);
    let mut handle = Handle::new(&world).map_err(|e| e.to_string())?;
    for (name, value) in set {
        let set = handle.set_option(name, Some(value));
        set.map_err(|e| e.to_string())?;
    }
    let read = handle.read(&Source::argument(text), Given::default());
    let program = read.and_then(|script| handle.compile(&script));
    let program = program.map_err(|e| e.to_string())?;
    Ok(take(program, &handle))
}
