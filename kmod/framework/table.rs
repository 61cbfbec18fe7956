// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The table of all probes: their creation and removal, and the matching of descriptions.
//!
//! A probe that its provider *removes* is only marked. If it comes back, for example because a
//! kernel module is loaded again, it is revived with its old id, so the table does not grow each
//! time. A probe that its provider *retires* never comes back, for example because its process has
//! ended (INV-21). It leaves the chains of its names at once; its place, its id and the names that
//! no other probe has are given back. Retirement allocates nothing. It has two steps, as [`Arena`]
//! requires:
//!
//! 1. The probe is dead, disarmed and without ECBs, so no new firing reaches it. No description and
//!    no id finds it, and it cannot be revived. As long as it is [`Held`], mostly by what is left
//!    of ECBs in consumers' memory, it waits on a list of its own and keeps its id.
//!    [`sweep`](Table::sweep) finds the probes that are not held any more.
//! 2. Its place is given back to the arena, which waits for a grace period, for firings that are
//!    under way. The same goes for the places of names and texts, which firings reach only through
//!    the probe.
//!
//! A description is matched in the cheapest way that it allows. An exact part leads to its [`Name`]
//! and so to the chain of the probes that have it; of several exact parts the one with the shortest
//! chain is used. Otherwise one glob is compared with all names, which are half as many as the
//! probes. Only a description without any part looks at all probes.

use super::ids::Ids;
use super::names::{Name, Names};
use super::patience::Patience;
use super::probe::{Held, Part, Probe, ProbeRef};
use super::provider::Description;
use crate::sys::arena::{Arena, Place, Strings};
use core::mem::take;
use dtrace_engine::mem::sort::sort;
use dtrace_uapi::glob;
use dtrace_uapi::limits::{FUNCNAMELEN, MODNAMELEN, NAMELEN, PROVNAMELEN};
use dtrace_uapi::names;
use dtrace_uapi::types::ProbeId;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// Maximum length of a chain that is searched for the first match.
const SHORT: u32 = 4096;
/// Maximum length of a chain that is searched for each match.
const FEW: u32 = 16;
/// Steps of looking at a probe.
pub const LOOKED_AT: u64 = 4;

/// All probes. Changed with the framework's mutex held.
pub struct Table {
    probes: Arena<Probe>,
    ids: Ids,
    names: Names,
    /// The place of the first retired probe that was still held at the last look. The list goes on
    /// by [`Probe::next`].
    waiting: Place,
    /// Number of probes that were put on that list since the last sweep.
    waiters: usize,
}

/// What a probe is created from.
pub struct NewProbe<'a> {
    /// Index of the provider.
    pub provider: u32,
    /// Name of the provider.
    pub provider_name: &'a [u8],
    /// Name of the module.
    pub module: &'a [u8],
    /// Name of the function.
    pub func: &'a [u8],
    /// Name of the probe.
    pub name: &'a [u8],
    /// The provider's own value.
    pub cookie: u64,
}

/// A description prepared for matching. The table does not change while it exists.
pub struct Pattern<'a>([Matcher<'a>; 4]);

#[derive(Clone, Copy)]
enum Matcher<'a> {
    Any,
    /// Exactly this name; `None` if no probe has such a name.
    Exact(Option<&'static Name>),
    Glob(&'a [u8]),
}

impl Pattern<'_> {
    /// Whether it matches `probe`. Fails like [`Patience::take`].
    pub fn matches_in(&self, probe: &Probe, patience: &Patience) -> Result<bool> {
        let mut steps = LOOKED_AT;
        let matches = self.matches(probe, &mut steps);
        patience.take(steps).map(|()| matches)
    }

    fn matches(&self, probe: &Probe, steps: &mut u64) -> bool {
        probe.is_live()
            && Part::ALL.iter().zip(&self.0).all(|(part, matcher)| {
                let name = probe.name_of(*part);
                match matcher {
                    Matcher::Any => true,
                    Matcher::Exact(exact) => exact.is_some_and(|e| core::ptr::eq(e, name)),
                    Matcher::Glob(glob) => glob::matches_in(glob, name.text(), steps),
                }
            })
    }
}

