// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What processes have registered by the helper device: DOF, and where the object lies that it is of.
//!
//! The addresses of its sites are the process' own. Each is in one of the files that the process has mapped to execute; what is elsewhere, in code
//! that a program has made itself, has no probes. A program that registers what its file says as well has its probes once.

use super::in_file::look;
use super::notes::is_plain;
use super::{add, dof, fits, is_open, named, Note, Point};
use crate::outside;
use crate::pid::Object;
use crate::world::{ProbePattern, ProcessSource};
use dtrace_uapi::limits::MODNAMELEN;
use object::read::ReadCache;
use std::path::Path;
use std::rc::Rc;

/// A registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// What it is called by among those of its process.
    pub generation: u32,
    /// What the process calls the object; empty if that is no name.
    pub module: String,
    /// The sites; nothing in them is about a file.
    pub notes: Vec<Note>,
}

impl Registration {
    /// One of an object at `base`. What is not well-formed has no probes.
    pub fn new(generation: u32, module: &str, base: u64, image: &[u8]) -> Self {
        let is_name = module.len() < MODNAMELEN && is_plain(module);
        Self {
            generation,
            module: if is_name { module } else { "" }.to_owned(),
            notes: dof::parse(image, base).unwrap_or_default(),
        }
    }

    /// Adds what a description names of it, as far as it is not there.
    pub(super) fn add_to<S: ProcessSource + ?Sized>(
        &self,
        points: &mut Vec<Point>,
        source: &S,
        pattern: &ProbePattern,
        pid: u32,
        objects: &[Object],
    ) {
        let is_named = |note: &&Note| {
            fits(&pattern.provider, &format!("{}{pid}", note.provider))
                && fits(&pattern.func, &note.func)
                && fits(&pattern.name, &note.name)
        };
        for object in objects {
            let mut known = None;
            let shown = Rc::new(self.shown(object));
            if !self.is_meant(object, &shown, &pattern.module) {
                continue;
            }
            let mut notes: Vec<Note> = self.notes.iter().filter(is_named).cloned().collect();
            notes.retain_mut(|note| {
                let offset = offset_in(object, note.address);
                note.offset = offset.unwrap_or_default();
                offset.is_some()
            });
            if !notes.is_empty() {
                look_at(&mut notes, &object.file);
            }
            for note in &notes {
                let in_file = known.get_or_insert_with(|| source.notes(object).unwrap_or_default());
                let is_same = |other: &Note| {
                    (other.offset, other.asks, &other.name) == (note.offset, note.asks, &note.name)
                        && other.provider == note.provider
                };
                if !in_file.iter().any(is_same) {
                    add(points, &shown, note, self.generation);
                }
            }
        }
    }

    fn is_meant(&self, object: &Object, shown: &Object, module: &str) -> bool {
        match is_open(module) {
            true => fits(module, &shown.name),
            false => {
                let is_it = |object: &Object| named(std::slice::from_ref(object), module).is_some();
                is_it(object) || is_it(shown)
            }
        }
    }

    /// The object as it is called here.
    fn shown(&self, object: &Object) -> Object {
        let mut shown = object.clone();
        if !self.module.is_empty() {
            shown.name.clone_from(&self.module);
        }
        shown
    }
}

/// Looks at the instructions of sites, if the file can be read.
fn look_at(notes: &mut Vec<Note>, path: &Path) {
    if let Ok(file) = outside::open(path) {
        look(notes, &ReadCache::new(file));
    }
}

/// Where in an object's file the process has an address.
fn offset_in(object: &Object, address: u64) -> Option<u64> {
    let mut code = object.code.iter();
    let mapping = code.find(|mapping| mapping.range.contains(&address))?;
    mapping.offset.checked_add(address - mapping.range.start)
}
