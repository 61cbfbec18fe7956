// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compiles D programs into images, and builds descriptions and requests for probes in processes,
//! for programs in the VM that use the device directly.

use dtrace::device::{DevDtrace, PATH};
use dtrace::dof;
use dtrace::handle::{Given, Handle, KernelWorld};
use dtrace::pattern::ProbePattern;
use dtrace::pid::Request;
use dtrace::program::{Clause, Program};
use dtrace::source::Source;
use dtrace_uapi::process::{Probe, ADDRESS};
use std::path::Path;

/// Compiles `text` for this machine. `size` is the size of each buffer, in the syntax of the
/// options.
pub fn compile(text: &str, size: &str) -> Result<Vec<u8>, String> {
    let set = ["bufsize", "aggsize", "dynvarsize", "specsize"].map(|name| (name, size));
    compiled(text, &set, |program, handle| {
        dof::emit(&program, &handle.options.for_kernel())
    })
}

/// Compiles `text` with default options, and returns its clauses.
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

/// Parses a probe description.
pub fn pattern(text: &str) -> ProbePattern {
    let mut parts = text.split(':').map(String::from);
    let mut part = || parts.next().unwrap_or_default();
    ProbePattern {
        id: 0,
        provider: part(),
        module: part(),
        func: part(),
        name: part(),
    }
}

/// Requests probes of `module` in a process: one at each address, each with a name of its own.
pub fn places(module: &str, addresses: impl IntoIterator<Item = u64>) -> Request {
    let mut request = Request::default();
    request.text.extend(format!("{module}\0").bytes());
    for (n, address) in addresses.into_iter().enumerate() {
        let name = request.text.len() as u32;
        request.text.extend(format!("{n:x}\0").bytes());
        request.probes.push(Probe {
            kind: ADDRESS,
            module: 0,
            func: name,
            name,
            first: n as u32,
            nsites: 1,
            ..Probe::default()
        });
        request.sites.push(address);
    }
    request
}
