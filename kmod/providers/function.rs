// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes at the two ends of kernel functions: the part that `fbt` and `syscall` share.
//!
//! A [`Site`] is a function with its two probes and the set of those that are armed. This set alone
//! decides which probes a call fires. While it is not empty, the ops calls us at the entry of the
//! function. It calls us at the return of those calls for which the entry has requested that.
//!
//! A function may have two sites, one for each [kind](Shape::kind) of call; a call fires the probes
//! of one site. Both sites share one ops, which ftrace calls while either site is armed, because
//! two of them at one function would cost more than both firings. A site's *place* is the
//! function's address with the kind in its lowest bit.
//!
//! A probe's cookie is its place, rotated left by one bit, with the end in the lowest bit. The
//! highest bit of the place is lost by that, but it is set in every kernel address, so `decode()`
//! sets it again.

use crate::framework::{any_reads_user, concern, unhooked, Batch, Concern, Failed, ProbeRef};
use crate::sys::ftrace::{Change, FtraceOps, Hooks, Wanted};
use crate::sys::functions::Validity;
use crate::sys::ipmap::{IpMap, Keyed};
use crate::sys::regs::Regs;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;

/// One of the two ends of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The first instruction.
    Entry,
    /// The return.
    Return,
}

impl End {
    const fn bit(self) -> u8 {
        match self {
            Self::Entry => ENTRY,
            Self::Return => RETURN,
        }
    }
}

const ENTRY: u8 = 1;
const RETURN: u8 = 2;

/// The second kind of site. It fits into the lowest bit because no function begins at an odd
/// address.
pub const OTHER: usize = 1;

/// What differs between the providers: how a call fires.
pub trait Shape: Send + Sync + 'static {
    /// The kind of the current call, 0 or [`OTHER`], which selects the site. Decided at the entry,
    /// for the return as well.
    #[inline]
    fn kind() -> usize {
        0
    }

    /// Fires the entry probe of a call of this kind.
    fn entry(kind: usize, probe: ProbeRef, caller: u64, regs: &Regs);

    /// Whether consumers that do not see the whole machine may have the probes.
    const HAS_USERS: bool = false;

    /// Whether entries may wait for memory of the program.
    const DEFERS: bool = false;

    /// Whether a firing of the entry probe would lack memory of the program.
    fn misses(_kind: usize, _probe: ProbeRef) -> bool {
        false
    }

    /// Brings the missing memory and fires the entry probe. May sleep.
    fn late(_kind: usize, _probe: ProbeRef, _caller: u64) {}

    /// Fires the return probe.
    fn leave(probe: ProbeRef, caller: u64, value: u64);
}

/// A function with its two probes.
pub struct Site {
    place: AtomicUsize,
    entry: ProbeRef,
    leave: ProbeRef,
    /// Whether returns of calls may be hooked.
    returns: bool,
    /// The set of armed ends. Read in probe context.
    armed: AtomicU8,
    /// The set that `armed` is about to become. Differs from `armed` only during a change.
    wanted: AtomicU8,
}

impl Site {
    /// Creates the probes `entry` and `return` of the function at `ip`, for calls of one kind.
    pub fn create(
        batch: &mut Batch<'_>,
        ip: usize,
        kind: usize,
        module: &[u8],
        func: &[u8],
    ) -> Result<Self> {
        let place = ip | kind;
        let entry = batch.create(module, func, b"entry", cookie(place, End::Entry))?;
        let leave = batch.create(module, func, b"return", cookie(place, End::Return))?;
        Ok(Self {
            place: AtomicUsize::new(place),
            entry,
            leave,
            returns: true,
            armed: AtomicU8::new(0),
            wanted: AtomicU8::new(0),
        })
    }

    /// Marks the function as one that never returns. Its calls are not hooked: its return probe can
    /// be enabled but does not fire.
    pub fn endless(self) -> Self {
        Self {
            returns: false,
            ..self
        }
    }

    /// The bit of this end in `armed`. It is 0 for the return of an endless function.
    fn bit(&self, end: End) -> u8 {
        match end {
            End::Return if !self.returns => 0,
            end => end.bit(),
        }
    }

    /// Whether this end is about to be armed.
    fn is_wanted(&self, end: End) -> bool {
        let new = self.wanted.load(Ordering::Relaxed) & !self.armed.load(Ordering::Relaxed);
        new & self.bit(end) != 0
    }

    /// The address of the function.
    fn address(&self) -> usize {
        self.ip() & !OTHER
    }

    /// The sets `armed` and `wanted`.
    fn state(&self) -> (u8, u8) {
        let armed = self.armed.load(Ordering::Relaxed);
        (armed, self.wanted.load(Ordering::Relaxed))
    }

    /// Both probes, the entry first.
    pub fn probes(&self) -> [ProbeRef; 2] {
        [self.entry, self.leave]
    }
}

