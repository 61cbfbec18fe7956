// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Inlined functions of a file, looked up on demand.
//!
//! The debugging information is searched for once, at the first look-up: in the file itself or in
//! its separate debug file (see `dwarf`). A file without it, or one that is too expensive to read,
//! is remembered as having none. The result for each address is cached.

#[cfg(test)]
mod tests;

use dtrace_files::dwarf::{DebugInfo, Inlined};
use dtrace_files::outside::path_of;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::rc::Rc;

/// Maximum number of addresses cached for one file.
const ADDRESSES_MAX: usize = 65_536;

/// The known inlined functions of a file.
#[derive(Default)]
pub struct Inlines {
    /// Whether the debugging information has been searched for.
    is_sought: Cell<bool>,
    debug: RefCell<Option<DebugInfo>>,
    known: RefCell<HashMap<u64, Rc<[Inlined]>>>,
}

impl std::fmt::Debug for Inlines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inlines").finish_non_exhaustive()
    }
}

impl Inlines {
    /// Returns the functions inlined at `address` of `file`, innermost first. `path` is where its
    /// process sees the file. Addresses that are not cached are looked up only if `has_room`
    /// returns true.
    pub fn at(
        &self,
        file: &File,
        path: &str,
        address: u64,
        has_room: impl FnOnce() -> bool,
    ) -> Rc<[Inlined]> {
        if let Some(known) = self.known.borrow().get(&address) {
            return known.clone();
        }
        if !has_room() {
            return Rc::default();
        }
        let mut debug = self.debug.borrow_mut();
        if !self.is_sought.replace(true) {
            *debug = DebugInfo::open_unasked(&path_of(file), path).ok();
        }
        let Some(told) = debug.as_ref() else {
            return Rc::default();
        };
        let found: Rc<[Inlined]> = told.inlined(address).into();
        if told.is_spent() {
            *debug = None;
            return Rc::default();
        }
        let mut known = self.known.borrow_mut();
        if known.len() >= ADDRESSES_MAX {
            known.clear();
        }
        known.insert(address, found.clone());
        found
    }

    /// Returns the approximate memory that the debugging information takes, in bytes.
    pub fn kept(&self) -> u64 {
        self.debug.borrow().as_ref().map_or(0, DebugInfo::kept)
    }
}
