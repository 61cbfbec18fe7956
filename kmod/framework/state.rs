// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Everything that consumers share: the table of probes, the providers, and the ECBs at each probe.
//!
//! The framework's mutex guards the state, and is held in all functions here. Providers are called
//! with it held, with the exceptions that [`provider`](super::provider) lists.

use super::consumer::Consumer;
use super::linking::Enablings;
use super::patience::{MADE, PROVIDED};
use super::probe::{Part, ProbeRef};
use super::provider::{Batch, Description, Provider};
use super::table::Table;
use super::text::Refusal;
use crate::sys::rculist::Writer;
use dtrace_engine::Consumer as Engine;
use dtrace_uapi::glob;
use dtrace_uapi::ioctl::{PRIV_KERNEL, PRIV_PROC};
use dtrace_uapi::process;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Why a consumer without rights over the kernel is refused its probes.
pub const NEEDS_KERNEL: &str = "the probes need rights over the kernel";

/// What consumers share.
pub struct State {
    /// Before `table`, so that it is dropped before the probes that it holds.
    pub(super) consumers: KVVec<Enablings>,
    pub(super) table: Table,
    providers: KVVec<Slot>,
    pub(super) writer: Writer,
    /// A consumer has gone that may have held retired probes.
    pub(super) is_littered: bool,
    /// Number of times that the mutex was taken by calls that may compare probes with descriptions
    /// ([`patience`](super::patience)).
    pub(super) occasion: u64,
}

/// A provider's slot. It stays when the provider goes, because probes refer to it by index.
struct Slot {
    name: &'static str,
    /// The privileges that a consumer needs to use it.
    needs: u32,
    provider: Option<Arc<dyn Provider>>,
}

impl State {
    /// Makes a state without providers and consumers.
    pub const fn new(table: Table, writer: Writer) -> Self {
        Self {
            consumers: KVVec::new(),
            table,
            providers: KVVec::new(),
            writer,
            is_littered: false,
            occasion: 0,
        }
    }

    /// Begins a new occasion. Called right after the mutex was taken.
    pub fn begin(&mut self) {
        self.occasion = self.occasion.wrapping_add(1);
    }

    /// Adds a provider and returns its index. A provider that comes back gets its old index,
    /// because its removed probes refer to that and may be revived. `EEXIST` if the name is in use.
    pub fn add_provider(&mut self, provider: Arc<dyn Provider>) -> Result<u32> {
        let name = provider.name();
        let needs = provider.privileges();
        let old = self.providers.iter().position(|slot| slot.name == name);
        let index = old.unwrap_or(self.providers.len());
        let number = u32::try_from(index).map_err(|_| ENOSPC)?;
        if let Some(slot) = self.providers.get_mut(index) {
            if slot.provider.is_some() {
                return Err(EEXIST);
            }
            slot.provider = Some(provider);
            slot.needs = needs;
            return Ok(number);
        }
        self.providers.push(
            Slot {
                name,
                needs,
                provider: Some(provider),
            },
            GFP_KERNEL,
        )?;
        Ok(number)
    }

    /// Returns the provider with this name. The names of providers of probes in processes end with
    /// a process ID. Unless the caller sees all, any such name is known: whether there are such
    /// probes would tell what others trace.
    pub fn provider(&self, name: &[u8], sees_all: bool) -> Option<Arc<dyn Provider>> {
        let of = |name: &[u8]| self.provider_at(self.index_of_provider(name)?);
        of(name).or_else(|| {
            let of_processes = process::PROVIDER.as_bytes();
            let is_numbered = name.last().is_some_and(u8::is_ascii_digit);
            let is_known = || {
                name.starts_with(of_processes)
                    || !sees_all
                    || self.table.is_any(Part::Provider, name)
            };
            (is_numbered && is_known()).then(|| of(of_processes))?
        })
    }

    /// Returns the index of the provider with exactly this name.
    pub fn index_of_provider(&self, name: &[u8]) -> Option<u32> {
        let mut slots = self.providers.iter();
        let at = slots.position(|slot| slot.name.as_bytes() == name)?;
        u32::try_from(at).ok()
    }

    /// Returns the provider with this index, if it is registered.
    pub fn provider_at(&self, index: u32) -> Option<Arc<dyn Provider>> {
        self.slot(index)?.provider.clone()
    }

    fn slot(&self, index: u32) -> Option<&Slot> {
        self.providers.get(usize::try_from(index).ok()?)
    }

    /// Whether a consumer may use the probes of the provider `index`. Probes of the kernel's inside
    /// need rights over it, because their names, their arguments and their times tell of it.
    pub fn permits(&self, engine: &Engine, index: u32) -> bool {
        engine.privileges().kernel
            || self
                .slot(index)
                .is_some_and(|slot| slot.needs & PRIV_KERNEL == 0)
    }

    /// Whether a consumer may have a probe. Fails like [`Provider::permits`].
    pub fn permits_probe(&self, consumer: &Consumer, probe: ProbeRef) -> Result<bool> {
        if consumer.reads_all() {
            return Ok(true);
        }
        let index = probe.provider();
        match self.provider_at(index) {
            Some(provider) if self.permits(&consumer.engine, index) => {
                provider.permits(probe, consumer)
            }
            _ => Ok(false),
        }
    }

