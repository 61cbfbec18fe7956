// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The interface between a provider and the framework.
//!
//! A provider *creates* probes and *fires* them; it knows nothing of consumers. The framework owns
//! names, ids and enablings, and notifies a provider only of two events: [`Provider::enable`] when
//! probes get their first ECBs, and [`Provider::disable`] when they have lost their last ones. Each
//! call is for all probes that one enabling concerns, because patching kernel text costs per call
//! and not per function.
//!
//! Invariants:
//!
//! - The framework calls a provider with its own mutex held, so these calls never overlap, and a
//!   provider must not call back into the framework from them except by the [`Batch`] that it is
//!   given. Only [`attributes`](Provider::attributes), [`privileges`](Provider::privileges) and
//!   [`argdesc`](Provider::argdesc) may also be called without the mutex, at any time.
//! - A provider may fire a probe from before `enable` returns until some time after `disable` was
//!   called. A probe without ECBs does nothing, so a late firing is harmless as long as the module
//!   is loaded. A provider that is taken down waits until no CPU is in its callbacks.
//! - A disabled probe costs nothing (INV-19): what `enable` has put in place is gone when `disable`
//!   returns.

use super::consumer::Consumer;
use super::holds::Ear;
use super::posts::Post;
use super::probe::ProbeRef;
use super::process::{ConsumerId, Order, Stale};
use super::table::{NewProbe, Table};
use super::text::{refuse, Refusal};
use crate::sys::process::Process;
use dtrace_uapi::ioctl::{ArgDesc, ProbeDesc};
use dtrace_uapi::types::ProviderAttributes;
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// A source of probes.
pub trait Provider: Send + Sync {
    /// Returns its name, which is the first part of its probes' descriptions.
    fn name(&self) -> &'static str;

    /// Returns the stability of the parts of its probes' names.
    fn attributes(&self) -> ProviderAttributes;

    /// Returns the `dtrace_uapi::ioctl::PRIV_*` that a consumer needs to use it.
    fn privileges(&self) -> u32;

    /// Whether a consumer that does not see everything may have a probe. `EAGAIN` if this is not
    /// known, because only the consumer's own task can ask and another task is current.
    fn permits(&self, _probe: ProbeRef, _consumer: &Consumer) -> Result<bool> {
        Ok(true)
    }

    /// Returns why a probe is not [permitted](Self::permits).
    fn refusal(&self, _probe: ProbeRef) -> Refusal {
        let why = "no right to trace the process, by the rules of ptrace()";
        Refusal::new(EACCES, why)
    }

    /// Returns how often a timer's probe fires in a second, at least 1; `None` for other probes. A
    /// member has [few](super::quota::TIMERS_MAX) timers.
    fn hz(&self, _probe: ProbeRef) -> Option<usize> {
        None
    }

    /// Makes probes to order. Called before a consumer's description that may mean this provider is
    /// matched, with the parts of the description: globs, or empty for "any".
    ///
    /// Only providers whose probes cannot be listed in advance (`profile`) need this. A description
    /// that the provider cannot make a probe of is no error: there is simply no probe.
    fn provide(
        &self,
        _desc: &Description<'_>,
        _consumer: &Consumer,
        _batch: &mut Batch<'_>,
    ) -> Result {
        Ok(())
    }

    /// Whether its probes tell what consumers with rights over the kernel have requested. If so,
    /// they are listed only to consumers that may have them.
    fn makes_to_order(&self) -> bool {
        false
    }

    /// Arms `probes`, none of which is armed. A probe that cannot be armed is put into `failed` and
    /// skipped; it never makes the others fail.
    fn enable(&self, probes: &[ProbeRef], failed: &mut Failed);

    /// Disarms `probes`, each of which `enable` has armed.
    fn disable(&self, probes: &[ProbeRef]);

    /// Reports firings of armed probes that were missed and that no firing has reported
    /// ([`lose`](super::lose)). A consumer is about to end and would not learn of them later.
    fn settle(&self) {}

    /// Abandons the probes of another, ended process with the same ID. Called before probes are
    /// [made](Self::make) in a process.
    fn expect(&self, _order: &Order) {}

    /// Abandons probes of processes that ended some time ago. Called when no process waits for its
    /// probes.
    fn tidy(&self) {}

    /// Makes probes in a process, all or none. Only the provider of probes in processes does this.
    fn make(&self, _order: Order, _batch: &mut Batch<'_>) -> Result<(), Refusal> {
        Err(refuse(ENODEV))
    }

    /// Has `ear` notified when a process reaches an instruction, from now on.
    fn listen(&self, _post: Post, _ear: Ear) -> Result {
        Err(ENODEV)
    }

    /// Stops notifying `ear` of these addresses in processes. Ignores addresses at which it does
    /// not listen.
    fn ignore(&self, _posts: &mut dyn Iterator<Item = (&Process, u64)>, _ear: &Ear) {}

    /// Forgets a consumer that has gone, for which probes may have been [made](Self::make).
    fn forget(&self, _consumer: ConsumerId) {}

