// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes that are made on request: the part that `profile`, `cpc` and `kinst` share.
//!
//! There is one possible probe for each name that gives a rate or an instruction, which is more
//! than could be listed. So a probe is created when its name is first requested. It stays while
//! there is room, because consumers may have learnt its id; [`MOST`] limits the number. A probe of
//! a module that goes is removed with the module. It is made again when the module comes back, or
//! when its name is requested again, because what it names may be at another address then.
//!
//! Probes that are made for consumers that do not see everything have a [lower
//! limit](RESTRICTED_MOST). If that limit is reached, one of these probes that no consumer has
//! enabled makes room for the next. If the limit of all probes is reached, any such probe does,
//! except the usual ones.
//!
//! Invariant: the timer, counter or breakpoint that fires a probe runs exactly while the probe is
//! enabled.

use crate::framework::{
    Batch, Consumer, Description, Failed, Framework, Part, ProbeRef, Provider, Refusal,
    Registration, NEEDS_KERNEL,
};
use dtrace_uapi::ioctl::{PRIV_KERNEL, PRIV_USER};
use dtrace_uapi::types::{ProbeId, ProviderAttributes};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The most probes of a provider.
const MOST: usize = 4096;
/// The most probes made for consumers that do not see everything, all together.
const RESTRICTED_MOST: usize = 1024;
/// Once a limit is reached, make room for this many probes.
const ROOM: usize = 256;

/// The part in which these providers differ.
pub trait Maker: Send + Sync + 'static {
    /// What fires an enabled probe. Dropping it stops it and waits until it has stopped.
    type Running: Send;

    /// Its name.
    const NAME: &'static str;
    /// Whether consumers without rights over the kernel may have some of its probes, as timers that
    /// are paid for (INV-33).
    const TIMERS: bool = false;

    /// The stability of its probes.
    fn attributes(&self) -> ProviderAttributes;

    /// The module and function of the probe that a description requests. By default both are empty.
    fn place<'a>(_desc: &Description<'a>) -> [&'a [u8]; 2] {
        [b"", b""]
    }

    /// Returns the cookie of the probe of this name. `None`: the name requests nothing, or nothing
    /// that this machine has.
    fn order(&self, place: [&[u8]; 2], name: &[u8]) -> Result<Option<u64>>;

    /// Whether a probe of this name may be made for this consumer, which does not see everything.
    fn may_order(&self, _name: &[u8], _consumer: &Consumer) -> bool {
        true
    }

    /// The firings of `probe` per second, if such a consumer may have few of them (INV-33).
    fn hz(&self, _probe: ProbeRef) -> Option<usize> {
        None
    }

    /// Whether such a consumer may have `probe`.
    fn permits(&self, _probe: ProbeRef, _consumer: &Consumer) -> bool {
        true
    }

    /// Why such a consumer may not have `probe`.
    fn refusal(&self, _probe: ProbeRef) -> Refusal {
        Refusal::new(EACCES, NEEDS_KERNEL)
    }

    /// Starts to fire `probe`.
    fn start(&self, probe: ProbeRef) -> Result<Self::Running>;

    /// Stops what fires many probes.
    fn stop(all: KVVec<Self::Running>) {
        drop(all);
    }

    /// Reports firings that the probe has missed, as [`Provider::settle`] does.
    fn settle(_running: &Self::Running) {}
}

/// A probe that was made.
struct Made {
    probe: ProbeRef,
    /// It was removed with its module.
    gone: bool,
    /// It was made for a consumer that does not see everything.
    restricted: bool,
    /// It was made at registration, so that listings contain it.
    usual: bool,
}

impl Made {
    fn is(&self, [module, func]: [&[u8]; 2], name: &[u8]) -> bool {
        let names = self.probe.names();
        (names.module, names.func, names.name) == (module, func, name)
    }

    /// Whether it may be retired to make room. Usual probes may not, nor may one that is just being
    /// removed with its module.
    fn is_passing(&self) -> bool {
        !(self.usual || self.gone && self.probe.is_live())
    }

    fn is_of(&self, module: &[u8]) -> bool {
        self.probe.part(Part::Module) == module
    }
}

