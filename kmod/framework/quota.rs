// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Quotas: how many places in processes consumers and members may have, and how many ECBs, timers
//! and how much memory members may have.
//!
//! A place is an instruction at which a probe fires, or at which a process waits for a consumer. If
//! two probes fire at one instruction, it counts for both. Every consumer that requests a probe
//! pays for its places: the consumer itself, and for a member's consumer the user as well (INV-34).
//! A [`Charge`] lies with what it pays for, and is given back with it, whatever ends that.
//!
//! Each process that begins or executes a program is compared with each tracing of a member. So a
//! member may have few tracings ([`TRACINGS_MAX`]).
//!
//! A timer interrupts any task. So a member has few timers as well ([`TIMERS_MAX`], INV-33). Each
//! clause at a timer's probe counts as one, until its consumer has lost its ECBs. The rate counts
//! too: all timers of a member together may fire [so often](HZ_MAX), where a probe counts once for
//! each consumer.
//!
//! A firing passes the clauses of all consumers that trace its probe. So the number of a member's
//! ECBs is [limited](ECBS_MAX) too.
//!
//! Buffers and programs take memory of the kernel. The memory of all of a member's consumers
//! together is [limited](Limits::memory), and that of all members together to twice as much
//! (INV-29). The memory of a program is known only roughly, so the most that it may take is paid.
//!
//! The calls of a member take [turns](Payer::turn) for the framework's mutex, so that another task
//! waits behind one of them at most, however many there are (INV-31).
//!
//! A breakpoint that is not needed any more but could not be taken away is a [`Debt`] until it is.
//!
//! Invariant: the number that an account has in use is the sum of the charges, and of the debts
//! that are due.

use super::patience::Allowance;
use super::share::{Share, Shares, OF_ALL, OF_USER};
use super::text::Refusal;
use crate::sys::shared::share;
use crate::sys::turn::Turn;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Maximum number of consumers of a member that have anything enabled at a time.
pub const TRACINGS_MAX: u32 = 64;
/// Maximum number of ECBs of a member's consumers together: each system call at both ends, forty
/// times.
pub const ECBS_MAX: u32 = 64 << 10;
/// Maximum number of timers of a member's consumers together.
pub const TIMERS_MAX: u32 = 32;
/// Maximum rate at which these timers may fire together on a CPU, per second.
pub const HZ_MAX: u32 = 997;

/// The limits that the administrator sets.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Places of all consumers of a member together.
    pub user: u32,
    /// Places of a consumer.
    pub consumer: u32,
    /// Memory of buffers and programs of all consumers of a member together, MiB.
    pub memory: u32,
}

/// The memory limit of all members together, as a multiple of one member's.
const ALL_OF_USERS: u32 = 2;
const KIB: usize = 1024;
const KIB_IN_MIB: usize = 1024;

/// What an account counts, and for which user.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    User(u32),
    Consumer,
    /// Tracings, not places.
    Tracings(u32),
    /// ECBs, not places.
    Ecbs(u32),
    /// Timers, not places.
    Timers(u32),
    /// The rates of timers, per second.
    Hz(u32),
    /// Memory, KiB.
    Memory(u32),
    /// Memory of all members, KiB.
    AllMemory,
}

/// A limit, and how much of it is in use. The count protects no other data, so `Relaxed` is enough.
struct Account {
    owner: Owner,
    most: usize,
    used: AtomicUsize,
}

