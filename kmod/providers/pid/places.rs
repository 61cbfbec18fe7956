// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The processes that there are probes of, and their places.
//!
//! They change under one lock. A breakpoint that is hit reads its [`Site`] without a lock: a site is made whole before it is shared,
//! and changes only by the probes that are put there and taken away. It fires all of its probes; one without ECBs does nothing.

mod armed;
mod fired;
mod gone;
mod listeners;
mod site;

use super::usdt::Mark;
use crate::framework::process::{ConsumerId, Order, Ordered};
use crate::framework::quota::{Charge, Debtor, Payer};
use crate::framework::{Batch, ProbeRef, Refusal};
use crate::sys::breakpoint::{Carrier, Traps};
use crate::sys::clock;
use crate::sys::process::Process;
use crate::sys::task;
use core::fmt::Write;
use core::ops::Range;
use dtrace_engine::mem::sort::sort;
use dtrace_uapi::limits::PROVNAMELEN;
use dtrace_uapi::process::{PROVIDER, USDT};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;
use site::{At, Site};

/// Most probes of one process.
const PROBES_MAX: usize = 1_000_000;
/// How many probes are made between two looks at which processes are over, at least; those of one process count as [`LEAST`] or more.
const MADE: usize = 8_192;
const LEAST: usize = 128;
/// The time between two looks in nanoseconds, at least: who has records of a process that has ended reads them meanwhile, and then its probes still
/// have names.
const PAUSE: u64 = 2_000_000_000;

/// An instruction, and its breakpoint.
struct Place {
    site: Arc<Site>,
    /// How many probes it has.
    probes: u32,
    /// How many of its probes are armed.
    armed: u32,
    carrier: Option<Carrier<At>>,
    /// Whether the breakpoint counts in the semaphore.
    counts: bool,
    /// Whether it is kept from uprobes.
    is_kept: bool,
    /// Who owes something if it cannot be taken away: a user, where nobody else needs it.
    debtor: Option<Debtor>,
}

impl Place {
    /// One that nothing is at.
    fn new(site: Site) -> Result<Self> {
        Ok(Self {
            site: Arc::new(site, GFP_KERNEL)?,
            probes: 0,
            armed: 0,
            carrier: None,
            counts: false,
            is_kept: false,
            debtor: None,
        })
    }
}

/// A probe.
struct Made {
    probe: ProbeRef,
    /// Which of its process' probes it is, of all that there ever were.
    index: u32,
    /// Who has asked for it.
    askers: KVVec<ConsumerId>,
    kind: u32,
    /// Of a USDT probe: its beginning is the registration that it goes with.
    function: Range<u64>,
    /// The addresses of its places.
    places: KVVec<u64>,
    /// Whether its places count it.
    is_armed: bool,
}

impl Made {
    /// Whether it goes with a registration of its process.
    fn is_of(&self, number: u32) -> bool {
        self.kind == USDT && self.function.start == u64::from(number)
    }

    /// Whether users alone have asked for it.
    fn is_users(&self, shares: &[Share]) -> bool {
        let all = |share: &&Share| !share.charge.is_users();
        let mut others = shares.iter().filter(all);
        !others.any(|share| self.askers.contains(&share.consumer))
    }

    /// Whether nobody has asked for it any more, and it has not been retired yet.
    fn is_unwanted(&self) -> bool {
        self.askers.is_empty() && self.probe.is_live()
    }

    /// Takes it from its places. Who has seen it there is about to fire it, and ends within a grace period of RCU.
    fn leave(&self, places: &[Place]) {
        for address in &self.places {
            let place = find(places, *address).and_then(|at| places.get(at));
            if let Some(place) = place {
                place.site.remove(self.kind);
            }
        }
    }

    /// Its places have one probe less.
    fn release(&self, places: &mut [Place]) {
        for address in &self.places {
            let at = find(places, *address);
            if let Some(place) = at.and_then(|at| places.get_mut(at)) {
                place.probes = place.probes.saturating_sub(1);
            }
        }
    }
}

/// A process that there are probes of, or that somebody listens in.
struct Watched {
    /// What its probes are called by; 0 where it has none: whoever listens may know it by another number.
    number: u32,
    process: Process,
    /// Who has asked for any.
    shares: KVVec<Share>,
    /// In the order of their addresses.
    places: KVVec<Place>,
    /// In the order of their indices. A probe's cookie says which it is.
    probes: KVVec<Made>,
    /// The next one's index.
    next: u32,
    /// Whether there are probes that nobody has asked for any more, and how many were looked at for that.
    has_unwanted: bool,
    swept: usize,
    /// Whether the process was over at the last look.
    was_over: bool,
    /// Whether it has breakpoints that are about to be set.
    is_fresh: bool,
}

/// What a consumer has of a process' probes.
struct Share {
    consumer: ConsumerId,
    charge: Charge,
}

