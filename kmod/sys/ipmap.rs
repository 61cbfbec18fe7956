// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! From the address of a traced function to what is known about it, in probe context.
//!
//! The map is a hash table with open addressing. Its slots are pointers to values, which hold their
//! addresses themselves; at most an eighth of the slots is in use. A value for which that was
//! [requested](IpMap::prefer) is found in the first slot that a look-up examines, until another
//! value of the same slot is requested or the table is replaced; so are nearly all others. A
//! look-up takes no lock and is in no RCU read-side critical section, because it runs before the
//! framework has checked its context. But it does not sleep, and that is enough for
//! [`synchronize_tasks`].
//!
//! Values come and go with kernel modules, which must not make the map grow for ever. So a removed
//! value is kept, and used again when a value with the same [key](Keyed::key) is added, at whatever
//! address. Its slot stays its own until an added value takes it. A full table is replaced by one
//! that fits what it still holds, and is freed after a wait. A worker does that wait, because a
//! task of the least priority can make it long, and the task that adds values holds locks that
//! everybody needs.
//!
//! Invariants:
//! - `table` points to the `Inner::table`. Every slot that is not null points into one of
//!   `Inner::chunks`, which free nothing before the map is dropped.
//! - A slot never becomes null again, so a look-up finds what is behind it: from the slot that a
//!   value's address hashes to, the value is found before any null.

use super::deferred::{Chore, Deferred};
use super::rculist::synchronize_tasks;
use core::sync::atomic::{AtomicPtr, Ordering};
use dtrace_engine::mem::sort::sort;
use kernel::alloc::{KBox, KVVec};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Mutex};

/// The number of slots for each value, at least.
const SLOTS_PER_VALUE: usize = 8;

/// What can be put into an [`IpMap`].
pub trait Keyed: Unpin {
    /// Returns its address; 0 if it has none.
    fn ip(&self) -> usize;

    /// Returns what identifies it, wherever it is.
    fn key(&self) -> u64;

    /// Moves it to another address, or to none (0).
    fn move_to(&self, ip: usize);
}

/// The map. It uses the atomics of `core`, because the kernel's own are function calls in a module.
pub struct IpMap<T> {
    table: AtomicPtr<Table<T>>,
    inner: Pin<KBox<Mutex<Inner<T>>>>,
    replaced: Pin<KBox<Deferred<Replaced<T>>>>,
}

/// Tables that were replaced and are to be freed.
struct Replaced<T>(Pin<KBox<Mutex<Chain<T>>>>);

/// The first table of a linked list.
type Chain<T> = Option<KBox<Table<T>>>;

struct Inner<T> {
    table: KBox<Table<T>>,
    chunks: KVVec<KVVec<T>>,
    // Values without an address.
    spare: KVVec<Spare<T>>,
    // The number of slots that are not null.
    used: usize,
    live: usize,
}

/// A value of one of the chunks that has no address. A null pointer: the value is in use again.
struct Spare<T> {
    key: u64,
    value: *const T,
}

struct Table<T> {
    slots: KVVec<AtomicPtr<T>>,
    mask: usize,
    /// The next table that is to be freed.
    next: Chain<T>,
}

// SAFETY: Values are shared with all threads and dropped with the map. The table pointer is atomic,
// and the rest is behind mutexes.
unsafe impl<T: Send + Sync> Send for IpMap<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for IpMap<T> {}
// SAFETY: A replaced table is only dropped, which does not access the values that its slots point
// to.
unsafe impl<T> Send for Replaced<T> {}
// SAFETY: The tables are behind a mutex.
unsafe impl<T> Sync for Replaced<T> {}

impl<T> Replaced<T> {
    fn new() -> Result<Self> {
        let none = new_mutex!(None, "dtrace::ipmap::replaced");
        Ok(Self(KBox::pin_init(none, GFP_KERNEL)?))
    }

    /// Adds a table.
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
    /// Called when no look-up uses the map any more.
    fn drop(&mut self) {
        give_back(self.0.lock().take());
    }
}

/// Drops tables one after another. Dropping the first would drop the others recursively.
fn give_back<T>(mut first: Chain<T>) {
    while let Some(mut table) = first {
        first = table.next.take();
    }
}

impl<T: Keyed> IpMap<T> {
    /// Returns an empty map. May sleep.
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

    /// Returns the value at `ip`, which must not be 0. May be called in any context.
    #[inline]
    pub fn get(&self, ip: usize) -> Option<&T> {
        // SAFETY: By the module's invariant the pointer is to the current table, and the acquire
        // load pairs with the release store that published it. A table that is replaced meanwhile
        // is freed only after `synchronize_tasks()`, which waits for this code, because it does not
        // sleep.
        let table = unsafe { &*self.table.load(Ordering::Acquire) };
        table.find(ip).map(|(_, value)| value)
    }

