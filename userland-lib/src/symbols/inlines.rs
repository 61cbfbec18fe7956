// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The functions that are inlined in a file, as long as they are asked for.
//!
//! What the file's compiler has told is looked for once, when the first address is asked for: in the file itself or the one that was made of
//! it (see `dwarf`). A file without it, or one that costs too much to read, is remembered as having none; an address is looked up once.

#[cfg(test)]
mod tests;

use super::files::path_of;
use crate::dwarf::{DebugInfo, Inlined};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::rc::Rc;

/// Addresses that are remembered for one file.
const ADDRESSES_MAX: usize = 65_536;

/// What is known of a file's inlined functions.
#[derive(Default)]
pub struct Inlines {
    /// Whether somebody has looked for what the compiler has told.
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
    /// Those at `address` of `file`, which its process sees at `path`: the innermost first. None is looked for unless there is room for more.
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

    /// Bytes of memory that it takes, about.
    pub fn kept(&self) -> u64 {
        self.debug.borrow().as_ref().map_or(0, DebugInfo::kept)
    }
}
