// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes with a documented meaning: what `proc`, `sched` and `io` have in common.
//!
//! Such a provider is two tables: its probes with the types of their arguments, and the [places](crate::sys::places) of
//! the kernel with what each passage fires. One place may fire several probes, and several places the same one.
//! Translators in the library make of an argument what the documentation promises; here it is as the kernel has it.
//!
//! A probe that no place of this kernel feeds does not exist. If one of several places cannot be attached the probe
//! is not enabled at all: half of the events would be a lie.
//!
//! Invariant: a place is attached exactly while one of the probes that it feeds is enabled. Which probes those are is one
//! word, so that a place which feeds several asks for each of them with one load.

use super::{attributes, put_text, EVOLVING, KERNEL};
use crate::framework::{
    fire, miss, unhooked, Args, Failed, FireArgs, Framework, ProbeRef, Provider, Registration,
};
use crate::sys::places::{At, Call, Passed, Places};
use core::sync::atomic::{AtomicU64, Ordering};
use dtrace_uapi::ioctl::{ArgDesc, PRIV_KERNEL};
use dtrace_uapi::types::ProviderAttributes;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{Arc, SetOnce};

/// An argument of a probe.
pub struct Arg {
    /// Its type in the kernel.
    native: &'static str,
    /// The type that a translator gives it; empty if there is no need.
    translated: &'static str,
    /// Which of the words it is that the probe fires with.
    word: usize,
}

impl Arg {
    /// Word `word`, as it is.
    pub const fn plain(native: &'static str, word: usize) -> Self {
        Self::translated(native, "", word)
    }

    /// Word `word`, translated.
    pub const fn translated(native: &'static str, translated: &'static str, word: usize) -> Self {
        Self {
            native,
            translated,
            word,
        }
    }

    /// Word `word`, a task, as the thread that it is.
    pub const fn thread(word: usize) -> Self {
        Self::translated(TASK, "lwpsinfo_t *", word)
    }

    /// Word `word`, a task, as the process that it belongs to.
    pub const fn process(word: usize) -> Self {
        Self::translated(TASK, "psinfo_t *", word)
    }
}

const TASK: &str = "struct task_struct *";

/// A probe: its name and its arguments.
pub struct Event {
    name: &'static str,
    args: &'static [Arg],
}

impl Event {
    /// A probe, with `args[0]`, `args[1]`, ...
    pub const fn new(name: &'static str, args: &'static [Arg]) -> Self {
        Self { name, args }
    }
}

/// A place, and what it means.
pub struct Source {
    at: At,
    /// The probes that it feeds.
    feeds: u64,
    passed: fn(&Passage<'_>),
}

impl Source {
    /// `passed` is called when the place is, and fires some of the probes `feeds`.
    pub const fn new(at: At, feeds: &[usize], passed: fn(&Passage<'_>)) -> Self {
        Self {
            at,
            feeds: bits(feeds),
            passed,
        }
    }
}

/// The set of these probes.
const fn bits(probes: &[usize]) -> u64 {
    let mut set = 0;
    let mut n = 0;
    while n < probes.len() {
        set |= 1 << probes[n];
        n += 1;
    }
    set
}

/// A provider, as its file defines it.
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    /// Its probes, at most 64; their indices are what everything else refers to.
    pub probes: &'static [Event],
    /// What feeds them.
    pub sources: &'static [Source],
    /// Called before the first probe is enabled, when nothing is attached.
    pub begin: fn(),
}

/// One passage of a place.
pub struct Passage<'a> {
    fires: &'a Fires,
    /// What the place passes.
    pub call: &'a Call<'a>,
}

impl Passage<'_> {
    /// Whether this probe is enabled. A place is attached for any of its probes, so that who has to compute
    /// arguments asks first.
    #[inline]
    pub fn wants(&self, probe: usize) -> bool {
        self.fires.enabled.load(Ordering::Relaxed) & 1 << probe != 0
    }

    /// Fires this probe, if it is enabled.
    #[inline]
    pub fn fire(&self, probe: usize, words: &[u64]) {
        if !self.wants(probe) {
            return;
        }
        let probes = self.fires.probes.as_ref();
        if let Some(Some(probe)) = probes.and_then(|probes| probes.get(probe)) {
            let args = FireArgs::new(Args::Words(words)).caller(self.call.caller);
            fire(probe, &args);
        }
    }
}

/// Who is told of the places.
struct Fires {
    definition: &'static Definition,
    /// By their indices; `None` is one that nothing feeds.
    probes: SetOnce<KVVec<Option<ProbeRef>>>,
    enabled: AtomicU64,
}

impl Passed for Fires {
    #[inline]
    fn passed(&self, place: usize, call: &Call<'_>) {
        if let Some(source) = self.definition.sources.get(place) {
            (source.passed)(&Passage { fires: self, call });
        }
    }

    fn lost(&self, place: usize) {
        self.fed_by(place).for_each(unhooked);
    }

    fn missed(&self, place: usize) {
        self.fed_by(place).for_each(miss);
    }
}

