// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! From the address of a traced function to what is known of it, in probe context.
//!
//! Open addressing over two words a slot, at most a quarter full: of seven look-ups six or more find what they want at once, and a second
//! look costs as much as a predicate. A look-up takes no lock and is in
//! no RCU read-side section, since it runs before the framework has looked where it is. But it does not sleep, and that is
//! enough for [`synchronize_tasks`].
//!
//! Values come and go with kernel modules, which must not make the map grow for ever. A removed value is therefore kept, and taken
//! up again when a value that [is the same](Keyed::key) is added, at whatever address. A full table is replaced by one that
//! fits what it still holds, and given back after a wait.
//!
//! Invariants:
//! - `table` points to the `Inner::table`, and every value pointer into one of `Inner::chunks`, which give nothing back before
//!   the map is dropped.
//! - A slot's address never becomes 0 again, so that a look-up finds what is behind it. The value says by its own address
//!   whether it is the one that was looked for.

use super::rculist::synchronize_tasks;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use dtrace_engine::mem::sort::sort;
use kernel::alloc::{KBox, KVVec};
use kernel::prelude::*;
use kernel::sync::{new_mutex, Mutex};

/// What can be put into an [`IpMap`].
pub trait Keyed: Unpin {
    /// Its address, not 0.
    fn ip(&self) -> usize;

    /// Who it is, wherever it is.
    fn key(&self) -> u64;

    /// Moves it to another address.
    fn move_to(&self, ip: usize);
}

/// The map. The kernel's own atomics are function calls in a module, hence those of `core`.
pub struct IpMap<T> {
    table: AtomicPtr<Table<T>>,
    inner: Pin<KBox<Mutex<Inner<T>>>>,
}

struct Inner<T> {
    table: KBox<Table<T>>,
    chunks: KVVec<KVVec<T>>,
    // Values in no slot.
    spare: KVVec<Spare<T>>,
    // Slots that have an address, whether a value or not.
    used: usize,
    live: usize,
}

/// A value of one of the chunks that is not in use; null: taken up again.
struct Spare<T> {
    key: u64,
    value: *const T,
}

struct Table<T> {
    slots: KVVec<Slot<T>>,
    mask: usize,
}

struct Slot<T> {
    ip: AtomicUsize,
    value: AtomicPtr<T>,
}

// SAFETY: Values are shared and dropped where the map is; all else is atomic or behind the mutex.
unsafe impl<T: Send + Sync> Send for IpMap<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for IpMap<T> {}

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
        Ok(Self { table, inner })
    }

    /// The value at `ip`. For any context.
    #[inline]
    pub fn get(&self, ip: usize) -> Option<&T> {
        // SAFETY: By the module's invariant it points to the current table. One that is replaced meanwhile is given back after a
        // wait for this, which does not sleep.
        let table = unsafe { &*self.table.load(Ordering::Acquire) };
        let slot = table.find(ip)?;
        // SAFETY: By the module's invariant a value that is not null lives as long as `self`, and nobody writes to it.
        let value = unsafe { slot.value.load(Ordering::Acquire).as_ref() }?;
        (value.ip() == ip).then_some(value)
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
        let Some(slot) = inner.table.find(ip) else {
            return;
        };
        let value = slot.value.swap(core::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: As in `get`.
        let Some(value) = (unsafe { value.as_ref() }) else {
            return;
        };
        inner.live = inner.live.wrapping_sub(1);
        let spare = Spare {
            key: value.key(),
            value: core::ptr::from_ref(value),
        };
        // Without memory for it the value is not used again, no more.
        let _ = inner.spare.push(spare, GFP_KERNEL);
    }

    /// Sees to it that the table is at most a quarter full with `more` addresses.
    fn make_room(&self, inner: &mut Inner<T>, more: usize) -> Result {
        let total = inner.used.checked_add(more).ok_or(ENOMEM)?;
        if total.checked_mul(4).ok_or(ENOMEM)? <= inner.table.slots.len() {
            return Ok(());
        }
        // With a quarter to spare, lest the next few values be too many again.
        let room = inner.live.checked_add(more).ok_or(ENOMEM)?;
        let room = room.checked_add(room / 4).ok_or(ENOMEM)?;
        let mut new = KBox::new(Table::with_room(room)?, GFP_KERNEL)?;
        let mut used = 0usize;
        for slot in inner.table.slots.iter() {
            // SAFETY: As in `get`.
            if let Some(value) = unsafe { slot.value.load(Ordering::Relaxed).as_ref() } {
                used = used.wrapping_add(usize::from(new.put(value)));
            }
        }
        self.table
            .store(core::ptr::from_mut(&mut *new), Ordering::Release);
        let old = core::mem::replace(&mut inner.table, new);
        // Where there was nothing to find there is nobody who looks for it.
        if core::mem::replace(&mut inner.used, used) > 0 {
            synchronize_tasks();
        }
        drop(old);
        Ok(())
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

impl<T> Table<T> {
    fn with_room(values: usize) -> Result<Self> {
        let len = values
            .checked_mul(4)
            .and_then(usize::checked_next_power_of_two)
            .ok_or(ENOMEM)?
            .max(64);
        let mut slots = KVVec::with_capacity(len, GFP_KERNEL)?;
        for _ in 0..len {
            slots.push(
                Slot {
                    ip: AtomicUsize::new(0),
                    value: AtomicPtr::new(core::ptr::null_mut()),
                },
                GFP_KERNEL,
            )?;
        }
        Ok(Self {
            slots,
            mask: len.wrapping_sub(1),
        })
    }

    /// The slot that a count comes to.
    #[inline]
    fn slot(&self, at: usize) -> &Slot<T> {
        // SAFETY: There are as many slots as the mask, whose bits are all set up to the highest, has numbers.
        unsafe { self.slots.get_unchecked(at & self.mask) }
    }

    /// The slot of `ip`.
    #[inline]
    fn find(&self, ip: usize) -> Option<&Slot<T>> {
        let mut at = hash(ip);
        loop {
            // Ends, for most of the slots are empty.
            let slot = self.slot(at);
            // What is asked for is there nearly always.
            match slot.ip.load(Ordering::Acquire) {
                found if found == ip => return Some(slot),
                0 => return None,
                _ => at = at.wrapping_add(1),
            }
        }
    }

    /// Puts a value into its slot; whether that is a new one.
    fn put(&self, value: &T) -> bool
    where
        T: Keyed,
    {
        let ip = value.ip();
        let pointer = core::ptr::from_ref(value).cast_mut();
        if let Some(slot) = self.find(ip) {
            slot.value.store(pointer, Ordering::Release);
            return false;
        }
        let mut at = hash(ip);
        loop {
            let slot = self.slot(at);
            if slot.ip.load(Ordering::Relaxed) == 0 {
                // Whoever finds the address must find its value.
                slot.value.store(pointer, Ordering::Release);
                slot.ip.store(ip, Ordering::Release);
                return true;
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
