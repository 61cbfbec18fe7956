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

use super::probe::ProbeRef;
use super::table::{NewProbe, Table};
use crate::sys::vec::Vec;
use dtrace_uapi::ioctl::ArgDesc;
use dtrace_uapi::types::ProviderAttributes;
use kernel::prelude::*;

/// A source of probes.
pub trait Provider: Send + Sync {
    /// Its name, as in the first part of a probe's description.
    fn name(&self) -> &'static str;

    /// How stable the parts of its probes' names are.
    fn attributes(&self) -> ProviderAttributes;

    /// What a consumer needs to use it: `dtrace_uapi::ioctl::PRIV_*`.
    fn privileges(&self) -> u32;

    /// Makes probes to order: called before a description is matched that names this provider, with the
    /// description's parts (globs, and empty for "any").
    ///
    /// Only providers whose probes cannot be listed beforehand (`profile`) need it. What the provider cannot make of
    /// the description is no error: there is simply no probe.
    fn provide(&self, _desc: &Description<'_>, _batch: &mut Batch<'_>) -> Result {
        Ok(())
    }

    /// Arms `probes`, none of which is armed. One that cannot be armed is put into `failed` and skipped; it never makes
    /// the others fail.
    fn enable(&self, probes: &[ProbeRef], failed: &mut Failed);

    /// Disarms `probes`, each of which `enable` armed.
    fn disable(&self, probes: &[ProbeRef]);

    /// Type of `args[n]` of `probe`, as `native`, `mapping` and `xlate` of `desc`; `false`: there is none, or the
    /// consumer has to find it out by itself (from the kernel's BTF).
    fn argdesc(&self, _probe: ProbeRef, _n: u32, _desc: &mut ArgDesc) -> bool {
        false
    }
}

/// The four parts of a probe's description, as a consumer wrote them.
#[derive(Clone, Copy)]
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

/// The creation of probes of one provider, with the framework's mutex held.
pub struct Batch<'a> {
    table: &'a mut Table,
    provider: u32,
}

impl<'a> Batch<'a> {
    pub(super) fn new(table: &'a mut Table, provider: u32) -> Self {
        Self { table, provider }
    }

    /// Creates a probe. `cookie` is the provider's own, given back by [`Probe::cookie`](super::probe::Probe::cookie).
    ///
    /// Parts that do not fit the contract's lengths are refused with `ENAMETOOLONG`. A probe of the same
    /// name that was [removed](super::Registration::remove) comes to life again under its old id.
    pub fn create(
        &mut self,
        module: &[u8],
        func: &[u8],
        name: &[u8],
        cookie: u64,
    ) -> Result<ProbeRef> {
        self.table.create(&NewProbe {
            provider: self.provider,
            module,
            func,
            name,
            cookie,
        })
    }

    /// The provider's live probe of this very name.
    pub fn find(&self, module: &[u8], func: &[u8], name: &[u8]) -> Option<ProbeRef> {
        self.table.find(self.provider, module, func, name)
    }
}

/// The probes that an [`enable`](Provider::enable) could not arm, and why.
pub struct Failed {
    // Has room for every probe of the batch from the beginning, so that noting a failure cannot fail.
    list: Vec<(ProbeRef, Error)>,
}

impl Failed {
    pub(super) fn with_capacity(n: usize) -> Result<Self> {
        Ok(Self {
            list: Vec::with_capacity(n)?,
        })
    }

    /// Notes that `probe`, one of the batch, could not be armed.
    pub fn add(&mut self, probe: ProbeRef, why: Error) {
        // Full only if a provider notes a probe twice, which changes nothing.
        let _ = self.list.push_within_capacity((probe, why));
    }

    pub(super) fn as_slice(&self) -> &[(ProbeRef, Error)] {
        self.list.as_slice()
    }
}
