// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The names of probes, each held once.
//!
//! A hundred thousand probes share fifty thousand names: a function has an entry and a return, and
//! all of these are called "entry" or "return". A [`Name`] is a text and, for each of the four
//! parts of a probe's name, the chain of the probes that have the text as this part. So the table
//! of names *is* the four hash tables by which probes are matched, two names are equal if their
//! addresses are, and a glob is compared with each distinct name once instead of with each probe.
//!
//! Chains are doubly linked, because a probe may have to leave a chain of a hundred thousand. A
//! name counts the probes that are made of it, on its chains or not. It goes with the last of these
//! probes, unless its text was given out for ever.

use super::probe::{Part, Probe, ProbeRef};
use crate::sys::arena::{Arena, Place, Strings, Text};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use dtrace_engine::hash::mix_bytes;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// A name, and the probes that have it. Changed with the framework's mutex held. Probe context
/// reads only the text.
pub struct Name {
    text: Text,
    place: Place,
    hash: u32,
    /// Number of parts of probes that are made of it.
    uses: AtomicU32,
    /// It stays even if no probe is made of it.
    stays: AtomicBool,
    chains: [Chain; 4],
}

struct Chain {
    /// The place of the probe that was added last; the chain goes on by [`Probe::next`].
    first: AtomicU32,
    len: AtomicU32,
}

impl Chain {
    fn grow(&self, by: i32) {
        let len = self.len.load(Ordering::Relaxed);
        self.len
            .store(len.wrapping_add_signed(by), Ordering::Relaxed);
    }
}

impl Name {
    /// Returns the text.
    #[inline]
    pub fn text(&self) -> &'static [u8] {
        self.text.bytes()
    }

    /// Returns the number of probes that have it as `part`, including removed ones.
    pub fn count(&self, part: Part) -> u32 {
        self.chains[part as usize].len.load(Ordering::Relaxed)
    }

    /// Returns the place of the first probe on the chain of `part`, or 0.
    pub fn first(&self, part: Part) -> Place {
        self.chains[part as usize].first.load(Ordering::Relaxed)
    }

    /// Puts `probe` in front of the chain of `part`.
    pub fn chain(&self, part: Part, probe: ProbeRef, probes: &Arena<Probe>) {
        let chain = &self.chains[part as usize];
        let second = chain.first.load(Ordering::Relaxed);
        probe.set_next(part, second);
        probe.set_previous(part, 0);
        if let Some(second) = probes.get(second) {
            second.set_previous(part, probe.place());
        }
        chain.first.store(probe.place(), Ordering::Relaxed);
        chain.grow(1);
    }

    /// Takes `probe` off the chain of `part`.
    pub fn unchain(&self, part: Part, probe: ProbeRef, probes: &Arena<Probe>) {
        let chain = &self.chains[part as usize];
        let (previous, next) = (probe.previous(part), probe.next(part));
        match probes.get(previous) {
            Some(previous) => previous.set_next(part, next),
            None => chain.first.store(next, Ordering::Relaxed),
        }
        if let Some(next) = probes.get(next) {
            next.set_previous(part, previous);
        }
        chain.grow(-1);
    }

    /// Counts a part of a probe that is made of it.
    pub fn take(&self) {
        let uses = self.uses.load(Ordering::Relaxed);
        self.uses.store(uses.wrapping_add(1), Ordering::Relaxed);
    }

    /// Makes it stay for ever.
    pub fn stay(&self) {
        self.stays.store(true, Ordering::Relaxed);
    }

    fn is_unused(&self) -> bool {
        self.uses.load(Ordering::Relaxed) == 0 && !self.stays.load(Ordering::Relaxed)
    }
}

/// All names.
pub struct Names {
    texts: Strings,
    names: Arena<Name>,
    /// Open addressing: a power of two of slots, at most three quarters of them in use.
    slots: KVVec<Option<&'static Name>>,
    taken: usize,
    /// What hashes begin with. Programs and users choose names, and a user who could choose names
    /// with equal hashes could make every look-up slow (INV-30).
    secret: u64,
}

impl Names {
    /// Makes an empty table. `texts` and `names` will be its memory.
    pub const fn new(texts: Strings, names: Arena<Name>, secret: u64) -> Self {
        Self {
            texts,
            names,
            slots: KVVec::new(),
            taken: 0,
            secret,
        }
    }

    fn hash(&self, text: &[u8]) -> u32 {
        let hash = mix_bytes(self.secret, text);
        (hash ^ hash >> 32) as u32
    }

