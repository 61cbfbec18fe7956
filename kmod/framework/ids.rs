// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The ids of probes, and the probes that have them.
//!
//! An id outlives its probe: it is in records that a consumer has yet to read, and in what somebody copied from a listing. So one that
//! has been given back is the last to be given out again: the others come first, 4,294,967,294 of them. Until then it is nobody's, and
//! who asks for it learns that.
//!
//! The entries are in the order of the ids. New ids are greater than all others, but for the time after the greatest has been
//! given out. What is given back becomes an empty entry; these go when there are as many of them as others.

use super::probe::ProbeRef;
use dtrace_uapi::types::ProbeId;
use kernel::alloc::KVVec;
use kernel::prelude::*;

struct Entry {
    id: ProbeId,
    /// None where the id has been given back.
    probe: Option<ProbeRef>,
}

/// All ids.
pub struct Ids {
    entries: KVVec<Entry>,
    /// How many of them are empty.
    empty: usize,
    /// The one that was given out last.
    last: ProbeId,
}

impl Ids {
    /// None.
    pub const fn new() -> Self {
        Self {
            entries: KVVec::new(),
            empty: 0,
            last: 0,
        }
    }

    /// Makes room for one more, so that an [`add`](Self::add) succeeds; that will be of the id that this returns.
    pub fn prepare(&mut self) -> Result<ProbeId> {
        self.entries.reserve(1, GFP_KERNEL)?;
        let mut id = following(self.last);
        let mut at = self.position(id);
        // Each that is in use is passed once at most.
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
        // There is room.
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

    /// The probe of this id.
    pub fn get(&self, id: ProbeId) -> Option<ProbeRef> {
        let entry = self.entries.get(self.position(id))?;
        entry.probe.filter(|_| entry.id == id)
    }

    /// The probes whose ids are greater, in the order of these.
    pub fn after(&self, id: ProbeId) -> impl Iterator<Item = ProbeRef> + '_ {
        let at = self.entries.partition_point(|entry| entry.id <= id);
        let rest = self.entries.get(at..).unwrap_or_default();
        rest.iter().filter_map(|entry| entry.probe)
    }

    /// Where the entry of an id is or would be.
    fn position(&self, id: ProbeId) -> usize {
        // Mostly it is the newest that is asked for.
        match self.entries.last() {
            Some(last) if last.id < id => self.entries.len(),
            _ => self.entries.partition_point(|entry| entry.id < id),
        }
    }

    /// How many entries there are room for.
    #[cfg(test)]
    pub fn room(&self) -> usize {
        self.entries.capacity()
    }

    /// Goes on behind `id`.
    #[cfg(test)]
    pub fn skip_to(&mut self, id: ProbeId) {
        self.last = id;
    }
}

/// The id after this one; 0 is none.
fn following(id: ProbeId) -> ProbeId {
    id.checked_add(1).unwrap_or(1)
}
