// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The ids of probes, and the probes that have them (INV-21).
//!
//! An id outlives its probe: it is in records that a consumer has yet to read, and in what a user
//! has copied from a listing. So an id that was given back comes again only after all others, which
//! are 4,294,967,294. Until then no probe has it, and a look-up finds none.
//!
//! The entries are sorted by id. A new id is greater than all others, except after the greatest id
//! was given out and counting began again. An id that is given back leaves an empty entry. When
//! more than half of the entries are empty, these are removed.

use super::probe::ProbeRef;
use dtrace_uapi::types::ProbeId;
use kernel::alloc::KVVec;
use kernel::prelude::*;

struct Entry {
    id: ProbeId,
    /// The probe; `None` if the id was given back.
    probe: Option<ProbeRef>,
}

/// All ids.
pub struct Ids {
    entries: KVVec<Entry>,
    /// Number of empty entries.
    empty: usize,
    /// The id that was given out last.
    last: ProbeId,
}

impl Ids {
    /// No id is given out.
    pub const fn new() -> Self {
        Self {
            entries: KVVec::new(),
            empty: 0,
            last: 0,
        }
    }

    /// Makes room for one more id, so that [`add`](Self::add) cannot fail. Returns the id to add.
    /// `ENOMEM`; `ENOSPC` if all ids are in use.
    pub fn prepare(&mut self) -> Result<ProbeId> {
        self.entries.reserve(1, GFP_KERNEL)?;
        let mut id = following(self.last);
        let mut at = self.position(id);
        // Each id in use is passed at most once.
        for _ in 0..=self.entries.len() {
            match self.entries.get(at) {
                Some(entry) if entry.id == id => {
                    id = following(id);
                    at = if id == 1 { 0 } else { at.saturating_add(1) };
                }
                _ => return Ok(id),
            }
        }
        Err(ENOSPC)
    }

    /// Gives out the id that was [prepared](Self::prepare).
    pub fn add(&mut self, id: ProbeId, probe: ProbeRef) {
        let at = self.position(id);
        let probe = Some(probe);
        let entry = Entry { id, probe };
        // Cannot fail: `prepare` has reserved the room.
        if self.entries.push_within_capacity(entry).is_ok() {
            if let Some(from) = self.entries.get_mut(at..) {
                from.rotate_right(1);
            }
            self.last = id;
        }
    }

    /// Takes an id back.
    pub fn remove(&mut self, id: ProbeId) {
        let at = self.position(id);
        let Some(entry) = self.entries.get_mut(at).filter(|entry| entry.id == id) else {
            return;
        };
        if entry.probe.take().is_some() {
            self.empty = self.empty.saturating_add(1);
        }
        if self.empty.saturating_mul(2) > self.entries.len() {
            self.entries.retain(|entry| entry.probe.is_some());
            self.empty = 0;
        }
    }

    /// Returns the probe with this id.
    pub fn get(&self, id: ProbeId) -> Option<ProbeRef> {
        let entry = self.entries.get(self.position(id))?;
        entry.probe.filter(|_| entry.id == id)
    }

    /// Returns the probes with greater ids, in the order of their ids.
    pub fn after(&self, id: ProbeId) -> impl Iterator<Item = ProbeRef> + '_ {
        let at = self.entries.partition_point(|entry| entry.id <= id);
        let rest = self.entries.get(at..).unwrap_or_default();
        rest.iter().filter_map(|entry| entry.probe)
    }

    /// Returns the index at which the entry of an id is, or would be inserted.
    fn position(&self, id: ProbeId) -> usize {
        // Fast path for the id to add, which is mostly the greatest.
        match self.entries.last() {
            Some(last) if last.id < id => self.entries.len(),
            _ => self.entries.partition_point(|entry| entry.id < id),
        }
    }

    /// Returns the capacity of the entries.
    #[cfg(test)]
    pub fn room(&self) -> usize {
        self.entries.capacity()
    }

    /// Goes on with the ids after `id`.
    #[cfg(test)]
    pub fn skip_to(&mut self, id: ProbeId) {
        self.last = id;
    }
}

/// Returns the id after this one. No probe has the id 0.
fn following(id: ProbeId) -> ProbeId {
    id.checked_add(1).unwrap_or(1)
}