    /// Returns the name with this text, if there is one.
    pub fn get(&self, text: &[u8]) -> Option<&'static Name> {
        *self.slots.get(self.find(text, self.hash(text))?)?
    }

    /// Returns the slot of the name with this text and this hash.
    fn find(&self, text: &[u8], hash: u32) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        // Ends at an empty slot: at least a quarter of the slots is empty.
        loop {
            let name = (*self.slots.get(at)?)?;
            if name.hash == hash && name.text() == text {
                return Some(at);
            }
            at = at.wrapping_add(1) & mask;
        }
    }

    /// Returns the name with this text, and makes it if there is none. `ENOMEM`; `E2BIG` if the
    /// text is longer than [`LONGEST`](crate::sys::arena::LONGEST).
    pub fn intern(&mut self, text: &[u8]) -> Result<&'static Name> {
        let hash = self.hash(text);
        let there = self.find(text, hash).and_then(|at| self.slots.get(at));
        if let Some(Some(name)) = there {
            return Ok(name);
        }
        if self.taken.saturating_mul(4) >= self.slots.len().saturating_mul(3) {
            self.grow()?;
        }
        let text = self.texts.push(text)?;
        let pushed = self.names.push(|place| Name {
            text,
            place,
            hash,
            uses: AtomicU32::new(0),
            stays: AtomicBool::new(false),
            chains: [const {
                Chain {
                    first: AtomicU32::new(0),
                    len: AtomicU32::new(0),
                }
            }; 4],
        });
        let name = pushed.inspect_err(|_| self.texts.retire(text))?;
        set(&mut self.slots, name);
        self.taken = self.taken.saturating_add(1);
        Ok(name)
    }

    /// Counts that a part of a probe that is made of the name has gone. Removes the name if it was
    /// the last one.
    pub fn release(&mut self, name: &'static Name) {
        let uses = name.uses.load(Ordering::Relaxed);
        name.uses.store(uses.wrapping_sub(1), Ordering::Relaxed);
        if name.is_unused() {
            self.drop_at(name.text(), name.hash);
        }
    }

    /// Removes the name with this text, if it is unused and need not stay.
    pub fn drop_unused(&mut self, text: &[u8]) {
        self.drop_at(text, self.hash(text));
    }

    fn drop_at(&mut self, text: &[u8], hash: u32) {
        let Some(at) = self.find(text, hash) else {
            return;
        };
        if let Some(Some(name)) = self.slots.get(at).copied() {
            if name.is_unused() {
                self.vacate(at);
                self.taken = self.taken.saturating_sub(1);
                self.texts.retire(name.text);
                self.names.retire(name.place);
            }
        }
    }

    /// Empties a slot. Moves up each name that stands behind its own slot because the emptied slot
    /// was taken.
    fn vacate(&mut self, mut hole: usize) {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hole;
        loop {
            at = at.wrapping_add(1) & mask;
            let Some(Some(name)) = self.slots.get(at).copied() else {
                break;
            };
            let from_its_own = at.wrapping_sub(name.hash as usize) & mask;
            let from_the_hole = at.wrapping_sub(hole) & mask;
            if from_its_own >= from_the_hole {
                self.put(hole, Some(name));
                hole = at;
            }
        }
        self.put(hole, None);
    }

    fn put(&mut self, at: usize, name: Option<&'static Name>) {
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = name;
        }
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.taken
    }

    /// Returns all names, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &'static Name> + '_ {
        self.slots.iter().filter_map(|slot| *slot)
    }

    /// Returns the number of places for names and for texts, and the number of slots.
    #[cfg(test)]
    pub fn room(&self) -> [usize; 3] {
        [self.names.places(), self.texts.places(), self.slots.len()]
    }

    fn grow(&mut self) -> Result {
        let size = self.slots.len().checked_mul(2).ok_or(ENOMEM)?.max(1 << 10);
        let mut slots = KVVec::from_elem(None, size, GFP_KERNEL)?;
        for name in self.iter() {
            set(&mut slots, name);
        }
        self.slots = slots;
        Ok(())
    }
}

/// Puts `name` into the first free slot from its own on. There always is one, because a quarter of
/// the table is free.
fn set(slots: &mut [Option<&'static Name>], name: &'static Name) {
    let mask = slots.len().wrapping_sub(1);
    let start = name.hash as usize & mask;
    let (before, from) = slots.split_at_mut(start.min(mask));
    if let Some(slot) = [from, before]
        .into_iter()
        .flatten()
        .find(|slot| slot.is_none())
    {
        *slot = Some(name);
    }
}
