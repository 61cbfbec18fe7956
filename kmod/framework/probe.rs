// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A probe: four names, an id, and the list of what consumers have enabled at it.

use super::enabled::Enabled;
use super::names::Name;
use crate::sys::arena::Place;
use crate::sys::rculist::Head;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use dtrace_engine::ProbeName;
use dtrace_uapi::ioctl::ProbeDesc;
use dtrace_uapi::types::ProbeId;

/// Number of consumers whose clauses load user memory, summed over all probes.
static READERS: AtomicU32 = AtomicU32::new(0);

/// Whether a clause of any probe loads user memory.
#[inline]
pub fn any_reads_user() -> bool {
    READERS.load(Ordering::Relaxed) > 0
}

/// A reference to a probe. Most probes stay until the module goes.
///
/// The memory of a probe that was [retired](super::table) is used again (INV-21). Its provider
/// learns of that. Code in probe context, or that holds the framework's mutex all the time, is safe
/// from it. Any other code needs a [`Held`].
pub type ProbeRef = &'static Probe;

/// A reference that keeps the memory of its probe from being used again. It must be made with the
/// framework's mutex held, for a probe that has not been retired. It may be dropped without the
/// mutex.
pub struct Held(ProbeRef);

impl Held {
    /// Holds `probe`.
    pub fn new(probe: ProbeRef) -> Self {
        probe.holders.fetch_add(1, Ordering::Relaxed);
        Self(probe)
    }

    /// Returns the probe, which must not be used after this reference was dropped.
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
    /// All parts.
    pub const ALL: [Self; 4] = [Self::Provider, Self::Module, Self::Func, Self::Name];
}

