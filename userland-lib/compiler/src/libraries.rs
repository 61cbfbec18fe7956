// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The D libraries that are compiled before any program.
//!
//! The system's D libraries are built into this library, so that they always match it and need no
//! installation. If they are installed beside the command, that folder is searched first: a file
//! there replaces the built-in one of the same name. `syslibdir` replaces both by another folder,
//! `libdir` (`-L`) adds folders that are searched before them, and `nolibs` leaves all of them out.
//!
//! A library states its dependencies by `#pragma D depends_on library|provider|module NAME`.
//! Libraries are sorted after those that they depend on. A library whose provider or module does
//! not exist is left out, because it is of no use then, and so are those that depend on it. A
//! dependency on a library that does not exist is an error.

use std::path::{Path, PathBuf};
use std::{borrow::Cow, env, fs, io};

use thiserror::Error;

use crate::options::CompileOptions;
use dtrace_files::arch::HOST;
use dtrace_files::text::decoded;

/// The built-in libraries of the system.
const BUILT_IN: [(&str, &str); 11] = [
    ("errno.d", include_str!("../../dlib/errno.d")),
    ("io.d", include_str!("../../dlib/io.d")),
    ("ip.d", include_str!("../../dlib/ip.d")),
    ("net.d", include_str!("../../dlib/net.d")),
    ("procfs.d", include_str!("../../dlib/procfs.d")),
    ("regs.d", HOST.names),
    ("sched.d", include_str!("../../dlib/sched.d")),
    ("signal.d", include_str!("../../dlib/signal.d")),
    ("tcp.d", include_str!("../../dlib/tcp.d")),
    ("udp.d", include_str!("../../dlib/udp.d")),
    ("unistd.d", include_str!("../../dlib/unistd.d")),
];

/// A D library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// Its file name. Other libraries depend on it by this name.
    pub name: String,
    /// Its path, or its name if it is built in.
    pub path: String,
    /// Its text.
    pub text: Cow<'static, str>,
}

/// A dependency of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need<'a> {
    /// Another library.
    Library(&'a str),
    /// A provider.
    Provider(&'a str),
    /// A kernel module.
    Module(&'a str),
}

/// Why the libraries cannot be read.
#[derive(Debug, Error)]
pub enum LibraryError {
    /// A folder or file of libraries cannot be read.
    #[error("failed to read D library {path}: {error}")]
    Read {
        /// Its path.
        path: String,
        /// The system's error.
        error: io::Error,
    },
    /// A library (by its path) depends on another that does not exist.
    #[error("Invalid library dependency in {0}: {1}")]
    Missing(String, String),
    /// Libraries depend on each other.
    #[error("D library {0} depends on itself")]
    Loop(String),
}

impl Library {
    /// Its dependencies, in the order of the text.
    fn needs(&self) -> impl Iterator<Item = Need<'_>> {
        self.text.lines().filter_map(|line| {
            let mut words = line.strip_prefix('#')?.split_whitespace();
            if [words.next()?, words.next()?, words.next()?] != ["pragma", "D", "depends_on"] {
                return None;
            }
            let (kind, name) = (words.next()?, words.next()?);
            match kind {
                "library" => Some(Need::Library(name)),
                "provider" => Some(Need::Provider(name)),
                "module" => Some(Need::Module(name)),
                _ => None,
            }
        })
    }
}

/// The libraries that `options` select, in the order of their compilation. `present` says whether a
/// provider or module exists.
pub fn libraries(
    options: &CompileOptions,
    present: impl Fn(Need<'_>) -> bool,
) -> Result<Vec<Library>, LibraryError> {
    order(find(options, installed().as_deref())?, present)
}

/// The folder of installed libraries: `lib/dtrace` beside the folder of the running program.
fn installed() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    Some(program.parent()?.parent()?.join("lib/dtrace"))
}

/// The libraries that `options` select, in the order of the search.
fn find(options: &CompileOptions, installed: Option<&Path>) -> Result<Vec<Library>, LibraryError> {
    if options.nolibs {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for folder in &options.libdirs {
        read_folder(folder, &mut found)?;
    }
    match &options.syslibdir {
        Some(folder) => read_folder(folder, &mut found)?,
        None => {
            // The user has not named this folder, so one that cannot be read is not an error: the
            // built-in libraries are used.
            if let Some(folder) = installed.filter(|folder| fs::read_dir(folder).is_ok()) {
                read_folder(folder, &mut found)?;
            }
            for (name, text) in BUILT_IN {
                add(&mut found, name, name, text.into());
            }
        }
    }
    Ok(found)
}

/// Adds a library unless one of its name is there already: the folder that is searched first wins.
fn add(found: &mut Vec<Library>, name: &str, path: &str, text: Cow<'static, str>) {
    if found.iter().all(|library| library.name != name) {
        found.push(Library {
            name: name.into(),
            path: path.into(),
            text,
        });
    }
}

/// Adds a folder's `.d` files, sorted by name. A folder that does not exist has none.
fn read_folder(folder: &Path, found: &mut Vec<Library>) -> Result<(), LibraryError> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error| LibraryError::Read { path, error }
    };
    let entries = match fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed(folder))?,
    };
    let mut paths: Vec<_> = entries
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "d") && path.is_file())
        .collect();
    paths.sort();
    for path in paths {
        let text = decoded(fs::read(&path).map_err(failed(&path))?);
        if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
            add(found, name, &path.display().to_string(), text.into());
        }
    }
    Ok(())
}