impl Fires {
    /// The enabled probes that a place feeds.
    fn fed_by(&self, place: usize) -> impl Iterator<Item = ProbeRef> + '_ {
        let feeds = self.definition.sources.get(place).map_or(0, |s| s.feeds);
        let wanted = feeds & self.enabled.load(Ordering::Relaxed);
        let probes = self.probes.as_ref().into_iter().flatten();
        let probes = probes.flatten().copied();
        probes.filter(move |probe| bit(probe) & wanted != 0)
    }
}

/// The provider. A probe's cookie is its index.
struct EventProvider {
    fires: Arc<Fires>,
    places: Places<Fires>,
}

impl EventProvider {
    fn definition(&self) -> &'static Definition {
        self.fires.definition
    }

    /// Calls `f` with the places that feed some of the probes `some` and none of the probes `none`.
    fn places(&self, some: u64, none: u64, f: impl FnOnce(&Places<Fires>, &[usize])) {
        // As many as a provider may have.
        let mut list = [0; MAX_SOURCES];
        let mut len = 0usize;
        for (n, source) in self.definition().sources.iter().enumerate() {
            if source.feeds & some != 0 && source.feeds & none == 0 && self.places.has(n) {
                if let Some(slot) = list.get_mut(len) {
                    *slot = n;
                    len = len.wrapping_add(1);
                }
            }
        }
        f(&self.places, list.get(..len).unwrap_or_default());
    }
}

/// The most places that a provider has.
const MAX_SOURCES: usize = 64;

fn set_of(probes: &[ProbeRef]) -> u64 {
    probes.iter().fold(0, |set, probe| set | bit(probe))
}

fn bit(probe: ProbeRef) -> u64 {
    1u64.wrapping_shl(probe.cookie() as u32)
}

impl Provider for EventProvider {
    fn name(&self) -> &'static str {
        self.definition().name
    }

    fn attributes(&self) -> ProviderAttributes {
        attributes(EVOLVING)
    }

    fn privileges(&self) -> u32 {
        PRIV_KERNEL
    }

    fn enable(&self, probes: &[ProbeRef], failed: &mut Failed) {
        let old = self.fires.enabled.load(Ordering::Relaxed);
        let new = set_of(probes);
        if old == 0 {
            (self.definition().begin)();
        }
        // First the probes: a place fires at once, and its other probes may be enabled already.
        self.fires.enabled.store(old | new, Ordering::Relaxed);
        let mut missed = 0;
        let mut why = ENODEV;
        self.places(new, old, |places, list| {
            places.attach(list, |place, error| {
                let feeds = self.definition().sources.get(place).map(|s| s.feeds);
                missed |= feeds.unwrap_or(0) & new;
                why = error;
            });
        });
        if missed == 0 {
            return;
        }
        self.fires
            .enabled
            .store(old | new & !missed, Ordering::Relaxed);
        self.places(missed, old | new & !missed, Places::detach);
        for probe in probes.iter().filter(|probe| bit(probe) & missed != 0) {
            failed.add(probe, why);
        }
    }

    fn disable(&self, probes: &[ProbeRef]) {
        let old = self.fires.enabled.load(Ordering::Relaxed);
        let gone = set_of(probes);
        self.places(gone, old & !gone, Places::detach);
        self.fires.enabled.store(old & !gone, Ordering::Relaxed);
    }

    fn argdesc(&self, probe: ProbeRef, n: u32, desc: &mut ArgDesc) -> bool {
        let event = self.definition().probes.get(probe.cookie() as usize);
        let Some(arg) = event.and_then(|event| event.args.get(n as usize)) else {
            return false;
        };
        desc.mapping = arg.word as i32;
        put_text(&mut desc.native, arg.native.bytes());
        put_text(&mut desc.xlate, arg.translated.bytes());
        true
    }
}

/// Registers a provider and creates its probes.
pub fn register(
    framework: &Arc<Framework>,
    definition: &'static Definition,
) -> Result<Registration> {
    let fires = Arc::new(
        Fires {
            definition,
            probes: SetOnce::new(),
            enabled: AtomicU64::new(0),
        },
        GFP_KERNEL,
    )?;
    let places = Places::new(definition.sources.iter().map(|source| source.at), &fires)?;
    let mut fed = 0;
    for (n, source) in definition.sources.iter().enumerate() {
        if places.has(n) {
            fed |= source.feeds;
        }
    }
    let provider = Arc::new(
        EventProvider {
            fires: fires.clone(),
            places,
        },
        GFP_KERNEL,
    )?;
    let registration = framework.register(provider)?;
    registration.populate(|batch| {
        let mut probes = KVVec::new();
        for (n, event) in definition.probes.iter().enumerate() {
            let probe = if fed & bits(&[n]) != 0 {
                Some(batch.create(KERNEL, b"", event.name.as_bytes(), n as u64)?)
            } else {
                pr_info!("{}: no {} in this kernel\n", definition.name, event.name);
                None
            };
            probes.push(probe, GFP_KERNEL)?;
        }
        fires.probes.populate(probes);
        Ok(())
    })?;
    Ok(registration)
}