impl Table {
    /// Makes an empty table in the given memory. Hashes of names begin with `secret`.
    pub const fn new(
        probes: Arena<Probe>,
        texts: Strings,
        names: Arena<Name>,
        secret: u64,
    ) -> Self {
        Self {
            probes,
            ids: Ids::new(),
            names: Names::new(texts, names, secret),
            waiting: 0,
            waiters: 0,
        }
    }

    /// Returns the live probe with this id.
    pub fn get(&self, id: ProbeId) -> Option<ProbeRef> {
        self.ids.get(id).filter(|probe| probe.is_live())
    }

    /// Returns the live probe with this id, for use without the framework's mutex.
    pub fn hold(&self, id: ProbeId) -> Option<Held> {
        self.get(id).map(Held::new)
    }

    /// Returns a copy of the text that stays for ever.
    pub fn intern(&mut self, text: &[u8]) -> Result<&'static [u8]> {
        let name = self.names.intern(text)?;
        name.stay();
        Ok(name.text())
    }

    /// Creates a probe, or revives a removed one with the same names. `E2BIG`, `EINVAL`: no probe
    /// may have such a [name](dtrace_uapi::names).
    pub fn create(&mut self, new: &NewProbe<'_>) -> Result<ProbeRef> {
        let parts = [
            (new.provider_name, PROVNAMELEN),
            (new.module, MODNAMELEN),
            (new.func, FUNCNAMELEN),
            (new.name, NAMELEN),
        ];
        if parts.iter().any(|(text, room)| text.len() >= *room) {
            return Err(E2BIG);
        }
        let parts = parts.map(|(text, _)| text);
        if !names::are_good(parts) {
            return Err(EINVAL);
        }
        let made = self.make(new, parts);
        if made.is_err() {
            // Names that were made before the error.
            for text in parts {
                self.names.drop_unused(text);
            }
        }
        made
    }

    fn make(&mut self, new: &NewProbe<'_>, parts: [&[u8]; 4]) -> Result<ProbeRef> {
        let [provider, module, func, name] = parts;
        let names = [
            self.names.intern(provider)?,
            self.names.intern(module)?,
            self.names.intern(func)?,
            self.names.intern(name)?,
        ];
        if let Some(dead) = self.search(&names, |probe| !probe.is_live()) {
            dead.revive(new.cookie);
            return Ok(dead);
        }
        let id = self.ids.prepare()?;
        let make = |place| Probe::new(id, place, new.provider, names, new.cookie);
        let probe = self.probes.push(make)?;
        self.ids.add(id, probe);
        for part in Part::ALL {
            let name = probe.name_of(part);
            name.take();
            name.chain(part, probe, &self.probes);
        }
        Ok(probe)
    }

    /// Gives back what a removed probe has. The probe must be disarmed and have no ECBs. When
    /// another probe is created after this, only a [`Held`] may still be used.
    pub fn retire(&mut self, probe: ProbeRef) {
        if probe.is_live() || !probe.retire() {
            return;
        }
        for part in Part::ALL {
            probe.name_of(part).unchain(part, probe, &self.probes);
        }
        if probe.is_held() {
            self.wait(probe);
            self.waiters = self.waiters.saturating_add(1);
        } else {
            self.give_back(probe);
        }
    }

    /// Gives back what retired probes have that are not held any more.
    pub fn sweep(&mut self) {
        let mut at = take(&mut self.waiting);
        self.waiters = 0;
        while let Some(probe) = self.probes.get(at) {
            at = probe.next(Part::Provider);
            if probe.is_held() {
                self.wait(probe);
            } else {
                self.give_back(probe);
            }
        }
    }

    /// Returns the number of probes that were held when they were retired, since the last sweep.
    pub fn waiters(&self) -> usize {
        self.waiters
    }

    /// Puts a retired probe, which is on no chain, on the list of waiting probes.
    fn wait(&mut self, probe: ProbeRef) {
        probe.set_next(Part::Provider, self.waiting);
        self.waiting = probe.place();
    }

    fn give_back(&mut self, probe: ProbeRef) {
        self.ids.remove(probe.id());
        for part in Part::ALL {
            self.names.release(probe.name_of(part));
        }
        self.probes.retire(probe.place());
    }

    /// Returns the live probe with exactly these names.
    pub fn find(&self, parts: [&[u8]; 4]) -> Option<ProbeRef> {
        let [provider, module, func, name] = parts;
        let names = [
            self.names.get(provider)?,
            self.names.get(module)?,
            self.names.get(func)?,
            self.names.get(name)?,
        ];
        self.search(&names, Probe::is_live)
    }

    fn search(
        &self,
        names: &[&'static Name; 4],
        which: impl Fn(&Probe) -> bool,
    ) -> Option<ProbeRef> {
        let (part, name) = Part::ALL
            .into_iter()
            .zip(names)
            .min_by_key(|(part, name)| name.count(*part))?;
        self.chain(part, name).find(|probe| {
            which(probe)
                && Part::ALL
                    .into_iter()
                    .zip(names)
                    .all(|(part, name)| core::ptr::eq(probe.name_of(part), *name))
        })
    }

    fn chain<'a>(&'a self, part: Part, name: &Name) -> impl Iterator<Item = ProbeRef> + 'a {
        let mut at = name.first(part);
        core::iter::from_fn(move || {
            let probe = self.probes.get(at)?;
            at = probe.next(part);
            Some(probe)
        })
    }

    /// Prepares a description for matching.
    pub fn pattern<'a>(&'a self, desc: &Description<'a>) -> Pattern<'a> {
        Pattern(desc.parts().map(|text| {
            if text.is_empty() || text == b"*" {
                Matcher::Any
            } else if glob::is_glob(text) {
                Matcher::Glob(text)
            } else {
                Matcher::Exact(self.names.get(text))
            }
        }))
    }

    /// Returns the matching probe with the least id greater than `after`. An error is the id up to
    /// which no probe matches: the steps are used up.
    ///
    /// Probes that are made together have neighbouring ids. So the first match is searched on a
    /// short chain, and the next ones by id from there on, because they are near. To find that
    /// there is no other match takes a look at all probes that follow, unless the chain is very
    /// short.
    pub fn next_match(
        &self,
        pattern: &Pattern<'_>,
        after: ProbeId,
        patience: &Patience,
    ) -> Result<Option<ProbeRef>, ProbeId> {
        match self.plan(pattern) {
            Plan::Nothing => Ok(None),
            Plan::Chain(part, name) if name.count(part) <= if after == 0 { SHORT } else { FEW } => {
                self.next_in_chain(pattern, (part, name), after)
                    .or_else(|_| self.next_by_id(pattern, after, patience))
            }
            _ => self.next_by_id(pattern, after, patience),
        }
    }

    /// Searches a chain. Fails if that takes more than a stretch.
    fn next_in_chain(
        &self,
        pattern: &Pattern<'_>,
        (part, name): (Part, &Name),
        after: ProbeId,
    ) -> Result<Option<ProbeRef>> {
        let patience = Patience::of_stretch();
        let mut next: Option<ProbeRef> = None;
        for probe in self.chain(part, name).filter(|probe| probe.id() > after) {
            let is_first = next.is_none_or(|next| probe.id() < next.id());
            if is_first && pattern.matches_in(probe, &patience)? {
                next = Some(probe);
            }
        }
        Ok(next)
    }

    /// Searches all probes by id. Fails like [`next_match`](Self::next_match).
    fn next_by_id(
        &self,
        pattern: &Pattern<'_>,
        after: ProbeId,
        patience: &Patience,
    ) -> Result<Option<ProbeRef>, ProbeId> {
        let mut last = after;
        for probe in self.ids.after(after) {
            match pattern.matches_in(probe, patience) {
                Ok(true) => return Ok(Some(probe)),
                Ok(false) => last = probe.id(),
                Err(_) => return Err(last),
            }
        }
        Ok(None)
    }

    /// Whether a live probe has this name as `part`.
    pub fn is_any(&self, part: Part, text: &[u8]) -> bool {
        let name = self.names.get(text);
        name.is_some_and(|name| self.chain(part, name).any(|probe| probe.is_live()))
    }

    /// Returns the live probe of a provider with the least id greater than `after`.
    pub fn next_of(&self, provider: u32, after: ProbeId) -> Option<ProbeRef> {
        self.ids
            .after(after)
            .find(|probe| probe.is_live() && probe.provider() == provider)
    }

    /// Returns the matching probes, sorted by id. Fails like [`Patience::take`], and with `ENOMEM`.
    pub fn matches(&self, pattern: &Pattern<'_>, patience: &Patience) -> Result<KVVec<ProbeRef>> {
        let mut found = KVVec::new();
        let mut add = |probe: ProbeRef| -> Result {
            if pattern.matches_in(probe, patience)? {
                found.push(probe, GFP_KERNEL)?;
            }
            Ok(())
        };
        match self.plan(pattern) {
            Plan::Nothing => {}
            Plan::Chain(part, name) => self.chain(part, name).try_for_each(add)?,
            Plan::Names(part, glob) => {
                for name in self.names.iter() {
                    let mut steps = LOOKED_AT;
                    let fits =
                        name.count(part) > 0 && glob::matches_in(glob, name.text(), &mut steps);
                    patience.take(steps)?;
                    if fits {
                        self.chain(part, name).try_for_each(&mut add)?;
                    }
                }
            }
            Plan::All => self.ids.after(0).try_for_each(add)?,
        }
        sort(&mut found, |a, b| a.id() < b.id());
        Ok(found)
    }

    /// Returns the memory in use: places for probes, entries for ids, and that of names.
    #[cfg(test)]
    pub fn room(&self) -> ([usize; 2], [usize; 3]) {
        let probes = [self.probes.places(), self.ids.room()];
        (probes, self.names.room())
    }

    /// Gives the next probe an id after this one.
    #[cfg(test)]
    pub fn skip_ids(&mut self, to: ProbeId) {
        self.ids.skip_to(to);
    }

    fn plan<'a>(&self, pattern: &Pattern<'a>) -> Plan<'a> {
        let mut best: Option<(Part, &'static Name)> = None;
        for (part, matcher) in Part::ALL.into_iter().zip(&pattern.0) {
            if let Matcher::Exact(exact) = matcher {
                let Some(name) = exact else {
                    return Plan::Nothing;
                };
                if best.is_none_or(|(p, n)| name.count(part) < n.count(p)) {
                    best = Some((part, *name));
                }
            }
        }
        // To walk a chain that is longer than half of all names costs more than to compare the
        // names with a glob of the function, which is the part that differs most.
        let glob = [Part::Func, Part::Module, Part::Name, Part::Provider]
            .into_iter()
            .find_map(|part| match pattern.0[part as usize] {
                Matcher::Glob(glob) => Some(Plan::Names(part, glob)),
                _ => None,
            });
        match (best, glob) {
            (Some((part, name)), Some(Plan::Names(Part::Func, glob)))
                if name.count(part) as usize > self.names.len() / 2 =>
            {
                Plan::Names(Part::Func, glob)
            }
            (Some((part, name)), _) => Plan::Chain(part, name),
            (None, Some(glob)) => glob,
            (None, None) => Plan::All,
        }
    }
}

/// Where to search for the probes that match a pattern.
enum Plan<'a> {
    Nothing,
    Chain(Part, &'static Name),
    Names(Part, &'a [u8]),
    All,
}
