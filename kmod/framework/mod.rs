// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The framework: it stands between providers and consumers.
//!
//! Providers create probes in the [`table`] ([`provider`]). Consumers, one per open file
//! ([`device`]), enable them by description ([`enabling`]). A firing ([`fire`]) walks the ECBs at
//! its probe ([`ecb`]) and has the engine do the rest, on the kernel that [`machine`] describes.
//!
//! Who stands on whom, from the ground up. Each knows those before it, and none after it:
//!
//! 1. What is shared of a consumer ([`Consumer`]), the probes, the [`state`] and the firing.
//! 2. The life of a consumer ([`consumer`]): open, enable, go, stop, drop.
//! 3. The consumer that has no file yet ([`anon`]), which a file may [claim](claim).
//! 4. The control calls, which work on a consumer: those of [`described`], [`snapshot`],
//!    [`holder`], [`helper`], [`tables`] and [`remains`].
//! 5. All other control calls, and their dispatch ([`ioctl`]).
//! 6. The open file ([`device`]), which only the module's root knows.
//!
//! Locks, outermost first:
//!
//! 1. The turn of an open file, which serialises its control calls.
//! 2. The turn of a user, which lets one call of a member at a time wait for the mutex (INV-31).
//! 3. The lock of a file's requests for processes that wait ([`holder`]).
//! 4. The [`Framework`]'s mutex over the [`state`], for everything that concerns more than one
//!    consumer: the table, the providers, and the ECBs at each probe.
//! 5. The locks of providers, which are called with the mutex held.
//!
//! Probe context takes none of these. It reads what the state publishes under RCU
//! ([`rculist`](crate::sys::rculist), INV-4, INV-20).

pub mod anon;
mod arming;
mod claim;
mod consumer;
mod cpu_hotplug;
pub mod deadman;
mod described;
pub mod device;
mod dtrace_provider;
mod ecb;
mod enabled;
mod enabling;
mod files;
mod fire;
pub mod helper;
mod holder;
mod holds;
mod ids;
mod ioctl;
#[cfg(CONFIG_KUNIT = "y")]
mod kunit;
mod linking;
mod lives;
mod machine;
mod names;
mod patience;
mod posts;
pub mod probe;
pub mod process;
pub mod provider;
pub mod quota;
mod registration;
mod registry;
mod remains;
mod retained;
mod seen;
mod share;
mod snapshot;
mod state;
mod table;
mod tables;
mod text;
mod user;

pub use consumer::Consumer;
pub use fire::{
    concern, fire, lose, miss, rehearse, unhooked, Args, Arguments, Cause, Concern, FireArgs,
};
pub use holds::Ear;
pub use posts::{Listeners, Post};
pub use probe::{any_reads_user, Part, Probe, ProbeRef};
pub use provider::{Batch, Description, Failed, Provider};
pub use state::NEEDS_KERNEL;
pub use text::Refusal;

use crate::sys::audience::Audience;
use crate::sys::common::{Common, CommonGuard, Of};
use crate::sys::hotplug::CpuState;
use crate::sys::once::Parts;
use crate::sys::random;
use crate::sys::rights::Hooks;
use crate::sys::turn::{Taken, Turn};
use crate::sys::vtime::Measuring;
use core::ops::{Deref, DerefMut};
use cpu_hotplug::CpuHotplug;
use dtrace_provider::{DtraceProvider, Ends};
use helper::Desk;
use holds::Lookout;
use kernel::prelude::*;
use kernel::sync::Arc;
use quota::Users;
use state::State;
use table::Table;

/// The framework. The module has one.
#[pin_data]
pub struct Framework {
    ends: Ends,
    deadman: deadman::Limits,
    /// The group whose members may trace their own processes.
    group: u32,
    cpu_hotplug: Arc<CpuState<CpuHotplug>>,
    /// The accounts that pay for what consumers have.
    users: Common<Users>,
    /// What programs have registered.
    desk: Arc<Desk>,
    /// The hooks by which members' consumers learn of processes (INV-36, INV-37).
    watchers: Arc<Audience<Hooks>>,
    lookout: Lookout,
    /// Attached while a tracing reads `vtimestamp` (INV-7).
    measuring: Arc<Audience<Measuring>>,
    state: Common<State>,
}

