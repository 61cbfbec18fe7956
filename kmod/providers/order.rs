// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes made to order: what `profile`, `cpc` and `kinst` have in common.
//!
//! There is a probe for every name that says how often it is to fire, or where, more than anyone could list. So one is created when its
//! name is first asked for; it stays, as its id may be known by then, and [`MOST`] bounds how many that are. One whose module goes is
//! removed with it, and made anew when that has come back or when somebody asks for it: what it was at may be elsewhere then.
//!
//! Those that are made for consumers that do not see everything are [fewer](RESTRICTED_MOST). Where that many have been made, one of
//! them that nobody has enabled makes room for the next.
//!
//! Invariant: what fires a probe, a timer, a counter or a breakpoint, runs exactly while the probe is enabled.

use crate::framework::{
    Batch, Description, Failed, Framework, Part, ProbeRef, Provider, Refusal, Registration, Tracer,
    NEEDS_KERNEL,
};
use dtrace_uapi::ioctl::{PRIV_KERNEL, PRIV_USER};
use dtrace_uapi::types::{ProbeId, ProviderAttributes};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The most probes of a provider.
const MOST: usize = 4096;
/// The most of them for those who do not see everything, all together.
const RESTRICTED_MOST: usize = 1024;

/// What such a provider does its own way.
pub trait Maker: Send + Sync + 'static {
    /// What fires an enabled probe. Dropping it stops it, and waits until it has.
    type Running: Send;

    /// Its name.
    const NAME: &'static str;
    /// Whether those who do not see the kernel may have some of its probes, as timers that are paid for.
    const TIMERS: bool = false;

    /// The stability of its probes.
    fn attributes(&self) -> ProviderAttributes;

    /// Module and function of the probe that a description asks for; unless said it belongs to none.
    fn place<'a>(_desc: &Description<'a>) -> [&'a [u8]; 2] {
        [b"", b""]
    }

    /// What a probe of these names asks for, to be its cookie. `None`: nothing that could be had here.
    fn order(&self, place: [&[u8]; 2], name: &[u8]) -> Result<Option<u64>>;

    /// Whether one may be made for this consumer, which does not see everything.
    fn may_order(&self, _name: &[u8], _tracer: &Tracer) -> bool {
        true
    }

    /// How often in a second `probe` fires, where such a consumer has few.
    fn hz(&self, _probe: ProbeRef) -> Option<usize> {
        None
    }

    /// Whether such a consumer may have `probe`.
    fn permits(&self, _probe: ProbeRef, _tracer: &Tracer) -> bool {
        true
    }

    /// Why it may not.
    fn refusal(&self, _probe: ProbeRef) -> Refusal {
        Refusal::new(EACCES, NEEDS_KERNEL)
    }

    /// Starts to fire `probe`.
    fn start(&self, probe: ProbeRef) -> Result<Self::Running>;

    /// Tells what its probe has missed, as [`Provider::settle`] does.
    fn settle(_running: &Self::Running) {}
}

/// A probe that was made.
struct Made {
    probe: ProbeRef,
    /// It was removed with its module.
    gone: bool,
    /// It was made for one who does not see everything.
    restricted: bool,
}

impl Made {
    fn is(&self, [module, func]: [&[u8]; 2], name: &[u8]) -> bool {
        let names = self.probe.names();
        (names.module, names.func, names.name) == (module, func, name)
    }

    fn is_of(&self, module: &[u8]) -> bool {
        self.probe.part(Part::Module) == module
    }
}

#[pin_data]
struct ToOrder<M: Maker> {
    maker: M,
    #[pin]
    running: Mutex<KVVec<(ProbeId, M::Running)>>,
    /// Each name once. Locked within the framework's mutex.
    #[pin]
    made: Mutex<KVVec<Made>>,
}

impl<M: Maker> ToOrder<M> {
    fn make(
        &self,
        place: [&[u8]; 2],
        name: &[u8],
        whom: Option<&Tracer>,
        batch: &mut Batch<'_>,
    ) -> Result {
        let [module, func] = place;
        if batch.find(module, func, name).is_some() {
            return Ok(());
        }
        let mut made = self.made.lock();
        if let Some(old) = made.iter_mut().find(|made| made.is(place, name)) {
            return self.make_again(old, batch);
        }
        let restricted = whom.filter(|tracer| !tracer.sees_all);
        if restricted.is_some_and(|tracer| !self.maker.may_order(name, tracer)) {
            return Ok(());
        }
        let Some(cookie) = self.maker.order(place, name)? else {
            return Ok(());
        };
        if made.len() >= MOST || restricted.is_some() && is_full(&made) {
            return Err(ENOSPC);
        }
        made.reserve(1, GFP_KERNEL)?;
        let probe = match batch.create(module, func, name, cookie) {
            Err(error) if error == E2BIG => return Ok(()),
            result => result?,
        };
        let new = Made {
            probe,
            gone: false,
            restricted: restricted.is_some(),
        };
        made.push(new, GFP_KERNEL)?;
        Ok(())
    }

