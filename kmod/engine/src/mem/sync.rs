// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Sharing between the control path and the CPUs without waiting.

use super::shared::Shared;
use super::vec::{Boxed, Vec};
use crate::error::NoMem;
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// A claim to be the only thread of execution on a CPU. Access to the engine's per-CPU memory
/// requires one.
#[derive(Debug)]
pub struct Cpu(usize);

impl Cpu {
    /// Claims CPU `index`.
    ///
    /// # Safety
    ///
    /// While the value lives, no other `Cpu` of the same index may exist in another thread of
    /// execution that can run at the same time. That holds if the caller runs on that CPU with
    /// interrupts off, or if the CPU is offline and cannot come back. A claim *nested* in this one
    /// on the same CPU (in an NMI) is allowed; the engine refuses it itself.
    pub unsafe fn claim(index: usize) -> Self {
        Self(index)
    }

    /// Returns the CPU's number.
    #[inline(always)]
    pub fn index(&self) -> usize {
        self.0
    }
}

/// A value that is set at most once and may then be read by any thread.
#[derive(Debug)]
pub struct Once<T> {
    /// Null until the value is set.
    value: AtomicPtr<T>,
    owns: PhantomData<T>,
}

// SAFETY: the value is shared by reference, and dropped by the owner of the cell; nothing else of
// it moves between threads.
unsafe impl<T: Send + Sync> Sync for Once<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Once<T> {}

impl<T> Once<T> {
    /// Makes a cell without a value.
    pub const fn new() -> Self {
        Self {
            value: AtomicPtr::new(core::ptr::null_mut()),
            owns: PhantomData,
        }
    }

    /// Returns the value, if it is set.
    #[inline(always)]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: a pointer that is not null came from `set`. It stays valid and unchanged until
        // the cell is dropped, and Acquire makes the value visible that was written before it.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// Sets the value and returns a reference to it. If the cell has a value already, returns
    /// `value` as the error.
    pub fn set(&self, value: Boxed<T>) -> Result<&T, Boxed<T>> {
        let new = value.into_raw();
        let null = core::ptr::null_mut();
        match self
            .value
            .compare_exchange(null, new, Ordering::AcqRel, Ordering::Acquire)
        {
            // SAFETY: the pointer came from a box, and now belongs to this cell.
            Ok(_) => Ok(unsafe { &*new }),
            // SAFETY: the pointer came from `into_raw` above, and no other thread has seen it.
            Err(_) => Err(unsafe { Boxed::from_raw(new) }),
        }
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: `set` stored a box's pointer here, and the exclusive reference excludes
            // borrows of the value.
            drop(unsafe { Boxed::from_raw(value) });
        }
    }
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A value for the control path. A caller that finds it taken is refused. The framework serialises
/// its control calls, so a refusal means a bug there; spinning with a mutex held would be wrong.
#[derive(Debug)]
pub struct TryLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `taken` allows one guard at a time, and only the guard gives access to the value.
unsafe impl<T: Send> Sync for TryLock<T> {}

impl<T> TryLock<T> {
    /// Makes a free lock around `value`.
    pub const fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock; `None` if it is taken already.
    pub fn take(&self) -> Option<Guard<'_, T>> {
        self.taken
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        Some(Guard {
            flag: &self.taken,
            value: self.value.get(),
        })
    }
}

/// Exclusive access to a guarded value. Dropping it releases the value.
#[derive(Debug)]
pub struct Guard<'a, T> {
    flag: &'a AtomicBool,
    value: *mut T,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: while the flag is set, this guard is the only access to the value.
        unsafe { &*self.value }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and the borrow of the guard is exclusive.
        unsafe { &mut *self.value }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.flag.store(false, Ordering::Release);
    }
}

/// A value for each CPU that was given one, accessible only with a claim to that CPU.
///
/// Invariant: a slot's value is accessed only between the setting and the clearing of `busy`, by
/// the one thread of execution that holds the CPU's claim. A nested claim (in an NMI during the
/// claim) finds `busy` set and is refused. Plain loads and stores suffice for that, because both
/// run on the same CPU.
#[derive(Debug)]
pub struct PerCpu<T>(Vec<Once<Slot<T>>>);

/// The value of a CPU in [`PerCpu`].
#[derive(Debug)]
pub struct Slot<T> {
    busy: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: by the invariant of `PerCpu`; the values move between threads only through claims.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// Makes a slot that is not in use.
    pub const fn new(value: T) -> Self {
        Self {
            busy: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }
}

impl<T> PerCpu<T> {
    /// Makes room for the values of `ncpus` CPUs.
    pub fn new(ncpus: usize) -> Result<Self, NoMem> {
        Vec::try_from_fn(ncpus, |_| Ok(Once::new())).map(Self)
    }

    /// Gives `cpu` a value. If the CPU has one already, or its number is out of range, `value` is
    /// dropped.
    pub fn set(&self, cpu: usize, value: Boxed<Slot<T>>) {
        if let Some(place) = self.0.get(cpu) {
            let _ = place.set(value);
        }
    }