impl Account {
    fn new(owner: Owner, most: u32) -> Result<Arc<Self>> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let used = AtomicUsize::new(0);
        share(Self { owner, most, used })
    }

    fn take(&self, n: usize) -> Result<(), Refusal> {
        let more = |used: usize| used.checked_add(n).filter(|sum| *sum <= self.most);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let taken = self.used.fetch_update(set, fetch, more);
        taken.map(drop).map_err(|_| self.refusal())
    }

    fn give_back(&self, n: usize) {
        self.used.fetch_sub(n, Ordering::Relaxed);
    }

    fn room(&self) -> usize {
        self.most.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    fn refusal(&self) -> Refusal {
        let most = self.most;
        let (whose, parameter) = match self.owner {
            Owner::User(_) => ("user", "user_places"),
            Owner::Consumer => ("consumer", "consumer_places"),
            Owner::Hz(_) => {
                return Refusal::with(
                    ENOSPC,
                    format_args!("a user's timers may fire {most} times a second together"),
                );
            }
            Owner::Memory(_) | Owner::AllMemory => {
                let most = most / KIB_IN_MIB;
                let whose = match self.owner {
                    Owner::AllMemory => "the tracings of all users together",
                    _ => "a user's tracings",
                };
                return Refusal::with(
                    ENOMEM,
                    format_args!("{whose} may have {most} MiB of memory (user_memory)"),
                );
            }
            Owner::Tracings(_) | Owner::Timers(_) | Owner::Ecbs(_) => {
                let what = match self.owner {
                    Owner::Tracings(_) => "tracings",
                    Owner::Ecbs(_) => "enabled probes",
                    _ => "timers",
                };
                return Refusal::with(
                    ENOSPC,
                    format_args!("a user may have {most} {what} at a time"),
                );
            }
        };
        Refusal::with(
            ENOSPC,
            format_args!("a {whose} may have {most} places in processes ({parameter})"),
        )
    }
}

/// What a member's consumers have in common in addition to accounts.
#[derive(Clone)]
struct Common {
    shares: Shares,
    /// Locked by one of the member's calls at a time.
    turn: Arc<Turn>,
    /// How much may be compared for them.
    allowance: Arc<Allowance>,
}

/// The accounts of all members that have opened the device since the module was loaded, and the
/// turns of all users that have needed one. None is removed.
pub struct Users {
    limits: Limits,
    accounts: KVVec<Arc<Account>>,
    common: KVVec<(u32, Common)>,
}

impl Users {
    /// Makes an empty set of accounts.
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            accounts: KVVec::new(),
            common: KVVec::new(),
        }
    }

    /// Returns the accounts with which a new consumer pays. `user` is the member that it belongs
    /// to; `None` for other consumers. `ENOMEM`.
    pub fn payer(&mut self, user: Option<u32>) -> Result<Payer> {
        let consumer = Account::new(Owner::Consumer, self.limits.consumer)?;
        let mut payer = Payer {
            consumer,
            user: None,
            tracings: None,
            ecbs: None,
            timers: None,
            hz: None,
            memory: None,
            common: None,
        };
        if let Some(user) = user {
            payer.user = Some(self.of(Owner::User(user), self.limits.user)?);
            payer.tracings = Some(self.of(Owner::Tracings(user), TRACINGS_MAX)?);
            payer.ecbs = Some(self.of(Owner::Ecbs(user), ECBS_MAX)?);
            payer.timers = Some(self.of(Owner::Timers(user), TIMERS_MAX)?);
            payer.hz = Some(self.of(Owner::Hz(user), HZ_MAX)?);
            let most = self.limits.memory.saturating_mul(KIB_IN_MIB as u32);
            let all = self.of(Owner::AllMemory, most.saturating_mul(ALL_OF_USERS))?;
            payer.memory = Some([self.of(Owner::Memory(user), most)?, all]);
            payer.common = Some(self.common_of(user)?);
        }
        Ok(payer)
    }

    /// Returns the turn of a user, who need not have a consumer. `ENOMEM`.
    pub fn turn(&mut self, user: u32) -> Result<Arc<Turn>> {
        Ok(self.common_of(user)?.turn)
    }

    fn of(&mut self, owner: Owner, most: u32) -> Result<Arc<Account>> {
        if let Some(account) = self.accounts.iter().find(|one| one.owner == owner) {
            return Ok(account.clone());
        }
        let account = Account::new(owner, most)?;
        self.accounts.push(account.clone(), GFP_KERNEL)?;
        Ok(account)
    }

    /// Returns what a user's consumers have in common.
    fn common_of(&mut self, user: u32) -> Result<Common> {
        if let Some((_, common)) = self.common.iter().find(|(whose, _)| *whose == user) {
            return Ok(common.clone());
        }
        let all = match self.common.first() {
            Some((_, another)) => another.shares.all.clone(),
            None => share(Share::new(OF_ALL))?,
        };
        let new = Common {
            shares: Shares {
                user: share(Share::new(OF_USER))?,
                all,
            },
            turn: share(Turn::new()?)?,
            allowance: share(Allowance::new())?,
        };
        self.common.push((user, new.clone()), GFP_KERNEL)?;
        Ok(new)
    }
}

