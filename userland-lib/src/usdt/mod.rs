// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Probes that programs have of their own (USDT): what a description of a provider `NAMEpid` names.
//!
//! A program says in notes of its file where its probes are, what they are called and where their arguments lie ([`notes`]). A probe
//! of a process is called after the program's provider and the number of the process, `python1234`. So a description is looked up in
//! the processes that its provider's name may end with the number of, and what is found is made by the kernel under those names;
//! the description itself stays as it was written.
//!
//! A program may also register its probes when it runs ([`registered`]); what they are is in the same format as in files of other
//! systems ([`dof`]).
//!
//! All of a file is its author's word, who may be anybody: what is not well-formed is left out.

mod calls;
#[cfg(test)]
mod calls_tests;
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

pub use crate::arch::x86_64::{Operand, Symbols};
pub use calls::{replace, Replaced, Site};
pub use copies::differing;
pub use define::{Definition, Form, Parameter, Provider, ATTRIBUTES, PROVIDER_MAX, UNSAID};
pub use header::header;
pub use in_file::parse as parse_dof;
pub use notes::{parse, read, Note};
pub use prov::{notes as provider_notes, SECTION as PROVIDERS};
pub use registered::Registration;

use crate::pid::{fits, is_open, named, Error, Object, PROVIDER};
use crate::world::{ProbePattern, ProcessSource};
use dtrace_uapi::glob;
use std::rc::Rc;

/// A probe of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The provider, without the number of the process.
    pub provider: String,
    /// The file.
    pub object: Rc<Object>,
    /// The function that it is in; empty where that is not known.
    pub func: String,
    /// Its name.
    pub name: String,
    /// Where it fires.
    pub notes: Vec<Note>,
    /// The registration that it goes with; 0: it is in the file.
    pub registration: u32,
}

/// The process whose own probes a provider names, if it names one that has to be there.
pub fn only(provider: &str) -> Option<u32> {
    let before = provider.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = provider[before.len()..].parse().ok();
    let is_name = !before.is_empty() && !glob::is_glob(provider.as_bytes());
    number.filter(|pid| is_name && *pid > 0)
}

/// The processes whose own probes a provider may name; whether it names one that has to be there.
pub fn processes(provider: &str) -> (Vec<u32>, bool) {
    let before = provider.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = || provider[before.len()..].parse::<u32>().ok();
    if glob::is_glob(provider.as_bytes()) {
        // A pattern that says nothing is about the kernel.
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

/// The provider of a process: its name, and the number of the process.
pub fn process_of(provider: &str) -> Option<(&str, u32)> {
    let name = provider.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = provider[name.len()..].parse().ok()?;
    (!name.is_empty() && name != PROVIDER).then_some((name, number))
}

/// Whether a description's provider may name `provider` of some process, as far as its beginning says.
pub fn may_be_of(pattern: &str, provider: &str) -> bool {
    let literal = &pattern[..literal_len(pattern)];
    let number = literal.strip_prefix(provider);
    provider.starts_with(literal)
        || number.is_some_and(|number| number.bytes().all(|c| c.is_ascii_digit()))
}

/// How much of a pattern stands for itself.
fn literal_len(pattern: &str) -> usize {
    pattern
        .find(|c| "*?[\\".contains(c))
        .unwrap_or(pattern.len())
}

/// Whether the names of providers leave room for the number of a process.
pub fn check_names(providers: &[Provider]) -> Result<(), String> {
    let is_long = |provider: &&Provider| provider.name.len() > PROVIDER_MAX;
    match providers.iter().find(is_long) {
        None => Ok(()),
        Some(Provider { name, .. }) => Err(format!(
            "USDT provider name may not exceed {PROVIDER_MAX} characters: {name}"
        )),
    }
}

/// Whether the probes that an object brings in notes for these providers are theirs; else why not. With `unodefs` they may have others.
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

/// The probes of a process' own that a description names. Files that cannot be read have none.
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

/// Those that it names in these objects of the process.
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

fn add(points: &mut Vec<Point>, object: &Rc<Object>, note: &Note, registration: u32) {
    let is_same = |point: &&mut Point| {
        point.object == *object
            && point.func == note.func
            && point.name == note.name
            && point.provider == note.provider
    };
    match points.iter_mut().find(is_same) {
        // Whoever registers an image twice has its sites once.
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
