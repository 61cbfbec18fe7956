// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes with a documented meaning: the part that `proc`, `sched`, `io` and similar providers
//! share.
//!
//! Such a provider consists of two tables: its probes with the types of their arguments, and its
//! sources, which are [places](crate::sys::places) of the kernel with the probes that they feed.
//! One place may feed several probes, and several places may feed the same probe. Arguments are
//! passed as the kernel has them; translators in the library convert them to what the documentation
//! promises.
//!
//! If no place of this kernel feeds a probe, the probe does not exist. If one of several places
//! that feed a probe cannot be attached, the probe is not enabled at all, because it would report
//! only some of its events.
//!
//! Invariant: a place is attached exactly while one of the probes that it feeds is enabled. The set
//! of enabled probes is one word, so a place that feeds several probes needs one load to check each
//! of them.

use super::{attributes, put_text, EVOLVING, KERNEL};
use crate::framework::lose;
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
    /// The type that a translator converts it to; empty if none is needed.
    translated: &'static str,
    /// The index of the word, of those that the probe fires with.
    word: usize,
}

impl Arg {
    /// Word `word`, untranslated.
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

    /// Word `word`, a task, as a thread.
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
    /// Creates a probe with the arguments `args[0]`, `args[1]`, and so on.
    pub const fn new(name: &'static str, args: &'static [Arg]) -> Self {
        Self { name, args }
    }
}

/// A place, and the probes that it feeds.
pub struct Source {
    at: At,
    /// The set of these probes.
    feeds: u64,
    passed: fn(&Passage<'_>),
}

impl Source {
    /// Creates a source. `passed` is called in probe context when the place is passed, and fires
    /// some of the probes `feeds`.
    pub const fn new(at: At, feeds: &[usize], passed: fn(&Passage<'_>)) -> Self {
        Self {
            at,
            feeds: bits(feeds),
            passed,
        }
    }
}

/// The set of these probes, as bits.
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
    /// Its probes, at most 64. Sources and cookies refer to them by index.
    pub probes: &'static [Event],
    /// The places that feed them, at most 64.
    pub sources: &'static [Source],
    /// Called before the first probe is enabled, while nothing is attached.
    pub begin: fn(),
}

/// One passage of a place.
pub struct Passage<'a> {
    fires: &'a Fires,
    /// What the place passes.
    pub call: &'a Call<'a>,
}

impl Passage<'_> {
    /// Whether this probe is enabled. A place stays attached while any of its probes is enabled, so
    /// code that computes arguments checks this first.
    #[inline]
    pub fn wants(&self, probe: usize) -> bool {
        self.fires.enabled.load(Ordering::Relaxed) & 1 << probe != 0
    }

    /// Counts a firing of this probe as a drop, if it is enabled: its event cannot be followed to
    /// its end.
    #[cold]
    pub fn lose(&self, probe: usize) {
        let probes = self.fires.probes.as_ref().filter(|_| self.wants(probe));
        if let Some(Some(probe)) = probes.and_then(|probes| probes.get(probe)) {
            lose(probe, 1);
        }
    }

    /// Fires this probe if it is enabled.
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

/// The receiver of all passages. Called in probe context.
struct Fires {
    definition: &'static Definition,
    /// The probes by index. `None`: no place feeds it.
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
        // On the stack, because detaching must not allocate.
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

/// The most sources that a provider may have.
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
        // Set the bits before attaching: a place may be passed at once, and its other probes may be
        // enabled already.
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
