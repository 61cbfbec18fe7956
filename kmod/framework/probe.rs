// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A probe: four names, an id, and the list of who has enabled it.

use super::enabled::Enabled;
use super::names::Name;
use crate::sys::arena::Place;
use crate::sys::rculist::Head;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use dtrace_engine::ProbeName;
use dtrace_uapi::ioctl::ProbeDesc;
use dtrace_uapi::types::ProbeId;

/// How many consumers there are, at all probes, whose clauses load user memory.
static READERS: AtomicU32 = AtomicU32::new(0);

/// Whether any probe's clauses load user memory.
#[inline]
pub fn any_reads_user() -> bool {
    READERS.load(Ordering::Relaxed) > 0
}

/// A probe, wherever it is referred to. Most stay until the module goes.
///
/// The place of one that was [retired](super::table) is used again. Whoever has not learnt of that, since it was neither its
/// provider nor in probe context, nor had the framework's mutex all the time, needs a [`Held`].
pub type ProbeRef = &'static Probe;

/// A reference that keeps its probe from being overwritten. It is made with the framework's mutex held, of a probe that has not been
/// retired; it may be dropped without.
pub struct Held(ProbeRef);

impl Held {
    /// Holds `probe`.
    pub fn new(probe: ProbeRef) -> Self {
        probe.holders.fetch_add(1, Ordering::Relaxed);
        Self(probe)
    }

    /// The probe, not to be used longer than this.
    pub fn probe(&self) -> ProbeRef {
        self.0
    }
}

impl Deref for Held {
    type Target = Probe;

    fn deref(&self) -> &Probe {
        self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.holders.fetch_sub(1, Ordering::Release);
    }
}

/// The parts of a probe's name, in their order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The provider.
    Provider = 0,
    /// The module.
    Module = 1,
    /// The function.
    Func = 2,
    /// The probe's own name.
    Name = 3,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Provider, Self::Module, Self::Func, Self::Name];
}

/// A probe.
///
/// The atomics but `cookie` and `missed` are written with the framework's mutex held; probe context reads names, cookie and list.
pub struct Probe {
    id: ProbeId,
    place: Place,
    /// Index of the provider.
    provider: u32,
    names: [&'static Name; 4],
    /// Where the next probe is that has the same name as its `Part`, 0 at the end.
    next: [AtomicU32; 4],
    /// The one before it, 0 at the beginning.
    previous: [AtomicU32; 4],
    cookie: AtomicU64,
    live: AtomicBool,
    armed: AtomicBool,
    args_in_memory: AtomicBool,
    /// How many consumers have enabled it: on its list or waiting for that.
    wanted: AtomicU32,
    /// How many of those load user memory.
    readers: AtomicU32,
    /// How many of those see everything.
    for_all: AtomicU32,
    /// How often a part of it could not be enabled.
    missed: AtomicU16,
    /// It will not come back.
    retired: AtomicBool,
    /// The user whom it was made to order for, and 1, if it was made for one who has few timers; otherwise 0.
    user: AtomicU64,
    /// How many [`Held`]s there are of it.
    holders: AtomicU32,
    enabled: Head<Enabled>,
}

impl Probe {
    pub(super) fn new(
        id: ProbeId,
        place: Place,
        provider: u32,
        names: [&'static Name; 4],
        cookie: u64,
    ) -> Self {
        Self {
            id,
            place,
            provider,
            names,
            next: [const { AtomicU32::new(0) }; 4],
            previous: [const { AtomicU32::new(0) }; 4],
            cookie: AtomicU64::new(cookie),
            live: AtomicBool::new(true),
            armed: AtomicBool::new(false),
            args_in_memory: AtomicBool::new(false),
            wanted: AtomicU32::new(0),
            readers: AtomicU32::new(0),
            for_all: AtomicU32::new(0),
            missed: AtomicU16::new(0),
            retired: AtomicBool::new(false),
            user: AtomicU64::new(0),
            holders: AtomicU32::new(0),
            enabled: Head::new(),
        }
    }

    /// Its id, from 1, the same as long as it is there.
    #[inline]
    pub fn id(&self) -> ProbeId {
        self.id
    }

    /// What its provider gave at its creation.
    #[inline]
    pub fn cookie(&self) -> u64 {
        self.cookie.load(Ordering::Relaxed)
    }

    /// One part of its name.
    #[inline]
    pub fn part(&self, part: Part) -> &'static [u8] {
        self.names[part as usize].text()
    }

    /// All parts of its name.
    #[inline]
    pub fn names(&self) -> ProbeName<'static> {
        ProbeName {
            provider: self.part(Part::Provider),
            module: self.part(Part::Module),
            func: self.part(Part::Func),
            name: self.part(Part::Name),
        }
    }

