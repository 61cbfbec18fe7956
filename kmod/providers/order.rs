// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes made to order: what `profile`, `cpc` and `kinst` have in common.
//!
//! There is a probe for every name that says how often it is to fire, or where, more than anyone could list. So one is created when its
//! name is first asked for; it stays as long as there is room, as its id may be known by then: [`MOST`] bounds how many that are. One whose module goes is
//! removed with it, and made anew when that has come back or when somebody asks for it: what it was at may be elsewhere then.
//!
//! Those that are made for consumers that do not see everything are [fewer](RESTRICTED_MOST). Where that many have been made, one of
//! them that nobody has enabled makes room for the next, and so does any where there are as many as may be.
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
/// For how many there is room when it is made.
const ROOM: usize = 256;

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

    /// Stops what fires many probes.
    fn stop(all: KVVec<Self::Running>) {
        drop(all);
    }

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
    /// It is there for who asks what there is.
    usual: bool,
}

impl Made {
    fn is(&self, [module, func]: [&[u8]; 2], name: &[u8]) -> bool {
        let names = self.probe.names();
        (names.module, names.func, names.name) == (module, func, name)
    }

    /// Whether it may go: it is none that there always is, nor one that is about to go with its module.
    fn is_passing(&self) -> bool {
        !(self.usual || self.gone && self.probe.is_live())
    }

    fn is_of(&self, module: &[u8]) -> bool {
        self.probe.part(Part::Module) == module
    }
}

/// All of them, each name once.
#[derive(Default)]
struct Known {
    list: KVVec<Made>,
    /// How many were made for those who do not see everything.
    restricted: usize,
    /// There was no room for another, and room is being made.
    is_short: bool,
}

impl Known {
    /// Whether no more may be made for those.
    fn is_full(&self) -> bool {
        self.restricted >= RESTRICTED_MOST
    }

    fn push(&mut self, new: Made) -> Result {
        let more = usize::from(new.restricted);
        self.list.push(new, GFP_KERNEL)?;
        self.restricted = self.restricted.saturating_add(more);
        Ok(())
    }

    /// Forgets one that nobody has enabled, where there is no room for another: no more for anybody, or for those. From then on as long as there
    /// is not room for many: to take probes away takes as long for one as for many.
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
    /// Locked within the framework's mutex.
    #[pin]
    made: Mutex<Known>,
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
        let restricted = whom.filter(|tracer| !tracer.sees_all);
        if restricted.is_some_and(|tracer| !self.maker.may_order(name, tracer)) {
            return Ok(());
        }
        // Most descriptions ask for nothing of the kind, and need not be looked for among thousands.
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
            .list
            .iter_mut()
            .filter(|made| made.gone && made.is_of(module));
        gone.try_for_each(|old| self.make_again(old, batch))
    }

    /// A probe of this module, which goes. The list is not locked afterwards: to remove the probe locks the framework first.
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
                // One that finds no room is stopped at once, by itself.
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