/// The accounts of a consumer. The optional ones are those of a member's consumer.
#[derive(Clone)]
pub struct Payer {
    consumer: Arc<Account>,
    user: Option<Arc<Account>>,
    tracings: Option<Arc<Account>>,
    ecbs: Option<Arc<Account>>,
    timers: Option<Arc<Account>>,
    hz: Option<Arc<Account>>,
    memory: Option<[Arc<Account>; 2]>,
    common: Option<Common>,
}

impl Payer {
    /// Returns an empty payment for ECBs and timers. A consumer that is not a member's pays
    /// nothing.
    pub fn dues(&self) -> Dues {
        Dues {
            ecbs: Paid::nothing(&self.ecbs),
            timers: Paid::nothing(&self.timers),
            hz: Paid::nothing(&self.hz),
        }
    }

    /// Returns an empty payment for memory. A consumer that is not a member's pays nothing.
    pub fn purse(&self) -> Purse {
        Purse {
            accounts: self.memory.clone(),
            programs: AtomicUsize::new(0),
            buffers: AtomicUsize::new(0),
        }
    }

    /// Returns the turn of its user, if it is a member's. It is taken before the framework's mutex
    /// and kept until that is released.
    pub fn turn(&self) -> Option<&Turn> {
        self.common.as_ref().map(|common| &*common.turn)
    }

    /// Returns how much may be compared for its user's consumers, if it is a member's.
    pub fn allowance(&self) -> Option<&Allowance> {
        self.common.as_ref().map(|common| &*common.allowance)
    }

    /// Returns the shares of time that its user's timers take from, if it is a member's.
    pub fn shares(&self) -> Option<&Shares> {
        self.common.as_ref().map(|common| &common.shares)
    }

    /// Returns its user, if it is a member's.
    pub fn user(&self) -> Option<u32> {
        match self.user.as_ref()?.owner {
            Owner::User(user) => Some(user),
            _ => None,
        }
    }

    /// Counts a tracing of its user. Refused if the user has too many.
    pub fn trace(&self) -> Result<Counted, Refusal> {
        let mut paid = Paid::nothing(&self.tracings);
        paid.add(1)?;
        Ok(Counted { _paid: paid })
    }

    fn accounts(&self) -> impl Iterator<Item = &Arc<Account>> {
        let accounts = [self.user.as_ref(), Some(&self.consumer)];
        accounts.into_iter().flatten()
    }

    /// Returns the number of places that it may have in addition to those that it has.
    pub fn room(&self) -> usize {
        let rooms = self.accounts().map(|account| account.room());
        rooms.min().unwrap_or(0)
    }

    /// Refuses `n` places if that is more than the limit, whatever is in use.
    pub fn check(&self, n: usize) -> Result<(), Refusal> {
        let short = self.accounts().find(|account| account.most < n);
        short.map_or(Ok(()), |account| Err(account.refusal()))
    }

    /// Returns its user as a debtor, if it is a member's.
    pub fn debtor(&self) -> Option<Debtor> {
        self.user.clone().map(Debtor)
    }

    /// Pays for `n` places. A refusal names the limit.
    pub fn charge(&self, n: usize) -> Result<Charge, Refusal> {
        let mut charge = Charge {
            payer: self.clone(),
            places: 0,
        };
        charge.add(n)?;
        Ok(charge)
    }
}

/// A tracing of a member, counted. Dropping it ends the count.
pub struct Counted {
    _paid: Paid,
}