/// The state of a library while all are sorted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// Not looked at yet.
    New,
    /// Its dependencies are being placed. To meet it again is a loop.
    Open,
    /// In the order.
    Placed,
    /// Left out, because a dependency is missing.
    Left,
}

/// Sorts libraries after their dependencies, and leaves out those whose dependencies are missing.
fn order(
    found: Vec<Library>,
    present: impl Fn(Need<'_>) -> bool,
) -> Result<Vec<Library>, LibraryError> {
    let mut marks = vec![Mark::New; found.len()];
    let mut placed = Vec::new();
    for index in 0..found.len() {
        place(index, &found, &present, &mut marks, &mut placed)?;
    }
    Ok(placed
        .into_iter()
        .map(|i: usize| found[i].clone())
        .collect())
}

/// Places library `index` after its dependencies. Returns whether it is placed, not left out.
fn place(
    index: usize,
    found: &[Library],
    present: &dyn Fn(Need<'_>) -> bool,
    marks: &mut [Mark],
    placed: &mut Vec<usize>,
) -> Result<bool, LibraryError> {
    let library = &found[index];
    match marks[index] {
        Mark::New => {}
        Mark::Open => return Err(LibraryError::Loop(library.name.clone())),
        mark => return Ok(mark == Mark::Placed),
    }
    marks[index] = Mark::Open;
    let mut complete = true;
    for need in library.needs() {
        complete &= match need {
            Need::Library(name) => match found.iter().position(|other| other.name == name) {
                Some(other) => place(other, found, present, marks, placed)?,
                None => return Err(LibraryError::Missing(library.path.clone(), name.to_owned())),
            },
            _ => present(need),
        };
    }
    marks[index] = if complete { Mark::Placed } else { Mark::Left };
    if complete {
        placed.push(index);
    }
    Ok(complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, needs: &[&str]) -> Library {
        let needs = needs
            .iter()
            .map(|need| format!("#pragma D depends_on {need}\n"));
        Library {
            name: name.into(),
            path: name.into(),
            text: Cow::Owned(needs.collect()),
        }
    }

    fn ordered(all: &[(&str, &[&str])]) -> Result<String, LibraryError> {
        let found = all.iter().map(|(name, needs)| library(name, needs));
        let present = |need: Need<'_>| need == Need::Provider("io");
        let libraries = order(found.collect(), present)?;
        let names: Vec<_> = libraries.into_iter().map(|library| library.name).collect();
        Ok(names.join(" "))
    }

    #[test]
    fn libraries_follow_what_they_need() {
        for (all, expected) in [
            (
                &[("b.d", &["library a.d"][..]), ("a.d", &[])][..],
                "a.d b.d",
            ),
            (
                &[
                    ("c.d", &["library b.d", "library a.d"]),
                    ("b.d", &["library a.d"]),
                    ("a.d", &["provider io"]),
                ],
                "a.d b.d c.d",
            ),
            // A library that is left out takes its dependents with it.
            (
                &[
                    ("b.d", &["library a.d"]),
                    ("a.d", &["module none"]),
                    ("c.d", &[]),
                ],
                "c.d",
            ),
        ] {
            assert_eq!(ordered(all).unwrap(), expected);
        }
    }

    /// The built-in libraries compile, even if the kernel provides no types.
    #[test]
    fn own_libraries_compile() {
        let world = dtrace_objects::processes::Nowhere;
        let mut compiler = crate::compile::Compiler::new(&world);
        let own = libraries(&CompileOptions::default(), |_| true).unwrap();
        assert_eq!(own.len(), BUILT_IN.len());
        for library in own {
            let source = crate::source::Source::library(library.name, library.text);
            if let Err(error) = compiler.compile(&source, &Default::default()) {
                panic!(
                    "{:?}: {}\n{}",
                    source.origin,
                    error.headline(&source, true),
                    error.snippet(&source)
                );
            }
        }
    }

    #[test]
    fn a_library_that_is_needed_must_be_there() {
        let error = ordered(&[("a.d", &[]), ("b.d", &["library c.d"])]).unwrap_err();
        assert_eq!(error.to_string(), "Invalid library dependency in b.d: c.d");
    }

    #[test]
    fn loops_are_named() {
        let error = ordered(&[("a.d", &["library b.d"]), ("b.d", &["library a.d"])]);
        let text = error.unwrap_err().to_string();
        assert_eq!(text, "D library a.d depends on itself");
    }

    #[test]
    fn installed_libraries_stand_in_the_place_of_built_in_ones() {
        let dir = env::temp_dir().join(format!("dtrace-installed-{}", std::process::id()));
        let (own, installed) = (dir.join("own"), dir.join("lib/dtrace"));
        for (folder, files) in [
            (&own, &["io.d"][..]),
            (&installed, &["errno.d", "io.d", "zz.d"]),
        ] {
            fs::create_dir_all(folder).unwrap();
            for file in files {
                fs::write(folder.join(file), "").unwrap();
            }
        }
        let mut options = CompileOptions::default();
        let paths = |options: &CompileOptions| -> Vec<_> {
            let found = find(options, Some(&installed)).unwrap();
            found.into_iter().map(|library| library.path).collect()
        };
        let path = |folder: &Path, file: &str| folder.join(file).display().to_string();
        let here = |file| path(&installed, file);
        let found = paths(&options);
        assert_eq!(
            found[..4],
            [&here("errno.d"), &here("io.d"), &here("zz.d"), "ip.d"]
        );
        assert_eq!(found.len(), BUILT_IN.len() + 1);
        options.libdirs.push(own.clone());
        let found = paths(&options);
        assert_eq!(
            found[..3],
            [path(&own, "io.d"), here("errno.d"), here("zz.d")]
        );
        assert_eq!(found.len(), BUILT_IN.len() + 1);
        options.syslibdir = Some(dir.join("none"));
        assert_eq!(paths(&options), [path(&own, "io.d")]);
        options.nolibs = true;
        assert!(paths(&options).is_empty());
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn options_choose_the_folders() {
        let dir = std::env::temp_dir().join(format!("dtrace-libs-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        // The last one is Latin-1.
        let files: [(&str, &[u8]); 3] = [
            ("errno.d", b"mine"),
            ("note.txt", b""),
            ("zz.d", b"/* \xe9 */"),
        ];
        for (name, text) in files {
            fs::write(dir.join(name), text).unwrap();
        }
        let names = |options: &CompileOptions| {
            let all = libraries(options, |_| false).unwrap();
            let names: Vec<_> = all.iter().map(|library| library.name.as_str()).collect();
            (
                names.join(" "),
                all.iter().any(|library| library.text == "mine"),
            )
        };
        let mut options = CompileOptions::default();
        assert_eq!(
            names(&options),
            (
                "errno.d unistd.d io.d net.d ip.d procfs.d regs.d sched.d signal.d tcp.d udp.d"
                    .into(),
                false
            )
        );
        options.libdirs.push(dir.clone());
        assert_eq!(
            names(&options),
            (
                "errno.d zz.d unistd.d io.d net.d ip.d procfs.d regs.d sched.d signal.d tcp.d udp.d".into(),
                true
            )
        );
        options.libdirs.clear();
        options.syslibdir = Some(dir.clone());
        assert_eq!(names(&options), ("errno.d zz.d".into(), true));
        options.nolibs = true;
        assert_eq!(names(&options), (String::new(), false));
        options.nolibs = false;
        options.syslibdir = Some(dir.join("none"));
        assert_eq!(names(&options), (String::new(), false));
        options.syslibdir = Some(dir.join("note.txt"));
        let error = libraries(&options, |_| false).unwrap_err().to_string();
        assert!(error.starts_with("failed to read D library"), "{error}");
        fs::remove_dir_all(&dir).unwrap();
    }
}
