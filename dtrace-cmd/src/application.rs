// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Output for applications: objects to link with them (`-G`) and headers of the probes that a
//! program defines (`-h`).
//!
//! Each program of the command line becomes a file of its own: a header, or an object that contains
//! the program and describes its providers. The objects on the command line are searched for probes
//! that the program does not define. Probes that an object describes in notes stay as they are.
//! Calls of probes are replaced, and the DOF of the new object lists the sites of these calls.

use crate::args::{Args, Mode};
use crate::trace::{compile, prepare, Compiled};
use crate::Failure;
use dtrace::dof;
use dtrace::file;
use dtrace::handle::KernelWorld;
use dtrace::object;
use dtrace::options::{CompileOptions, LinkType, Options};
use dtrace::text::plain;
use dtrace::usdt;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// Compiles the programs and writes their objects or headers. Returns the exit status.
pub fn run(args: &Args, world: &KernelWorld<'_>) -> Result<u8, Failure> {
    let (mut handle, read) = prepare(args, world)?;
    let programs = compile(args, &mut handle, read)?;
    for (index, compiled) in programs.iter().enumerate() {
        let Compiled { what, name, .. } = compiled;
        let file = file_name(args, name, index);
        let is_file = |object: &String| is_same(object, &file);
        let (doing, made) = match args.mode {
            Mode::Header => (
                format!("failed to create header of {what} {name}"),
                header(compiled, base_name(&file)),
            ),
            _ => (
                format!("failed to link {what} {}", stem(name)),
                match args.arguments.iter().any(is_file) {
                    true => Err(format!(
                        "{file} is one of the objects: -o names another file"
                    )),
                    false => link(compiled, &args.arguments, &handle.options),
                },
            ),
        };
        made.and_then(|made| {
            // Write the product last. It is then newer than the objects, and does not exist if one
            // of the objects could not be written.
            let is_file = || fs::symlink_metadata(&file).is_ok_and(|old| old.is_file());
            if !made.objects.is_empty() && is_file() {
                let _ = fs::remove_file(&file);
            }
            for (object, data) in &made.objects {
                put(object, data)
                    .map_err(|error| format!("failed to write {object}: {}", plain(&error)))?;
            }
            fs::write(&file, made.file)
                .map_err(|error| format!("failed to create {file}: {}", plain(&error)))
        })
        .map_err(|why| format!("{doing}: {why}"))?;
    }
    Ok(0)
}

/// Whether two names denote the same file. Names of files that do not exist yet are compared as
/// text.
fn is_same(one: &str, other: &str) -> bool {
    let identity = |name| fs::metadata(name).map(|file| (file.dev(), file.ino()));
    match (identity(one), identity(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// The files made from one program.
struct Made {
    file: Vec<u8>,
    /// The application's objects that were changed, with their new contents.
    objects: Vec<(String, Vec<u8>)>,
}

/// Makes the header of a program's providers. `file` is the name of the header.
fn header(compiled: &Compiled, file: &str) -> Result<Made, String> {
    let providers = &compiled.program.providers;
    usdt::check_names(providers)?;
    Ok(Made {
        file: usdt::header(providers, file)?.into_bytes(),
        objects: Vec::new(),
    })
}

/// Makes the object of a program for an application of these objects.
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
    let mut brought = Vec::new();
    for object in objects {
        let data = fs::read(object)
            .map_err(|error| format!("failed to read {object}: {}", plain(&error)))?;
        let replaced = usdt::check(&data, providers, unodefs)
            .and_then(|()| usdt::replace(&data, providers, unodefs));
        brought.push(replaced.map_err(|why| format!("{object}: {why}"))?);
    }
    if let Some((function, numbers)) = usdt::differing(&brought) {
        let [one, other] = numbers.map(|n| &objects[n]);
        return Err(format!(
            "function {function} differs between {one} and {other}"
        ));
    }
    let (mut sites, mut changed) = (Vec::new(), Vec::new());
    for (object, replaced) in objects.iter().zip(brought) {
        sites.extend(replaced.sites);
        changed.extend(replaced.object.map(|data| (object.clone(), data)));
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
            let why = "no object calls a probe, so there is nothing to write as DOF";
            return Err(why.to_owned());
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

/// Replaces the contents of a file. If `name` is a symbolic link, replaces the file that it points
/// to.
fn put(name: &str, data: &[u8]) -> io::Result<()> {
    let path = fs::canonicalize(name)?;
    let mode = fs::metadata(&path)?.permissions().mode();
    file::replace(&path, data, mode & 0o7777)
}

/// A script's name without its extension.
fn stem(name: &str) -> &str {
    name.strip_suffix(".d").unwrap_or(name)
}

fn base_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// The name of the file that is made from a program: the argument of `-o` if there is only one
/// program; else the script's name in the current directory with `.o` or `.h` instead of `.d`; else
/// `d.out`, followed by the program's number if there are several.
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
