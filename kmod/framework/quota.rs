// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! How many places in processes consumers and users may have, and how many clauses at probes, timers and memory users.
//!
//! A place is an instruction at which a probe fires, or at which a process waits for a consumer; where two probes fire at one instruction it
//! counts for both. Whoever asks for a probe pays for its places: the consumer, and its user as well, unless the consumer may trace
//! everybody's processes; where several ask for the same, each does. A [`Charge`] lies with what it is for and is given back with that, in
//! whichever way that ends.
//!
//! Whatever begins or becomes another on the machine is looked at for each tracing that may see a user's own processes alone. So a user
//! may have few of these ([`TRACINGS_MAX`]).
//!
//! A timer interrupts everybody. A user who may trace his own processes alone has few of these as well ([`TIMERS_MAX`]): each clause at a probe
//! that fires with time counts for one, and is given back when its consumer has lost its probes. With it goes how often it fires: all of them
//! together do so [so often](HZ_MAX), where a probe counts once for each consumer.
//!
//! Whoever comes to a probe passes by the clauses of all who trace it, so such a user has [few of these](ECBS_MAX), too.
//!
//! Buffers and programs are memory of the kernel's, which ends others where it is short. All that such a user's consumers have of it together is
//! [limited](Limits::memory), and what all such users have to twice that; what a program takes is known only roughly, and paid for as if it were the worst.
//!
//! Such a user's calls wait for the framework's mutex [in turn](Payer::turn): whoever waits for it has one of his calls
//! in front of him, however many he makes.
//!
//! A breakpoint that could not be taken away when nobody needed it any more is a [`Debt`] until it is.
//!
//! Invariant: what an account says is used is the sum of the charges, and of the debts that are due.

use super::patience::Allowance;
use super::share::{Share, Shares, OF_ALL, OF_USER};
use super::text::Refusal;
use crate::sys::shared::share;
use crate::sys::turn::Turn;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::Arc;

/// How many consumers of a user may have anything enabled at a time that may trace his own processes alone.
pub const TRACINGS_MAX: u32 = 64;
/// How many clauses the consumers of such a user may have at probes together, each counted as often as there are probes that it is for: each
/// system call at both ends, forty times.
pub const ECBS_MAX: u32 = 64 << 10;
/// How many timers the consumers of such a user may have together.
pub const TIMERS_MAX: u32 = 32;
/// How often in a second those may fire, together, on a CPU.
pub const HZ_MAX: u32 = 997;

/// How much somebody may have at a time.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Places: all consumers of a user together that may trace his own processes alone.
    pub user: u32,
    /// Places: a consumer.
    pub consumer: u32,
    /// Memory of buffers and programs, MiB: as `user`.
    pub memory: u32,
}

/// How many times as much memory all users may have together as one.
const ALL_OF_USERS: u32 = 2;
const KIB: usize = 1024;
const KIB_IN_MIB: usize = 1024;

/// Whose an account is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    User(u32),
    Consumer,
    /// Counts tracings, not places.
    Tracings(u32),
    /// Counts clauses at probes, not places.
    Ecbs(u32),
    /// Counts timers, not places.
    Timers(u32),
    /// Counts how often they fire in a second.
    Hz(u32),
    /// Counts KiB of memory.
    Memory(u32),
    /// Counts that of all users.
    AllMemory,
}

/// What somebody has.
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

/// What a user's consumers have together, besides accounts.
#[derive(Clone)]
struct Common {
    shares: Shares,
    /// One of his calls has it locked.
    turn: Arc<Turn>,
    /// How much is compared for them.
    allowance: Arc<Allowance>,
}

/// The users that there have been, of those who have an account.
pub struct Users {
    limits: Limits,
    accounts: KVVec<Arc<Account>>,
    common: KVVec<(u32, Common)>,
}

