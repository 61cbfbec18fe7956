// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What is made for applications: objects that carry a program (`-G`), headers of the probes that one defines (`-h`).
//!
//! Each program of the command line becomes an object of its own. The mistakes of a program are told before what cannot be
//! made of it: probes in applications.

use crate::args::{Args, Mode};
use crate::trace::{compile, prepare, Compiled};
use crate::Failure;
use dtrace::dof;
use dtrace::handle::{plain, KernelWorld};
use dtrace::object;
use std::fs;
use std::path::Path;

/// Compiles the programs and writes their objects; the exit status.
pub fn run(args: &Args, world: &KernelWorld<'_>) -> Result<u8, Failure> {
    let (mut handle, read) = prepare(args, world)?;
    let programs = compile(args, &mut handle, read)?;
    let defines = |compiled: &Compiled| compiled.program.defines_probes;
    // What follows the options are the application's objects: its probes are what one would want of them.
    if args.mode == Mode::Header || !args.arguments.is_empty() || programs.iter().any(defines) {
        let missing = "user-level probe objects and headers (-G, -h) are not supported yet";
        return Err(missing.to_owned().into());
    }
    for (index, compiled) in programs.iter().enumerate() {
        let file = file_name(args, &compiled.name, index);
        let dof = dof::emit(&compiled.program, &handle.options.for_kernel());
        write(&file, &dof).map_err(|error| {
            let Compiled { what, name, .. } = compiled;
            format!("failed to link {what} {name}: failed to create {file}: {error}")
        })?;
    }
    Ok(0)
}

fn write(file: &str, dof: &[u8]) -> Result<(), String> {
    let object = object::embed(dof).map_err(|error| error.to_string())?;
    fs::write(file, object).map_err(|error| plain(&error))
}

/// The file that a program goes to: what `-o` says if it is the only one, the script's name with `.o` for `.d` in the
/// current directory, or `d.out`, numbered where there are several.
fn file_name(args: &Args, program: &str, index: usize) -> String {
    let only = args.programs.len() == 1;
    let stem = program.strip_suffix(".d").map(Path::new);
    match (&args.output, stem.and_then(Path::file_name)) {
        (Some(output), _) if only => output.clone(),
        (_, Some(stem)) => format!("{}.o", stem.to_string_lossy()),
        _ if only => "d.out".to_owned(),
        _ => format!("d.out.{index}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse;

    #[test]
    fn objects_are_named_after_what_was_asked_for_or_their_scripts() {
        let names = |words: &[&str]| {
            let args = parse(words.iter().map(Into::into)).unwrap();
            let name = |(index, given): (usize, &crate::args::ProgramArg)| {
                file_name(&args, &given.text, index)
            };
            args.programs
                .iter()
                .enumerate()
                .map(name)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&["-G", "-s", "/src/app.d"]), ["app.o"]);
        assert_eq!(names(&["-G", "-o", "x.o", "-s", "app.d"]), ["x.o"]);
        assert_eq!(names(&["-G", "-n", "BEGIN"]), ["d.out"]);
        assert_eq!(names(&["-G", "-s", ".d"]), ["d.out"]);
        let several = names(&["-G", "-o", "x.o", "-s", "app.d", "-n", "BEGIN", "-s", "-"]);
        assert_eq!(several, ["app.o", "d.out.1", "d.out.2"]);
    }
}