/// The place at an address, among places in the order of theirs.
fn find(places: &[Place], address: u64) -> Option<usize> {
    places
        .binary_search_by_key(&address, |place| place.site.address)
        .ok()
}

impl Watched {
    /// One without probes.
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

    /// Gives a consumer more; there is room for it.
    fn share(&mut self, consumer: ConsumerId, charge: Charge) {
        match self.shares.iter_mut().find(|s| s.consumer == consumer) {
            Some(share) => share.charge.merge(charge),
            None => {
                let share = Share { consumer, charge };
                let _ = self.shares.push_within_capacity(share);
            }
        }
    }

    /// A consumer has gone, or all have.
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

    /// Consumers that pay as this one does have nothing of it any more.
    fn spare(&mut self, payer: &Payer) {
        while let Some(share) = self.shares.iter().find(|s| s.charge.is_of(payer)) {
            let consumer = share.consumer;
            self.forget(|other| other == consumer);
        }
    }

    /// The next probe that nobody has asked for any more, once.
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

    /// Forgets the probes that have been retired, and the places that have none left.
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

    /// Forgets places that nothing is at.
    fn tidy(&mut self) {
        let places = &mut self.places;
        places.retain(|place| place.probes > 0 || place.armed > 0);
    }

    /// Where among the probes one of this index is.
    fn position(&self, index: u32) -> Option<usize> {
        self.probes
            .binary_search_by_key(&index, |made| made.index)
            .ok()
    }
}

/// All of them.
pub struct Processes {
    all: KVVec<Watched>,
    traps: Traps,
    /// When it was last looked at which processes are over, and how many probes were made since.
    looked: u64,
    made: usize,
}

impl Processes {
    /// None.
    pub const fn new(traps: Traps) -> Self {
        Self {
            all: KVVec::new(),
            traps,
            looked: 0,
            made: 0,
        }
    }

    /// Abandons what there is of another process that had the number of this one; where who orders has no room left, what he and others of his
    /// user have of processes that are over.
    pub fn expect(&mut self, order: &Order) {
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

    /// From time to time: abandons what there is of processes that were over at the last look.
    pub fn tidy(&mut self) {
        let now = clock::monotonic();
        if self.made < MADE || now.saturating_sub(self.looked) < PAUSE {
            return;
        }
        self.made = 0;
        self.looked = now;
        for watched in &mut self.all {
            if watched.was_over {
                watched.forget(|_| true);
            } else {
                watched.was_over = watched.process.is_over();
            }
        }
    }

    /// Makes what is ordered, all or nothing.
    pub fn make(&mut self, mut order: Order, batch: &mut Batch<'_>) -> Result<(), Refusal> {
        let mut fresh = self.places(&mut order)?;
        let there = self.ordered(&order);
        if there.is_some_and(|watched| !watched.process.is(&order.process)) {
            let why = "a process of another pid namespace has that number and probes";
            return Err(Refusal::new(EBUSY, why));
        }
        let mut more = More::new(&order)?;
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
                if let Some(watched) = there {
                    more.join(watched, probe, order.consumer)?;
                }
                continue;
            }
            let made = more.probes.len();
            let index = u32::try_from(made).ok().and_then(|n| begin.checked_add(n));
            let index = index.filter(|_| count.saturating_add(made) < PROBES_MAX);
            let Some(index) = index else {
                return Err(Refusal::new(ENOSPC, "too many probes in one process"));
            };
            let places = addresses(&order, &ordered)?;
            more.charge.add(places.len())?;
            let mut loads = false;
            if let Some(usdt) = &ordered.usdt {
                let there = there.map_or(&[][..], |watched| &watched.places);
                let mark = |n| Mark::new(usdt, index, n);
                mark_all(mark, begin, &places, [&fresh, there])?;
                loads = usdt.args.iter().any(|arg| arg.is_loaded != 0);
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
        self.commit(order, &mut fresh, more)?;
        Ok(())
    }

    fn find(&self, number: u32) -> Option<&Watched> {
        self.all.iter().find(|watched| watched.number == number)
    }

    /// The process that an order is for, or another one of that number.
    fn ordered(&self, order: &Order) -> Option<&Watched> {
        let at = self.position(order)?;
        self.all.get(at)
    }

    /// Where among all that is.
    fn position(&self, order: &Order) -> Option<usize> {
        let is_numbered = |watched: &Watched| watched.number == order.pid;
        let is_nameless =
            |watched: &Watched| watched.number == 0 && watched.process.is(&order.process);
        let at = self.all.iter().position(is_numbered);
        at.or_else(|| self.all.iter().position(is_nameless))
    }

    /// Places for those of an order's instructions that have none yet, in the order of their addresses.
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
            charge,
        } = more;
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
        // From here on nothing can fail: there is room.
        watched.number = order.pid;
        watched.share(order.consumer, charge);
        for at in joined {
            if let Some(made) = watched.probes.get_mut(at) {
                let _ = made.askers.push_within_capacity(order.consumer);
            }
        }
        for place in fresh.drain_all() {
            let _ = watched.places.push_within_capacity(place);
        }
        in_order(&mut watched.places);
        for made in probes.drain_all() {
            for address in &made.places {
                let at = find(&watched.places, *address);
                if let Some(place) = at.and_then(|at| watched.places.get_mut(at)) {
                    place.probes = place.probes.saturating_add(1);
                    place.site.add(&made);
                }
            }
            watched.next = made.index.saturating_add(1);
            let _ = watched.probes.push_within_capacity(made);
        }
        Ok(())
    }

    /// A consumer has gone.
    pub fn forget(&mut self, consumer: ConsumerId) {
        for watched in &mut self.all {
            watched.forget(|other| other == consumer);
        }
    }

    /// The next of the probes that nobody has asked for any more, once. What is left of those that were retired since is forgotten.
    pub fn abandoned(&mut self) -> Option<ProbeRef> {
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
        None
    }

    /// Forgets the processes that nobody has anything of, with one wait for all of their breakpoints.
    fn sweep(&mut self) {
        let mut carriers = KVVec::new();
        for watched in self.all.iter_mut().filter(|watched| watched.is_unused()) {
            let places = watched.places.iter_mut();
            for carrier in places.filter_map(|place| place.carrier.take()) {
                // One that finds no room is removed at once, by itself.
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

    /// The type of an argument of a program's own probe, as C text.
    pub fn type_of(&mut self, probe: ProbeRef, n: usize) -> Option<&'static [u8]> {
        let (watched, at) = of(&mut self.all, probe)?;
        let made = watched.probes.get(at).filter(|made| made.kind == USDT)?;
        let at = find(&watched.places, *made.places.first()?)?;
        watched.places.get(at)?.site.mark()?.type_of(n)
    }
}

/// The process of a probe, and which of its probes it is.
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
    /// Which of those that are there are asked for by one consumer more.
    joined: KVVec<usize>,
    charge: Charge,
}

