// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A probe: four names, an id, and the list of who has enabled it.

use super::names::Name;
use super::tracer::EcbRef;
use crate::sys::rculist::Head;
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use dtrace_engine::ProbeName;
use dtrace_uapi::ioctl::ProbeDesc;
use dtrace_uapi::types::ProbeId;

/// A probe, wherever it is referred to. Probes stay where they are until the module goes.
pub type ProbeRef = &'static Probe;

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
    /// Index of the provider.
    provider: u32,
    names: [&'static Name; 4],
    /// The next probe that has the same name as its `Part`, 0 at the end.
    next: [AtomicU32; 4],
    cookie: AtomicU64,
    live: AtomicBool,
    armed: AtomicBool,
    /// How many ECBs there are for it, on its list or waiting for that.
    wanted: AtomicU32,
    /// How often a part of it could not be enabled.
    missed: AtomicU16,
    ecbs: Head<EcbRef>,
}

impl Probe {
    pub(super) fn new(id: ProbeId, provider: u32, names: [&'static Name; 4], cookie: u64) -> Self {
        Self {
            id,
            provider,
            names,
            next: [const { AtomicU32::new(0) }; 4],
            cookie: AtomicU64::new(cookie),
            live: AtomicBool::new(true),
            armed: AtomicBool::new(false),
            wanted: AtomicU32::new(0),
            missed: AtomicU16::new(0),
            ecbs: Head::new(),
        }
    }

    /// Its id, from 1, the same as long as the module is loaded.
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

    /// The ECBs of those who trace it.
    #[inline]
    pub(super) fn ecbs(&self) -> &Head<EcbRef> {
        &self.ecbs
    }

    pub(super) fn name_of(&self, part: Part) -> &'static Name {
        self.names[part as usize]
    }

    pub(super) fn next(&self, part: Part) -> ProbeId {
        self.next[part as usize].load(Ordering::Relaxed)
    }

    pub(super) fn set_next(&self, part: Part, id: ProbeId) {
        self.next[part as usize].store(id, Ordering::Relaxed);
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

    /// Whether its provider has been told to arm it.
    pub(super) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed)
    }

    pub(super) fn set_armed(&self, armed: bool) {
        self.armed.store(armed, Ordering::Relaxed);
    }

    /// Whether there are ECBs for it, on its list or waiting for that.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// Counts an ECB that is made for it.
    pub(super) fn want(&self) {
        self.wanted.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts that one of them has gone.
    pub(super) fn unwant(&self) {
        self.wanted.fetch_sub(1, Ordering::Relaxed);
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
