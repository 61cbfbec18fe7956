// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Setting breakpoints when probes are enabled, and removing them when they are disabled.
//!
//! The breakpoints of one call are set together, by process and in the order of their addresses, so
//! each page is looked up once. If not all breakpoints of a probe could be set, the probe has
//! failed and keeps none.

use super::site::At;
use super::{find, of, Place, Processes, Share, Watched};
use crate::framework::quota::{Debt, Debtor, Payer};
use crate::framework::{Failed, ProbeRef};
use crate::sys::breakpoint::{Carrier, Hit, Spot, Traps};
use crate::sys::process::Process;
use kernel::alloc::KVVec;
use kernel::prelude::*;

impl Processes {
    /// Arms probes. Those that cannot be armed are added to `failed`.
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
        // New breakpoints are to be set at the same places.
        Carrier::remove(old);
        for watched in all.iter_mut().filter(|watched| watched.is_fresh) {
            // Places whose breakpoints could not be set are found below, even if there was no
            // memory to set any.
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

    /// Disarms probes.
    pub fn disarm(&mut self, probes: &[ProbeRef]) {
        self.has_changed = true;
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
    /// Creates the breakpoints that a probe's places need, without setting them. Breakpoints that
    /// they replace are moved to `old`.
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
        for (n, address) in made.places.iter().enumerate() {
            let wish = Wish {
                counter: counter_of(places, *address, made.probe),
                is_kept: is_users,
                payer: user_of(shares).filter(|_| is_users),
            };
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

    /// Sets the breakpoints that are not set yet. `ENOMEM`: none was set.
    pub(super) fn set(&mut self) -> Result {
        let mut unset = KVVec::new();
        let carriers = self.places.iter_mut().filter_map(|p| p.carrier.as_mut());
        for carrier in carriers.filter(|carrier| !carrier.is_set()) {
            unset.push(carrier, GFP_KERNEL)?;
        }
        Carrier::set(&mut unset)
    }

    /// Creates and sets breakpoints for places that have lost theirs: one that counts was to
    /// replace it and could not be set.
    pub(super) fn restore(&mut self, traps: &Traps) {
        let Self {
            process, places, ..
        } = self;
        let mut bare = places.iter_mut().filter(|place| place.is_bare()).peekable();
        if bare.peek().is_none() {
            return;
        }
        for place in bare {
            let counted = core::mem::take(&mut place.counter);
            if counted != 0 {
                place.site.marks().miss_counted(counted);
            }
            place.carrier = place.breakpoint(traps, process, 0).ok();
        }
        // Places that still have none lose their firings; their consumers are told.
        let _ = self.set();
        for place in self.places.iter().filter(|place| place.is_bare()) {
            At(place.site.clone(), Debt::none()).lose();
        }
    }

    /// Disarms a probe. Its breakpoints that are not needed any more are moved to `carriers`.
    fn disarm(&mut self, at: usize, carriers: &mut KVVec<Carrier<At>>) {
        let Self { places, probes, .. } = self;
        let made = probes.get_mut(at).filter(|made| made.is_armed);
        let Some(made) = made else {
            return;
        };
        made.is_armed = false;
        for address in &made.places {
            if let Some(carrier) = disarm(places, *address) {
                // If there is no memory for it here, it is removed alone, when it is dropped.
                let _ = carriers.push(carrier, GFP_KERNEL);
            }
        }
    }

    /// Why an armed probe does not fire at all of its places; `None` if it does.
    fn failure(&self, at: usize) -> Option<Error> {
        let made = self.probes.get(at).filter(|made| made.is_armed)?;
        made.places.iter().find_map(|address| {
            let place = find(&self.places, *address).and_then(|at| self.places.get(at));
            place.map_or(Some(ENODEV), Place::failure)
        })
    }
}

impl Place {
    /// Why the place has no breakpoint that is set; `None` if it has one.
    pub(super) fn failure(&self) -> Option<Error> {
        match &self.carrier {
            Some(carrier) if carrier.is_set() => None,
            Some(carrier) => Some(carrier.error()),
            None => Some(ENODEV),
        }
    }

    /// Whether the place needs a breakpoint and has none that is set.
    fn is_bare(&self) -> bool {
        self.armed > 0 && self.failure().is_some()
    }

    /// Creates a breakpoint without setting it. It counts in the program's semaphore at the file
    /// offset `counter`, if that is not 0.
    fn breakpoint(&self, traps: &Traps, process: &Process, counter: u64) -> Result<Carrier<At>> {
        let site = &self.site;
        let instruction = &site.instruction;
        // Without a file uprobes cannot have a breakpoint there.
        let is_uncounted = site.marks().are_uncounted();
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

    /// Creates a breakpoint in place of the present one, without setting it, and returns the
    /// present one. If there is no memory, nothing changes.
    fn renew(
        &mut self,
        traps: &Traps,
        process: &Process,
        wish: Wish<'_>,
    ) -> Result<Option<Carrier<At>>> {
        let is_alone = self.armed == 0;
        // A breakpoint that root had at the place first is not kept from uprobes, even if a member
        // joins.
        let is_kept = wish.is_kept && (is_alone || self.is_kept);
        // A member does not pay for a breakpoint that others need as well.
        let is_owed = is_alone || self.debtor.is_some();
        let debtor = wish.payer.filter(|_| is_owed).and_then(Payer::debtor);
        let was_kept = core::mem::replace(&mut self.is_kept, is_kept);
        let had = core::mem::replace(&mut self.debtor, debtor);
        match self.breakpoint(traps, process, wish.counter) {
            Ok(carrier) => {
                self.counter = wish.counter;
                Ok(self.carrier.replace(carrier))
            }
            Err(error) => {
                (self.is_kept, self.debtor) = (was_kept, had);
                Err(error)
            }
        }
    }
}

/// The member who has requested probes of a process, if any. There is only one, because no other
/// member may trace the same process.
fn user_of(shares: &[Share]) -> Option<&Payer> {
    let mut payers = shares.iter().map(|share| share.charge.payer());
    payers.find(|payer| payer.user().is_some())
}

/// What a place's breakpoint is to be like.
#[derive(Clone, Copy)]
pub(super) struct Wish<'a> {
    /// The semaphore in which it counts: its offset in the file; 0 if there is none.
    pub counter: u64,
    /// Only members have requested it, so it is kept from uprobes.
    pub is_kept: bool,
    /// The member who pays for it, if it is a member's.
    pub payer: Option<&'a Payer>,
}

/// The semaphore of a probe at one of its places; 0 if it has none.
fn counter_of(places: &[Place], address: u64, probe: ProbeRef) -> u64 {
    let place = find(places, address).and_then(|at| places.get(at));
    let mark = place.and_then(|place| place.site.marks().of(probe));
    mark.map_or(0, |mark| mark.semaphore)
}

/// Gives a place a breakpoint, without setting it, and counts one more armed user. The breakpoint
/// counts in the program's semaphore if the probe does. A breakpoint that it replaces is moved to
/// `old`, and must be removed before the new one is set. `EEXIST`: the breakpoint counts in another
/// semaphore; `EBUSY`: it is not a member's, and does not count for one.
pub(super) fn arm(
    traps: &Traps,
    places: &mut [Place],
    process: &Process,
    address: u64,
    wish: Wish<'_>,
    old: &mut KVVec<Carrier<At>>,
) -> Result {
    // If there is no memory for it here, it is removed alone, when it is dropped.
    let mut leave = |carrier: Option<Carrier<At>>| {
        if let Some(carrier) = carrier {
            let _ = old.push(carrier, GFP_KERNEL);
        }
    };
    let at = find(places, address).ok_or(ENODEV)?;
    let place = places.get_mut(at).ok_or(ENODEV)?;
    // A breakpoint that does not count cannot start to, so it is replaced.
    let is_to_count = wish.counter != 0 && wish.counter != place.counter;
    // A breakpoint that is kept from uprobes may be lost. A consumer that sees everything must not
    // lose it for that reason. Nor does it count where a member says.
    let is_to_be_free = place.is_kept && !wish.is_kept;
    leave(place.carrier.take_if(|carrier| carrier.is_lost()));
    if is_to_count && !is_to_be_free {
        // Uprobes refuse all others at an instruction that do not count where the first does. A
        // lost breakpoint of others is theirs as well, and so is what replaces it.
        if wish.is_kept && !place.is_kept && place.armed > 0 {
            return Err(EBUSY);
        }
        if place.carrier.is_some() && place.counter != 0 {
            return Err(EEXIST);
        }
    }
    if place.carrier.is_none() || is_to_count || is_to_be_free {
        let counted = core::mem::take(&mut place.counter);
        let renewed = place.renew(traps, process, wish);
        let carrier = renewed.inspect_err(|_| place.counter = counted)?;
        if counted != 0 && carrier.is_some() && counted != wish.counter {
            place.site.marks().miss_counted(counted);
        }
        leave(carrier);
    }
    place.armed = place.armed.saturating_add(1);
    Ok(())
}

/// Counts one armed user less. Returns the breakpoint if the place needs it no more.
pub(super) fn disarm(places: &mut [Place], address: u64) -> Option<Carrier<At>> {
    let place = places.get_mut(find(places, address)?)?;
    place.armed = place.armed.saturating_sub(1);
    place.carrier.take_if(|_| place.armed == 0)
}
