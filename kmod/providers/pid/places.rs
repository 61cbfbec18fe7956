// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The processes that have probes, and their places.
//!
//! All changes are made under one lock. A breakpoint that is hit reads its [`Site`] without a lock:
//! a site is complete before it is shared, and later changes only when probes are added and
//! removed. It fires all of its probes; a probe without ECBs does nothing.

mod armed;
mod fired;
mod gone;
mod listeners;
mod marks;
mod site;

use super::usdt::Mark;
use crate::framework::process::{ConsumerId, Order, Ordered};
use crate::framework::quota::{Charge, Debtor, Payer};
use crate::framework::{miss, Batch, ProbeRef, Refusal};
use crate::sys::breakpoint::{Carrier, Traps};
use crate::sys::clock;
use crate::sys::process::Process;
use crate::sys::task;
use core::cell::Cell;
use core::fmt::Write;
use core::ops::Range;
use dtrace_engine::mem::sort::sort;
use dtrace_uapi::limits::PROVNAMELEN;
use dtrace_uapi::process::{PROVIDER, USDT};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;
use site::{At, Site};

/// The most probes of one process.
const PROBES_MAX: usize = 1_000_000;
/// At least this many probes are made between two checks for ended processes. An order counts as at
/// least [`LEAST`] probes.
const MADE: usize = 8_192;
const LEAST: usize = 128;
/// At least this time passes between two checks, in nanoseconds. Meanwhile consumers can read the
/// records of a process that has ended, while its probes still have names.
const PAUSE: u64 = 2_000_000_000;

/// A place: an instruction with its breakpoint.
struct Place {
    site: Arc<Site>,
    /// The kinds, as bits, of the probes that an order makes here.
    claimed: Cell<u8>,
    /// How many probes it makes here of kinds that there is one of already.
    further: Cell<usize>,
    /// The probe that it has made here last, counted from 1.
    claimer: Cell<usize>,
    /// The number of its probes.
    probes: u32,
    /// How many of its probes and listeners are armed.
    armed: u32,
    carrier: Option<Carrier<At>>,
    /// The semaphore of the program in which the breakpoint counts: its offset in the file; 0 if
    /// there is none.
    counter: u64,
    /// Whether the breakpoint is kept from uprobes (INV-43).
    is_kept: bool,
    /// The member who pays if the breakpoint cannot be taken away; `None` if others need it as
    /// well.
    debtor: Option<Debtor>,
}

impl Place {
    /// Creates a place without probes.
    fn new(site: Site) -> Result<Self> {
        Ok(Self {
            site: Arc::new(site, GFP_KERNEL)?,
            claimed: Cell::new(0),
            further: Cell::new(0),
            claimer: Cell::new(0),
            probes: 0,
            armed: 0,
            carrier: None,
            counter: 0,
            is_kept: false,
            debtor: None,
        })
    }

    /// Forgets what earlier orders have claimed here.
    fn unclaim(&self) {
        self.claimed.set(0);
        self.further.set(0);
        self.claimer.set(0);
        self.site.marks().unclaim();
    }
}

/// A probe.
struct Made {
    probe: ProbeRef,
    /// Its index among all probes that its process has ever had.
    index: u32,
    /// The consumers that have requested it.
    askers: KVVec<ConsumerId>,
    kind: u32,
    /// The addresses of its function. For a USDT probe the start is the number of its registration
    /// instead.
    function: Range<u64>,
    /// The addresses of its places.
    places: KVVec<u64>,
    /// Whether its places count it as armed.
    is_armed: bool,
}

impl Made {
    /// Whether it came with this registration of its process.
    fn is_of(&self, number: u32) -> bool {
        self.kind == USDT && self.function.start == u64::from(number)
    }

    /// Whether only members have requested it.
    fn is_users(&self, shares: &[Share]) -> bool {
        let all = |share: &&Share| !share.charge.is_users();
        let mut others = shares.iter().filter(all);
        !others.any(|share| self.askers.contains(&share.consumer))
    }