/// What a consumer has paid for its ECBs and timers. Dropping it gives that back.
pub struct Dues {
    ecbs: Paid,
    timers: Paid,
    hz: Paid,
}

impl Dues {
    /// Pays for `n` more ECBs. A refusal names the limit.
    pub fn add(&mut self, n: usize) -> Result<(), Refusal> {
        self.ecbs.add(n)
    }

    /// Pays for `n` of the ECBs being at timers. A refusal names the limit.
    pub fn add_timers(&mut self, n: usize) -> Result<(), Refusal> {
        self.timers.add(n)
    }

    /// Pays for timers that fire `hz` more times per second. A refusal names the limit.
    pub fn add_hz(&mut self, hz: usize) -> Result<(), Refusal> {
        self.hz.add(hz)
    }

    /// Gives back the payment for `n` ECBs.
    pub fn give_back(&mut self, n: usize) {
        self.ecbs.give_back(n);
    }

    /// Takes over another payment of the same consumer.
    pub fn merge(&mut self, other: Self) {
        self.ecbs.merge(other.ecbs);
        self.timers.merge(other.timers);
        self.hz.merge(other.hz);
    }
}

/// What a consumer has paid for its engine's memory. Dropping it gives all of that back.
pub struct Purse {
    /// The accounts of its user and of all members.
    accounts: Option<[Arc<Account>; 2]>,
    /// Payment for programs, KiB.
    programs: AtomicUsize,
    /// Payment for buffers, KiB.
    buffers: AtomicUsize,
}

/// A payment for a program. Dropping it gives the payment back.
#[must_use]
pub struct Payment<'a> {
    purse: &'a Purse,
    kib: usize,
}

impl Purse {
    fn take(&self, kib: usize) -> Result<(), Refusal> {
        let Some([user, all]) = &self.accounts else {
            return Ok(());
        };
        user.take(kib)?;
        all.take(kib).inspect_err(|_| user.give_back(kib))
    }

    fn give_back(&self, kib: usize) {
        for account in self.accounts.iter().flatten() {
            account.give_back(kib);
        }
    }

    /// Pays for a program or an image of `bytes` bytes. A refusal names the limit.
    pub fn pay(&self, bytes: usize) -> Result<Payment<'_>, Refusal> {
        let kib = bytes.div_ceil(KIB);
        self.take(kib)?;
        self.programs.fetch_add(kib, Ordering::Relaxed);
        Ok(Payment { purse: self, kib })
    }

    /// Gives back a payment for `bytes` bytes that was kept. `bytes` must be a whole number of KiB.
    pub fn refund(&self, bytes: usize) {
        let kib = bytes / KIB;
        self.programs.fetch_sub(kib, Ordering::Relaxed);
        self.give_back(kib);
    }

    /// Pays for buffers of `bytes` bytes in all, in place of the last such payment. A refusal names
    /// the limit and changes nothing. Calls must not overlap.
    pub fn set_buffers(&self, bytes: u64) -> Result<(), Refusal> {
        if self.accounts.is_none() {
            return Ok(());
        }
        let kib = usize::try_from(bytes.div_ceil(KIB as u64)).unwrap_or(usize::MAX);
        let before = self.buffers.load(Ordering::Relaxed);
        match kib.checked_sub(before) {
            Some(more) => self.take(more)?,
            None => self.give_back(before.saturating_sub(kib)),
        }
        self.buffers.store(kib, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Purse {
    fn drop(&mut self) {
        self.give_back(self.programs.load(Ordering::Relaxed));
        self.give_back(self.buffers.load(Ordering::Relaxed));
    }
}

impl Payment<'_> {
    /// Keeps the payment for as long as the purse exists.
    pub fn keep(self) {
        // Skips the drop, which would give it back.
        core::mem::forget(self);
    }
}

impl Drop for Payment<'_> {
    fn drop(&mut self) {
        self.purse.programs.fetch_sub(self.kib, Ordering::Relaxed);
        self.purse.give_back(self.kib);
    }
}

