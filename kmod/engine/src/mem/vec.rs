// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A growing array and an owned value, both with fallible allocation.

use super::alloc::{Region, ALIGN};
use crate::error::NoMem;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// A growing array.
///
/// Invariant: the region holds at least `len * size_of::<T>()` bytes, and the first `len` elements
/// are initialised.
#[derive(Debug)]
pub struct Vec<T> {
    mem: Region,
    len: usize,
    of: PhantomData<T>,
}

impl<T> Default for Vec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Vec<T> {
    const FITS: () = assert!(align_of::<T>() <= ALIGN);

    /// Makes an array without elements or memory.
    pub const fn new() -> Self {
        Self {
            mem: Region::empty(),
            len: 0,
            of: PhantomData,
        }
    }

    /// Makes an array with room for `capacity` elements.
    pub fn with_capacity(capacity: usize) -> Result<Self, NoMem> {
        let () = Self::FITS;
        let size = capacity.checked_mul(size_of::<T>()).ok_or(NoMem)?;
        Ok(Self {
            mem: Region::new(size)?,
            len: 0,
            of: PhantomData,
        })
    }

    /// Makes an array of `len` elements, which `make` returns for each index.
    pub fn try_from_fn<E: From<NoMem>>(
        len: usize,
        mut make: impl FnMut(usize) -> Result<T, E>,
    ) -> Result<Self, E> {
        let mut this = Self::with_capacity(len)?;
        for i in 0..len {
            this.push(make(i)?)?;
        }
        Ok(this)
    }

    /// Elements of size 0 need no memory, so there is room for any number of them.
    fn capacity(&self) -> usize {
        self.mem
            .size()
            .checked_div(size_of::<T>())
            .unwrap_or(usize::MAX)
    }

    /// Makes room for `more` further elements.
    pub fn reserve(&mut self, more: usize) -> Result<(), NoMem> {
        let need = self.len.checked_add(more).ok_or(NoMem)?;
        if need <= self.capacity() {
            return Ok(());
        }
        let grown = Self::with_capacity(need.max(self.len.saturating_mul(2)).max(4))?;
        // SAFETY: both regions hold at least `len` elements, and are different ones.
        unsafe {
            core::ptr::copy_nonoverlapping(
                self.mem.ptr().cast_const(),
                grown.mem.ptr(),
                self.len * size_of::<T>(),
            );
        }
        let len = self.len;
        // The elements have moved out, so only the old memory must be dropped.
        self.len = 0;
        *self = grown;
        self.len = len;
        Ok(())
    }

    /// Appends an element.
    pub fn push(&mut self, value: T) -> Result<(), NoMem> {
        self.reserve(1)?;
        // SAFETY: `reserve` made room for the element at `len`, which is not initialised yet.
        unsafe { self.mem.ptr().cast::<T>().add(self.len).write(value) }
        self.len += 1;
        Ok(())
    }

    /// Moves all elements of `other` to the end of this array. On an error both are unchanged.
    pub fn append(&mut self, other: &mut Self) -> Result<(), NoMem> {
        self.reserve(other.len)?;
        // SAFETY: `reserve` made room, and two arrays do not share memory.
        unsafe {
            core::ptr::copy_nonoverlapping(
                other.mem.ptr().cast::<T>().cast_const(),
                self.mem.ptr().cast::<T>().add(self.len),
                other.len,
            );
        }
        self.len += other.len;
        // The elements have moved out, so `other` must not drop them.
        other.len = 0;
        Ok(())
    }

    /// Removes and returns the last element.
    pub fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: the element at the new `len` is initialised, and the shorter length makes the
        // array forget it.
        Some(unsafe { self.mem.ptr().cast::<T>().add(self.len).read() })
    }

    /// Drops the elements from `len` on.
    pub fn truncate(&mut self, len: usize) {
        while self.len > len {
            self.pop();
        }
    }
}

impl<T: Copy> Vec<T> {
    /// Makes a copy of `from`.
    pub fn copy_of(from: &[T]) -> Result<Self, NoMem> {
        let mut this = Self::new();
        this.extend(from)?;
        Ok(this)
    }

    /// Appends a copy of `from`.
    pub fn extend(&mut self, from: &[T]) -> Result<(), NoMem> {
        self.reserve(from.len())?;
        // SAFETY: `reserve` made room; `from` cannot overlap memory that `&mut self` owns.
        unsafe {
            core::ptr::copy_nonoverlapping(
                from.as_ptr(),
                self.mem.ptr().cast::<T>().add(self.len),
                from.len(),
            );
        }
        self.len += from.len();
        Ok(())
    }
}

impl<T> Drop for Vec<T> {
    fn drop(&mut self) {
        self.truncate(0);
    }
}

impl<T> Deref for Vec<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: by the invariant; an empty region's pointer is aligned and not null.
        unsafe { core::slice::from_raw_parts(self.mem.ptr().cast(), self.len) }
    }
}

