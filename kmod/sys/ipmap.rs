// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! From the address of a traced function to what is known of it, in probe context.
//!
//! Open addressing over two words a slot, at most half full: nearly always one cache line. A look-up takes no lock and is in
//! no RCU read-side section, since it runs before the framework has looked where it is; so nothing that it could
//! still be reading is freed before the map is. A removed entry only loses its value, a full table is replaced by one twice as
//! large and kept (all those before it are together no larger than it).
//!
//! Invariant: `table` points to one of `Inner::tables`, and every value pointer into one of `Inner::chunks`;
//! neither gives anything back before the map is dropped.

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use kernel::alloc::KVVec;
use kernel::prelude::*;
use kernel::sync::{new_mutex, Mutex};

/// What can be put into an [`IpMap`].
pub trait Keyed {
    /// Its address, not 0.
    fn ip(&self) -> usize;
}

/// The map. The kernel's own atomics are function calls in a module, hence those of `core`.
#[pin_data]
pub struct IpMap<T> {
    table: AtomicPtr<Table<T>>,
    #[pin]
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    tables: KVVec<KBox<Table<T>>>,
    chunks: KVVec<KVVec<T>>,
    used: usize,
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
    pub fn new() -> Result<impl PinInit<Self>> {
        let mut first = KBox::new(Table::with_room(0)?, GFP_KERNEL)?;
        let table = AtomicPtr::new(core::ptr::from_mut(&mut *first));
        let mut tables = KVVec::with_capacity(1, GFP_KERNEL)?;
        tables.push(first, GFP_KERNEL)?;
        Ok(pin_init!(Self {
            table,
            inner <- new_mutex!(Inner { tables, chunks: KVVec::new(), used: 0 }, "dtrace::IpMap"),
        }))
    }

    /// The value at `ip`. For any context.
    #[inline]
    pub fn get(&self, ip: usize) -> Option<&T> {
        // SAFETY: By the module's invariant the table lives as long as `self`.
        let table = unsafe { &*self.table.load(Ordering::Acquire) };
        let slot = table.find(ip)?;
        // SAFETY: By the module's invariant a value that is not null lives as long as `self`, and nobody writes to it.
        unsafe { slot.value.load(Ordering::Acquire).as_ref() }
    }

    /// Adds values; of an address that is there already, the value is replaced.
    pub fn extend(&self, values: KVVec<T>) -> Result {
        let mut inner = self.inner.lock();
        let total = inner.used.checked_add(values.len()).ok_or(ENOMEM)?;
        if total.checked_mul(2).ok_or(ENOMEM)? > inner.current()?.slots.len() {
            self.grow(&mut inner, total)?;
        }
        inner.chunks.push(values, GFP_KERNEL)?;
        let (Some(chunk), Some(table)) = (inner.chunks.last(), inner.tables.last()) else {
            return Err(EINVAL);
        };
        let mut added = 0usize;
        for value in chunk.iter() {
            added = added.wrapping_add(usize::from(table.put(value)));
        }
        inner.used = inner.used.wrapping_add(added);
        Ok(())
    }

    /// Forgets the value at `ip`. It stays readable for those that found it before.
    pub fn remove(&self, ip: usize) {
        let inner = self.inner.lock();
        if let Some(slot) = inner.tables.last().and_then(|t| t.find(ip)) {
            slot.value.store(core::ptr::null_mut(), Ordering::Release);
        }
    }

    fn grow(&self, inner: &mut Inner<T>, total: usize) -> Result {
        let mut new = KBox::new(Table::with_room(total)?, GFP_KERNEL)?;
        let mut used = 0usize;
        for slot in inner.current()?.slots.iter() {
            // SAFETY: As in `get`.
            if let Some(value) = unsafe { slot.value.load(Ordering::Relaxed).as_ref() } {
                used = used.wrapping_add(usize::from(new.put(value)));
            }
        }
        let table = core::ptr::from_mut(&mut *new);
        inner.tables.push(new, GFP_KERNEL)?;
        inner.used = used;
        self.table.store(table, Ordering::Release);
        Ok(())
    }
}

impl<T> Inner<T> {
    fn current(&self) -> Result<&Table<T>> {
        self.tables.last().map(|t| &**t).ok_or(EINVAL)
    }
}

impl<T> Table<T> {
    fn with_room(values: usize) -> Result<Self> {
        let len = values
            .checked_mul(2)
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

    /// The slot of `ip`.
    #[inline]
    fn find(&self, ip: usize) -> Option<&Slot<T>> {
        let mut at = hash(ip);
        loop {
            // Ends, for at least half of the slots are empty.
            let slot = self.slots.get(at & self.mask)?;
            match slot.ip.load(Ordering::Acquire) {
                0 => return None,
                found if found == ip => return Some(slot),
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
        while let Some(slot) = self.slots.get(at & self.mask) {
            if slot.ip.load(Ordering::Relaxed) == 0 {
                // Whoever finds the address must find its value.
                slot.value.store(pointer, Ordering::Release);
                slot.ip.store(ip, Ordering::Release);
                return true;
            }
            at = at.wrapping_add(1);
        }
        false
    }
}

/// Spreads addresses, which are multiples of 16 mostly.
#[inline]
fn hash(ip: usize) -> usize {
    ip.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}
