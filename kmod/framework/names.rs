// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The names that probes are made of, each held once.
//!
//! A hundred thousand probes share fifty thousand names: a function has an entry and a return, and they all are called
//! "entry" or "return". A [`Name`] is the text and, for each of the four places that it may stand in, the chain of
//! the probes that have it there. So the table of names *is* the four hashes that probes are matched by, two names are
//! equal if their addresses are, and a glob is compared with each distinct name once instead of with each probe.

use super::probe::{Part, ProbeRef};
use crate::sys::arena::{Arena, Strings};
use core::sync::atomic::{AtomicU32, Ordering};
use dtrace_uapi::types::ProbeId;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// A name, and the probes that have it. The chains are changed with the framework's mutex held.
pub struct Name {
    text: &'static [u8],
    hash: u32,
    chains: [Chain; 4],
}

struct Chain {
    /// The probe that was added last; [`Probe::next`](super::probe::Probe) leads on.
    first: AtomicU32,
    len: AtomicU32,
}

impl Name {
    /// The name itself.
    #[inline]
    pub fn text(&self) -> &'static [u8] {
        self.text
    }

    /// How many probes have it as `part`, dead ones included.
    pub fn count(&self, part: Part) -> u32 {
        self.chains[part as usize].len.load(Ordering::Relaxed)
    }

    /// The first probe that has it as `part`, or 0.
    pub fn first(&self, part: Part) -> ProbeId {
        self.chains[part as usize].first.load(Ordering::Relaxed)
    }

    /// Puts `probe` in front of the chain of `part`.
    pub fn chain(&self, part: Part, probe: ProbeRef) {
        let chain = &self.chains[part as usize];
        probe.set_next(part, chain.first.load(Ordering::Relaxed));
        chain.first.store(probe.id(), Ordering::Relaxed);
        chain.len.store(
            chain.len.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }
}

/// All names.
pub struct Names {
    texts: Strings,
    names: Arena<Name>,
    /// Open addressing: a power of two of slots, at most three quarters of them taken.
    slots: KVVec<Option<&'static Name>>,
    taken: usize,
}

impl Names {
    /// No names, whose memory will be `texts` and `names`.
    pub const fn new(texts: Strings, names: Arena<Name>) -> Self {
        Self {
            texts,
            names,
            slots: KVVec::new(),
            taken: 0,
        }
    }

    /// The name of this text, if there is one.
    pub fn get(&self, text: &[u8]) -> Option<&'static Name> {
        let hash = hash(text);
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let name = (*self.slots.get(at)?)?;
            if name.hash == hash && name.text == text {
                return Some(name);
            }
            at = at.wrapping_add(1) & mask;
        }
    }

    /// The name of this text, made if there is none.
    pub fn intern(&mut self, text: &[u8]) -> Result<&'static Name> {
        if let Some(name) = self.get(text) {
            return Ok(name);
        }
        if self.taken.saturating_mul(4) >= self.slots.len().saturating_mul(3) {
            self.grow()?;
        }
        let text = self.texts.push(text)?;
        let name = self.names.push(Name {
            text,
            hash: hash(text),
            chains: [const {
                Chain {
                    first: AtomicU32::new(0),
                    len: AtomicU32::new(0),
                }
            }; 4],
        })?;
        place(&mut self.slots, name);
        self.taken = self.taken.saturating_add(1);
        Ok(name)
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.taken
    }

    /// Every name, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &'static Name> + '_ {
        self.slots.iter().filter_map(|slot| *slot)
    }

    fn grow(&mut self) -> Result {
        let size = self.slots.len().checked_mul(2).ok_or(ENOMEM)?.max(1 << 10);
        let mut slots = KVVec::from_elem(None, size, GFP_KERNEL)?;
        for name in self.iter() {
            place(&mut slots, name);
        }
        self.slots = slots;
        Ok(())
    }
}

/// Puts `name` into the first free slot from its own on. There is one: the table is never full.
fn place(slots: &mut [Option<&'static Name>], name: &'static Name) {
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

/// FNV-1a: names are short and nobody gains by making them collide.
fn hash(text: &[u8]) -> u32 {
    text.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}
