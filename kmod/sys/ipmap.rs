// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! From the address of a traced function to what is known of it, in probe context.
//!
//! Open addressing over pointers to the values, which tell their addresses themselves, at most an eighth full. What was
//! [asked to be](IpMap::prefer) is found at the first look, until another of the same slot is or the table is replaced, and so is nearly
//! all of the rest. A look-up takes no lock and is in no RCU read-side section, since it runs before the framework has looked where it
//! is. But it does not sleep, and that is enough for [`synchronize_tasks`].
//!
//! Values come and go with kernel modules, which must not make the map grow for ever. A removed value is therefore kept, and taken
//! up again when a value that [is the same](Keyed::key) is added, at whatever address. Its slot is left to it, or to the next that looks
//! for one there. A full table is replaced by one that fits what it still holds, and given back after a wait, which is a kernel worker's: a task of the least
//! priority can make it long, and whoever adds values has locks that everybody needs.
//!
//! Invariants:
//! - `table` points to the `Inner::table`, and every slot that is not null into one of `Inner::chunks`, which give nothing back before
//!   the map is dropped.
//! - A slot never becomes null again, so that a look-up finds what is behind it. From the slot that its address hashes to on, a value
//!   is found before a null.

use super::deferred::{Chore, Deferred};
use super::rculist::synchronize_tasks;
use core::sync::atomic::{AtomicPtr, Ordering};
use dtrace_engine::mem::sort::sort;
use kernel::alloc::{KBox, KVVec};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Mutex};

/// How many slots there are for each value, at least.
const SLOTS_PER_VALUE: usize = 8;

/// What can be put into an [`IpMap`].
pub trait Keyed: Unpin {
    /// Its address; 0 while it has none.
    fn ip(&self) -> usize;

    /// Who it is, wherever it is.
    fn key(&self) -> u64;

    /// Moves it to another address, or to none.
    fn move_to(&self, ip: usize);
}

/// The map. The kernel's own atomics are function calls in a module, hence those of `core`.
pub struct IpMap<T> {
    table: AtomicPtr<Table<T>>,
    inner: Pin<KBox<Mutex<Inner<T>>>>,
    replaced: Pin<KBox<Deferred<Replaced<T>>>>,
}

/// Tables that were replaced, to be given back.
struct Replaced<T>(Pin<KBox<Mutex<Chain<T>>>>);

/// The first of tables that lead to each other.
type Chain<T> = Option<KBox<Table<T>>>;

struct Inner<T> {
    table: KBox<Table<T>>,
    chunks: KVVec<KVVec<T>>,
    // Values without an address.
    spare: KVVec<Spare<T>>,
    // Slots that are not null.
    used: usize,
    live: usize,
}

/// A value of one of the chunks that is not in use; null: taken up again.
struct Spare<T> {
    key: u64,
    value: *const T,
}

struct Table<T> {
    slots: KVVec<AtomicPtr<T>>,
    mask: usize,
    /// Another one that is to be given back.
    next: Chain<T>,
}

// SAFETY: Values are shared and dropped where the map is; all else is atomic or behind the mutex.
unsafe impl<T: Send + Sync> Send for IpMap<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for IpMap<T> {}
// SAFETY: A table that was replaced is dropped, and its values are not looked at.
unsafe impl<T> Send for Replaced<T> {}
// SAFETY: It is behind a mutex.
unsafe impl<T> Sync for Replaced<T> {}

impl<T> Replaced<T> {
    fn new() -> Result<Self> {
        let none = new_mutex!(None, "dtrace::ipmap::replaced");
        Ok(Self(KBox::pin_init(none, GFP_KERNEL)?))
    }

    /// Takes another one.
    fn push(&self, mut table: KBox<Table<T>>) {
        let mut first = self.0.lock();
        table.next = first.take();
        *first = Some(table);
    }
}

impl<T> Chore for Replaced<T> {
    fn run(&self) {
        let first = self.0.lock().take();
        if first.is_some() {
            synchronize_tasks();
        }
        give_back(first);
    }
}

impl<T> Drop for Replaced<T> {
    /// Nobody looks into the map any more.
    fn drop(&mut self) {
        give_back(self.0.lock().take());
    }
}

