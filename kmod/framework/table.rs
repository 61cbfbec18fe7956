// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The table of all probes: creation, and matching of descriptions.
//!
//! Ids are dense: a probe's id is its place in the table plus one, for good. A probe that its provider removes is only marked; if
//! it comes back (a kernel module is loaded again) it gets its id back, so that the table does not grow with every round.
//!
//! A description is matched by the cheapest way that it allows: a plain part leads to its [`Name`] and thus to the
//! chain of probes that have it, of several the shortest; else one glob is compared with the names, which are half as many as the
//! probes; only a description without any part looks at everything.

use super::names::{Name, Names};
use super::probe::{Part, Probe, ProbeRef};
use super::provider::Description;
use crate::sys::arena::{Arena, Strings};
use dtrace_engine::mem::sort::sort;
use dtrace_uapi::glob;
use dtrace_uapi::limits::{FUNCNAMELEN, MODNAMELEN, NAMELEN, PROVNAMELEN};
use dtrace_uapi::types::ProbeId;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// All probes. Changed with the framework's mutex held.
pub struct Table {
    probes: Arena<Probe>,
    by_id: KVVec<ProbeRef>,
    names: Names,
}

/// What a probe is created from.
pub struct NewProbe<'a> {
    /// Index of the provider.
    pub provider: u32,
    /// Its name.
    pub provider_name: &'a [u8],
    /// Name of the module.
    pub module: &'a [u8],
    /// Name of the function.
    pub func: &'a [u8],
    /// Name of the probe.
    pub name: &'a [u8],
    /// The provider's own.
    pub cookie: u64,
}

/// A description made ready for this table. Valid until the table changes.
pub struct Pattern<'a>([Matcher<'a>; 4]);

#[derive(Clone, Copy)]
enum Matcher<'a> {
    Any,
    /// Exactly this name; `None`: no probe has such a name.
    Exact(Option<&'static Name>),
    Glob(&'a [u8]),
}

impl Pattern<'_> {
    /// Whether it matches `probe`.
    pub fn matches(&self, probe: &Probe) -> bool {
        probe.is_live()
            && Part::ALL.iter().zip(&self.0).all(|(part, matcher)| {
                let name = probe.name_of(*part);
                match matcher {
                    Matcher::Any => true,
                    Matcher::Exact(exact) => exact.is_some_and(|e| core::ptr::eq(e, name)),
                    Matcher::Glob(glob) => glob::matches(glob, name.text()),
                }
            })
    }
}

impl Table {
    /// An empty table in the given memory.
    pub const fn new(probes: Arena<Probe>, texts: Strings, names: Arena<Name>) -> Self {
        Self {
            probes,
            by_id: KVVec::new(),
            names: Names::new(texts, names),
        }
    }

    /// The live probe of this id.
    pub fn get(&self, id: ProbeId) -> Option<ProbeRef> {
        self.slot(id).filter(|probe| probe.is_live())
    }

    fn slot(&self, id: ProbeId) -> Option<ProbeRef> {
        let at = usize::try_from(id.checked_sub(1)?).ok()?;
        self.by_id.get(at).copied()
    }

    /// The text, among the names.
    pub fn intern(&mut self, text: &[u8]) -> Result<&'static [u8]> {
        Ok(self.names.intern(text)?.text())
    }

    /// Creates a probe, or brings a removed one of the same name back.
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
        let [provider, module, func, name] = parts;
        let names = [
            self.names.intern(provider.0)?,
            self.names.intern(module.0)?,
            self.names.intern(func.0)?,
            self.names.intern(name.0)?,
        ];
        if let Some(dead) = self.search(&names, |probe| !probe.is_live()) {
            dead.revive(new.cookie);
            return Ok(dead);
        }
        let id = ProbeId::try_from(self.by_id.len()).map_err(|_| ENOSPC)?;
        let id = id.checked_add(1).ok_or(ENOSPC)?;
        self.by_id.reserve(1, GFP_KERNEL)?;
        let probe = self
            .probes
            .push(Probe::new(id, new.provider, names, new.cookie))?;
        self.by_id.push(probe, GFP_KERNEL)?;
        for part in Part::ALL {
            probe.name_of(part).chain(part, probe);
        }
        Ok(probe)
    }

    /// The live probe of this very name.
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
            let probe = self.slot(at)?;
            at = probe.next(part);
            Some(probe)
        })
    }

    /// Makes a description ready.
    pub fn pattern<'a>(&self, desc: &Description<'a>) -> Pattern<'a> {
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

    /// The first probe that `pattern` matches whose id is greater than `after`.
    pub fn next_match(&self, pattern: &Pattern<'_>, after: ProbeId) -> Option<ProbeRef> {
        let from = usize::try_from(after).ok()?;
        let rest = self.by_id.get(from..)?;
        rest.iter().copied().find(|probe| pattern.matches(probe))
    }

    /// The first live probe of a provider whose id is greater than `after`.
    pub fn next_of(&self, provider: u32, after: ProbeId) -> Option<ProbeRef> {
        let rest = self.by_id.get(usize::try_from(after).ok()?..)?;
        let fits = |probe: &ProbeRef| probe.is_live() && probe.provider() == provider;
        rest.iter().copied().find(fits)
    }

    /// The probes that `pattern` matches, by id.
    pub fn matches(&self, pattern: &Pattern<'_>) -> Result<KVVec<ProbeRef>> {
        let mut found = KVVec::new();
        let mut add = |probe: ProbeRef| -> Result {
            if pattern.matches(probe) {
                found.push(probe, GFP_KERNEL)?;
            }
            Ok(())
        };
        match self.plan(pattern) {
            Plan::Nothing => {}
            Plan::Chain(part, name) => self.chain(part, name).try_for_each(add)?,
            Plan::Names(part, glob) => {
                let fits = |name: &&Name| name.count(part) > 0 && glob::matches(glob, name.text());
                for name in self.names.iter().filter(fits) {
                    self.chain(part, name).try_for_each(&mut add)?;
                }
            }
            Plan::All => self.by_id.iter().copied().try_for_each(add)?,
        }
        sort(&mut found, |a, b| a.id() < b.id());
        Ok(found)
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
        // A chain as long as all names is worse than a glob of the function, which is the part that differs most.
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

/// Where to look for a pattern's probes.
enum Plan<'a> {
    Nothing,
    Chain(Part, &'static Name),
    Names(Part, &'a [u8]),
    All,
}