/// All probes that were made, each name once.
#[derive(Default)]
struct Known {
    list: KVVec<Made>,
    /// How many were made for consumers that do not see everything.
    restricted: usize,
    /// A limit was reached, and probes are being retired until there is [`ROOM`].
    is_short: bool,
}

impl Known {
    /// Whether the limit for such consumers is reached.
    fn is_full(&self) -> bool {
        self.restricted >= RESTRICTED_MOST
    }

    fn push(&mut self, new: Made) -> Result {
        let more = usize::from(new.restricted);
        self.list.push(new, GFP_KERNEL)?;
        self.restricted = self.restricted.saturating_add(more);
        Ok(())
    }

    /// Takes a probe that no consumer has enabled off the list if a limit is reached, either the
    /// one for all probes or the one for consumers that do not see everything. From then on further
    /// calls do so until there is [`ROOM`], because retiring one probe takes as long as retiring
    /// many.
    fn make_room(&mut self) -> Option<ProbeRef> {
        let room = if self.is_short { ROOM } else { 0 };
        let is_whole = self.list.len() >= MOST.saturating_sub(room);
        let is_full = self.restricted >= RESTRICTED_MOST.saturating_sub(room);
        self.is_short = false;
        if !is_whole && !is_full {
            return None;
        }
        let idle = |made: &Made| {
            let is_fit = is_full && made.restricted || is_whole && made.is_passing();
            is_fit && !made.probe.is_wanted()
        };
        let at = self.list.iter().position(idle)?;
        let gone = self.list.remove(at).ok()?;
        self.is_short = true;
        let less = usize::from(gone.restricted);
        self.restricted = self.restricted.saturating_sub(less);
        Some(gone.probe)
    }
}

#[pin_data]
struct ToOrder<M: Maker> {
    maker: M,
    #[pin]
    running: Mutex<KVVec<(ProbeId, M::Running)>>,
    /// Locked with the framework's mutex held.
    #[pin]
    made: Mutex<Known>,
}

impl<M: Maker> ToOrder<M> {
    fn make(
        &self,
        place: [&[u8]; 2],
        name: &[u8],
        whom: Option<&Consumer>,
        batch: &mut Batch<'_>,
    ) -> Result {
        let [module, func] = place;
        if batch.find(module, func, name).is_some() {
            return Ok(());
        }
        let restricted = whom.filter(|consumer| !consumer.sees_all);
        if restricted.is_some_and(|consumer| !self.maker.may_order(name, consumer)) {
            return Ok(());
        }
        // Checked before the list is searched: most descriptions request no such probe, and the
        // list may have thousands.
        let Some(cookie) = self.maker.order(place, name)? else {
            return Ok(());
        };
        let mut made = self.made.lock();
        if let Some(old) = made.list.iter_mut().find(|made| made.is(place, name)) {
            return self.make_again(old, batch);
        }
        if made.list.len() >= MOST || restricted.is_some() && made.is_full() {
            return Err(ENOSPC);
        }
        made.list.reserve(1, GFP_KERNEL)?;
        let probe = match batch.create(module, func, name, cookie) {
            Err(error) if error == E2BIG => return Ok(()),
            result => result?,
        };
        let new = Made {
            probe,
            gone: false,
            restricted: restricted.is_some(),
            usual: whom.is_none(),
        };
        made.push(new)
    }

    /// Creates a probe again that was removed, if what its name requests exists again.
    fn make_again(&self, old: &mut Made, batch: &mut Batch<'_>) -> Result {
        let names = old.probe.names();
        let place = [names.module, names.func];
        if let Some(cookie) = self.maker.order(place, names.name)? {
            batch.create(names.module, names.func, names.name, cookie)?;
            old.gone = false;
        }
        Ok(())
    }

    /// Creates the probes again that were removed with a module of this name.
    fn make_all_again(&self, module: &[u8], batch: &mut Batch<'_>) -> Result {
        let mut made = self.made.lock();
        let mut gone = made
            .list
            .iter_mut()
            .filter(|made| made.gone && made.is_of(module));
        gone.try_for_each(|old| self.make_again(old, batch))
    }