impl More {
    fn new(order: &Order) -> Result<Self, Refusal> {
        Ok(Self {
            probes: KVVec::with_capacity(order.len(), GFP_KERNEL)?,
            joined: KVVec::new(),
            charge: order.payer.charge(0)?,
        })
    }

    /// Asks for a probe that is there, once.
    fn join(
        &mut self,
        watched: &Watched,
        probe: ProbeRef,
        consumer: ConsumerId,
    ) -> Result<(), Refusal> {
        let at = watched.position(probe.cookie() as u32);
        let made = at.and_then(|at| Some((at, watched.probes.get(at)?)));
        let Some((at, made)) = made.filter(|(_, made)| made.probe.id() == probe.id()) else {
            // One of this order.
            return Ok(());
        };
        if !made.askers.contains(&consumer) && !self.joined.contains(&at) {
            self.charge.add(made.places.len())?;
            self.joined.push(at, GFP_KERNEL)?;
        }
        Ok(())
    }
}

/// Tells a USDT probe's places what is known of it there. Those that one had which has gone may be another's, with the same marks; `begin` is
/// the index from which on probes are new.
fn mark_all(
    mark: impl Fn(usize) -> Result<Mark>,
    begin: u32,
    addresses: &[u64],
    all: [&[Place]; 2],
) -> Result<(), Refusal> {
    for (n, address) in addresses.iter().enumerate() {
        let find_in = |places: &&[Place]| find(places, *address);
        let place = all.iter().find_map(|places| places.get(find_in(places)?));
        let site = &place.ok_or(EINVAL)?.site;
        let mark = KBox::new(mark(n)?, GFP_KERNEL)?;
        let is_free = !site.has(USDT);
        let is_known = site.mark().map(|known| known.is_of(&mark, begin, is_free));
        if !is_known.unwrap_or_else(|| site.set_mark(mark)) {
            return Err(Refusal::new(EEXIST, "two probes are at one instruction"));
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

/// Puts places into the order of their addresses, each once.
fn in_order(places: &mut KVVec<Place>) {
    sort(places, |a, b| a.site.address < b.site.address);
    let mut last = None;
    places.retain(|place| last.replace(place.site.address) != Some(place.site.address));
}

/// The name of a process' provider.
struct Name {
    bytes: [u8; PROVNAMELEN],
    len: usize,
}

impl Name {
    /// With what the program calls it, or as that of functions.
    fn new(own: Option<&[u8]>, pid: u32) -> Self {
        let mut this = Self {
            bytes: [0; PROVNAMELEN],
            len: 0,
        };
        let own = own.and_then(|own| core::str::from_utf8(own).ok());
        // It has room for any name that a program may give, and for any number.
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