impl Framework {
    /// Makes the framework, with the provider `dtrace`. Members of `group` may trace their own
    /// processes.
    pub fn new(
        parts: Parts<Probe, names::Name>,
        deadman: deadman::Limits,
        group: u32,
        places: quota::Limits,
    ) -> Result<Arc<Self>> {
        let table = Table::new(parts.probes, parts.texts, parts.names, random::word());
        let mut state = State::new(table, parts.writer);
        let dtrace: Arc<dyn Provider> = Arc::new(DtraceProvider, GFP_KERNEL)?;
        let index = state.add_provider(dtrace)?;
        let mut batch = Batch::new(&mut state.table, index, "dtrace");
        let ends = Ends::create(&mut batch)?;
        let cpu_hotplug = Arc::new(CpuState::new()?, GFP_KERNEL)?;
        let desk = Desk::new()?;
        let (watchers, measuring, lookout) = (Audience::new()?, Audience::new()?, Lookout::new()?);
        let state = Common::new(Of::State, state)?;
        let users = Common::new(Of::Users, Users::new(places))?;
        Arc::pin_init(
            pin_init!(Self {
                ends,
                deadman,
                group,
                cpu_hotplug,
                users,
                desk,
                watchers,
                lookout,
                measuring,
                state,
            }),
            GFP_KERNEL,
        )
    }

    /// Locks the state for a consumer. A member's call waits for its [turn](quota::Payer::turn)
    /// first. `EINTR` if the caller is killed.
    fn enter<'a>(&'a self, consumer: &'a Consumer) -> Result<Entered<'a>> {
        let turn = consumer.payer.turn().map(Turn::take).transpose()?;
        Ok(Entered::new(self.state.lock_killable()?, turn))
    }

    /// Locks the state for a call that ends something, even if the caller is killed. It does not
    /// wait for the user's turn, which the user may keep: the last close of a file may be done by
    /// another task, such as a thread of the kernel.
    fn enter_anyway(&self) -> Entered<'_> {
        Entered::new(self.state.lock(), None)
    }

    /// Takes away all that a consumer has enabled, and waits until no firing uses it any more.
    fn withdraw(&self, consumer: &Arc<Consumer>) {
        let gone = self.enter_anyway().withdraw(consumer);
        // This waits for a grace period, so it is done without the framework's mutex.
        drop(gone);
    }

    /// Removes a consumer that has ended, and the probes that only it had requested.
    fn forget(&self, consumer: &Arc<Consumer>) {
        self.withdraw(consumer);
        self.enter_anyway().forget(consumer);
    }

    /// Returns a copy of a text that stays as long as the framework, for the name of a provider
    /// that is not known at compile time.
    pub fn intern(&self, text: &[u8]) -> Result<&'static [u8]> {
        self.state.lock().table.intern(text)
    }

    /// Adds a provider. It has no probes yet.
    pub fn register(self: &Arc<Self>, provider: Arc<dyn Provider>) -> Result<Registration> {
        let index = self.state.lock().add_provider(provider)?;
        Ok(Registration {
            framework: self.clone(),
            index,
        })
    }
}

/// The state, locked for a consumer. The fields are dropped in order, so the user's next call has
/// its turn after the lock was released.
struct Entered<'a> {
    state: CommonGuard<'a, State>,
    _turn: Option<Taken<'a>>,
}

impl<'a> Entered<'a> {
    fn new(mut state: CommonGuard<'a, State>, turn: Option<Taken<'a>>) -> Self {
        state.begin();
        Self { state, _turn: turn }
    }
}

impl Deref for Entered<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for Entered<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

/// A registered provider. Dropping it removes its probes and the provider.
pub struct Registration {
    framework: Arc<Framework>,
    index: u32,
}

impl Registration {
    /// Creates probes, all or none. Enables them at once for consumers whose descriptions match
    /// them.
    pub fn populate<R>(&self, create: impl FnOnce(&mut Batch<'_>) -> Result<R>) -> Result<R> {
        let mut state = self.framework.state.lock();
        state.begin();
        state.populate(self.index, create)
    }

    /// Notes, with each consumer that has described them, that the probes of a module which was
    /// loaded could not be created.
    pub fn miss(&self, module: &[u8]) {
        self.framework.state.lock().miss(self.index, module);
    }

    /// Removes probes, and disarms them if they are armed. They may be created again.
    pub fn remove(&self, probes: &[ProbeRef]) {
        self.framework.state.lock().remove(self.index, probes);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let provider = self.framework.state.lock().remove_provider(self.index);
        drop(provider);
    }
}