    /// Adds values. No value of the map may have one of their addresses. After an error nothing was
    /// added. May sleep.
    pub fn extend(&self, mut values: KVVec<T>) -> Result {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        self.make_room(inner, values.len())?;
        inner.chunks.reserve(1, GFP_KERNEL)?;

        // Nothing below can fail.
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
                // SAFETY: A spare value lies in one of the chunks, which live as long as `self`.
                let old = unsafe { &*old };
                old.move_to(value.ip());
                put(old);
                false
            }
            None => true,
        });
        spare.retain(|spare| !spare.value.is_null());
        values.iter().for_each(put);
        // There is room: it was reserved above. The chunk's elements do not move, only its header.
        if !values.is_empty() {
            inner.chunks.push(values, GFP_KERNEL)?;
        }
        Ok(())
    }

    /// Forgets the value at `ip`. Look-ups that have found it can still use it. May sleep.
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
        // If there is no memory for it, the value is just never used again.
        let _ = inner.spare.push(spare, GFP_KERNEL);
    }

    /// Makes the values at `ips` be found in the first slot that a look-up examines: each changes
    /// places with the value that is found there. Between the two stores the other value may not be
    /// found, so this must be done before any look-up needs it. May sleep.
    pub fn prefer(&self, ips: impl Iterator<Item = usize>) {
        let inner = self.inner.lock();
        for ip in ips {
            let (first, other) = inner.table.slot(hash(ip));
            let (Some((slot, value)), Some(other)) = (inner.table.find(ip), other) else {
                continue;
            };
            // The other value can still be found: its own sequence leads through `first` and on to
            // this slot, because there is no null in between.
            slot.store(core::ptr::from_ref(other).cast_mut(), Ordering::Release);
            first.store(core::ptr::from_ref(value).cast_mut(), Ordering::Release);
        }
    }

    /// Makes sure that at most an eighth of the table is used with `more` further addresses.
    fn make_room(&self, inner: &mut Inner<T>, more: usize) -> Result {
        let total = inner.used.checked_add(more).ok_or(ENOMEM)?;
        if total.checked_mul(SLOTS_PER_VALUE).ok_or(ENOMEM)? <= inner.table.slots.len() {
            return Ok(());
        }
        // A quarter more, so that the next few values do not fill it again.
        let room = inner.live.checked_add(more).ok_or(ENOMEM)?;
        let room = room.checked_add(room / 4).ok_or(ENOMEM)?;
        let mut new = KBox::new(Table::with_room(room)?, GFP_KERNEL)?;
        let mut used = 0usize;
        for slot in inner.table.slots.iter() {
            // SAFETY: By the module's invariant the slot is null or points to a value that lives as
            // long as `self`.
            let value = unsafe { slot.load(Ordering::Relaxed).as_ref() };
            if let Some(value) = value.filter(|value| value.ip() != 0) {
                used = used.wrapping_add(usize::from(new.put(value)));
            }
        }
        self.table
            .store(core::ptr::from_mut(&mut *new), Ordering::Release);
        let old = core::mem::replace(&mut inner.table, new);
        // If the old table never had a value, no function leads here yet, so no look-up can be in
        // it, and it may be dropped at once.
        if core::mem::replace(&mut inner.used, used) > 0 {
            self.replaced.chore().push(old);
            self.replaced.ask();
        }
        Ok(())
    }

    /// Whether the value at `ip` is found in the first slot that a look-up examines.
    #[cfg(test)]
    pub fn is_first(&self, ip: usize) -> bool {
        let inner = self.inner.lock();
        let first = inner.table.slot(hash(ip)).1;
        first.is_some_and(|value| value.ip() == ip)
    }

    /// Returns the number of slots, and the number of values that there is memory for, in use or
    /// not.
    #[cfg(test)]
    pub fn room(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        let values = inner.chunks.iter().map(|c| c.len()).sum();
        (inner.table.slots.len(), values)
    }
}

/// Takes the value with this key out of `spare`, which must be sorted by key.
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

    /// Returns slot `at`, modulo the table's size, and its value.
    #[inline]
    fn slot(&self, at: usize) -> (&AtomicPtr<T>, Option<&T>) {
        // SAFETY: The index is at most `mask`, and the table has `mask + 1` slots.
        let slot = unsafe { self.slots.get_unchecked(at & self.mask) };
        // SAFETY: By the module's invariant the slot is null or points to a value that lives as
        // long as the map, and so as long as this table.
        (slot, unsafe { slot.load(Ordering::Acquire).as_ref() })
    }

    /// Returns the value at `ip`, and the first slot in which it is found.
    #[inline]
    fn find(&self, ip: usize) -> Option<(&AtomicPtr<T>, &T)> {
        let mut at = hash(ip);
        loop {
            // This ends, because most of the slots are null.
            let (slot, value) = self.slot(at);
            let value = value?;
            if value.ip() == ip {
                return Some((slot, value));
            }
            at = at.wrapping_add(1);
        }
    }

    /// Puts a value into the first slot where it can be found. Returns whether that slot was null.
    fn put(&self, value: &T) -> bool {
        let mut at = hash(value.ip());
        loop {
            let (slot, found) = self.slot(at);
            // A value without an address gives up its slot: if it is added again it gets a slot
            // anew. That slot may be one that it had before.
            if found.is_none_or(|found| found.ip() == 0 || found.ip() == value.ip()) {
                slot.store(core::ptr::from_ref(value).cast_mut(), Ordering::Release);
                return found.is_none();
            }
            at = at.wrapping_add(1);
        }
    }
}

/// Spreads addresses, most of which are multiples of 16.
#[inline]
fn hash(ip: usize) -> usize {
    ip.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}