/// Drops tables one after another, not each within the one before.
fn give_back<T>(mut first: Chain<T>) {
    while let Some(mut table) = first {
        first = table.next.take();
    }
}

impl<T: Keyed> IpMap<T> {
    /// An empty map.
    pub fn new() -> Result<Self> {
        let mut first = KBox::new(Table::with_room(0)?, GFP_KERNEL)?;
        let table = AtomicPtr::new(core::ptr::from_mut(&mut *first));
        let inner = Inner {
            table: first,
            chunks: KVVec::new(),
            spare: KVVec::new(),
            used: 0,
            live: 0,
        };
        let inner = KBox::pin_init(new_mutex!(inner, "dtrace::IpMap"), GFP_KERNEL)?;
        let replaced = KBox::pin_init(Deferred::new(Replaced::new()?), GFP_KERNEL)?;
        Ok(Self {
            table,
            inner,
            replaced,
        })
    }

    /// The value at `ip`, which is not 0. For any context.
    #[inline]
    pub fn get(&self, ip: usize) -> Option<&T> {
        // SAFETY: By the module's invariant it points to the current table. One that is replaced meanwhile is given back after a
        // wait for this, which does not sleep.
        let table = unsafe { &*self.table.load(Ordering::Acquire) };
        table.find(ip).map(|(_, value)| value)
    }

