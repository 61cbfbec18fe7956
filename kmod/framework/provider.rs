// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What a provider is to the framework.
//!
//! A provider *creates* probes and *fires* them; it knows nothing of who consumes them. The framework owns names,
//! ids and enablings, and tells a provider only of the edges: [`Provider::enable`] when a probe gets its first
//! ECB, [`Provider::disable`] when it has lost its last one. Both come in batches, one call for all that one
//! enabling touches, because patching kernel text costs per call and not per function.
//!
//! Invariants:
//! - The framework calls a provider with its own mutex held: calls never overlap, and a provider must not call
//!   back into the framework from them, but through the [`Batch`] it is given.
//! - A provider may fire a probe from before `enable` returns until some time after `disable` was called; the framework
//!   ignores probes without ECBs, so a late firing is harmless as long as the module is loaded.
//!   A provider's teardown waits until no CPU is in its callbacks.
//! - Disabled costs nothing: what `enable` planted is gone when `disable` returns.

use super::holds::Ear;
use super::posts::Post;
use super::probe::ProbeRef;
use super::process::{ConsumerId, Order, Stale};
use super::table::{NewProbe, Table};
use super::text::{refuse, Refusal};
use super::tracer::Tracer;
use crate::sys::process::Process;
use dtrace_uapi::ioctl::{ArgDesc, ProbeDesc};
use dtrace_uapi::types::ProviderAttributes;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// A source of probes.
pub trait Provider: Send + Sync {
    /// Its name, as in the first part of a probe's description.
    fn name(&self) -> &'static str;

    /// How stable the parts of its probes' names are.
    fn attributes(&self) -> ProviderAttributes;

    /// What a consumer needs to use it: `dtrace_uapi::ioctl::PRIV_*`.
    fn privileges(&self) -> u32;

    /// Whether a consumer that does not see everything may have a probe. `EAGAIN`: nobody knows, for it is another one who asks.
    fn permits(&self, _probe: ProbeRef, _tracer: &Tracer) -> Result<bool> {
        Ok(true)
    }

    /// Why it may not have one that is not [permitted](Self::permits).
    fn refusal(&self, _probe: ProbeRef) -> Refusal {
        let why = "no right to trace the process, by the rules of ptrace()";
        Refusal::new(EACCES, why)
    }

    /// How often in a second a probe fires, once at least, where it is a timer: of those a user has [few](super::quota::TIMERS_MAX).
    fn hz(&self, _probe: ProbeRef) -> Option<usize> {
        None
    }

    /// Makes probes to order: called before a description of a consumer's is matched that names this provider, with the
    /// description's parts (globs, and empty for "any").
    ///
    /// Only providers whose probes cannot be listed beforehand (`profile`) need it. What the provider cannot make of
    /// the description is no error: there is simply no probe.
    fn provide(&self, _desc: &Description<'_>, _tracer: &Tracer, _batch: &mut Batch<'_>) -> Result {
        Ok(())
    }

    /// Whether all of its probes were asked for by somebody who sees the kernel.
    fn makes_to_order(&self) -> bool {
        false
    }

    /// Arms `probes`, none of which is armed. One that cannot be armed is put into `failed` and skipped; it never makes
    /// the others fail.
    fn enable(&self, probes: &[ProbeRef], failed: &mut Failed);

    /// Disarms `probes`, each of which `enable` armed.
    fn disable(&self, probes: &[ProbeRef]);

    /// Tells ([`lose`](super::lose)) what armed probes have missed and no firing has told of: a consumer is about to end, and
    /// would not hear of it later.
    fn settle(&self) {}

    /// Before probes are [made](Self::make) in a process: abandons those of another process whose number it has.
    fn expect(&self, _order: &Order) {}

    /// No process waits for its probes: abandons those of processes that have been over for a while.
    fn tidy(&self) {}

    /// Makes probes in a process, all or none. Only who has such does it.
    fn make(&self, _order: Order, _batch: &mut Batch<'_>) -> Result<(), Refusal> {
        Err(refuse(ENODEV))
    }

    /// Has one told wherever a process comes to an instruction.
    fn listen(&self, _post: Post, _ear: Ear) -> Result {
        Err(ENODEV)
    }

    /// Tells it no more of these, addresses in processes. Those that it does not listen at are passed over.
    fn ignore(&self, _posts: &mut dyn Iterator<Item = (&Process, u64)>, _ear: &Ear) {}

    /// A consumer has gone, for whom probes may have been [made](Self::make).
    fn forget(&self, _consumer: ConsumerId) {}

    /// The next of the probes that were made or provided and that nobody who is still there has asked for, each once. It is retired then: it
    /// fires no more but by who has begun to, in an RCU read-side critical section. Asked again when all have been retired.
    fn abandoned(&self) -> Option<ProbeRef> {
        None
    }

    /// The instructions of a process, of those that probes were [made](Self::make) at, that it has no more.
    fn review(&self, _pid: u32, _process: &Process) -> Result<Stale> {
        Err(ENODEV)
    }

    /// The probes of a process that go with one of its registrations, if there are any.
    fn unregister(&self, _process: &Process, _number: u32) -> Option<Stale> {
        None
    }

    /// The next of the probes at these, which is retired then. As with [`abandoned`](Self::abandoned) it fires no more.
    fn leave(&self, _stale: &mut Stale) -> Option<ProbeRef> {
        None
    }