    /// Returns why a consumer may have none of `probes`.
    pub fn refusal(&self, consumer: &Consumer, probes: &[ProbeRef]) -> Refusal {
        let of_kernel = |probe: &ProbeRef| !self.permits(&consumer.engine, probe.provider());
        let provider = probes
            .first()
            .and_then(|probe| Some((probe, self.provider_at(probe.provider())?)));
        match provider {
            Some((probe, _)) if self.is_of_process(probe) => {
                Refusal::new(EACCES, consumer.why_not())
            }
            Some((probe, provider)) if !probes.iter().any(of_kernel) => provider.refusal(probe),
            _ => Refusal::new(EACCES, NEEDS_KERNEL),
        }
    }

    fn is_of_process(&self, probe: ProbeRef) -> bool {
        self.slot(probe.provider())
            .is_some_and(|slot| slot.needs & PRIV_PROC != 0)
    }

    /// Returns how often a probe fires in a second, if it is a timer.
    pub fn hz(&self, probe: ProbeRef) -> Option<usize> {
        self.provider_at(probe.provider())?.hz(probe)
    }

    /// Whether a consumer may know of a probe. The existence of a probe in a process, or of one
    /// that was made to order, tells what other consumers trace. So a consumer knows of these only
    /// if it may have them.
    pub fn may_list(&self, consumer: &Consumer, probe: ProbeRef) -> bool {
        let provider = self.provider_at(probe.provider());
        let tells =
            self.is_of_process(probe) || provider.is_some_and(|provider| provider.makes_to_order());
        !tells || self.permits_probe(consumer, probe).unwrap_or(false)
    }

    /// Creates probes of the provider `index`, all or none, and enables them for each consumer that
    /// has described them.
    pub fn populate<R>(
        &mut self,
        index: u32,
        create: impl FnOnce(&mut Batch<'_>) -> Result<R>,
    ) -> Result<R> {
        self.populate_for(index, None, create)
    }

    /// As [`populate`](Self::populate). If `whom` is given, the probes are made for that consumer;
    /// others get them only by [`Retained::is_anybodys`](super::retained).
    pub fn populate_for<R>(
        &mut self,
        index: u32,
        whom: Option<&Arc<Consumer>>,
        create: impl FnOnce(&mut Batch<'_>) -> Result<R>,
    ) -> Result<R> {
        let name = self.slot(index).ok_or(ENODEV)?.name;
        let mut batch = Batch::new(&mut self.table, index, name);
        let result = create(&mut batch);
        let created = batch.created();
        match result {
            Ok(_) => self.enable_new(&created, whom),
            // The provider does not know all of the probes. Those made for one consumer are
            // requested by no other, so they need not come back.
            Err(_) if whom.is_some() => self.retire(index, &created),
            Err(_) => created.iter().for_each(|probe| probe.kill()),
        }
        result
    }

    /// Has the providers that `desc` may mean make probes to order, if the consumer may use them.
    /// Patterns of other users do not match what is made for a member
    /// ([`Probe::is_for`](super::probe::Probe)). `E2BIG` if a member has used up the steps of the
    /// call; `EINTR` if the caller is killed.
    pub fn provide(&mut self, consumer: &Consumer, desc: &Description<'_>) -> Result {
        for at in 0..self.providers.len() {
            let Some(slot) = self.providers.get(at) else {
                break;
            };
            let fits = |name: &str| glob::matches(desc.provider, name.as_bytes());
            let meant = self.permits(&consumer.engine, at as u32)
                && (desc.provider.is_empty() || fits(slot.name));
            if let (true, Some(provider)) = (meant, slot.provider.clone()) {
                consumer.patience(self.occasion).take(PROVIDED)?;
                self.remove_abandoned(at as u32, &*provider);
                let made = self.populate(at as u32, |batch| {
                    let provided = provider.provide(desc, consumer, batch);
                    batch.made_for(consumer.payer.user());
                    provided.map(|()| batch.count())
                })?;
                let steps = MADE.saturating_mul(made as u64);
                consumer.patience(self.occasion).take(steps)?;
            }
        }
        Ok(())
    }

    /// Has all providers report what they have missed.
    pub fn settle(&self) {
        let there = self
            .providers
            .iter()
            .filter_map(|slot| slot.provider.as_ref());
        there.for_each(|provider| provider.settle());
    }

    /// Removes a provider and its probes. The caller must release the mutex before it drops the
    /// result: the drop may wait for a task that waits for the mutex.
    pub fn remove_provider(&mut self, index: u32) -> Option<Arc<dyn Provider>> {
        let mut after = 0;
        while let Some(probe) = self.table.next_of(index, after) {
            after = probe.id();
            self.remove(index, &[probe]);
        }
        let slot = self.providers.get_mut(usize::try_from(index).ok()?)?;
        slot.provider.take()
    }
}
