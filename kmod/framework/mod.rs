// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Between providers and consumers.
//!
//! Providers create probes in the [`table`] ([`provider`]); consumers, one per open file ([`device`]), enable them by
//! description ([`enabling`]); a firing ([`fire`]) walks the ECBs of its probe ([`ecb`]) and lets the engine do the rest, on the
//! kernel that [`machine`] describes.
//!
//! Locks, outermost first: the mutex of an open file, which makes its control calls follow one another; the
//! [`Framework`]'s mutex over [`State`], held for whatever concerns more than one consumer: the table, the providers, and who
//! is linked to which probe. Providers are called under it. Probe context takes neither; it reads what [`State`]
//! publishes under RCU ([`rculist`](crate::sys::rculist)).

mod calls;
pub mod device;
mod ecb;
mod enabling;
mod fire;
mod glob;
mod machine;
mod names;
pub mod probe;
pub mod provider;
mod snapshot;
mod table;
mod text;
mod user;

pub use fire::{fire, Args, FireArgs};
pub use probe::{Probe, ProbeRef};
pub use provider::{Batch, Description, Failed, Provider};

use crate::providers::dtrace::DtraceProvider;
use crate::sys::arena::{Arena, Strings};
use crate::sys::rculist::Writer;
use enabling::Attached;
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};
use table::Table;

/// Everything that consumers share.
pub struct State {
    table: Table,
    providers: KVVec<Slot>,
    attached: KVVec<Attached>,
    writer: Writer,
}

/// A provider's place; it stays when the provider goes, since probes refer to it by index.
struct Slot {
    name: &'static str,
    provider: Option<Arc<dyn Provider>>,
}

/// The three probes of the framework itself.
#[derive(Clone, Copy)]
pub struct Ends {
    /// `dtrace:::BEGIN`.
    pub begin: ProbeRef,
    /// `dtrace:::END`.
    pub end: ProbeRef,
    /// `dtrace:::ERROR`.
    pub error: ProbeRef,
}

/// The framework: one in the module.
#[pin_data]
pub struct Framework {
    ends: Ends,
    #[pin]
    state: Mutex<State>,
}

impl Framework {
    /// The framework, with the provider `dtrace`.
    pub fn new(parts: Parts) -> Result<Arc<Self>> {
        let mut state = State {
            table: Table::new(parts.probes, parts.texts, parts.names),
            providers: KVVec::new(),
            attached: KVVec::new(),
            writer: parts.writer,
        };
        let dtrace: Arc<dyn Provider> = Arc::new(DtraceProvider, GFP_KERNEL)?;
        let index = state.add_provider(dtrace)?;
        let mut batch = Batch::new(&mut state.table, index, "dtrace");
        let ends = Ends {
            begin: batch.create(b"", b"", b"BEGIN", 0)?,
            end: batch.create(b"", b"", b"END", 0)?,
            error: batch.create(b"", b"", b"ERROR", 0)?,
        };
        Arc::pin_init(
            pin_init!(Self {
                ends,
                state <- new_mutex!(state, "dtrace::State"),
            }),
            GFP_KERNEL,
        )
    }

    /// Adds a provider, which has no probes yet.
    pub fn register(self: &Arc<Self>, provider: Arc<dyn Provider>) -> Result<Registration> {
        let index = self.state.lock().add_provider(provider)?;
        Ok(Registration {
            framework: self.clone(),
            index,
        })
    }
}

/// What a [`Framework`] is built from: memory that must outlive every firing, and the right to change lists. Made by
/// the module's entry, which answers for that.
pub struct Parts {
    /// For probes.
    pub probes: Arena<Probe>,
    /// For the texts of names.
    pub texts: Strings,
    /// For names.
    pub names: Arena<names::Name>,
    /// For lists of ECBs.
    pub writer: Writer,
}

/// A registered provider. Dropping it removes its probes and forgets the provider.
pub struct Registration {
    framework: Arc<Framework>,
    index: u32,
}

impl Registration {
    /// Creates probes. Consumers whose descriptions match them get them enabled at once.
    pub fn populate<R>(&self, create: impl FnOnce(&mut Batch<'_>) -> Result<R>) -> Result<R> {
        let mut state = self.framework.state.lock();
        state.populate(self.index, create)
    }

    /// Removes probes, which are disarmed if need be. They may be created again.
    pub fn remove(&self, probes: &[ProbeRef]) {
        self.framework.state.lock().remove(self.index, probes);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.framework.state.lock().remove_provider(self.index);
    }
}

impl State {
    fn add_provider(&mut self, provider: Arc<dyn Provider>) -> Result<u32> {
        let name = provider.name();
        if self.provider(name.as_bytes()).is_some() {
            return Err(EEXIST);
        }
        let index = u32::try_from(self.providers.len()).map_err(|_| ENOSPC)?;
        self.providers.push(
            Slot {
                name,
                provider: Some(provider),
            },
            GFP_KERNEL,
        )?;
        Ok(index)
    }

    /// The provider of this name.
    fn provider(&self, name: &[u8]) -> Option<Arc<dyn Provider>> {
        let slot = self
            .providers
            .iter()
            .find(|slot| slot.name.as_bytes() == name)?;
        slot.provider.clone()
    }

    fn provider_at(&self, index: u32) -> Option<Arc<dyn Provider>> {
        self.providers
            .get(usize::try_from(index).ok()?)?
            .provider
            .clone()
    }

    fn populate<R>(
        &mut self,
        index: u32,
        create: impl FnOnce(&mut Batch<'_>) -> Result<R>,
    ) -> Result<R> {
        let slot = usize::try_from(index)
            .ok()
            .and_then(|at| self.providers.get(at))
            .ok_or(ENODEV)?;
        let mut batch = Batch::new(&mut self.table, index, slot.name);
        let result = create(&mut batch);
        let created = batch.created();
        self.enable_new(&created);
        result
    }

    /// Lets the providers that `desc` may mean make probes to order.
    fn provide(&mut self, desc: &Description<'_>) -> Result {
        for at in 0..self.providers.len() {
            let Some(slot) = self.providers.get(at) else {
                break;
            };
            let meant =
                desc.provider.is_empty() || glob::matches(desc.provider, slot.name.as_bytes());
            if let (true, Some(provider)) = (meant, slot.provider.clone()) {
                self.populate(at as u32, |batch| provider.provide(desc, batch))?;
            }
        }
        Ok(())
    }

    fn remove_provider(&mut self, index: u32) {
        let mut after = 0;
        while let Some(probe) = self.table.next_of(index, after) {
            after = probe.id();
            self.remove(index, &[probe]);
        }
        if let Some(slot) = usize::try_from(index)
            .ok()
            .and_then(|at| self.providers.get_mut(at))
        {
            slot.provider = None;
        }
    }
}