/// A module that is loaded again has the same probes at other addresses.
impl Keyed for Site {
    #[inline]
    fn ip(&self) -> usize {
        self.place.load(Ordering::Relaxed)
    }

    fn key(&self) -> u64 {
        u64::from(self.entry.id()) << 32 | u64::from(self.leave.id())
    }

    fn move_to(&self, place: usize) {
        self.place.store(place, Ordering::Relaxed);
    }
}

fn cookie(place: usize, end: End) -> u64 {
    (place as u64) << 1 | u64::from(end == End::Return)
}

fn decode(cookie: u64) -> (usize, End) {
    let end = if cookie & 1 == 1 {
        End::Return
    } else {
        End::Entry
    };
    ((cookie >> 1 | 1 << 63) as usize, end)
}

/// The sites of a provider, which its ops calls.
struct SiteHooks<S> {
    map: IpMap<Site>,
    _shape: PhantomData<S>,
}

impl<S: Shape> SiteHooks<S> {
    /// The kind of the current call and the site for it, if that end of the site is armed.
    fn armed(&self, ip: usize, end: u8) -> Option<(usize, &Site)> {
        let kind = S::kind();
        let site = self.map.get(ip | kind)?;
        (site.armed.load(Ordering::Relaxed) & end != 0).then_some((kind, site))
    }
}

/// The return of a call, if it would fire for any consumer.
#[inline]
fn wanted(site: &Site, place: usize) -> Option<Wanted> {
    let of_users = match concern(site.leave) {
        Concern::Nobody => return None,
        Concern::Users => true,
        Concern::All => false,
    };
    Some(Wanted { place, of_users })
}

impl<S: Shape> Hooks for SiteHooks<S> {
    #[inline]
    fn entry(&self, ip: usize, caller: u64, regs: &Regs) -> Option<Wanted> {
        let kind = S::kind();
        let place = ip | kind;
        let site = self.map.get(place)?;
        let armed = site.armed.load(Ordering::Relaxed);
        if armed & ENTRY != 0 {
            S::entry(kind, site.entry, caller, regs);
        }
        match armed & RETURN {
            0 => None,
            _ => wanted(site, place),
        }
    }

    const HAS_USERS: bool = S::HAS_USERS;
    const DEFERS: bool = S::DEFERS;

    #[inline]
    fn defers(&self, ip: usize) -> bool {
        any_reads_user()
            && self
                .armed(ip, ENTRY)
                .is_some_and(|(kind, site)| S::misses(kind, site.entry))
    }

    fn deferred(&self, ip: usize) -> Option<Wanted> {
        let (kind, site) = self.armed(ip, RETURN)?;
        wanted(site, ip | kind)
    }

    fn unhooked(&self, place: usize) {
        if let Some(site) = self.map.get(place) {
            unhooked(site.leave);
        }
    }

    fn detour(&self, ip: usize, caller: u64) {
        // A probe that was disabled since the function was sent here does not fire. The site itself
        // stays in memory.
        if let Some((kind, site)) = self.armed(ip, ENTRY) {
            S::late(kind, site.entry, caller);
        }
    }

    #[inline]
    fn leave(&self, place: usize, caller: u64, value: u64, _first: u64) {
        if let Some(site) = self.map.get(place) {
            if site.armed.load(Ordering::Relaxed) & RETURN != 0 {
                S::leave(site.leave, caller, value);
            }
        }
    }
}

/// Probes that fire inside those of another provider at the same function.
pub trait Inside: Send + Sync {
    /// Registers the ops with ftrace, because the order of registration decides which one is
    /// inside.
    fn prepare(&self) -> Result;
}

/// The sites of a provider and the ops that hooks them.
pub struct FunctionProbes<S: Shape> {
    ops: Pin<KBox<FtraceOps<SiteHooks<S>>>>,
    inside: Option<Arc<dyn Inside>>,
}

impl<S: Shape> Inside for FunctionProbes<S> {
    fn prepare(&self) -> Result {
        self.ops.register()
    }
}

impl<S: Shape> FunctionProbes<S> {
    /// Creates a set without sites. At a function that both trace, `inside` fires after the entry
    /// probe and before the return probe of this set.
    pub fn new(inside: Option<Arc<dyn Inside>>) -> Result<Self> {
        let hooks = SiteHooks {
            map: IpMap::new()?,
            _shape: PhantomData,
        };
        Ok(Self {
            ops: FtraceOps::new(hooks)?,
            inside,
        })
    }

    fn map(&self) -> &IpMap<Site> {
        &self.ops.hooks().map
    }

    /// Whether the function at `ip` has probes.
    pub fn contains(&self, ip: usize) -> bool {
        self.map().get(ip).is_some()
    }

    /// Adds sites, none of which is armed.
    pub fn add(&self, sites: KVVec<Site>) -> Result {
        self.map().extend(sites)
    }

    /// Removes the site of a probe. No end of it is armed.
    pub fn remove(&self, probe: ProbeRef) {
        self.map().remove(decode(probe.cookie()).0);
    }

