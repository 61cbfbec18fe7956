// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Between providers and consumers.
//!
//! Providers create probes in the [`table`] ([`provider`]); consumers, one per open file ([`device`]), enable them by
//! description ([`enabling`]); a firing ([`fire`]) walks the ECBs of its probe ([`ecb`]) and lets the engine do the rest, on the
//! kernel that [`machine`] describes.
//!
//! Locks, outermost first: the mutex of an open file, which makes its control calls follow one another; the
//! [`Framework`]'s mutex over the [`state`], held for whatever concerns more than one consumer: the table, the providers, and who
//! is linked to which probe. Providers are called under it. Probe context takes neither; it reads what the state
//! publishes under RCU ([`rculist`](crate::sys::rculist)).

pub mod anon;
mod arming;
mod calls;
pub mod deadman;
pub mod device;
mod ecb;
mod enabled;
mod enabling;
mod ends;
mod files;
mod fire;
pub mod helper;
mod holder;
mod holds;
mod ids;
#[cfg(CONFIG_KUNIT = "y")]
mod kunit;
mod lives;
mod machine;
mod names;
mod newcomers;
mod patience;
mod posts;
pub mod probe;
pub mod process;
pub mod provider;
pub mod quota;
mod registration;
mod registry;
mod remains;
mod seat;
mod seen;
mod share;
mod snapshot;
mod state;
mod table;
mod tables;
mod text;
mod tracer;
mod user;

pub use fire::{
    concern, fire, lose, miss, rehearse, unhooked, Args, Arguments, Cause, Concern, FireArgs,
};
pub use holds::Ear;
pub use posts::{Listeners, Post};
pub use probe::{any_reads_user, Part, Probe, ProbeRef};
pub use provider::{Batch, Description, Failed, Provider};
pub use state::NEEDS_KERNEL;
pub use text::Refusal;
pub use tracer::Tracer;

use crate::sys::audience::Audience;
use crate::sys::common::{Common, CommonGuard, Of};
use crate::sys::hotplug::CpuState;
use crate::sys::once::Parts;
use crate::sys::random;
use crate::sys::rights::Hooks;
use crate::sys::turn::{Taken, Turn};
use crate::sys::vtime::Measuring;
use core::ops::{Deref, DerefMut};
use ends::{DtraceProvider, Ends};
use helper::Desk;
use holds::Lookout;
use kernel::prelude::*;
use kernel::sync::Arc;
use newcomers::Newcomers;
use quota::Users;
use state::State;
use table::Table;

/// The framework: one in the module.
#[pin_data]
pub struct Framework {
    ends: Ends,
    deadman: deadman::Limits,
    /// Whose members may trace their own processes.
    group: u32,
    newcomers: Arc<CpuState<Newcomers>>,
    /// Who pays for places in processes.
    users: Common<Users>,
    /// What programs have registered.
    desk: Arc<Desk>,
    /// Those who may trace their own processes alone, as long as they do.
    watchers: Arc<Audience<Hooks>>,
    lookout: Lookout,
    /// Those whose clauses ask for `vtimestamp`, while they trace.
    measuring: Arc<Audience<Measuring>>,
    state: Common<State>,
}

impl Framework {
    /// The framework, with the provider `dtrace`. Members of `group` may trace their own processes.
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
        let newcomers = Arc::new(CpuState::new()?, GFP_KERNEL)?;
        let desk = Desk::new()?;
        let (watchers, measuring, lookout) = (Audience::new()?, Audience::new()?, Lookout::new()?);
        let state = Common::new(Of::State, state)?;
        let users = Common::new(Of::Users, Users::new(places))?;
        Arc::pin_init(
            pin_init!(Self {
                ends,
                deadman,
                group,
                newcomers,
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

    /// Locks the state for a consumer. Of a user's calls one at a time waits for that ([`Payer::turn`](quota::Payer::turn)). `EINTR`: the
    /// caller is killed.
    fn enter<'a>(&'a self, tracer: &'a Tracer) -> Result<Entered<'a>> {
        let turn = tracer.payer.turn().map(Turn::take).transpose()?;
        Ok(Entered::new(self.state.lock_killable()?, turn))
    }

    /// The same, for who has to end something: also where the caller is killed. Whoever has a file last closes it, a thread of the kernel for
    /// one, so nobody waits for the user's turn here, which he may keep.
    fn enter_anyway(&self) -> Entered<'_> {
        Entered::new(self.state.lock(), None)
    }

    /// Ends all that a consumer has enabled, and waits until nobody fires for it any more.
    fn withdraw(&self, tracer: &Arc<Tracer>) {
        let gone = self.enter_anyway().detach(tracer);
        // Waits for a grace period, without the framework's mutex.
        drop(gone);
    }

    /// Forgets a consumer that has ended, and the probes that were made for it alone.
    fn forget(&self, tracer: &Arc<Tracer>) {
        self.withdraw(tracer);
        self.enter_anyway().forget(tracer);
    }

    /// A text that stays as long as the framework: for the name of a provider that is not known beforehand.
    pub fn intern(&self, text: &[u8]) -> Result<&'static [u8]> {
        self.state.lock().table.intern(text)
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

/// The state, locked for a consumer. The next one of its user's calls has its turn when the lock has been given up.
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

/// A registered provider. Dropping it removes its probes and forgets the provider.
pub struct Registration {
    framework: Arc<Framework>,
    index: u32,
}

impl Registration {
    /// Creates probes. Consumers whose descriptions match them get them enabled at once.
    pub fn populate<R>(&self, create: impl FnOnce(&mut Batch<'_>) -> Result<R>) -> Result<R> {
        let mut state = self.framework.state.lock();
        state.begin();
        state.populate(self.index, create)
    }

    /// Notes that the probes of a module that has come could not be created, for who describes such.
    pub fn miss(&self, module: &[u8]) {
        self.framework.state.lock().miss(self.index, module);
    }

    /// Removes probes, which are disarmed if need be. They may be created again.
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
