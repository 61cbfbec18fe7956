// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A program's own variables: globals and clause-locals by their place, dynamic variables by a key
//! of the variable, the thread and the tuple stack.
//!
//! A key is a list of words: the variable, the thread (0 for a global array), and for each entry of
//! the tuple its value, or its length and its bytes, padded with zeros to a whole word. Of a
//! string, the bytes before its NUL count.

use super::env::{Entry, EntryKind, Env, Vm};
use super::program::{Dyn, Static};
use super::view::View;
use crate::budget::LOADED;
use crate::buf::copy;
use crate::error::Trap;
use crate::machine::Machine;
use crate::var::addr::{self, Region};
use crate::var::dynamic::{Assigned, Dynamics, NAMES};
use crate::var::statics::NULL;
use core::sync::atomic::Ordering;
use dtrace_uapi::fault::Fault;

impl<M: Machine> Env<'_, M> {
    fn static_word(&self, local: bool, offset: usize) -> u64 {
        if local {
            crate::buf::word(&self.vm.locals, offset)
        } else {
            self.core
                .globals
                .u64(offset)
                .map_or(0, |w| w.load(Ordering::Relaxed))
        }
    }

    fn set_static_word(&mut self, local: bool, offset: usize, value: u64) {
        if local {
            crate::buf::set_word(&mut self.vm.locals, offset, value);
        } else if let Some(w) = self.core.globals.u64(offset) {
            w.store(value, Ordering::Relaxed);
        }
    }

    /// Loads a global or clause-local variable: its value, or the address of its bytes, 0 if it is
    /// NULL.
    #[inline]
    pub fn load_static(&self, var: Static) -> u64 {
        let offset = var.offset as usize;
        let word = self.static_word(var.local, offset);
        match var.by_ref {
            None => word,
            Some(_) if word == NULL => 0,
            Some(_) => addr::make(static_region(var), offset.saturating_add(8)),
        }
    }

    /// Assigns a global or clause-local variable. A rehearsal assigns only clause-locals.
    #[inline]
    pub fn store_static(&mut self, var: Static, value: u64) -> Result<(), Trap> {
        if self.rehearsal.is_some() && !var.local {
            return Ok(());
        }
        let offset = var.offset as usize;
        match var.by_ref {
            None => self.set_static_word(var.local, offset, value),
            Some(_) if value == 0 => self.set_static_word(var.local, offset, NULL),
            Some(size) => {
                let to = addr::make(static_region(var), offset.saturating_add(8));
                self.copy(value, to, size as usize, var.string)?;
                self.set_static_word(var.local, offset, 0);
            }
        }
        Ok(())
    }

    /// Pushes an entry onto the tuple stack. Traps if the stack is full.
    pub fn push(&mut self, entry: Entry) -> Result<(), Trap> {
        match self.vm.tuple.get_mut(self.vm.ntuple) {
            Some(slot) => {
                *slot = entry;
                self.vm.ntuple = self.vm.ntuple.saturating_add(1);
                Ok(())
            }
            None => Err(Trap::new(Fault::TupOflow, 0)),
        }
    }

    /// Builds the key of an element of an array in `vm.key`. Returns its length in words; `None` if
    /// it is too long.
    fn make_key(&mut self, var: Dyn) -> Result<Option<usize>, Trap> {
        let mut n = 2;
        let head = [
            u64::from(var.id) | u64::from(var.thread) << 32 | u64::from(var.array) << 33,
            if var.thread { self.m.thread_key() } else { 0 },
        ];
        match self.vm.key.get_mut(..2) {
            Some(key) => key.copy_from_slice(&head),
            None => return Ok(None),
        }
        for i in 0..self.vm.ntuple {
            let entry = self.vm.tuple.get(i).copied().unwrap_or_default();
            n = match self.add_to_key(entry, n)? {
                Some(n) => n,
                None => return Ok(None),
            };
        }
        Ok(Some(n))
    }

    fn add_to_key(&mut self, entry: Entry, at: usize) -> Result<Option<usize>, Trap> {
        let len = match entry.kind {
            EntryKind::Value => {
                return Ok(self.vm.key.get_mut(at).map(|word| {
                    *word = entry.value;
                    at.saturating_add(1)
                }))
            }
            EntryKind::String => self.fetch(entry.value, 0, usize::MAX)?,
            EntryKind::Bytes => usize::try_from(entry.size).unwrap_or(usize::MAX),
        };
        let words = len.div_ceil(8);
        let Vm {
            scratch,
            used,
            locals,
            tmp: [tmp, _],
            key,
            budget,
            ..
        } = &mut *self.vm;
        let Some(key) = at
            .checked_add(1)
            .and_then(|begin| begin.checked_add(words))
            .and_then(|end| key.get_mut(at..end))
        else {
            return Ok(None);
        };
        let Some((head, data)) = key.split_first_mut() else {
            return Ok(None);
        };
        *head = len as u64;
        // Words of the kernel's are loaded one by one.
        let is_copied = entry.kind == EntryKind::String || addr::is_own(entry.value);
        let price = if is_copied { 1 } else { LOADED / 8 };
        budget.pay(self.m, len.saturating_mul(price))?;
        let view = View {
            m: self.m,
            core: self.core,
            scratch: scratch.get(..*used).unwrap_or(&[]),
            locals,
        };
        for (i, word) in data.iter_mut().enumerate() {
            let mut bytes = [0u8; 8];
            // No overflow: there are as many words as the bytes need.
            let done = i.saturating_mul(8);
            let n = len.saturating_sub(done).min(8);
            let piece = bytes.get_mut(..n).unwrap_or(&mut []);
            if entry.kind == EntryKind::String {
                copy(piece, tmp.get(done..).unwrap_or(&[]));
            } else {
                view.read(entry.value.wrapping_add(done as u64), piece)?;
            }
            *word = u64::from_ne_bytes(bytes);
        }
        Ok(Some(at.saturating_add(1).saturating_add(words)))
    }

    /// Returns the key of a thread-local variable: the variable and the thread.
    #[inline(always)]
    fn thread_local(&self, var: Dyn) -> [u64; 2] {
        [var.name(), if var.thread { self.m.thread_key() } else { 0 }]
    }

    /// Looks up the chunk of an element of an array. Afterwards the element's key is in `vm.key`.
    fn element(&mut self, dynamics: &Dynamics, var: Dyn) -> Result<Element, Trap> {
        let Some(n) = self.make_key(var)? else {
            return Ok(Element::TooLong);
        };
        let key = self.vm.key.get(..n).unwrap_or(&[]);
        Ok(Element::At(n, dynamics.find(key)))
    }

    /// Loads a thread-local variable or an element of an associative array; 0 if it was never
    /// assigned.
    #[inline]
    pub fn load_dyn(&mut self, var: Dyn) -> Result<u64, Trap> {
        let core = self.core;
        let Some(dynamics) = &core.dynamics else {
            return Ok(0);
        };
        if var.array {
            return self.load_element(dynamics, var);
        }
        let key = self.thread_local(var);
        let recent = self.vm.recent.get_mut(usize::from(var.id) % NAMES);
        let found = recent.and_then(|recent| dynamics.look(&key, recent));
        Ok(found.map_or(0, |chunk| value_of(dynamics, var, chunk)))
    }

    #[inline(never)]
    fn load_element(&mut self, dynamics: &Dynamics, var: Dyn) -> Result<u64, Trap> {
        Ok(match self.element(dynamics, var)? {
            Element::At(_, Some(chunk)) => value_of(dynamics, var, chunk),
            Element::At(_, None) | Element::TooLong => 0,
        })
    }

    /// Assigns a thread-local variable or an element of an associative array; 0 deletes it. A
    /// variable that does not fit is dropped, and counted. A rehearsal assigns nothing.
    #[inline]
    pub fn store_dyn(&mut self, var: Dyn, value: u64) -> Result<(), Trap> {
        let core = self.core;
        let Some(dynamics) = core.dynamics.as_ref().filter(|_| self.rehearsal.is_none()) else {
            return Ok(());
        };
        let made = if var.array {
            self.store_element(dynamics, var, value)?
        } else {
            self.store_thread_local(dynamics, var, value)
        };
        let Some(chunk) = made else {
            return Ok(());
        };
        match var.by_ref {
            Some(size) => {
                let to = addr::make(Region::Dynamics, dynamics.value_of(chunk));
                self.copy(value, to, size as usize, var.string)
            }
            None => {
                dynamics.set_word(chunk, value);
                Ok(())
            }
        }
    }

    /// Makes or deletes a thread-local variable. Returns the chunk to which the caller must write
    /// the value.
    #[inline(always)]
    fn store_thread_local(&mut self, dynamics: &Dynamics, var: Dyn, value: u64) -> Option<u32> {
        let key = self.thread_local(var);
        let Vm { recent, free, .. } = &mut *self.vm;
        let recent = recent.get_mut(usize::from(var.id) % NAMES)?;
        let place = dynamics.place(&key, recent);
        if value == 0 {
            dynamics.delete(place, self.at.cpu, recent);
            return None;
        }
        let first = first_word(var, value);
        match dynamics.assign(place, self.at.cpu, free, &key, recent, first) {
            Assigned::Kept(chunk) => Some(chunk),
            // A new chunk has its value already, unless that is bytes.
            Assigned::Made(chunk) => var.by_ref.map(|_| chunk),
            Assigned::Dropped => self.dropped(dynamics),
        }
    }

    /// Makes or deletes an element. Returns the chunk to which the caller must write the value.
    #[inline(never)]
    fn store_element(
        &mut self,
        dynamics: &Dynamics,
        var: Dyn,
        value: u64,
    ) -> Result<Option<u32>, Trap> {
        Ok(match (self.element(dynamics, var)?, value) {
            (Element::TooLong, _) => {
                dynamics.drops.full.fetch_add(1, Ordering::Relaxed);
                None
            }
            (Element::At(_, found), 0) => {
                if let Some(chunk) = found {
                    dynamics.remove(self.at.cpu, chunk);
                }
                None
            }
            (Element::At(_, Some(chunk)), _) => Some(chunk),
            (Element::At(n, None), _) => {
                let Vm { key, free, .. } = &mut *self.vm;
                let key = key.get(..n).unwrap_or(&[]);
                let first = first_word(var, value);
                let made = dynamics.insert(self.at.cpu, free, key, first);
                made.ok().or_else(|| self.dropped(dynamics))
            }
        })
    }

    /// Takes the cost of a search for a chunk that found none on any CPU from the budget.
    #[cold]
    fn dropped(&mut self, dynamics: &Dynamics) -> Option<u32> {
        // If less than that is left, the budget is empty now, and the next request fails.
        let _ = self.vm.budget.spend(dynamics.units_of_drop());
        None
    }
}

/// Returns the value in a chunk, or the address of its bytes.
#[inline(always)]
fn value_of(dynamics: &Dynamics, var: Dyn, chunk: u32) -> u64 {
    match var.by_ref {
        Some(_) => addr::make(Region::Dynamics, dynamics.value_of(chunk)),
        None => dynamics.word(chunk),
    }
}

/// Returns the first word of a new variable. For one by reference it is 0: its bytes follow when it
/// has a chunk.
#[inline(always)]
fn first_word(var: Dyn, value: u64) -> u64 {
    match var.by_ref {
        Some(_) => 0,
        None => value,
    }
}

/// The result of looking up an element of an array.
enum Element {
    /// Its key is longer than any that is stored.
    TooLong,
    /// The length of its key, and its chunk.
    At(usize, Option<u32>),
}

fn static_region(var: Static) -> Region {
    if var.local {
        Region::Locals
    } else {
        Region::Globals
    }
}