    /// Arms probes, as [`Provider::enable`](crate::framework::Provider::enable).
    pub fn enable(&self, probes: &[ProbeRef], failed: &mut Failed) {
        if let Some(inside) = &self.inside {
            // If this fails, the registration of this ops fails below for the same reason, and that
            // is reported.
            let _ = inside.prepare();
        }
        let checked = Validity::new();
        let mut batch = ProbeBatch::default();
        for probe in probes {
            let (place, end) = decode(probe.cookie());
            let site = match &checked {
                Ok(checked) if checked.check(place & !OTHER) => self.map().get(place).ok_or(ENOENT),
                Ok(_) => Err(ENOENT),
                Err(error) => Err(*error),
            };
            if let Err(error) = site.and_then(|site| batch.want(site, end, true)) {
                failed.add(probe, error);
            }
        }
        if let Err(error) = self.switch(&batch) {
            for probe in probes {
                let (place, end) = decode(probe.cookie());
                // Probes that are not about to be armed were added to `failed` above.
                if self
                    .map()
                    .get(place)
                    .is_some_and(|site| site.is_wanted(end))
                {
                    failed.add(probe, error);
                }
            }
            batch.give_up();
        }
    }

    /// Disarms probes, as [`Provider::disable`](crate::framework::Provider::disable).
    pub fn disable(&self, probes: &[ProbeRef]) {
        let mut batch = ProbeBatch::default();
        for probe in probes {
            let (place, end) = decode(probe.cookie());
            let Some(site) = self.map().get(place) else {
                continue;
            };
            if batch.want(site, end, false).is_err() {
                // There is no memory to add it to the batch, so disarm it alone.
                self.disable_one(site, end);
            }
        }
        if self.switch(&batch).is_err() {
            batch.give_up();
            for probe in probes {
                let (place, end) = decode(probe.cookie());
                if let Some(site) = self.map().get(place) {
                    self.disable_one(site, end);
                }
            }
        }
    }

    /// Disarms one end of one site without allocating.
    fn disable_one(&self, site: &Site, end: End) {
        let old = site.armed.load(Ordering::Relaxed);
        let new = old & !site.bit(end);
        let ip = [site.address()];
        let mut change = Change::default();
        if old != 0 && new == 0 && self.other(site).0 == 0 {
            change.drop = &ip;
        }
        let switch = || {
            site.wanted.store(new, Ordering::Relaxed);
            site.armed.store(new, Ordering::Relaxed);
        };
        if let Err(error) = self.ops.change(&change, switch) {
            pr_warn!("a function stays traced: {:?}\n", error);
        }
    }

    /// The sets `armed` and `wanted` of the function's other site.
    fn other(&self, site: &Site) -> (u8, u8) {
        let other = self.map().get(site.ip() ^ OTHER);
        other.map_or((0, 0), Site::state)
    }

    fn switch(&self, batch: &ProbeBatch<'_>) -> Result {
        let (mut add, mut drop) = (KVVec::new(), KVVec::new());
        let mut returns = false;
        for site in batch.sites.iter() {
            let ((old, new), (others_old, others_new)) = (site.state(), self.other(site));
            let was = old | others_old != 0;
            let will = new | others_new != 0;
            // If both sites of a function change, only the one with kind 0 edits the filter.
            let silent = site.ip() & OTHER != 0 && others_old != others_new;
            match (was, will) {
                (false, true) if !silent => add.push(site.address(), GFP_KERNEL)?,
                (true, false) if !silent => drop.push(site.address(), GFP_KERNEL)?,
                _ => {}
            }
            returns |= new & RETURN != 0;
        }
        let begin = batch.sites.iter().filter(|site| site.state().0 == 0);
        self.map().prefer(begin.map(|site| site.ip()));
        let change = Change {
            add: &add,
            drop: &drop,
            returns,
        };
        self.ops.change(&change, || {
            for site in batch.sites.iter() {
                let wanted = site.wanted.load(Ordering::Relaxed);
                site.armed.store(wanted, Ordering::Relaxed);
            }
        })
    }
}

/// The sites that a change touches, each once.
#[derive(Default)]
struct ProbeBatch<'a> {
    sites: KVVec<&'a Site>,
}

impl<'a> ProbeBatch<'a> {
    fn want(&mut self, site: &'a Site, end: End, armed: bool) -> Result {
        let old = site.wanted.load(Ordering::Relaxed);
        let new = if armed {
            old | site.bit(end)
        } else {
            old & !site.bit(end)
        };
        if old == new {
            return Ok(());
        }
        if old == site.armed.load(Ordering::Relaxed) {
            self.sites.push(site, GFP_KERNEL)?;
        }
        site.wanted.store(new, Ordering::Relaxed);
        Ok(())
    }

    fn give_up(&self) {
        for site in self.sites.iter() {
            let armed = site.armed.load(Ordering::Relaxed);
            site.wanted.store(armed, Ordering::Relaxed);
        }
    }
}
