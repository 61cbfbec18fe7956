// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The time for which firings have stopped each thread, so that `vtimestamp` can leave it out
//! (INV-7).
//!
//! A [`Ledger`] is a table of fixed size. It consists of sets of a few accounts each, and a hash of
//! the thread's name selects the set that its account is in. A thread without an account takes the
//! least recently used one of its set and starts there from zero. So the accounts of ended threads
//! are reused without any notification, and a thread can lose its account only if at least as many
//! other threads of its set fire after it as the set has accounts.
//!
//! A thread runs on one CPU at a time, so two CPUs want the same account only if one of them is
//! giving it to another thread. Therefore a CPU opens an account before it touches it, and skips
//! accounts that another CPU has open. No CPU waits: if all accounts of a set are open, the charge
//! is lost.

use core::sync::atomic::{AtomicU64, Ordering};

/// Accounts per set.
const WAYS: usize = 8;

/// Flag in `owner`: the account belongs to a thread.
const TAKEN: u64 = 1;
/// Flag in `owner`: a CPU is using the account.
const OPEN: u64 = 2;

/// The accounts of threads. See the [module](self)'s text.
#[derive(Debug)]
pub struct Ledger<const SETS: usize> {
    sets: [[Account; WAYS]; SETS],
}

#[derive(Debug)]
struct Account {
    /// The thread's name, shifted left by two, and the two flags; 0 if the account is free.
    owner: AtomicU64,
    /// Time at which it was last opened, in ns.
    used: AtomicU64,
    /// Total of the charges, in ns.
    charged: AtomicU64,
    /// The greatest net time that [`net`](Ledger::net) has returned, in ns.
    told: AtomicU64,
}

/// An open account. Dropping it closes the account.
struct Opened<'a> {
    account: &'a Account,
    owner: u64,
}

impl<const SETS: usize> Ledger<SETS> {
    /// A ledger without accounts in use.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self {
            sets: [const { [const { Account::new() }; WAYS] }; SETS],
        }
    }

    /// Charges `ns` to the thread `who`, at the time `now`. The upper two bits of a thread's name
    /// are ignored.
    pub fn charge(&self, who: u64, now: u64, ns: u64) {
        if let Some(opened) = self.open(who, now) {
            let charged = &opened.account.charged;
            let sum = charged.load(Ordering::Relaxed).saturating_add(ns);
            charged.store(sum, Ordering::Relaxed);
        }
    }

    /// Returns the `gross` run time of the thread `who` less what was charged to it. The result
    /// never decreases while the thread keeps its account.
    pub fn net(&self, who: u64, now: u64, gross: u64) -> u64 {
        let Some(opened) = self.open(who, now) else {
            return gross;
        };
        let Account { charged, told, .. } = opened.account;
        let net = gross.saturating_sub(charged.load(Ordering::Relaxed));
        let net = net.max(told.load(Ordering::Relaxed));
        told.store(net, Ordering::Relaxed);
        net
    }

    fn open(&self, who: u64, now: u64) -> Option<Opened<'_>> {
        let owner = who << 2 | TAKEN;
        let set = self.set(owner)?;
        let own = set
            .iter()
            .find(|account| account.owner.load(Ordering::Relaxed) == owner);
        let opened = own.and_then(|account| account.open(owner, owner));
        let opened = opened.or_else(|| give(set, owner))?;
        opened.account.used.store(now, Ordering::Relaxed);
        Some(opened)
    }

    fn set(&self, owner: u64) -> Option<&[Account; WAYS]> {
        // Names differ in their low bits, or in the bits of a start time. The upper half of the
        // product depends on all of them.
        let hash = owner.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.sets.get((hash as usize).checked_rem(SETS)?)
    }
}

/// Gives the least recently used account of the set to `owner`, and clears it.
fn give(set: &[Account; WAYS], owner: u64) -> Option<Opened<'_>> {
    // Each failed round means that another CPU has opened the account in between.
    for _ in 0..WAYS {
        let closed = |account: &&Account| account.owner.load(Ordering::Relaxed) & OPEN == 0;
        let oldest = set
            .iter()
            .filter(closed)
            .min_by_key(|account| account.used.load(Ordering::Relaxed))?;
        let before = oldest.owner.load(Ordering::Relaxed) & !OPEN;
        if let Some(opened) = oldest.open(before, owner) {
            oldest.charged.store(0, Ordering::Relaxed);
            oldest.told.store(0, Ordering::Relaxed);
            return Some(opened);
        }
    }
    None
}

impl Account {
    const fn new() -> Self {
        Self {
            owner: AtomicU64::new(0),
            used: AtomicU64::new(0),
            charged: AtomicU64::new(0),
            told: AtomicU64::new(0),
        }
    }

    /// Opens the account for `owner` if it is closed and belongs to `before`. `Acquire` pairs with
    /// the `Release` of the last close, so the previous user's stores are visible.
    fn open(&self, before: u64, owner: u64) -> Option<Opened<'_>> {
        self.owner
            .compare_exchange(before, owner | OPEN, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        Some(Opened {
            account: self,
            owner,
        })
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.account.owner.store(self.owner, Ordering::Release);
    }
}