impl Users {
    /// None yet.
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            accounts: KVVec::new(),
            common: KVVec::new(),
        }
    }

    /// What a new consumer pays with; `user`: whose it is, where that matters.
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

    /// What a call of a user's takes who need not be a consumer. `ENOMEM`.
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

    /// What a user's consumers share that is no account.
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

/// A consumer, as who pays for what it has.
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
    /// What it pays for clauses at probes, nothing so far. One that may trace everybody's processes pays nothing.
    pub fn dues(&self) -> Dues {
        Dues {
            ecbs: Paid::nothing(&self.ecbs),
            timers: Paid::nothing(&self.timers),
            hz: Paid::nothing(&self.hz),
        }
    }

    /// What it pays for memory with, nothing so far. As for [`dues`](Self::dues), where it may trace everybody's processes.
    pub fn purse(&self) -> Purse {
        Purse {
            accounts: self.memory.clone(),
            programs: AtomicUsize::new(0),
            buffers: AtomicUsize::new(0),
        }
    }

    /// What a call of its user has locked while others may wait for it, if that matters; before the framework's mutex.
    pub fn turn(&self) -> Option<&Turn> {
        self.common.as_ref().map(|common| &*common.turn)
    }

    /// What its user's consumers may have compared, if that matters.
    pub fn allowance(&self) -> Option<&Allowance> {
        self.common.as_ref().map(|common| &*common.allowance)
    }

    /// What its user's timers take from, if that matters.
    pub fn shares(&self) -> Option<&Shares> {
        self.common.as_ref().map(|common| &common.shares)
    }

    /// Who its user is, if that matters.
    pub fn user(&self) -> Option<u32> {
        match self.user.as_ref()?.owner {
            Owner::User(user) => Some(user),
            _ => None,
        }
    }

    /// Begins to trace, unless too many of the user's consumers do.
    pub fn trace(&self) -> Result<Tracing, Refusal> {
        let mut paid = Paid::nothing(&self.tracings);
        paid.add(1)?;
        Ok(Tracing { _paid: paid })
    }

    fn accounts(&self) -> impl Iterator<Item = &Arc<Account>> {
        let accounts = [self.user.as_ref(), Some(&self.consumer)];
        accounts.into_iter().flatten()
    }

    /// How many places it may have besides those that it has.
    pub fn room(&self) -> usize {
        let rooms = self.accounts().map(|account| account.room());
        rooms.min().unwrap_or(0)
    }

    /// Refuses what it may not have even if it has nothing.
    pub fn check(&self, n: usize) -> Result<(), Refusal> {
        let short = self.accounts().find(|account| account.most < n);
        short.map_or(Ok(()), |account| Err(account.refusal()))
    }

    /// Its user, if that matters, as who may owe something.
    pub fn debtor(&self) -> Option<Debtor> {
        self.user.clone().map(Debtor)
    }

    /// Pays for `n` places, or names the limit that forbids it.
    pub fn charge(&self, n: usize) -> Result<Charge, Refusal> {
        let mut charge = Charge {
            payer: self.clone(),
            places: 0,
        };
        charge.add(n)?;
        Ok(charge)
    }
}

/// One of a user's tracings. Dropping it ends it.
pub struct Tracing {
    _paid: Paid,
}

/// What a consumer has paid for its clauses at probes. Dropping it gives that back.
pub struct Dues {
    ecbs: Paid,
    timers: Paid,
    hz: Paid,
}

impl Dues {
    /// Pays for `n` clauses more, or names the limit that forbids it.
    pub fn add(&mut self, n: usize) -> Result<(), Refusal> {
        self.ecbs.add(n)
    }

    /// Pays, for `n` of them, that they are at timers, or names the limit that forbids it.
    pub fn add_timers(&mut self, n: usize) -> Result<(), Refusal> {
        self.timers.add(n)
    }

    /// Lets timers fire `hz` times more in a second, or names the limit that forbids it.
    pub fn add_hz(&mut self, hz: usize) -> Result<(), Refusal> {
        self.hz.add(hz)
    }