/// A probe.
///
/// All atomics except `missed` and `holders` are written with the framework's mutex held. Probe
/// context reads names, cookie, list, `readers` and `for_all`.
pub struct Probe {
    id: ProbeId,
    place: Place,
    /// Index of the provider.
    provider: u32,
    names: [&'static Name; 4],
    /// For each part, the place of the next probe with the same name; 0 at the end.
    next: [AtomicU32; 4],
    /// For each part, the place of the previous probe; 0 at the beginning.
    previous: [AtomicU32; 4],
    cookie: AtomicU64,
    live: AtomicBool,
    armed: AtomicBool,
    args_in_memory: AtomicBool,
    /// Number of consumers that have enabled it, whether they are on the list or wait for `GO`.
    wanted: AtomicU32,
    /// Number of those that load user memory.
    readers: AtomicU32,
    /// Number of those that see everything.
    for_all: AtomicU32,
    /// How often a part of it could not be enabled.
    missed: AtomicU32,
    /// It is not revived any more, and its memory will be used again.
    retired: AtomicBool,
    /// If it was made to order for a member: the user's id plus 1. Otherwise 0.
    user: AtomicU64,
    /// Number of [`Held`] references.
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
            missed: AtomicU32::new(0),
            retired: AtomicBool::new(false),
            user: AtomicU64::new(0),
            holders: AtomicU32::new(0),
            enabled: Head::new(),
        }
    }

    /// Returns its id, which is at least 1 and does not change as long as it exists.
    #[inline]
    pub fn id(&self) -> ProbeId {
        self.id
    }

    /// Returns the value that its provider gave at its creation.
    #[inline]
    pub fn cookie(&self) -> u64 {
        self.cookie.load(Ordering::Relaxed)
    }

    /// Returns one part of its name.
    #[inline]
    pub fn part(&self, part: Part) -> &'static [u8] {
        self.names[part as usize].text()
    }

    /// Returns all parts of its name.
    #[inline]
    pub fn names(&self) -> ProbeName<'static> {
        ProbeName {
            provider: self.part(Part::Provider),
            module: self.part(Part::Module),
            func: self.part(Part::Func),
            name: self.part(Part::Name),
        }
    }

    /// Returns its description for consumers.
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

    /// Returns the list of what tracing consumers have enabled at it.
    #[inline]
    pub(super) fn enabled(&self) -> &Head<Enabled> {
        &self.enabled
    }

    pub(super) fn name_of(&self, part: Part) -> &'static Name {
        self.names[part as usize]
    }

    /// Returns its place in the table's memory.
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

    /// Whether its provider has it, and has not removed it.
    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed)
    }

    /// Marks it as removed. It keeps its id and its place, in case its provider creates it again.
    pub(super) fn kill(&self) {
        self.live.store(false, Ordering::Relaxed);
    }

    pub(super) fn revive(&self, cookie: u64) {
        self.cookie.store(cookie, Ordering::Relaxed);
        self.live.store(true, Ordering::Relaxed);
    }

    /// Notes that it will not be revived. Returns whether that is new.
    pub(super) fn retire(&self) -> bool {
        !self.retired.swap(true, Ordering::Relaxed)
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Whether a [`Held`] exists. The `Acquire` pairs with the `Release` of the drop: if none
    /// exists, all uses through the last one have ended.
    pub(super) fn is_held(&self) -> bool {
        self.holders.load(Ordering::Acquire) > 0
    }

    /// Notes for which user it was made; `None` for all users.
    pub(super) fn made_for(&self, user: Option<u32>) {
        let user = user.map_or(0, |user| u64::from(user).saturating_add(1));
        self.user.store(user, Ordering::Relaxed);
    }

    /// Whether it was made for all users or for this one.
    pub(super) fn is_for(&self, user: Option<u32>) -> bool {
        let made_for = self.user.load(Ordering::Relaxed);
        made_for == 0 || user.is_some_and(|user| made_for == u64::from(user).saturating_add(1))
    }

    /// Notes that arguments lie in memory of the program, which may not be resident. So a clause
    /// that reads an argument loads user memory.
    pub fn set_args_in_memory(&self) {
        self.args_in_memory.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_args_in_memory(&self) -> bool {
        self.args_in_memory.load(Ordering::Relaxed)
    }

    /// Whether its provider has armed it. While a provider arms a batch, this may not be true yet.
    pub(super) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed)
    }

    pub(super) fn set_armed(&self, armed: bool) {
        self.armed.store(armed, Ordering::Relaxed);
    }

    /// Whether any consumer has enabled it.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// Counts a consumer that enables it.
    pub(super) fn want(&self, enabled: &Enabled) {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let for_all = u32::from(enabled.consumer.sees_all);
        self.for_all.fetch_add(for_all, Ordering::Relaxed);
    }

    /// Counts a consumer whose clauses load user memory, at the first of these clauses.
    pub(super) fn read_user(&self, enabled: &Enabled) {
        if enabled.read_user() {
            self.readers.fetch_add(1, Ordering::Relaxed);
            READERS.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Removes a consumer from the counts.
    pub(super) fn unwant(&self, enabled: &Enabled) {
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        let reads = u32::from(enabled.reads_user());
        self.readers.fetch_sub(reads, Ordering::Relaxed);
        READERS.fetch_sub(reads, Ordering::Relaxed);
        let for_all = u32::from(enabled.consumer.sees_all);
        self.for_all.fetch_sub(for_all, Ordering::Relaxed);
    }

    /// Whether a consumer that sees everything has enabled it.
    #[inline]
    pub(super) fn is_for_all(&self) -> bool {
        self.for_all.load(Ordering::Relaxed) > 0
    }

    /// Whether a clause at it loads user memory.
    pub(super) fn reads_user(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    /// Returns how often a part of it could not be enabled. Consumers that wait for `GO` learn of
    /// that by this number, because they are not on the list yet.
    pub(super) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed).into()
    }

    /// Counts that a part of it could not be enabled. May be called in probe context.
    pub(super) fn miss(&self) {
        self.missed.fetch_add(1, Ordering::Relaxed);
    }
}