    /// Whether `cpu` has a value.
    pub fn has(&self, cpu: usize) -> bool {
        self.0.get(cpu).is_some_and(|slot| slot.get().is_some())
    }

    /// Returns the value of `cpu`; `None` if the CPU has none, or if the context that this one
    /// interrupted is using it.
    #[inline(always)]
    pub fn enter<'a>(&'a self, cpu: &'a Cpu) -> Option<Guard<'a, T>> {
        let slot = self.0.get(cpu.index())?.get()?;
        if slot.busy.load(Ordering::Acquire) {
            return None;
        }
        slot.busy.store(true, Ordering::Relaxed);
        // An interrupting context on this CPU must not find the value changed and the flag clear.
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        Some(Guard {
            flag: &slot.busy,
            value: slot.value.get(),
        })
    }
}

/// A growing table of rows of `N` numbers that any CPU may read while it grows. Chunk `k` has
/// `FIRST << k` rows and is never moved. A reader that finds a number sees what was written before
/// that number was set. A row is not read as a whole: a reader may see some numbers of a row that
/// is being set, and not the others.
#[derive(Debug, Default)]
pub struct Growing<const N: usize> {
    chunks: [Once<Shared>; CHUNKS],
}

const FIRST: usize = 256;
const CHUNKS: usize = 20;

impl<const N: usize> Growing<N> {
    fn place(index: usize) -> Option<(usize, usize)> {
        let chunk = (index / FIRST + 1).ilog2() as usize;
        let begin = FIRST * ((1 << chunk) - 1);
        (chunk < CHUNKS).then(|| (chunk, (index - begin) * N * 4))
    }

    /// Returns row `index`; zeros if it was never set.
    #[inline]
    pub fn get(&self, index: usize) -> [u32; N] {
        let mut row = [0; N];
        let place = Self::place(index);
        if let Some((at, chunk)) = place.and_then(|(k, at)| Some((at, self.chunks.get(k)?.get()?)))
        {
            for (n, word) in row.iter_mut().enumerate() {
                let number = chunk.u32(at + n * 4);
                *word = number.map_or(0, |number| number.load(Ordering::Acquire));
            }
        }
        row
    }

    /// Sets row `index`. Calls must not overlap.
    pub fn set(&self, index: usize, row: [u32; N]) -> Result<(), NoMem> {
        let (chunk, at) = Self::place(index).ok_or(NoMem)?;
        let once = self.chunks.get(chunk).ok_or(NoMem)?;
        let numbers = match once.get() {
            Some(numbers) => numbers,
            None => once
                .set(Boxed::new(Shared::new((FIRST << chunk) * N * 4)?)?)
                .map_err(|_| NoMem)?,
        };
        for (n, word) in row.into_iter().enumerate() {
            let number = numbers.u32(at + n * 4).ok_or(NoMem)?;
            number.store(word, Ordering::Release);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_keeps_the_first_value() {
        let once = Once::new();
        assert!(once.get().is_none());
        assert_eq!(*once.set(Boxed::new(1).unwrap()).unwrap(), 1);
        assert_eq!(*once.set(Boxed::new(2).unwrap()).unwrap_err(), 2);
        assert_eq!(once.get(), Some(&1));
    }

    #[test]
    fn locks_refuse_a_second_taker() {
        let lock = TryLock::new(5);
        let guard = lock.take().unwrap();
        assert!(lock.take().is_none());
        drop(guard);
        *lock.take().unwrap() = 6;
        assert_eq!(*lock.take().unwrap(), 6);
    }

    #[test]
    fn numbers_keep_their_places_while_the_table_grows() {
        let t = Growing::default();
        let row = |i: usize| [i as u32 + 1, i as u32 + 2];
        for i in 0..3000 {
            t.set(i, row(i)).unwrap();
        }
        assert!((0..3000).all(|i| t.get(i) == row(i)));
        assert_eq!((t.get(3000), t.get(usize::MAX / 2)), ([0; 2], [0; 2]));
        assert!(t.set(usize::MAX / 2, [1; 2]).is_err());
    }

    #[test]
    fn a_nested_claim_is_refused() {
        let slots = PerCpu::new(3).unwrap();
        // A second value for a CPU, and one for a CPU whose number is out of range.
        for (cpu, value) in [(1, 1), (1, 2), (3, 3)] {
            slots.set(cpu, Boxed::new(Slot::new(value)).unwrap());
        }
        assert!(slots.has(1) && !slots.has(0) && !slots.has(3));
        // SAFETY: the test is single-threaded.
        let (outer, nested) = unsafe { (Cpu::claim(1), Cpu::claim(1)) };
        let guard = slots.enter(&outer).unwrap();
        assert_eq!(*guard, 1);
        assert!(slots.enter(&nested).is_none());
        drop(guard);
        assert!(slots.enter(&nested).is_some());
        // SAFETY: as above.
        assert!(slots.enter(&unsafe { Cpu::claim(2) }).is_none());
    }
}
