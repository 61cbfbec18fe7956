// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `dtrace -A`: saves an enabling for the next boot. To claim the records of such an enabling is
//! `dtrace -a`, which is ordinary tracing of an enabling that already runs.

use crate::args::Args;
use crate::tell::tell;
use crate::trace::{compile, notice, prepare};
use crate::Failure;
use dtrace::anon;
use dtrace::handle::KernelWorld;
use dtrace::text::plain;
use std::io;
use std::path::Path;

/// The file of the enabling: the argument of `-o`, or the path where the module looks for it.
fn file(args: &Args) -> &Path {
    Path::new(args.output.as_deref().unwrap_or(anon::PATH))
}

/// Removes the saved enabling. Returns the exit status.
pub fn clear(args: &Args, quiet: bool) -> Result<u8, Failure> {
    let path = file(args);
    let name = path.display();
    let cleared = anon::clear(path);
    if cleared.map_err(|error| cannot("remove", path, &error))? && !quiet {
        tell(format_args!("cleaned up old anonymous enabling in {name}"));
        tell("rebuild the initial RAM disk and reboot to enable changes");
    }
    Ok(0)
}

/// Compiles the programs of the command line and saves them in place of an older enabling. Returns
/// the exit status.
pub fn save(args: &Args, world: &KernelWorld<'_>) -> Result<u8, Failure> {
    let path = file(args);
    let (mut handle, read) = prepare(args, world)?;
    let compiled = compile(args, &mut handle, read)?;
    if args.compile_only {
        return Ok(0);
    }
    let programs: Vec<_> = compiled.iter().map(|compiled| &compiled.program).collect();
    let image = handle.anonymous(&programs);
    let image = image.map_err(|error| format!("failed to create anonymous enabling: {error}"))?;
    let old = path.exists();
    anon::store(path, &image).map_err(|error| cannot("write", path, &error))?;
    let name = path.display();
    if old {
        notice(
            &handle,
            &format!("cleaned up old anonymous enabling in {name}"),
        );
    }
    notice(&handle, &format!("saved anonymous enabling in {name}"));
    notice(
        &handle,
        "rebuild the initial RAM disk and reboot to enable changes",
    );
    Ok(0)
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> String {
    format!("failed to {what} {}: {}", path.display(), plain(error))
}
