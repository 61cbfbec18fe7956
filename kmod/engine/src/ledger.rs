// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! How long firings have stopped each thread, so that `vtimestamp` can leave that out.
//!
//! A [`Ledger`] is a table of fixed size: sets of a few accounts each, and a thread's name says which set its account is in. A
//! thread that has none gets the one of its set that has been used least recently, and begins anew there. So the dead make room,
//! nobody has to tell of them, and a thread loses its account only to as many others of its set that fire after it.
//!
//! A thread runs on one CPU at a time, so that two CPUs want one account only where one of them gives it to another thread. Each
//! therefore opens an account before it touches it, and passes by those that are open. Nobody waits: where all are open, what is
//! to be charged is lost.

use core::sync::atomic::{AtomicU64, Ordering};

/// Accounts of a set.
const WAYS: usize = 8;

/// The account is somebody's.
const TAKEN: u64 = 1;
/// A CPU uses it.
const OPEN: u64 = 2;

/// What has been charged to threads. See the [module](self)'s text.
#[derive(Debug)]
pub struct Ledger<const SETS: usize> {
    sets: [[Account; WAYS]; SETS],
}

#[derive(Debug)]
struct Account {
    /// The thread's name and the two flags, 0 where it is nobody's.
    owner: AtomicU64,
    /// When it was last opened, ns.
    used: AtomicU64,
    /// What was charged, ns.
    charged: AtomicU64,
    /// The greatest net time that was told, ns.
    told: AtomicU64,
}

/// An open account; dropping it closes it.
struct Opened<'a> {
    account: &'a Account,
    owner: u64,
}

impl<const SETS: usize> Ledger<SETS> {
    /// Nobody has an account.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self {
            sets: [const { [const { Account::new() }; WAYS] }; SETS],
        }
    }

    /// Charges `ns` to the thread `who`, at the time `now`. Of a thread's name the upper two bits do not count.
    pub fn charge(&self, who: u64, now: u64, ns: u64) {
        if let Some(opened) = self.open(who, now) {
            let charged = &opened.account.charged;
            let sum = charged.load(Ordering::Relaxed).saturating_add(ns);
            charged.store(sum, Ordering::Relaxed);
        }
    }

    /// What is left of the `gross` time that the thread `who` has run, without what was charged to it. It never gets less.
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
        // Names differ in their low bits, or in those of a time: the upper half of the product depends on all of them.
        let hash = owner.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.sets.get((hash as usize).checked_rem(SETS)?)
    }
}

/// Gives the account that has been used least recently to another thread.
fn give(set: &[Account; WAYS], owner: u64) -> Option<Opened<'_>> {
    // Each round in vain is another CPU's success.
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

    /// Opens it for `owner` where it is closed and belongs to `before`.
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