    /// Forgets the instructions themselves, when their probes have been retired.
    fn bury(&self, _stale: Stale) {}

    /// Type of `args[n]` of `probe`, as `native`, `mapping` and `xlate` of `desc`; `false`: there is none, or the
    /// consumer has to find it out by itself (from the kernel's BTF).
    fn argdesc(&self, _probe: ProbeRef, _n: u32, _desc: &mut ArgDesc) -> bool {
        false
    }
}

/// The four parts of a probe's description, as a consumer wrote them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Description<'a> {
    /// The provider, or a glob for it; empty for any.
    pub provider: &'a [u8],
    /// The module, likewise.
    pub module: &'a [u8],
    /// The function, likewise.
    pub func: &'a [u8],
    /// The probe's name, likewise.
    pub name: &'a [u8],
}

impl<'a> Description<'a> {
    /// The parts in their order.
    pub fn parts(&self) -> [&'a [u8]; 4] {
        [self.provider, self.module, self.func, self.name]
    }
}

impl<'a> From<&'a ProbeDesc> for Description<'a> {
    fn from(desc: &'a ProbeDesc) -> Self {
        fn text(field: &[u8]) -> &[u8] {
            let end = field.iter().position(|c| *c == 0).unwrap_or(field.len());
            field.get(..end).unwrap_or_default()
        }
        Self {
            provider: text(&desc.provider),
            module: text(&desc.module),
            func: text(&desc.func),
            name: text(&desc.name),
        }
    }
}

/// The creation of probes of one provider, with the framework's mutex held.
pub struct Batch<'a> {
    table: &'a mut Table,
    provider: u32,
    name: &'static str,
    created: KVVec<ProbeRef>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(table: &'a mut Table, provider: u32, name: &'static str) -> Self {
        Self {
            table,
            provider,
            name,
            created: KVVec::new(),
        }
    }

    /// What was created.
    pub(super) fn created(self) -> KVVec<ProbeRef> {
        self.created
    }

    /// How many probes were created.
    pub(super) fn count(&self) -> usize {
        self.created.len()
    }

    /// Notes for which user this has been created.
    pub(super) fn made_for(&self, user: Option<u32>) {
        self.created.iter().for_each(|probe| probe.made_for(user));
    }

    /// Creates a probe. `cookie` is the provider's own, given back by [`Probe::cookie`](super::probe::Probe::cookie).
    ///
    /// Parts that do not fit the contract's lengths are refused with `E2BIG`, those that are not to be printed with `EINVAL`
    /// ([`dtrace_uapi::names`]). A probe of the same
    /// name that was [removed](super::Registration::remove) comes to life again under its old id. Several live probes may have
    /// one name, as static functions do.
    pub fn create(
        &mut self,
        module: &[u8],
        func: &[u8],
        name: &[u8],
        cookie: u64,
    ) -> Result<ProbeRef> {
        self.create_of(self.name.as_bytes(), module, func, name, cookie)
    }

    /// The same, of a provider whose name is longer than the one that it is registered by.
    pub fn create_of(
        &mut self,
        provider: &[u8],
        module: &[u8],
        func: &[u8],
        name: &[u8],
        cookie: u64,
    ) -> Result<ProbeRef> {
        self.created.reserve(1, GFP_KERNEL)?;
        let probe = self.table.create(&NewProbe {
            provider: self.provider,
            provider_name: provider,
            module,
            func,
            name,
            cookie,
        })?;
        self.created.push(probe, GFP_KERNEL)?;
        Ok(probe)
    }

    /// The provider's live probe of this very name.
    pub fn find(&self, module: &[u8], func: &[u8], name: &[u8]) -> Option<ProbeRef> {
        self.find_of(self.name.as_bytes(), module, func, name)
    }

    /// The same, of a provider whose name is longer than the one that it is registered by.
    pub fn find_of(
        &self,
        provider: &[u8],
        module: &[u8],
        func: &[u8],
        name: &[u8],
    ) -> Option<ProbeRef> {
        self.table.find([provider, module, func, name])
    }
}

/// A probe that could not be armed, and why.
pub(super) type Failure = (ProbeRef, Error);

/// The probes that an [`enable`](Provider::enable) could not arm, and why.
pub struct Failed {
    // Has room for every probe of all batches from the beginning, so that noting a failure cannot fail.
    list: KVVec<Failure>,
}

impl Failed {
    pub(super) fn with_capacity(n: usize) -> Result<Self> {
        Ok(Self {
            list: KVVec::with_capacity(n, GFP_KERNEL)?,
        })
    }

    /// Notes that `probe`, one of the batch, could not be armed.
    pub fn add(&mut self, probe: ProbeRef, why: Error) {
        // Full only if a provider notes a probe twice, which changes nothing.
        let _ = self.list.push_within_capacity((probe, why));
    }

    pub(super) fn as_slice(&self) -> &[Failure] {
        self.list.as_slice()
    }

    pub(super) fn probes(&self) -> impl Iterator<Item = ProbeRef> + '_ {
        self.list.iter().map(|(probe, _)| *probe)
    }
}

/// Whether `a` comes before `b` in the order in which providers get their batches.
pub(super) fn by_provider(a: &ProbeRef, b: &ProbeRef) -> bool {
    (a.provider(), a.id()) < (b.provider(), b.id())
}
