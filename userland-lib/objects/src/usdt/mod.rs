// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! USDT probes, which programs define themselves: what a description of a provider `NAMEpid` names.
//!
//! Notes in a program's file say where its probes are, what they are called and where their
//! arguments lie ([`notes`]). A probe of a process belongs to the provider whose name is the
//! program's provider followed by the process ID: `python1234`. So a description is looked up in
//! the processes whose IDs its provider's name may end with, and the kernel makes the probes that
//! are found under those names. The description itself is not rewritten.
//!
//! A program may also register its probes at run time ([`registered`]). The format is the one that
//! files of other systems use ([`dof`]).
//!
//! The contents of a file are not trusted, because anybody may have made it. What is not
//! well-formed is left out.

mod calls;
mod copies;
mod define;
pub mod dof;
#[cfg(test)]
mod dof_tests;
mod header;
mod in_file;
mod notes;
mod prov;
mod registered;
#[cfg(test)]
mod tests;

pub use calls::{replace, Replaced, Site};
pub use copies::differing;
pub use define::{Definition, Form, Parameter, Provider, ATTRIBUTES, PROVIDER_MAX, UNSAID};
pub use dtrace_files::arch::programs::{Operand, Symbols};
pub use header::header;
pub use in_file::{parse as parse_dof, SECTION as DOF_SECTION};
pub use notes::{parse, read, Note};
pub use prov::{notes as provider_notes, MAKER, SECTION as PROVIDERS};
pub use registered::Registration;

use crate::pattern::{fits, is_open, ProbePattern};
use crate::pid::{named, Error, Object, PROVIDER};
use crate::processes::ProcessSource;
use dtrace_uapi::glob;
use std::rc::Rc;

/// A USDT probe of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The provider, without the process ID.
    pub provider: String,
    /// The file that has it.
    pub object: Rc<Object>,
    /// The function that it is in; empty if unknown.
    pub func: String,
    /// Its name.
    pub name: String,
    /// Its sites.
    pub notes: Vec<Note>,
    /// The number of the registration that has it; 0 if it is in the file.
    pub registration: u32,
}

/// Returns the process whose USDT probes a provider names, if it names exactly one, so that this
/// process must exist.
pub fn only(provider: &str) -> Option<u32> {
    let before = provider.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = provider[before.len()..].parse().ok();
    let is_name = !before.is_empty() && !glob::is_glob(provider.as_bytes());
    number.filter(|pid| is_name && *pid > 0)
}

/// Returns the processes whose USDT probes a provider may name, and whether it names exactly one,
/// which must exist then.
pub fn processes(provider: &str) -> (Vec<u32>, bool) {
    let before = provider.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = || provider[before.len()..].parse::<u32>().ok();
    if glob::is_glob(provider.as_bytes()) {
        // A pattern that begins with a wildcard means probes of the kernel.
        let all = match literal_len(provider) {
            0 => Vec::new(),
            _ => running(),
        };
        let ends = |pid: &u32| number().is_none_or(|n| pid.to_string().ends_with(&n.to_string()));
        return (all.into_iter().filter(ends).collect(), false);
    }
    let only = only(provider);
    (only.into_iter().collect(), only.is_some())
}

/// Splits a provider's name into the program's provider and the process ID. `None` if it has no
/// such form or is of the `pid` provider.
pub fn process_of(provider: &str) -> Option<(&str, u32)> {
    let name = provider.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = provider[name.len()..].parse().ok()?;
    (!name.is_empty() && name != PROVIDER).then_some((name, number))
}

/// Whether a description's provider may match `provider` in some process, judged by the literal
/// beginning of `pattern`.
pub fn may_be_of(pattern: &str, provider: &str) -> bool {
    let literal = &pattern[..literal_len(pattern)];
    let number = literal.strip_prefix(provider);
    provider.starts_with(literal)
        || number.is_some_and(|number| number.bytes().all(|c| c.is_ascii_digit()))
}

/// Returns the length of a pattern's literal beginning.
fn literal_len(pattern: &str) -> usize {
    pattern
        .find(|c| "*?[\\".contains(c))
        .unwrap_or(pattern.len())
}

