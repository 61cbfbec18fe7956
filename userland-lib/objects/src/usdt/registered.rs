// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! What processes have registered through the helper device: DOF, and the address of the object
//! that it describes.
//!
//! The addresses of its sites are addresses in the process. Each must be in a file that the process
//! has mapped to execute; sites elsewhere, in generated code, have no probes. If a program
//! registers what its file states as well, it has these probes once.

use super::in_file::look;
use super::notes::is_plain;
use super::{add, dof, named, Note, Point};
use crate::pattern::{fits, is_open, ProbePattern};
use crate::pid::Object;
use crate::processes::ProcessSource;
use dtrace_files::outside;
use dtrace_uapi::limits::MODNAMELEN;
use object::read::ReadCache;
use std::path::Path;
use std::rc::Rc;

/// A registration of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Its number among those of its process.
    pub generation: u32,
    /// The name that the process gives the object; empty if that is not a valid name.
    pub module: String,
    /// The sites. Their file offsets are not set.
    pub notes: Vec<Note>,
}

impl Registration {
    /// Parses the registration of an object at `base`. An image that is not well-formed has no
    /// probes.
    pub fn new(generation: u32, module: &str, base: u64, image: &[u8]) -> Self {
        let is_name = module.len() < MODNAMELEN && is_plain(module);
        Self {
            generation,
            module: if is_name { module } else { "" }.to_owned(),
            notes: dof::parse(image, base).unwrap_or_default(),
        }
    }

    /// Adds the sites of this registration that a description names, unless the file's own notes
    /// have them.
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

    /// Whether `module` names the object, by its file's name or by the name that is shown.
    fn is_meant(&self, object: &Object, shown: &Object, module: &str) -> bool {
        match is_open(module) {
            true => fits(module, &shown.name),
            false => {
                let is_it = |object: &Object| named(std::slice::from_ref(object), module).is_some();
                is_it(object) || is_it(shown)
            }
        }
    }

    /// The object under the name that the process gives it.
    fn shown(&self, object: &Object) -> Object {
        let mut shown = object.clone();
        if !self.module.is_empty() {
            shown.name.clone_from(&self.module);
        }
        shown
    }
}

/// Checks the instructions at the sites, if the file can be read.
fn look_at(notes: &mut Vec<Note>, path: &Path) {
    if let Ok(file) = outside::open(path) {
        look(notes, &ReadCache::new(file));
    }
}

/// Returns the offset in an object's file of an address in the process.
fn offset_in(object: &Object, address: u64) -> Option<u64> {
    let mut code = object.code.iter();
    let mapping = code.find(|mapping| mapping.range.contains(&address))?;
    mapping.offset.checked_add(address - mapping.range.start)
}