    /// Whether an order says the same of a probe of this name.
    fn is_like(&self, order: &Order, ordered: &Ordered<'_>, places: &[Place]) -> Result<bool> {
        let (start, size) = ordered.function;
        let is_same = self.kind == ordered.kind
            && self.function == (start..start.saturating_add(size))
            && self.places[..] == addresses(order, ordered)?[..];
        let Some(usdt) = ordered.usdt.as_ref().filter(|_| is_same) else {
            return Ok(is_same);
        };
        for (n, address) in self.places.iter().enumerate() {
            let place = find(places, *address).and_then(|at| places.get(at));
            let mark = Mark::new(usdt, n)?;
            if !place.is_some_and(|place| place.site.marks().has(self.probe, &mark)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether no consumer requests it any more although it is not retired yet.
    fn is_unwanted(&self) -> bool {
        self.askers.is_empty() && self.probe.is_live()
    }

    /// Removes it from its places. A CPU that has found it there fires it within an RCU read-side
    /// critical section, so it is unused after a grace period.
    fn leave(&self, places: &[Place]) {
        for address in &self.places {
            let place = find(places, *address).and_then(|at| places.get(at));
            if let Some(place) = place {
                place.site.remove(self.kind, self.probe);
            }
        }
    }

    /// Counts it off at its places.
    fn release(&self, places: &mut [Place]) {
        for address in &self.places {
            let at = find(places, *address);
            if let Some(place) = at.and_then(|at| places.get_mut(at)) {
                place.probes = place.probes.saturating_sub(1);
            }
        }
    }
}

/// A process that has probes or listeners.
struct Watched {
    /// The number in the names of its probes; 0 if it has none. A listener may know the process by
    /// another number.
    number: u32,
    process: Process,
    /// The consumers that have requested probes.
    shares: KVVec<Share>,
    /// Sorted by address.
    places: KVVec<Place>,
    /// Sorted by index. The cookie of a probe holds its index.
    probes: KVVec<Made>,
    /// The index of the next probe.
    next: u32,
    /// Whether there may be probes that no consumer requests any more, and how many probes have
    /// been checked for that.
    has_unwanted: bool,
    swept: usize,
    /// Whether the process had ended at the last check.
    was_over: bool,
    /// Whether it has breakpoints that are about to be set.
    is_fresh: bool,
}

/// A consumer's part of a process' probes.
struct Share {
    consumer: ConsumerId,
    charge: Charge,
}

/// The index of the place at an address, in places sorted by address.
fn find(places: &[Place], address: u64) -> Option<usize> {
    places
        .binary_search_by_key(&address, |place| place.site.address)
        .ok()
}

impl Watched {
    /// Creates a process without probes.
    const fn new(number: u32, process: Process) -> Self {
        Self {
            number,
            process,
            shares: KVVec::new(),
            places: KVVec::new(),
            probes: KVVec::new(),
            next: 0,
            has_unwanted: false,
            swept: 0,
            was_over: false,
            is_fresh: false,
        }
    }

    /// Adds to a consumer's share. The caller has reserved room for one more share.
    fn share(&mut self, consumer: ConsumerId, charge: Charge) {
        match self.shares.iter_mut().find(|s| s.consumer == consumer) {
            Some(share) => share.charge.merge(charge),
            None => {
                let share = Share { consumer, charge };
                let _ = self.shares.push_within_capacity(share);
            }
        }
    }

    /// Removes these consumers from the process and its probes.
    fn forget(&mut self, whose: impl Fn(ConsumerId) -> bool) {
        if !self.shares.iter().any(|share| whose(share.consumer)) {
            return;
        }
        self.shares.retain(|share| !whose(share.consumer));
        for made in &mut self.probes {
            made.askers.retain(|asker| !whose(*asker));
        }
        self.has_unwanted = true;
        self.swept = 0;
    }

    /// Removes the consumers that share an account with this payer.
    fn spare(&mut self, payer: &Payer) {
        while let Some(share) = self.shares.iter().find(|s| s.charge.is_of(payer)) {
            let consumer = share.consumer;
            self.forget(|other| other == consumer);
        }
    }

    /// Returns the next probe that no consumer requests any more, each once, after removing it from
    /// its places.
    fn unwanted(&mut self) -> Option<ProbeRef> {
        while let Some(made) = self.probes.get(self.swept) {
            self.swept = self.swept.saturating_add(1);
            if made.is_unwanted() {
                made.leave(&self.places);
                return Some(made.probe);
            }
        }
        None
    }

    /// Removes retired probes, and places without probes.
    fn clean(&mut self) {
        let places = &mut self.places;
        self.probes.retain(|made| {
            let is_live = made.probe.is_live();
            if !is_live {
                made.release(places);
            }
            is_live
        });
        self.tidy();
        self.has_unwanted = false;
        self.swept = 0;
    }

    /// Removes places without probes and listeners.
    fn tidy(&mut self) {
        let places = &mut self.places;
        places.retain(|place| place.probes > 0 || place.armed > 0);
    }

    /// The position of the probe with this index.
    fn position(&self, index: u32) -> Option<usize> {
        self.probes
            .binary_search_by_key(&index, |made| made.index)
            .ok()
    }
}

/// All processes with probes or listeners.
pub struct Processes {
    all: KVVec<Watched>,
    traps: Traps,
    /// The time of the last check for ended processes, and the number of probes made since.
    looked: u64,
    made: usize,
    /// Whether there may be something to remove: [`abandoned`](Self::abandoned) is called for each
    /// description that is matched.
    has_changed: bool,
}

impl Processes {
    /// Creates an empty list.
    pub const fn new(traps: Traps) -> Self {
        Self {
            all: KVVec::new(),
            traps,
            looked: 0,
            has_changed: false,
            made: 0,
        }
    }

    /// Removes all consumers from an ended process whose number this order's process has. If the
    /// payer has too little room for the order, also removes the consumers that share the payer's
    /// account from all ended processes.
    pub fn expect(&mut self, order: &Order) {
        self.has_changed = true;
        self.made = self.made.saturating_add(order.len().max(LEAST));
        if order.payer.room() < order.sites.len() {
            let all = self.all.iter_mut().filter(|w| w.process.is_over());
            all.for_each(|watched| watched.spare(&order.payer));
        }
        let old = |watched: &&mut Watched| {
            watched.number == order.pid
                && !watched.process.is(&order.process)
                && watched.process.is_over()
        };
        if let Some(old) = self.all.iter_mut().find(old) {
            old.forget(|_| true);
        }
    }

    /// Removes all consumers from processes that had ended at the last check. Does so only after
    /// [`MADE`] probes and [`PAUSE`] since then.
    pub fn tidy(&mut self) {
        // Nothing tells that a process has ended that only listeners have.
        let is_left = |w: &Watched| w.shares.is_empty() && w.process.is_over();
        self.has_changed |= self.all.iter().any(is_left);
        let now = clock::monotonic();
        if self.made < MADE || now.saturating_sub(self.looked) < PAUSE {
            return;
        }
        self.made = 0;
        self.looked = now;
        self.has_changed = true;
        for watched in &mut self.all {
            if watched.was_over {
                watched.forget(|_| true);
            } else {
                watched.was_over = watched.process.is_over();
            }
        }
    }

    /// Makes the probes of an order, all or none.
    pub fn make(&mut self, mut order: Order, batch: &mut Batch<'_>) -> Result<(), Refusal> {
        self.has_changed = true;
        let mut fresh = self.places(&mut order)?;
        let there = self.ordered(&order);
        if there.is_some_and(|watched| !watched.process.is(&order.process)) {
            let why = "a process of another pid namespace has that number and probes";
            return Err(Refusal::new(EBUSY, why));
        }
        let old = there.map_or(&[][..], |watched| &watched.places);
        let all = [fresh.as_slice(), old];
        let sites = order.sites.iter();
        for place in sites.filter_map(|site| place_at(all, site.address)) {
            place.unclaim();
        }
        let more = Self::more(&order, there, &fresh, batch)?;
        self.commit(order, &mut fresh, more)?;
        Ok(())
    }

    /// Makes the probes of an order that do not exist yet. `there` is the order's process, if it
    /// has probes or listeners; `fresh` are the places that are to be added to it.
    fn more(
        order: &Order,
        there: Option<&Watched>,
        fresh: &[Place],
        batch: &mut Batch<'_>,
    ) -> Result<More, Refusal> {
        let old = there.map_or(&[][..], |watched| &watched.places);
        let mut more = More::new(order)?;
        let is_users = order.payer.user().is_some();
        let begin = there.map_or(0, |watched| watched.next);
        let count = there.map_or(0, |watched| watched.probes.len());
        for n in 0..order.len() {
            if task::is_killed() {
                return Err(EINTR.into());
            }
            let ordered = order.probe(n).ok_or(EINVAL)?;
            let [module, func, own] = ordered.names;
            let name = Name::new(ordered.usdt.map(|usdt| usdt.provider), order.pid);
            if let Some(probe) = batch.find_of(name.text(), module, func, own) {
                let joins = match there {
                    Some(watched) => more.join(watched, probe, order, &ordered)?,
                    None => true,
                };
                if joins {
                    continue;
                }
            }
            let made = more.probes.len();
            let index = u32::try_from(made).ok().and_then(|n| begin.checked_add(n));
            let index = index.filter(|_| count.saturating_add(made) < PROBES_MAX);
            let Some(index) = index else {
                return Err(Refusal::new(ENOSPC, "too many probes in one process"));
            };
            let places = addresses(order, &ordered)?;
            more.charge.add(places.len())?;
            let claimer = made.saturating_add(1);
            let mut loads = false;
            if let Some(usdt) = &ordered.usdt {
                let claimer = u32::try_from(claimer).map_err(|_| EINVAL)?;
                for (n, address) in places.iter().enumerate() {
                    let place = place_at([fresh, old], *address).ok_or(EINVAL)?;
                    let mark = Mark::new(usdt, n)?;
                    place.site.marks().claim(claimer, mark, is_users)?;
                }
                loads = usdt.args.iter().any(|arg| arg.is_loaded != 0);
            } else {
                claim(claimer, ordered.kind, &places, [fresh, old], is_users)?;
            }
            let cookie = u64::from(order.pid) << 32 | u64::from(index);
            let created = batch.create_of(name.text(), module, func, own, cookie);
            let probe = created.map_err(|error| match error {
                error if error == EINVAL => {
                    let why = "a probe's name has a character that no probe's may have";
                    Refusal::new(EINVAL, why)
                }
                error => error.into(),
            })?;
            if loads {
                probe.set_args_in_memory();
            }
            let (start, size) = ordered.function;
            let made = Made {
                probe,
                index,
                askers: KVVec::from_elem(order.consumer, 1, GFP_KERNEL)?,
                kind: ordered.kind,
                function: start..start.saturating_add(size),
                places,
                is_armed: false,
            };
            more.probes.push(made, GFP_KERNEL)?;
        }
        Ok(more)
    }

    fn find(&self, number: u32) -> Option<&Watched> {
        self.all.iter().find(|watched| watched.number == number)
    }

    /// The entry for an order's process, or that of another process with the same number.
    fn ordered(&self, order: &Order) -> Option<&Watched> {
        let at = self.position(order)?;
        self.all.get(at)
    }

    /// The index of that entry.
    fn position(&self, order: &Order) -> Option<usize> {
        let is_numbered = |watched: &Watched| watched.number == order.pid;
        let is_nameless =
            |watched: &Watched| watched.number == 0 && watched.process.is(&order.process);
        let at = self.all.iter().position(is_numbered);
        at.or_else(|| self.all.iter().position(is_nameless))
    }

    /// Creates places for those instructions of an order that have none yet, sorted by address.
    fn places(&self, order: &mut Order) -> Result<KVVec<Place>> {
        let there = self.ordered(order).map(|watched| watched.places.as_slice());
        let there = there.unwrap_or_default();
        let mut fresh = KVVec::with_capacity(order.sites.len(), GFP_KERNEL)?;
        for site in &mut order.sites {
            let (false, Some((text, instruction))) =
                (find(there, site.address).is_some(), site.take())
            else {
                continue;
            };
            let site = Site::new(site.address, text, instruction);
            fresh.push(Place::new(site)?, GFP_KERNEL)?;
        }
        in_order(&mut fresh);
        Ok(fresh)
    }

    /// Takes over what was made.
    fn commit(&mut self, order: Order, fresh: &mut KVVec<Place>, more: More) -> Result {
        let More {
            mut probes,
            joined,
            displaced,
            charge,
        } = more;
        let is_users = order.payer.user().is_some();
        let at = match self.position(&order) {
            Some(at) => at,
            None => {
                let watched = Watched::new(order.pid, order.process);
                self.all.push(watched, GFP_KERNEL)?;
                self.all.len().saturating_sub(1)
            }
        };
        let watched = self.all.get_mut(at).ok_or(ENODEV)?;
        watched.shares.reserve(1, GFP_KERNEL)?;
        watched.places.reserve(fresh.len(), GFP_KERNEL)?;
        watched.probes.reserve(probes.len(), GFP_KERNEL)?;
        for at in &joined {
            let made = watched.probes.get_mut(*at).ok_or(ENODEV)?;
            made.askers.reserve(1, GFP_KERNEL)?;
        }
        // Nothing can fail from here on, because all room is reserved.
        watched.number = order.pid;
        watched.share(order.consumer, charge);
        for at in joined {
            if let Some(made) = watched.probes.get_mut(at) {
                let _ = made.askers.push_within_capacity(order.consumer);
            }
        }
        for at in displaced {
            if let Some(made) = watched.probes.get_mut(at) {
                miss(made.probe);
                made.askers.clear();
                watched.has_unwanted = true;
                watched.swept = 0;
            }
        }
        for place in fresh.drain_all() {
            let _ = watched.places.push_within_capacity(place);
        }
        in_order(&mut watched.places);
        for (made, claimer) in probes.drain_all().zip(1..) {
            for address in &made.places {
                let at = find(&watched.places, *address);
                if let Some(place) = at.and_then(|at| watched.places.get_mut(at)) {
                    place.probes = place.probes.saturating_add(1);
                    place.site.add(&made, claimer, is_users);
                }
            }
            watched.next = made.index.saturating_add(1);
            let _ = watched.probes.push_within_capacity(made);
        }
        Ok(())
    }

    /// Removes a consumer that has gone.
    pub fn forget(&mut self, consumer: ConsumerId) {
        self.has_changed = true;
        for watched in &mut self.all {
            watched.forget(|other| other == consumer);
        }
    }

    /// Returns the next probe that no consumer requests any more, each once. If there is none,
    /// removes what is left of retired probes.
    pub fn abandoned(&mut self) -> Option<ProbeRef> {
        if !self.has_changed {
            return None;
        }
        for watched in &mut self.all {
            let is_retired = |watched: &Watched| !watched.probes.iter().any(Made::is_unwanted);
            match watched.has_unwanted.then(|| watched.unwanted()) {
                Some(Some(probe)) => return Some(probe),
                Some(None) if is_retired(watched) => watched.clean(),
                _ => {}
            }
            if watched.shares.is_empty() && !watched.has_unwanted {
                watched.number = 0;
            }
        }
        self.sweep();
        self.has_changed = false;
        None
    }

    /// Removes the processes that nobody uses, with one wait for all of their breakpoints.
    fn sweep(&mut self) {
        let mut carriers = KVVec::new();
        for watched in self.all.iter_mut().filter(|watched| watched.is_unused()) {
            let places = watched.places.iter_mut();
            for carrier in places.filter_map(|place| place.carrier.take()) {
                // If there is no memory for it here, it is removed alone, when it is dropped.
                let _ = carriers.push(carrier, GFP_KERNEL);
            }
        }
        Carrier::remove(carriers);
        self.all.retain(|watched| !watched.is_unused());
    }

    /// The process of a probe.
    pub fn process_of(&mut self, probe: ProbeRef) -> Option<&Process> {
        of(&mut self.all, probe).map(|(watched, _)| &watched.process)
    }

    /// The type of an argument of a USDT probe, as C text.
    pub fn type_of(&mut self, probe: ProbeRef, n: usize) -> Option<&'static [u8]> {
        let (watched, at) = of(&mut self.all, probe)?;
        let made = watched.probes.get(at).filter(|made| made.kind == USDT)?;
        let at = find(&watched.places, *made.places.first()?)?;
        let marks = watched.places.get(at)?.site.marks();
        marks.of(probe)?.type_of(n)
    }
}

/// The process of a probe, and the position of the probe in it.
fn of(all: &mut [Watched], probe: ProbeRef) -> Option<(&mut Watched, usize)> {
    let cookie = probe.cookie();
    let number = (cookie >> 32) as u32;
    let watched = all.iter_mut().find(|w| w.number == number)?;
    let at = watched.position(cookie as u32)?;
    Some((watched, at))
}

/// What an order adds to a process.
struct More {
    probes: KVVec<Made>,
    /// The positions of existing probes that this consumer requests as well.
    joined: KVVec<usize>,
    /// The positions of members' probes whose names are taken for others.
    displaced: KVVec<usize>,
    charge: Charge,
}

impl More {
    fn new(order: &Order) -> Result<Self, Refusal> {
        Ok(Self {
            probes: KVVec::with_capacity(order.len(), GFP_KERNEL)?,
            joined: KVVec::new(),
            displaced: KVVec::new(),
            charge: order.payer.charge(0)?,
        })
    }

    /// Adds the consumer to an existing probe, once. Returns `false` if the probe is none that the
    /// consumer means: members alone have requested it, and say of it what others do not.
    fn join(
        &mut self,
        watched: &Watched,
        probe: ProbeRef,
        order: &Order,
        ordered: &Ordered<'_>,
    ) -> Result<bool, Refusal> {
        let at = watched.position(probe.cookie() as u32);
        let made = at.and_then(|at| Some((at, watched.probes.get(at)?)));
        let Some((at, made)) = made.filter(|(_, made)| made.probe.id() == probe.id()) else {
            // The probe was made by this order.
            return Ok(true);
        };
        // The order may name a probe twice.
        if self.displaced.contains(&at) || self.joined.contains(&at) {
            return Ok(true);
        }
        let is_theirs = order.payer.user().is_none() && made.is_users(&watched.shares);
        if is_theirs && !made.is_like(order, ordered, &watched.places)? {
            self.displaced.push(at, GFP_KERNEL)?;
            return Ok(false);
        }
        if !made.askers.contains(&order.consumer) {
            self.charge.add(made.places.len())?;
            self.joined.push(at, GFP_KERNEL)?;
        }
        Ok(true)
    }
}

/// The place at an address.
fn place_at<'p>(all: [&'p [Place]; 2], address: u64) -> Option<&'p Place> {
    all.into_iter()
        .find_map(|places| places.get(find(places, address)?))
}