    /// Returns the next probe that was made or provided and that no existing consumer requests,
    /// each probe once. The caller retires it. No new firing of it may begin after this; one that
    /// has begun ends in its RCU read-side critical section. Called again when all of them have
    /// been retired.
    fn abandoned(&self) -> Option<ProbeRef> {
        None
    }

    /// Returns the instructions at which probes were [made](Self::make) in a process and which the
    /// process has no longer. Calls `begin` with the number of places before it looks them up, and
    /// fails if that does.
    fn review(
        &self,
        _pid: u32,
        _process: &Process,
        _begin: &dyn Fn(usize) -> Result,
    ) -> Result<Stale> {
        Err(ENODEV)
    }

    /// Returns the probes of a process that belong to one of its registrations, if there are any.
    fn unregister(&self, _process: &Process, _number: u32) -> Option<Stale> {
        None
    }

    /// Returns the next of these probes, which the caller retires. No new firing of it may begin,
    /// as with [`abandoned`](Self::abandoned).
    fn leave(&self, _stale: &mut Stale) -> Option<ProbeRef> {
        None
    }

    /// Forgets what is left of them. Called when the probes have been retired.
    fn bury(&self, _stale: Stale) {}

    /// Fills in the type of `args[n]` of `probe`: `native`, `mapping` and `xlate` of `desc`.
    /// Returns false if there is no such argument, or if the consumer has to find its type itself
    /// in the kernel's BTF.
    fn argdesc(&self, _probe: ProbeRef, _n: u32, _desc: &mut ArgDesc) -> bool {
        false
    }
}

/// The four parts of a probe's description, as a consumer wrote them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Description<'a> {
    /// The provider or a glob for it; empty for any.
    pub provider: &'a [u8],
    /// The module, likewise.
    pub module: &'a [u8],
    /// The function, likewise.
    pub func: &'a [u8],
    /// The probe's name, likewise.
    pub name: &'a [u8],
}

impl<'a> Description<'a> {
    /// Returns the parts in their order.
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

/// Creates probes of one provider, with the framework's mutex held.
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

    /// Returns the probes that were created.
    pub(super) fn created(self) -> KVVec<ProbeRef> {
        self.created
    }

    /// Returns the number of probes that were created.
    pub(super) fn count(&self) -> usize {
        self.created.len()
    }

    /// Notes for which user the probes were created.
    pub(super) fn made_for(&self, user: Option<u32>) {
        self.created.iter().for_each(|probe| probe.made_for(user));
    }

    /// Creates a probe. `cookie` is the provider's own value, which
    /// [`Probe::cookie`](super::probe::Probe::cookie) returns.
    ///
    /// `E2BIG` if a part is longer than the contract allows; `EINVAL` if a part has characters that
    /// may not be printed ([`dtrace_uapi::names`], INV-51). A probe of the same name that was
    /// [removed](super::Registration::remove) is revived with its old id. Several live probes may
    /// have the same name, as static functions do.
    pub fn create(
        &mut self,
        module: &[u8],
        func: &[u8],
        name: &[u8],
        cookie: u64,
    ) -> Result<ProbeRef> {
        self.create_of(self.name.as_bytes(), module, func, name, cookie)
    }

    /// As [`create`](Self::create), for a provider whose name in the description is longer than the
    /// one that it is registered under.
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

    /// Returns the provider's live probe with exactly this name.
    pub fn find(&self, module: &[u8], func: &[u8], name: &[u8]) -> Option<ProbeRef> {
        self.find_of(self.name.as_bytes(), module, func, name)
    }

    /// As [`find`](Self::find), for a provider whose name in the description is longer than the one
    /// that it is registered under.
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

/// A probe that could not be armed, and the error.
pub(super) type Failure = (ProbeRef, Error);

/// The probes that [`enable`](Provider::enable) could not arm, and the errors.
pub struct Failed {
    // Has room for all probes of all batches from the beginning, so that noting a failure cannot
    // fail.
    list: KVVec<Failure>,
}

impl Failed {
    pub(super) fn with_capacity(n: usize) -> Result<Self> {
        Ok(Self {
            list: KVVec::with_capacity(n, GFP_KERNEL)?,
        })
    }

    /// Notes that `probe`, which is one of the batch, could not be armed.
    pub fn add(&mut self, probe: ProbeRef, why: Error) {
        // Full only if a provider notes a probe twice; the second note changes nothing.
        let _ = self.list.push_within_capacity((probe, why));
    }

    pub(super) fn as_slice(&self) -> &[Failure] {
        self.list.as_slice()
    }

    pub(super) fn probes(&self) -> impl Iterator<Item = ProbeRef> + '_ {
        self.list.iter().map(|(probe, _)| *probe)
    }
}

/// Whether `a` comes before `b`: sorts probes by provider, and then by id.
pub(super) fn by_provider(a: &ProbeRef, b: &ProbeRef) -> bool {
    (a.provider(), a.id()) < (b.provider(), b.id())
}
