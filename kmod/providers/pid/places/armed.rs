// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Breakpoints come where probes start to fire, and go where they end to.
//!
//! All that one call asks for are set together, process by process and in the order of their addresses: then a page is looked up once for all
//! that are on it. A probe whose breakpoints could not all be set has failed, and has none.

use super::site::At;
use super::{find, of, Place, Processes, Share, Watched};
use crate::framework::quota::{Debt, Debtor, Payer};
use crate::framework::{Failed, ProbeRef};
use crate::sys::breakpoint::{Carrier, Hit, Spot, Traps};
use crate::sys::process::Process;
use dtrace_uapi::process::USDT;
use kernel::alloc::KVVec;
use kernel::prelude::*;

impl Processes {
    /// Starts to fire probes.
    pub fn arm(&mut self, probes: &[ProbeRef], failed: &mut Failed) {
        let Self { all, traps, .. } = self;
        let mut old = KVVec::new();
        for probe in probes {
            let armed = of(all, probe).ok_or(ENODEV);
            let armed = armed.and_then(|(watched, at)| watched.arm(traps, at, &mut old));
            if let Err(error) = armed {
                failed.add(probe, error);
            }
        }
        // They are where others are to be.
        Carrier::remove(old);
        for watched in all.iter_mut().filter(|watched| watched.is_fresh) {
            // Breakpoints that are not set are found below.
            let _ = watched.set();
        }
        let mut carriers = KVVec::new();
        for probe in probes {
            let Some((watched, at)) = of(all, probe) else {
                continue;
            };
            if let Some(error) = watched.failure(at) {
                failed.add(probe, error);
                watched.disarm(at, &mut carriers);
            }
        }
        Carrier::remove(carriers);
        for watched in all.iter_mut().filter(|watched| watched.is_fresh) {
            watched.is_fresh = false;
            watched.restore(traps);
        }
    }

    /// Ends to fire probes.
    pub fn disarm(&mut self, probes: &[ProbeRef]) {
        let mut carriers = KVVec::new();
        for probe in probes {
            if let Some((watched, at)) = of(&mut self.all, probe) {
                watched.disarm(at, &mut carriers);
            }
        }
        Carrier::remove(carriers);
    }
}

impl Watched {
    /// Has a probe's places have breakpoints, which are not set yet.
    fn arm(&mut self, traps: &Traps, at: usize, old: &mut KVVec<Carrier<At>>) -> Result {
        let Self {
            process,
            places,
            probes,
            shares,
            is_fresh,
            ..
        } = self;
        *is_fresh = true;
        let made = probes.get_mut(at).ok_or(ENODEV)?;
        let is_users = made.is_users(shares);
        let wish = Wish {
            counts: made.kind == USDT,
            is_kept: is_users,
            payer: user_of(shares).filter(|_| is_users),
        };
        for (n, address) in made.places.iter().enumerate() {
            if let Err(error) = arm(traps, places, process, *address, wish, old) {
                for address in made.places.iter().take(n) {
                    drop(disarm(places, *address));
                }
                return Err(error);
            }
        }
        made.is_armed = true;
        Ok(())
    }

    /// Sets the breakpoints that are not set yet.
    pub(super) fn set(&mut self) -> Result {
        let mut unset = KVVec::new();
        let carriers = self.places.iter_mut().filter_map(|p| p.carrier.as_mut());
        for carrier in carriers.filter(|carrier| !carrier.is_set()) {
            unset.push(carrier, GFP_KERNEL)?;
        }
        Carrier::set(&mut unset)
    }

    /// Where a breakpoint made room for one that counts, which could not be set, those who had it get one again.
    pub(super) fn restore(&mut self, traps: &Traps) {
        let Self {
            process, places, ..
        } = self;
        let mut bare = places.iter_mut().filter(|place| place.is_bare()).peekable();
        if bare.peek().is_none() {
            return;
        }
        for place in bare {
            place.counts = false;
            place.carrier = place.breakpoint(traps, process, 0).ok();
        }
        // Those that there is no memory for lose what they would have fired.
        let _ = self.set();
        for place in self.places.iter().filter(|place| place.is_bare()) {
            At(place.site.clone(), Debt::none()).lose();
        }
    }

    /// Ends to fire a probe; its breakpoints that nobody needs any more are moved to `carriers`.
    fn disarm(&mut self, at: usize, carriers: &mut KVVec<Carrier<At>>) {
        let Self { places, probes, .. } = self;
        let made = probes.get_mut(at).filter(|made| made.is_armed);
        let Some(made) = made else {
            return;
        };
        made.is_armed = false;
        for address in &made.places {
            if let Some(carrier) = disarm(places, *address) {
                // One that finds no room is removed at once, by itself.
                let _ = carriers.push(carrier, GFP_KERNEL);
            }
        }
    }

    /// Why a probe does not fire everywhere, if it does not.
    fn failure(&self, at: usize) -> Option<Error> {
        let made = self.probes.get(at).filter(|made| made.is_armed)?;
        made.places.iter().find_map(|address| {
            let place = find(&self.places, *address).and_then(|at| self.places.get(at));
            place.map_or(Some(ENODEV), Place::failure)
        })
    }
}