/// A charge to one account. Dropping it gives it back.
struct Paid {
    account: Option<Arc<Account>>,
    n: usize,
}

impl Paid {
    fn nothing(account: &Option<Arc<Account>>) -> Self {
        Self {
            account: account.clone(),
            n: 0,
        }
    }

    fn add(&mut self, n: usize) -> Result<(), Refusal> {
        let Some(account) = &self.account else {
            return Ok(());
        };
        account.take(n)?;
        self.n = self.n.saturating_add(n);
        Ok(())
    }

    fn give_back(&mut self, n: usize) {
        let n = n.min(self.n);
        self.n = self.n.saturating_sub(n);
        if let Some(account) = &self.account {
            account.give_back(n);
        }
    }

    fn merge(&mut self, mut other: Self) {
        let n = core::mem::take(&mut other.n);
        self.n = self.n.saturating_add(n);
    }
}

impl Drop for Paid {
    fn drop(&mut self) {
        self.give_back(self.n);
    }
}

/// A payment for places. Dropping it gives it back.
pub struct Charge {
    payer: Payer,
    places: usize,
}

impl Charge {
    /// Pays for `n` more places. A refusal names the limit and changes nothing.
    pub fn add(&mut self, n: usize) -> Result<(), Refusal> {
        let user = self.payer.user.as_ref();
        user.map_or(Ok(()), |user| user.take(n))?;
        if let Err(refusal) = self.payer.consumer.take(n) {
            user.into_iter().for_each(|user| user.give_back(n));
            return Err(refusal);
        }
        self.places = self.places.saturating_add(n);
        Ok(())
    }

    /// Whether this consumer has paid it, or another one of the same member.
    pub fn is_of(&self, payer: &Payer) -> bool {
        match (&self.payer.user, &payer.user) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => Arc::ptr_eq(&self.payer.consumer, &payer.consumer),
        }
    }

    /// Whether a member's consumer has paid it.
    pub fn is_users(&self) -> bool {
        self.payer.user.is_some()
    }

    /// Returns who has paid.
    pub fn payer(&self) -> &Payer {
        &self.payer
    }

    /// Gives back the payment for `n` of the places.
    pub fn give_back(&mut self, n: usize) {
        let n = n.min(self.places);
        self.places = self.places.saturating_sub(n);
        for account in self.payer.accounts() {
            account.give_back(n);
        }
    }

    /// Takes over another charge of the same payer.
    pub fn merge(&mut self, mut other: Self) {
        let places = core::mem::take(&mut other.places);
        self.places = self.places.saturating_add(places);
    }
}

/// A member who may owe something.
#[derive(Clone)]
pub struct Debtor(Arc<Account>);

impl Debtor {
    /// Returns the debt for one of the member's breakpoints. It is not due as long as the
    /// breakpoint can be taken away.
    pub fn debt(&self) -> Debt {
        Debt {
            user: Some(self.0.clone()),
            is_due: AtomicBool::new(false),
        }
    }
}

/// What a member owes for a breakpoint that is not needed any more and could not be taken away. It
/// counts in addition to the payment for the place, which lasts as long as the place has a probe.
/// Dropping it means that the breakpoint was taken away.
pub struct Debt {
    user: Option<Arc<Account>>,
    is_due: AtomicBool,
}

impl Debt {
    /// A debt of no user.
    pub const fn none() -> Self {
        Self {
            user: None,
            is_due: AtomicBool::new(false),
        }
    }

    /// Makes it due: the breakpoint could not be taken away, and counts as a place of the member,
    /// even beyond the limit.
    pub fn fall_due(&self) {
        let is_due = self.is_due.swap(true, Ordering::Relaxed);
        if let Some(user) = self.user.as_ref().filter(|_| !is_due) {
            user.used.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Debt {
    fn drop(&mut self) {
        if let Some(user) = self.user.as_ref().filter(|_| *self.is_due.get_mut()) {
            user.give_back(1);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.give_back(self.places);
    }
}