    /// Adds values, at addresses that have none.
    pub fn extend(&self, mut values: KVVec<T>) -> Result {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        self.make_room(inner, values.len())?;
        inner.chunks.reserve(1, GFP_KERNEL)?;

        // Nothing fails from here on.
        sort(&mut inner.spare, |a, b| a.key < b.key);
        let Inner {
            table,
            spare,
            used,
            live,
            ..
        } = inner;
        let mut put = |value: &T| {
            *used = used.wrapping_add(usize::from(table.put(value)));
            *live = live.wrapping_add(1);
        };
        values.retain(|value| match take(spare, value.key()) {
            Some(old) => {
                // SAFETY: A spare value lives as long as `self`.
                let old = unsafe { &*old };
                old.move_to(value.ip());
                put(old);
                false
            }
            None => true,
        });
        spare.retain(|spare| !spare.value.is_null());
        values.iter().for_each(put);
        // There is room; a chunk's own memory stays where it is.
        if !values.is_empty() {
            inner.chunks.push(values, GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Forgets the value at `ip`. It stays readable for those that found it before.
    pub fn remove(&self, ip: usize) {
        let mut inner = self.inner.lock();
        let Some(value) = self.get(ip) else {
            return;
        };
        value.move_to(0);
        inner.live = inner.live.wrapping_sub(1);
        let spare = Spare {
            key: value.key(),
            value: core::ptr::from_ref(value),
        };
        // Without memory for it the value is not used again, no more.
        let _ = inner.spare.push(spare, GFP_KERNEL);
    }

    /// Lets the values at `ips` be found at the first look: each changes places with whoever is found there. Between the two it may not be
    /// found at all, as nobody may ask for yet.
    pub fn prefer(&self, ips: impl Iterator<Item = usize>) {
        let inner = self.inner.lock();
        for ip in ips {
            let (first, other) = inner.table.slot(hash(ip));
            let (Some((slot, value)), Some(other)) = (inner.table.find(ip), other) else {
                continue;
            };
            // The other one, if it is found by that slot, is found here too: there is no null in between.
            slot.store(core::ptr::from_ref(other).cast_mut(), Ordering::Release);
            first.store(core::ptr::from_ref(value).cast_mut(), Ordering::Release);
        }
    }

    /// Sees to it that the table is at most an eighth full with `more` addresses.
    fn make_room(&self, inner: &mut Inner<T>, more: usize) -> Result {
        let total = inner.used.checked_add(more).ok_or(ENOMEM)?;
        if total.checked_mul(SLOTS_PER_VALUE).ok_or(ENOMEM)? <= inner.table.slots.len() {
            return Ok(());
        }
        // With a quarter to spare, lest the next few values be too many again.
        let room = inner.live.checked_add(more).ok_or(ENOMEM)?;
        let room = room.checked_add(room / 4).ok_or(ENOMEM)?;
        let mut new = KBox::new(Table::with_room(room)?, GFP_KERNEL)?;
        let mut used = 0usize;
        for slot in inner.table.slots.iter() {
            // SAFETY: By the module's invariant it is null or lives as long as `self`.
            let value = unsafe { slot.load(Ordering::Relaxed).as_ref() };
            if let Some(value) = value.filter(|value| value.ip() != 0) {
                used = used.wrapping_add(usize::from(new.put(value)));
            }
        }
        self.table
            .store(core::ptr::from_mut(&mut *new), Ordering::Release);
        let old = core::mem::replace(&mut inner.table, new);
        // Where there was nothing to find there is nobody who looks for it.
        if core::mem::replace(&mut inner.used, used) > 0 {
            self.replaced.chore().push(old);
            self.replaced.ask();
        }
        Ok(())
    }

    /// Whether the value at `ip` is found at the first look.
    #[cfg(test)]
    pub fn is_first(&self, ip: usize) -> bool {
        let inner = self.inner.lock();
        let first = inner.table.slot(hash(ip)).1;
        first.is_some_and(|value| value.ip() == ip)
    }

    /// How many slots, and how many values, in use or not, there is memory for.
    #[cfg(test)]
    pub fn room(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        let values = inner.chunks.iter().map(|c| c.len()).sum();
        (inner.table.slots.len(), values)
    }
}

/// Takes the value of this key out of `spare`, which is sorted.
fn take<T>(spare: &mut [Spare<T>], key: u64) -> Option<*const T> {
    let mut at = spare.partition_point(|s| s.key < key);
    loop {
        let found = spare.get_mut(at).filter(|s| s.key == key)?;
        let value = core::mem::replace(&mut found.value, core::ptr::null());
        if !value.is_null() {
            return Some(value);
        }
        at = at.wrapping_add(1);
    }
}

impl<T: Keyed> Table<T> {
    fn with_room(values: usize) -> Result<Self> {
        let len = values
            .checked_mul(SLOTS_PER_VALUE)
            .and_then(usize::checked_next_power_of_two)
            .ok_or(ENOMEM)?
            .max(64);
        let mut slots = KVVec::with_capacity(len, GFP_KERNEL)?;
        for _ in 0..len {
            slots.push(AtomicPtr::new(core::ptr::null_mut()), GFP_KERNEL)?;
        }
        Ok(Self {
            slots,
            mask: len.wrapping_sub(1),
            next: None,
        })
    }

    /// The slot that a count comes to, and its value.
    #[inline]
    fn slot(&self, at: usize) -> (&AtomicPtr<T>, Option<&T>) {
        // SAFETY: There are as many slots as the mask, whose bits are all set up to the highest, has numbers.
        let slot = unsafe { self.slots.get_unchecked(at & self.mask) };
        // SAFETY: By the module's invariant it is null or lives as long as the map, and so this table.
        (slot, unsafe { slot.load(Ordering::Acquire).as_ref() })
    }

    /// The value at `ip`, and the first slot where it is found.
    #[inline]
    fn find(&self, ip: usize) -> Option<(&AtomicPtr<T>, &T)> {
        let mut at = hash(ip);
        loop {
            // Ends, for most of the slots are null.
            let (slot, value) = self.slot(at);
            let value = value?;
            if value.ip() == ip {
                return Some((slot, value));
            }
            at = at.wrapping_add(1);
        }
    }

    /// Puts a value into the first slot where it can be found; whether that was null.
    fn put(&self, value: &T) -> bool {
        let mut at = hash(value.ip());
        loop {
            let (slot, found) = self.slot(at);
            // One without an address finds its way anew, and its own slot may be one that it had before.
            if found.is_none_or(|found| found.ip() == 0 || found.ip() == value.ip()) {
                slot.store(core::ptr::from_ref(value).cast_mut(), Ordering::Release);
                return found.is_none();
            }
            at = at.wrapping_add(1);
        }
    }
}

/// Spreads addresses, which are multiples of 16 mostly.
#[inline]
fn hash(ip: usize) -> usize {
    ip.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}