impl Place {
    /// Why it has no breakpoint that is set, if it has none.
    pub(super) fn failure(&self) -> Option<Error> {
        match &self.carrier {
            Some(carrier) if carrier.is_set() => None,
            Some(carrier) => Some(carrier.error()),
            None => Some(ENODEV),
        }
    }

    /// Whether it is to have a breakpoint and has none.
    fn is_bare(&self) -> bool {
        self.armed > 0 && self.failure().is_some()
    }

    /// A breakpoint, which is not set yet. It counts in the program's `counter` if there is one.
    fn breakpoint(&self, traps: &Traps, process: &Process, counter: u64) -> Result<Carrier<At>> {
        let site = &self.site;
        let instruction = &site.instruction;
        // Where there is no file uprobes have nothing.
        let is_uncounted = site.mark().is_some_and(|mark| mark.semaphore == 0);
        let is_own = self.is_kept || !site.text.has_file() || !instruction.is_left(is_uncounted);
        let spot = Spot {
            process,
            address: site.address,
            text: &site.text,
            counter,
            code: is_own.then(|| instruction.bytes()),
            is_done: instruction.is_done(),
            is_movable: instruction.is_movable(),
            is_carried: instruction.is_carried(),
            is_barred: instruction.is_barred(),
            is_users: self.debtor.is_some(),
            is_kept: self.is_kept,
        };
        let debt = self.debtor.as_ref().map_or(Debt::none(), Debtor::debt);
        let at = At(site.clone(), debt);
        Carrier::new(traps, &spot, at)
    }

    /// Has it have another breakpoint, which is not set yet; the one that makes room for it. Where there is no memory for it the old one stays.
    fn renew(
        &mut self,
        traps: &Traps,
        process: &Process,
        counter: u64,
        wish: Wish<'_>,
    ) -> Result<Option<Carrier<At>>> {
        let is_alone = self.armed == 0;
        // What root has at the place stays free, whoever comes.
        let is_kept = wish.is_kept && (is_alone || self.is_kept);
        // No user owes what somebody else needs as well.
        let is_owed = is_alone || self.debtor.is_some();
        let debtor = wish.payer.filter(|_| is_owed).and_then(Payer::debtor);
        let was_kept = core::mem::replace(&mut self.is_kept, is_kept);
        let had = core::mem::replace(&mut self.debtor, debtor);
        match self.breakpoint(traps, process, counter) {
            Ok(carrier) => Ok(self.carrier.replace(carrier)),
            Err(error) => {
                (self.is_kept, self.debtor) = (was_kept, had);
                Err(error)
            }
        }
    }
}

/// The user who has asked for probes of a process, if one has. Who else may trace it as a user is the same.
fn user_of(shares: &[Share]) -> Option<&Payer> {
    let mut payers = shares.iter().map(|share| share.charge.payer());
    payers.find(|payer| payer.user().is_some())
}

/// How a place is to have its breakpoint.
#[derive(Clone, Copy)]
pub(super) struct Wish<'a> {
    /// It counts in the program's semaphore if there is one.
    pub counts: bool,
    /// Nobody but users has asked for it, so it is kept from uprobes.
    pub is_kept: bool,
    /// Whose it is, if it is a user's.
    pub payer: Option<&'a Payer>,
}

/// Has a place have a breakpoint; it counts in the program's semaphore if the probe does. One that makes room for it is moved to `old`, and is to be
/// removed before it is set.
pub(super) fn arm(
    traps: &Traps,
    places: &mut [Place],
    process: &Process,
    address: u64,
    wish: Wish<'_>,
    old: &mut KVVec<Carrier<At>>,
) -> Result {
    // One that finds no room is removed at once, by itself.
    let mut leave = |carrier: Option<Carrier<At>>| {
        if let Some(carrier) = carrier {
            let _ = old.push(carrier, GFP_KERNEL);
        }
    };
    let at = find(places, address).ok_or(ENODEV)?;
    let place = places.get_mut(at).ok_or(ENODEV)?;
    let counter = place.site.mark().map_or(0, |mark| mark.semaphore);
    // One that does not count would keep one that does away.
    let is_to_count = wish.counts && counter != 0 && !place.counts;
    // Who sees everything is not to lose what a user's breakpoint cannot have done.
    let is_to_be_free = place.is_kept && !wish.is_kept;
    leave(place.carrier.take_if(|carrier| carrier.is_lost()));
    if place.carrier.is_none() || is_to_count || is_to_be_free {
        let counts = wish.counts || place.carrier.is_some() && place.counts;
        let counter = if counts { counter } else { 0 };
        let carrier = place.renew(traps, process, counter, wish)?;
        leave(carrier);
        place.counts = counter != 0;
    }
    place.armed = place.armed.saturating_add(1);
    Ok(())
}

/// The breakpoint of a place that needs it no more, as it is.
pub(super) fn disarm(places: &mut [Place], address: u64) -> Option<Carrier<At>> {
    let place = places.get_mut(find(places, address)?)?;
    place.armed = place.armed.saturating_sub(1);
    place.carrier.take_if(|_| place.armed == 0)
}