impl<T> DerefMut for Vec<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the borrow is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.mem.ptr().cast(), self.len) }
    }
}

/// A single value in its own allocation, whose address never changes.
///
/// Invariant: the region holds one initialised value.
#[derive(Debug)]
pub struct Boxed<T> {
    at: NonNull<T>,
    owns: PhantomData<T>,
}

// SAFETY: a box owns its value, so it may be sent if the value may be.
unsafe impl<T: Send> Send for Boxed<T> {}
// SAFETY: as above, for shared references.
unsafe impl<T: Sync> Sync for Boxed<T> {}

/// Memory for a value that does not exist yet, so that moving it in cannot fail.
#[derive(Debug)]
pub struct Room<T> {
    mem: Region,
    of: PhantomData<T>,
}

impl<T> Room<T> {
    const FITS: () = assert!(align_of::<T>() <= ALIGN && size_of::<T>() != 0);

    /// Allocates memory for one value.
    pub fn new() -> Result<Self, NoMem> {
        let () = Self::FITS;
        Ok(Self {
            mem: Region::new(size_of::<T>())?,
            of: PhantomData,
        })
    }

    /// Moves the value into the memory.
    pub fn fill(self, value: T) -> Boxed<T> {
        let at = self.mem.into_raw().cast::<T>();
        // SAFETY: `new` allocated memory for one value, and nothing else refers to it.
        unsafe { at.write(value) }
        Boxed {
            at,
            owns: PhantomData,
        }
    }
}

impl<T> Boxed<T> {
    /// Moves `value` into an allocation of its own.
    pub fn new(value: T) -> Result<Self, NoMem> {
        Ok(Room::new()?.fill(value))
    }

    /// Returns the value's address without dropping the value; [`from_raw`](Self::from_raw) takes
    /// it back.
    pub(super) fn into_raw(self) -> *mut T {
        core::mem::ManuallyDrop::new(self).at.as_ptr()
    }

    /// Rebuilds the box from what [`into_raw`](Self::into_raw) returned.
    ///
    /// # Safety
    ///
    /// `at` must come from `into_raw`, and must be passed here only once.
    pub(super) unsafe fn from_raw(at: *mut T) -> Self {
        Self {
            // SAFETY: `into_raw` never returns a null pointer.
            at: unsafe { NonNull::new_unchecked(at) },
            owns: PhantomData,
        }
    }
}

impl<T> Drop for Boxed<T> {
    fn drop(&mut self) {
        // SAFETY: by the invariant; the value is not used after this.
        unsafe { self.at.drop_in_place() }
        // SAFETY: `Room` allocated the memory with this size.
        drop(unsafe { Region::from_raw(self.at.cast(), size_of::<T>()) });
    }
}

impl<T> Deref for Boxed<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: by the invariant.
        unsafe { self.at.as_ref() }
    }
}

impl<T> DerefMut for Boxed<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: by the invariant, and the borrow is exclusive.
        unsafe { self.at.as_mut() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::alloc::{fail_after, live};
    use std::rc::Rc;

    #[test]
    fn grows_and_drops_each_element_once() {
        let before = live();
        let probe = Rc::new(());
        {
            let mut v = Vec::new();
            for _ in 0..100 {
                v.push(probe.clone()).unwrap();
            }
            assert_eq!(Rc::strong_count(&probe), 101);
            v.truncate(40);
            assert_eq!(Rc::strong_count(&probe), 41);
        }
        assert_eq!(Rc::strong_count(&probe), 1);
        assert_eq!(live(), before);
    }

    #[test]
    fn appending_moves() {
        let probe = Rc::new(());
        let (mut a, mut b) = (Vec::new(), Vec::new());
        a.push(probe.clone()).unwrap();
        for _ in 0..9 {
            b.push(probe.clone()).unwrap();
        }
        fail_after(Some(0));
        assert_eq!(a.append(&mut b), Err(NoMem));
        fail_after(None);
        assert_eq!((a.len(), b.len()), (1, 9));
        a.append(&mut b).unwrap();
        assert_eq!((a.len(), b.len(), Rc::strong_count(&probe)), (10, 0, 11));
        drop(a);
        assert_eq!(Rc::strong_count(&probe), 1);
    }

    #[test]
    fn reports_the_lack_of_memory() {
        let mut v = Vec::copy_of(&[1u32, 2, 3, 4]).unwrap();
        fail_after(Some(0));
        assert_eq!(v.push(5), Err(NoMem));
        fail_after(None);
        assert_eq!(&v[..], &[1, 2, 3, 4]);
        assert_eq!(Vec::<u64>::with_capacity(usize::MAX).unwrap_err(), NoMem);
    }

    #[test]
    fn holds_types_without_size() {
        let mut v = Vec::new();
        for _ in 0..1000 {
            v.push(()).unwrap();
        }
        assert_eq!(v.len(), 1000);
    }
}