    /// Returns a probe of this module, which goes, and marks it as gone. The list is unlocked on
    /// return, because removing the probe takes the framework's mutex, which comes first.
    fn take(&self, module: &[u8]) -> Option<ProbeRef> {
        let mut made = self.made.lock();
        let one = made
            .list
            .iter_mut()
            .find(|made| !made.gone && made.is_of(module))?;
        one.gone = true;
        Some(one.probe)
    }

    fn start(&self, probe: ProbeRef) -> Result {
        let mut running = self.running.lock();
        running.reserve(1, GFP_KERNEL)?;
        let started = self.maker.start(probe)?;
        running.push((probe.id(), started), GFP_KERNEL)?;
        Ok(())
    }
}

impl<M: Maker> Provider for ToOrder<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }

    fn attributes(&self) -> ProviderAttributes {
        self.maker.attributes()
    }

    fn privileges(&self) -> u32 {
        match M::TIMERS {
            true => PRIV_USER,
            false => PRIV_KERNEL,
        }
    }

    fn permits(&self, probe: ProbeRef, consumer: &Consumer) -> Result<bool> {
        Ok(self.maker.permits(probe, consumer))
    }

    fn refusal(&self, probe: ProbeRef) -> Refusal {
        self.maker.refusal(probe)
    }

    fn hz(&self, probe: ProbeRef) -> Option<usize> {
        self.maker.hz(probe)
    }

    fn provide(
        &self,
        desc: &Description<'_>,
        consumer: &Consumer,
        batch: &mut Batch<'_>,
    ) -> Result {
        self.make(M::place(desc), desc.name, Some(consumer), batch)
    }

    fn makes_to_order(&self) -> bool {
        !M::TIMERS
    }

    fn abandoned(&self) -> Option<ProbeRef> {
        self.made.lock().make_room()
    }

    fn enable(&self, probes: &[ProbeRef], failed: &mut Failed) {
        for probe in probes {
            if let Err(error) = self.start(probe) {
                failed.add(probe, error);
            }
        }
    }

    fn disable(&self, probes: &[ProbeRef]) {
        let mut stopped = KVVec::new();
        let mut running = self.running.lock();
        for probe in probes {
            let at = running.iter().position(|(id, _)| *id == probe.id());
            if let Some(Ok((_, one))) = at.map(|at| running.remove(at)) {
                // If there is no memory for it here, it is stopped alone, when it is dropped.
                let _ = stopped.push(one, GFP_KERNEL);
            }
        }
        M::stop(stopped);
    }

    fn settle(&self) {
        for (_, running) in &*self.running.lock() {
            M::settle(running);
        }
    }
}

/// The registered provider. Dropping it ends it.
pub struct Orders<M: Maker> {
    registration: Registration,
    provider: Arc<ToOrder<M>>,
}

impl<M: Maker> Orders<M> {
    /// For providers that need not follow modules.
    pub fn registration(self) -> Registration {
        self.registration
    }

    /// Removes the probes of a module that goes, after reporting what they have missed. Removes
    /// them one at a time, because that allocates nothing and cannot fail.
    pub fn forget(&self, module: &[u8]) {
        self.provider.settle();
        while let Some(probe) = self.provider.take(module) {
            self.registration.remove(&[probe]);
        }
    }

    /// Tells consumers that probes of this module could not be made again.
    pub fn miss(&self, module: &[u8]) {
        self.registration.miss(module);
    }

    /// Makes the probes of a module again that has come back, for consumers that retain
    /// descriptions of them.
    pub fn remember(&self, module: &[u8]) -> Result {
        self.registration
            .populate(|batch| self.provider.make_all_again(module, batch))
    }
}

/// Registers the provider and creates its usual probes, whose names are `usual`.
pub fn register<M: Maker>(
    framework: &Arc<Framework>,
    maker: M,
    usual: &[&[u8]],
) -> Result<Orders<M>> {
    let provider = Arc::pin_init(
        pin_init!(ToOrder {
            maker,
            running <- new_mutex!(KVVec::new(), "dtrace::order::running"),
            made <- new_mutex!(Known::default(), "dtrace::order::made"),
        }),
        GFP_KERNEL,
    )?;
    let registration = framework.register(provider.clone())?;
    registration.populate(|batch| {
        let mut names = usual.iter();
        names.try_for_each(|name| provider.make([b"", b""], name, None, batch))
    })?;
    Ok(Orders {
        registration,
        provider,
    })
}
