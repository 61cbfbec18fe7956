// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Probes that programs have of their own (USDT): what a description of a provider `NAMEpid` names.
//!
//! A program says in notes of its file where its probes are, what they are called and where their arguments lie ([`notes`]). A probe
//! of a process is called after the program's provider and the number of the process, `python1234`. So a description is looked up in
//! the processes that its provider's name may end with the number of, and what is found is made by the kernel under those names;
//! the description itself stays as it was written.
//!
//! All of a file is its author's word, who may be anybody: what is not well-formed is left out.

mod notes;
mod operand;
#[cfg(test)]
mod tests;

pub use notes::{parse, read, Note};
pub use operand::{Operand, Symbols};

use crate::pid::{fits, is_open, named, Error, Object};
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
    match number() {
        Some(pid @ 1..) if !before.is_empty() => (vec![pid], true),
        _ => (Vec::new(), false),
    }
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
                add(&mut points, &object, note);
            }
        }
    }
    points
}

fn add(points: &mut Vec<Point>, object: &Rc<Object>, note: &Note) {
    let is_same = |point: &&mut Point| {
        point.object == *object
            && point.func == note.func
            && point.name == note.name
            && point.provider == note.provider
    };
    match points.iter_mut().find(is_same) {
        Some(point) => point.notes.push(note.clone()),
        None => points.push(Point {
            provider: note.provider.clone(),
            object: object.clone(),
            func: note.func.clone(),
            name: note.name.clone(),
            notes: vec![note.clone()],
        }),
    }
}