    /// Its description as consumers get it.
    pub fn desc(&self) -> ProbeDesc {
        fn fill<const N: usize>(text: &[u8]) -> [u8; N] {
            let mut field = [0; N];
            for (to, from) in field.iter_mut().zip(text) {
                *to = *from;
            }
            field
        }
        ProbeDesc {
            id: self.id,
            provider: fill(self.part(Part::Provider)),
            module: fill(self.part(Part::Module)),
            func: fill(self.part(Part::Func)),
            name: fill(self.part(Part::Name)),
        }
    }

    /// What those have enabled who trace it.
    #[inline]
    pub(super) fn enabled(&self) -> &Head<Enabled> {
        &self.enabled
    }

    pub(super) fn name_of(&self, part: Part) -> &'static Name {
        self.names[part as usize]
    }

    /// Where it is in the table's memory.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    pub(super) fn next(&self, part: Part) -> Place {
        self.next[part as usize].load(Ordering::Relaxed)
    }

    pub(super) fn set_next(&self, part: Part, place: Place) {
        self.next[part as usize].store(place, Ordering::Relaxed);
    }

    pub(super) fn previous(&self, part: Part) -> Place {
        self.previous[part as usize].load(Ordering::Relaxed)
    }

    pub(super) fn set_previous(&self, part: Part, place: Place) {
        self.previous[part as usize].store(place, Ordering::Relaxed);
    }

    pub(super) fn provider(&self) -> u32 {
        self.provider
    }

    /// Whether its provider has it.
    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed)
    }

    /// Ends it; it keeps its id and its place, should its provider create it again.
    pub(super) fn kill(&self) {
        self.live.store(false, Ordering::Relaxed);
    }

    pub(super) fn revive(&self, cookie: u64) {
        self.cookie.store(cookie, Ordering::Relaxed);
        self.live.store(true, Ordering::Relaxed);
    }

    /// Notes that it will not come back; whether that is new.
    pub(super) fn retire(&self) -> bool {
        !self.retired.swap(true, Ordering::Relaxed)
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Whether anybody has a [`Held`]. Where nobody has, what was done with the last one has been done.
    pub(super) fn is_held(&self) -> bool {
        self.holders.load(Ordering::Acquire) > 0
    }

    /// Notes for which user it was made.
    pub(super) fn made_for(&self, user: Option<u32>) {
        let user = user.map_or(0, |user| u64::from(user).saturating_add(1));
        self.user.store(user, Ordering::Relaxed);
    }

    /// Whether it was made for everybody or for this user, and not for another one.
    pub(super) fn is_for(&self, user: Option<u32>) -> bool {
        let made_for = self.user.load(Ordering::Relaxed);
        made_for == 0 || user.is_some_and(|user| made_for == u64::from(user).saturating_add(1))
    }

    /// Notes that arguments lie in memory of the program, which may not be there: a clause that asks for one loads user memory.
    pub fn set_args_in_memory(&self) {
        self.args_in_memory.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_args_in_memory(&self) -> bool {
        self.args_in_memory.load(Ordering::Relaxed)
    }

    /// Whether its provider has been told to arm it.
    pub(super) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed)
    }

    pub(super) fn set_armed(&self, armed: bool) {
        self.armed.store(armed, Ordering::Relaxed);
    }

    /// Whether anybody has enabled it.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// Counts a consumer that enables it.
    pub(super) fn want(&self, enabled: &Enabled) {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let for_all = u32::from(enabled.tracer.sees_all);
        self.for_all.fetch_add(for_all, Ordering::Relaxed);
    }

    /// Counts that a consumer's clauses load user memory, where they are the first of that to do so.
    pub(super) fn read_user(&self, enabled: &Enabled) {
        if enabled.read_user() {
            self.readers.fetch_add(1, Ordering::Relaxed);
            READERS.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts that a consumer has gone.
    pub(super) fn unwant(&self, enabled: &Enabled) {
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        let reads = u32::from(enabled.reads_user());
        self.readers.fetch_sub(reads, Ordering::Relaxed);
        READERS.fetch_sub(reads, Ordering::Relaxed);
        let for_all = u32::from(enabled.tracer.sees_all);
        self.for_all.fetch_sub(for_all, Ordering::Relaxed);
    }

    /// Whether a consumer has enabled it that sees everything.
    #[inline]
    pub(super) fn is_for_all(&self) -> bool {
        self.for_all.load(Ordering::Relaxed) > 0
    }

    /// Whether a clause of it loads user memory.
    pub(super) fn reads_user(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    /// How often a part of it could not be enabled, for whom its list does not tell yet.
    pub(super) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed).into()
    }

    /// Counts that a part of it could not be enabled.
    pub(super) fn miss(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }
}
