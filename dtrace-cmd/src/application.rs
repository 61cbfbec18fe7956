// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What is made for applications: objects to link them with (`-G`), headers of the probes that a program defines (`-h`).
//!
//! Each program of the command line becomes a file of its own: an object that carries the program and says what its providers are, or
//! a header. The objects that are named on the command line are looked at for probes that the definition does not know. Those that come as
//! notes are not touched; calls are replaced, and the object says in DOF where they were.

use crate::args::{Args, Mode};
use crate::trace::{compile, prepare, Compiled};
use crate::Failure;
use dtrace::dof;
use dtrace::handle::{plain, KernelWorld};
use dtrace::object;
use dtrace::options::{CompileOptions, LinkType, Options};
use dtrace::usdt;
use std::fs;
use std::io;
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
                match args.arguments.contains(&file) {
                    true => Err(format!(
                        "{file} is one of the objects: -o names another file"
                    )),
                    false => link(compiled, &args.arguments, &handle.options),
                },
            ),
        };
        made.and_then(|made| {
            fs::write(&file, made.file)
                .map_err(|error| format!("failed to create {file}: {}", plain(&error)))?;
            made.objects.iter().try_for_each(|(object, data)| {
                put(object, data)
                    .map_err(|error| format!("failed to write {object}: {}", plain(&error)))
            })
        })
        .map_err(|why| format!("{doing}: {why}"))?;
    }
    Ok(0)
}

/// What is made of a program.
struct Made {
    file: Vec<u8>,
    /// The application's objects that are others now.
    objects: Vec<(String, Vec<u8>)>,
}

/// The header of a program's providers, which will stand in this file.
fn header(compiled: &Compiled, file: &str) -> Result<Made, String> {
    let providers = &compiled.program.providers;
    usdt::check_names(providers)?;
    Ok(Made {
        file: usdt::header(providers, file)?.into_bytes(),
        objects: Vec::new(),
    })
}

/// The object of a program, for an application of these objects.
fn link(compiled: &Compiled, objects: &[String], options: &Options) -> Result<Made, String> {
    let Compiled { program, .. } = compiled;
    let providers = &program.providers;
    let CompileOptions {
        linktype,
        strip,
        unodefs,
        ..
    } = options.compile;
    if let ([], Some(object)) = (&providers[..], objects.first()) {
        return Err(format!(
            "{object}: the program defines no probes of an application"
        ));
    }
    usdt::check_names(providers)?;
    let (mut sites, mut changed) = (Vec::new(), Vec::new());
    for object in objects {
        let data = fs::read(object)
            .map_err(|error| format!("failed to read {object}: {}", plain(&error)))?;
        let brought = usdt::check(&data, providers, unodefs)
            .and_then(|()| usdt::replace(&data, providers, unodefs));
        let brought = brought.map_err(|why| format!("{object}: {why}"))?;
        sites.extend(brought.sites);
        changed.extend(brought.object.map(|data| (object.clone(), data)));
    }
    let dof = || {
        let to = dof::Use {
            linked: linktype == LinkType::Elf,
            strip,
        };
        dof::emit_for_application(program, &options.for_kernel(), &sites, to)
    };
    let is_empty = sites.is_empty() && program.clauses.is_empty() && !providers.is_empty();
    let file = match linktype {
        LinkType::Dof if is_empty => {
            return Err("DOF tells of probes that objects call, and none is called".to_owned());
        }
        LinkType::Dof => dof()?.bytes,
        LinkType::Elf => {
            let notes = match providers[..] {
                [] => Vec::new(),
                _ => usdt::provider_notes(providers, strip),
            };
            let dof = if is_empty { None } else { Some(dof()?) };
            object::write(&notes, dof.as_ref()).map_err(|error| error.to_string())?
        }
    };
    Ok(Made {
        file,
        objects: changed,
    })
}

/// Puts data in a file's place. Whoever has the file by another name keeps it as it was.
fn put(file: &str, data: &[u8]) -> io::Result<()> {
    let file = fs::canonicalize(file)?;
    let permissions = fs::metadata(&file)?.permissions();
    let mut name = file.clone().into_os_string();
    name.push(format!(".{}", std::process::id()));
    let put = fs::write(&name, data)
        .and_then(|()| fs::set_permissions(&name, permissions))
        .and_then(|()| fs::rename(&name, &file));
    if put.is_err() {
        let _ = fs::remove_file(&name);
    }
    put
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