fn too_many() -> Refusal {
    Refusal::new(ENOSPC, "too many probes are at one instruction")
}

fn two_probes() -> Refusal {
    Refusal::new(EEXIST, "two probes are at one instruction")
}

/// Claims places for a new probe of a kind other than USDT, which is the `claimer`th of the order.
/// A site has room for one probe of each kind and for some further ones, members' and others'.
/// `ENOSPC`: a place has too many probes.
fn claim(
    claimer: usize,
    kind: u32,
    addresses: &[u64],
    all: [&[Place]; 2],
    is_users: bool,
) -> Result<(), Refusal> {
    let bit = 1u8.checked_shl(kind).ok_or(EINVAL)?;
    for address in addresses {
        let place = place_at(all, *address).ok_or(EINVAL)?;
        // A probe may have a place twice.
        if place.claimer.replace(claimer) == claimer {
            continue;
        }
        if !place.site.has(kind) && place.claimed.get() & bit == 0 {
            place.claimed.set(place.claimed.get() | bit);
            continue;
        }
        place.further.set(place.further.get().saturating_add(1));
        let n = place.further.get();
        if !place.site.make_room(kind, n, is_users)? {
            return Err(too_many());
        }
    }
    Ok(())
}

/// The addresses of a probe's places.
fn addresses(order: &Order, ordered: &Ordered<'_>) -> Result<KVVec<u64>> {
    let sites = order.sites.get(ordered.sites.clone()).ok_or(EINVAL)?;
    let mut list = KVVec::with_capacity(sites.len(), GFP_KERNEL)?;
    for site in sites {
        list.push(site.address, GFP_KERNEL)?;
    }
    Ok(list)
}

/// Sorts places by address and removes duplicates.
fn in_order(places: &mut KVVec<Place>) {
    sort(places, |a, b| a.site.address < b.site.address);
    let mut last = None;
    places.retain(|place| last.replace(place.site.address) != Some(place.site.address));
}

/// The name of the provider of a process' probes.
struct Name {
    bytes: [u8; PROVNAMELEN],
    len: usize,
}

impl Name {
    /// Makes it of the program's own provider name, or of `pid`, and the number of the process.
    fn new(own: Option<&[u8]>, pid: u32) -> Self {
        let mut this = Self {
            bytes: [0; PROVNAMELEN],
            len: 0,
        };
        let own = own.and_then(|own| core::str::from_utf8(own).ok());
        // There is room for any provider name that a program may have, and for any number.
        let _ = write!(this, "{}{pid}", own.unwrap_or(PROVIDER));
        this
    }

    fn text(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Write for Name {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        let end = self.len.saturating_add(s.len());
        let room = self.bytes.get_mut(self.len..end).ok_or(core::fmt::Error)?;
        room.copy_from_slice(s.as_bytes());
        self.len = end;
        Ok(())
    }
}