    /// Makes a probe that was there before, if what it is at is there again.
    fn make_again(&self, old: &mut Made, batch: &mut Batch<'_>) -> Result {
        let names = old.probe.names();
        let place = [names.module, names.func];
        if let Some(cookie) = self.maker.order(place, names.name)? {
            batch.create(names.module, names.func, names.name, cookie)?;
            old.gone = false;
        }
        Ok(())
    }

    /// Makes those again that went with a module of this name.
    fn make_all_again(&self, module: &[u8], batch: &mut Batch<'_>) -> Result {
        let mut made = self.made.lock();
        let mut gone = made
            .iter_mut()
            .filter(|made| made.gone && made.is_of(module));
        gone.try_for_each(|old| self.make_again(old, batch))
    }

    /// A probe of this module, which goes. The list is not locked afterwards: to remove the probe locks the framework first.
    fn take(&self, module: &[u8]) -> Option<ProbeRef> {
        let mut made = self.made.lock();
        let one = made
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

/// Whether no more may be made for those who do not see everything.
fn is_full(made: &[Made]) -> bool {
    made.iter().filter(|made| made.restricted).count() >= RESTRICTED_MOST
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

    fn permits(&self, probe: ProbeRef, tracer: &Tracer) -> Result<bool> {
        Ok(self.maker.permits(probe, tracer))
    }

    fn refusal(&self, probe: ProbeRef) -> Refusal {
        self.maker.refusal(probe)
    }

    fn hz(&self, probe: ProbeRef) -> Option<usize> {
        self.maker.hz(probe)
    }

    fn provide(&self, desc: &Description<'_>, tracer: &Tracer, batch: &mut Batch<'_>) -> Result {
        self.make(M::place(desc), desc.name, Some(tracer), batch)
    }

    fn makes_to_order(&self) -> bool {
        !M::TIMERS
    }

    fn abandoned(&self) -> Option<ProbeRef> {
        let mut made = self.made.lock();
        if !is_full(&made) {
            return None;
        }
        let idle = |made: &Made| made.restricted && !made.probe.is_wanted();
        let at = made.iter().position(idle)?;
        made.remove(at).ok().map(|made| made.probe)
    }

    fn enable(&self, probes: &[ProbeRef], failed: &mut Failed) {
        for probe in probes {
            if let Err(error) = self.start(probe) {
                failed.add(probe, error);
            }
        }
    }

    fn disable(&self, probes: &[ProbeRef]) {
        let mut running = self.running.lock();
        for probe in probes {
            if let Some(at) = running.iter().position(|(id, _)| *id == probe.id()) {
                drop(running.remove(at));
            }
        }
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
    /// Where no module's coming and going is of interest.
    pub fn registration(self) -> Registration {
        self.registration
    }

    /// Removes the probes of a module that goes, when they have told what they missed. One by one: that takes no memory, and so
    /// always succeeds.
    pub fn forget(&self, module: &[u8]) {
        self.provider.settle();
        while let Some(probe) = self.provider.take(module) {
            self.registration.remove(&[probe]);
        }
    }

    /// Notes for those that they could not be made again.
    pub fn miss(&self, module: &[u8]) {
        self.registration.miss(module);
    }

    /// Makes those of a module again that has come back, for who retains a description of them.
    pub fn remember(&self, module: &[u8]) -> Result {
        self.registration
            .populate(|batch| self.provider.make_all_again(module, batch))
    }
}

/// Registers the provider and creates its probes of these names, the usual ones.
pub fn register<M: Maker>(
    framework: &Arc<Framework>,
    maker: M,
    usual: &[&[u8]],
) -> Result<Orders<M>> {
    let provider = Arc::pin_init(
        pin_init!(ToOrder {
            maker,
            running <- new_mutex!(KVVec::new(), "dtrace::order::running"),
            made <- new_mutex!(KVVec::new(), "dtrace::order::made"),
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
