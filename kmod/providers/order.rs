// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes made to order: what `profile`, `cpc` and `kinst` have in common.
//!
//! There is a probe for every name that says how often it is to fire, or where, more than anyone could list. So one is created when its
//! name is first asked for; it stays, as its id may be known by then, and [`MOST`] bounds how many that are.
//!
//! Invariant: what fires a probe, a timer, a counter or a breakpoint, runs exactly while the probe is enabled.

use crate::framework::{Batch, Description, Failed, Framework, ProbeRef, Provider, Registration};
use dtrace_uapi::ioctl::PRIV_KERNEL;
use dtrace_uapi::types::{ProbeId, ProviderAttributes};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Arc, Mutex};

/// The most probes of a provider.
const MOST: usize = 4096;

/// What such a provider does its own way.
pub trait Maker: Send + Sync + 'static {
    /// What fires an enabled probe. Dropping it stops it, and waits until it has.
    type Running: Send;

    /// Its name.
    const NAME: &'static str;

    /// The stability of its probes.
    fn attributes(&self) -> ProviderAttributes;

    /// Module and function of the probe that a description asks for; unless said it belongs to none.
    fn place<'a>(_desc: &Description<'a>) -> [&'a [u8]; 2] {
        [b"", b""]
    }

    /// What a probe of these names asks for, to be its cookie. `None`: nothing that could be had here.
    fn order(&self, place: [&[u8]; 2], name: &[u8]) -> Option<u64>;

    /// Starts to fire `probe`.
    fn start(&self, probe: ProbeRef) -> Result<Self::Running>;

    /// Tells what its probe has missed, as [`Provider::settle`] does.
    fn settle(_running: &Self::Running) {}
}

#[pin_data]
struct ToOrder<M: Maker> {
    maker: M,
    #[pin]
    running: Mutex<KVVec<(ProbeId, M::Running)>>,
    #[pin]
    made: Mutex<usize>,
}

impl<M: Maker> ToOrder<M> {
    fn make(&self, place: [&[u8]; 2], name: &[u8], batch: &mut Batch<'_>) -> Result {
        let [module, func] = place;
        let mut made = self.made.lock();
        if batch.find(module, func, name).is_some() {
            return Ok(());
        }
        let Some(cookie) = self.maker.order(place, name) else {
            return Ok(());
        };
        if *made >= MOST {
            return Err(ENOSPC);
        }
        match batch.create(module, func, name, cookie) {
            Err(error) if error == E2BIG => Ok(()),
            result => {
                result?;
                *made = made.wrapping_add(1);
                Ok(())
            }
        }
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
        PRIV_KERNEL
    }

    fn provide(&self, desc: &Description<'_>, batch: &mut Batch<'_>) -> Result {
        self.make(M::place(desc), desc.name, batch)
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

/// Registers the provider and creates its probes of these names, the usual ones.
pub fn register<M: Maker>(
    framework: &Arc<Framework>,
    maker: M,
    usual: &[&[u8]],
) -> Result<Registration> {
    let provider = Arc::pin_init(
        pin_init!(ToOrder {
            maker,
            running <- new_mutex!(KVVec::new(), "dtrace::order::running"),
            made <- new_mutex!(0, "dtrace::order::made"),
        }),
        GFP_KERNEL,
    )?;
    let registration = framework.register(provider.clone())?;
    registration.populate(|batch| {
        let mut names = usual.iter();
        names.try_for_each(|name| provider.make([b"", b""], name, batch))
    })?;
    Ok(registration)
}