/// Checks that the providers' names leave room for a process ID.
pub fn check_names(providers: &[Provider]) -> Result<(), String> {
    let is_long = |provider: &&Provider| provider.name.len() > PROVIDER_MAX;
    match providers.iter().find(is_long) {
        None => Ok(()),
        Some(Provider { name, .. }) => Err(format!(
            "USDT provider name may not exceed {PROVIDER_MAX} characters: {name}"
        )),
    }
}

/// Checks the probes that an object has in notes for these providers: each must be defined, with
/// the same number of arguments. With `unodefs`, probes that are not defined are accepted.
pub fn check(object: &[u8], providers: &[Provider], unodefs: bool) -> Result<(), String> {
    let brought = notes::brought(object).ok_or("it is no object")?;
    for (provider, name, count) in brought {
        let Some(own) = providers.iter().find(|own| own.name == provider) else {
            continue;
        };
        let Some(probe) = own.probes.iter().find(|probe| probe.shown() == name) else {
            if unodefs {
                continue;
            }
            return Err(undefined(&provider, &name));
        };
        let defined = probe.parameters.len();
        if count != defined {
            return Err(format!(
                "probe {provider}:::{name} is defined with {defined} arguments, not {count}"
            ));
        }
    }
    Ok(())
}

fn undefined(provider: &str, name: &str) -> String {
    format!("probe {provider}:::{name} is not defined")
}

/// The IDs of all running processes but this one.
fn running() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    let number = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse().ok()
    };
    let me = std::process::id();
    entries
        .filter_map(number)
        .filter(|pid| *pid != me)
        .collect()
}

/// Returns the USDT probes of a process that a description names. Files that cannot be read have
/// none.
pub fn resolve<S: ProcessSource + ?Sized>(
    source: &S,
    pattern: &ProbePattern,
    pid: u32,
) -> Result<Vec<Point>, Error> {
    let objects = source
        .objects(pid)
        .map_err(|error| Error::Grab { pid, error })?;
    Ok(resolve_in(source, pattern, pid, &objects))
}

/// Returns the USDT probes that a description names in these objects of a process, and in what the
/// process has registered.
pub fn resolve_in<S: ProcessSource + ?Sized>(
    source: &S,
    pattern: &ProbePattern,
    pid: u32,
    objects: &[Object],
) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for object in objects {
        let module = &pattern.module;
        let is_meant = match is_open(module) {
            true => fits(module, &object.name),
            false => named(std::slice::from_ref(object), module).is_some(),
        };
        if !is_meant {
            continue;
        }
        let notes = source.notes(object).unwrap_or_default();
        let is_named = |note: &Note| {
            fits(&pattern.provider, &format!("{}{pid}", note.provider))
                && fits(&pattern.name, &note.name)
        };
        let notes: Vec<&Note> = notes.iter().filter(|note| is_named(note)).collect();
        if notes.is_empty() {
            continue;
        }
        let object = Rc::new(object.clone());
        for note in notes {
            if fits(&pattern.func, &note.func) {
                add(&mut points, &object, note, 0);
            }
        }
    }
    for registration in source.registered(pid).unwrap_or_default().iter() {
        registration.add_to(&mut points, source, pattern, pid, objects);
    }
    points
}

/// Adds a site to its probe, which is created if it is new.
fn add(points: &mut Vec<Point>, object: &Rc<Object>, note: &Note, registration: u32) {
    let is_same = |point: &&mut Point| {
        point.object == *object
            && point.func == note.func
            && point.name == note.name
            && point.provider == note.provider
    };
    match points.iter_mut().find(is_same) {
        // An image that is registered twice has its sites once.
        Some(point) => {
            let is_there = |other: &Note| (other.offset, other.asks) == (note.offset, note.asks);
            if !point.notes.iter().any(is_there) {
                point.notes.push(note.clone());
            }
        }
        None => points.push(Point {
            provider: note.provider.clone(),
            object: object.clone(),
            func: note.func.clone(),
            name: note.name.clone(),
            notes: vec![note.clone()],
            registration,
        }),
    }
}