    /// Gives back what was paid for `n` clauses.
    pub fn give_back(&mut self, n: usize) {
        self.ecbs.give_back(n);
    }

    /// Takes over others of the same consumer.
    pub fn merge(&mut self, other: Self) {
        self.ecbs.merge(other.ecbs);
        self.timers.merge(other.timers);
        self.hz.merge(other.hz);
    }
}

/// What a consumer pays for its engine's memory with. Dropping it gives all of that back.
pub struct Purse {
    /// Those of its user, and of all users.
    accounts: Option<[Arc<Account>; 2]>,
    /// What is paid for programs, KiB.
    programs: AtomicUsize,
    /// What is paid for buffers, KiB.
    buffers: AtomicUsize,
}

/// What was paid for a program; dropping it gives that back.
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

    /// Pays for a program, or an image, of so many bytes, or names the limit that forbids it.
    pub fn pay(&self, bytes: usize) -> Result<Payment<'_>, Refusal> {
        let kib = bytes.div_ceil(KIB);
        self.take(kib)?;
        self.programs.fetch_add(kib, Ordering::Relaxed);
        Ok(Payment { purse: self, kib })
    }

    /// Gives back what was paid, and kept, for so many bytes: whole KiB.
    pub fn refund(&self, bytes: usize) {
        let kib = bytes / KIB;
        self.programs.fetch_sub(kib, Ordering::Relaxed);
        self.give_back(kib);
    }

    /// Pays for buffers of so many bytes in all, instead of what was paid for them before, or names the limit that forbids it. One
    /// caller at a time.
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
    /// Leaves it paid, as long as there is the purse.
    pub fn keep(self) {
        core::mem::forget(self);
    }
}

impl Drop for Payment<'_> {
    fn drop(&mut self) {
        self.purse.programs.fetch_sub(self.kib, Ordering::Relaxed);
        self.purse.give_back(self.kib);
    }
}

/// What an account was charged with. Dropping it gives that back.
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

/// What was paid for places. Dropping it gives that back.
pub struct Charge {
    payer: Payer,
    places: usize,
}

impl Charge {
    /// Pays for `n` places more, or names the limit that forbids it.
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

    /// Whether it was paid by a consumer, or by another one of its user.
    pub fn is_of(&self, payer: &Payer) -> bool {
        match (&self.payer.user, &payer.user) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => Arc::ptr_eq(&self.payer.consumer, &payer.consumer),
        }
    }

    /// Whether it was paid by a user's consumer, who may trace his own processes alone.
    pub fn is_users(&self) -> bool {
        self.payer.user.is_some()
    }

    /// Who has paid.
    pub fn payer(&self) -> &Payer {
        &self.payer
    }

    /// Gives back what was paid for `n` of the places.
    pub fn give_back(&mut self, n: usize) {
        let n = n.min(self.places);
        self.places = self.places.saturating_sub(n);
        for account in self.payer.accounts() {
            account.give_back(n);
        }
    }

    /// Takes over another one of the same payer.
    pub fn merge(&mut self, mut other: Self) {
        let places = core::mem::take(&mut other.places);
        self.places = self.places.saturating_add(places);
    }
}

/// A user who may owe something.
#[derive(Clone)]
pub struct Debtor(Arc<Account>);

impl Debtor {
    /// A breakpoint of his, for which nothing is due as long as it can be taken away.
    pub fn debt(&self) -> Debt {
        Debt {
            user: Some(self.0.clone()),
            is_due: AtomicBool::new(false),
        }
    }
}

/// What a user owes for a breakpoint that he does not need any more and that could not be taken away, beside what he pays for its place as long as
/// that has a probe. Dropping it says that it was taken away.
pub struct Debt {
    user: Option<Arc<Account>>,
    is_due: AtomicBool,
}

impl Debt {
    /// Nobody's.
    pub const fn none() -> Self {
        Self {
            user: None,
            is_due: AtomicBool::new(false),
        }
    }

    /// It could not: it counts as a place of his, even beyond his limit.
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
