// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What is made for applications: objects to link them with (`-G`), headers of the probes that a program defines (`-h`).
//!
//! Each program of the command line becomes a file of its own: an object that carries the program, one that says what its providers are, or
//! a header. The probes themselves come with the objects that are compiled with the header, and are not touched; those that are named on
//! the command line are only looked at, for probes that the definition does not know.

use crate::args::{Args, Mode};
use crate::trace::{compile, prepare, Compiled};
use crate::Failure;
use dtrace::dof;
use dtrace::handle::{plain, KernelWorld};
use dtrace::object;
use dtrace::options::Options;
use dtrace::usdt;
use std::fs;
use std::path::Path;

/// Compiles the programs and writes their objects; the exit status.
pub fn run(args: &Args, world: &KernelWorld<'_>) -> Result<u8, Failure> {
    let (mut handle, read) = prepare(args, world)?;
    let programs = compile(args, &mut handle, read)?;
    for (index, compiled) in programs.iter().enumerate() {
        let Compiled { what, name, .. } = compiled;
        let file = file_name(args, name, index);
        let (doing, made) = match args.mode {
            Mode::Header => (
                format!("failed to create header of {what} {name}"),
                header(compiled, base_name(&file)),
            ),
            _ => (
                format!("failed to link {what} {}", stem(name)),
                link(compiled, &args.arguments, &handle.options),
            ),
        };
        made.and_then(|made| {
            fs::write(&file, made)
                .map_err(|error| format!("failed to create {file}: {}", plain(&error)))
        })
        .map_err(|why| format!("{doing}: {why}"))?;
    }
    Ok(0)
}

/// The header of a program's providers, which will stand in this file.
fn header(compiled: &Compiled, file: &str) -> Result<Vec<u8>, String> {
    let providers = &compiled.program.providers;
    usdt::check_names(providers)?;
    usdt::header(providers, file).map(String::into_bytes)
}

/// The object of a program, for an application of these objects.
fn link(compiled: &Compiled, objects: &[String], options: &Options) -> Result<Vec<u8>, String> {
    let Compiled { program, .. } = compiled;
    if program.providers.is_empty() {
        if let Some(object) = objects.first() {
            return Err(format!(
                "{object}: the program defines no probes of an application"
            ));
        }
        let dof = dof::emit(program, &options.for_kernel());
        return object::embed(&dof).map_err(|error| error.to_string());
    }
    usdt::check_names(&program.providers)?;
    for object in objects {
        let data = fs::read(object)
            .map_err(|error| format!("failed to read {object}: {}", plain(&error)))?;
        usdt::check(&data, &program.providers).map_err(|why| format!("{object}: {why}"))?;
    }
    usdt::object(&program.providers).map_err(|error| error.to_string())
}

/// A script's name without its extension.
fn stem(name: &str) -> &str {
    name.strip_suffix(".d").unwrap_or(name)
}

fn base_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// The file that a program goes to: what `-o` says if it is the only one, the script's name with `.o` or `.h` for `.d` in the
/// current directory, or `d.out`, numbered where there are several.
fn file_name(args: &Args, program: &str, index: usize) -> String {
    let only = args.programs.len() == 1;
    let stem = program.strip_suffix(".d").map(Path::new);
    match (&args.output, stem.and_then(Path::file_name)) {
        (Some(output), _) if only => output.clone(),
        (_, Some(stem)) => {
            let letter = if args.mode == Mode::Header { 'h' } else { 'o' };
            format!("{}.{letter}", stem.to_string_lossy())
        }
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
