// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The part of the `kernel` crate that the framework's host tests need, with the same names and
//! signatures.
//!
//! The framework's tables, lists and enablings are kernel code. Compiled against this crate, their
//! tests run on the host, also under Miri. Vectors keep the two properties that matter to the
//! tests: a vector does not move while it is not pushed beyond its capacity, and beyond it a push
//! may fail.

/// Allocation.
pub mod alloc {
    use crate::error::{Error, ENOMEM};
    use core::cell::Cell;
    use core::ops::{Deref, DerefMut};
    use core::pin::Pin;
    use std::mem::MaybeUninit;

    std::thread_local! {
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// Lets `n` more allocations of this thread succeed; all later ones fail. `None` removes the
    /// limit.
    pub fn fail_after(n: Option<usize>) {
        LEFT.set(n);
    }

    /// Counts an allocation, and fails it if the limit is reached.
    fn allocate() -> Result<(), AllocError> {
        match LEFT.get() {
            Some(0) => return Err(AllocError),
            Some(n) => LEFT.set(Some(n - 1)),
            None => {}
        }
        Ok(())
    }

    /// A value in memory of its own.
    pub struct KBox<T>(Box<T>);

    impl<T> KBox<T> {
        /// Moves `value` into new memory.
        pub fn new(value: T, _flags: Flags) -> Result<Self, AllocError> {
            allocate()?;
            Ok(Self(Box::new(value)))
        }

        /// Moves `value` into new memory, where it is pinned. Initializers are plain values here.
        pub fn pin_init(value: T, _flags: Flags) -> Result<Pin<Self>, Error>
        where
            T: Unpin,
        {
            allocate()?;
            Ok(Pin::new(Self(Box::new(value))))
        }

        /// Takes the value out.
        pub fn into_inner(this: Self) -> T {
            *this.0
        }
    }

    impl<T> Deref for KBox<T> {
        type Target = T;
        fn deref(&self) -> &T {
            &self.0
        }
    }

    impl<T> DerefMut for KBox<T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.0
        }
    }

    /// Flags of an allocation, without effect here.
    #[derive(Clone, Copy)]
    pub struct Flags;
    /// The allocation may sleep.
    pub const GFP_KERNEL: Flags = Flags;

    /// Flags that are not in the prelude.
    pub mod flags {
        /// The allocation may sleep, and is charged to the current control group.
        pub const GFP_KERNEL_ACCOUNT: super::Flags = super::Flags;
    }

    /// An allocation failed.
    #[derive(Debug)]
    pub struct AllocError;

    impl From<AllocError> for Error {
        fn from(_: AllocError) -> Self {
            ENOMEM
        }
    }

    /// The kernel's fallible vector.
    #[derive(Debug)]
    pub struct KVVec<T>(Vec<T>);

    impl<T> KVVec<T> {
        /// Creates an empty vector.
        pub const fn new() -> Self {
            Self(Vec::new())
        }

        /// Creates a vector with room for `n` elements.
        pub fn with_capacity(n: usize, _flags: Flags) -> Result<Self, AllocError> {
            let mut this = Self::new();
            if n > 0 {
                allocate()?;
                this.0.try_reserve_exact(n).map_err(|_| AllocError)?;
            }
            Ok(this)
        }

        /// Creates a vector of `n` copies.
        pub fn from_elem(value: T, n: usize, _flags: Flags) -> Result<Self, AllocError>
        where
            T: Clone,
        {
            allocate()?;
            Ok(Self(vec![value; n]))
        }

        /// The number of elements that fit without moving.
        pub fn capacity(&self) -> usize {
            self.0.capacity()
        }

        /// Appends an element.
        pub fn push(&mut self, value: T, flags: Flags) -> Result<(), AllocError> {
            self.reserve(1, flags)?;
            self.0.push(value);
            Ok(())
        }

        /// Appends an element if there is room; otherwise returns it.
        pub fn push_within_capacity(&mut self, value: T) -> Result<(), T> {
            if self.0.len() == self.0.capacity() {
                return Err(value);
            }
            self.0.push(value);
            Ok(())
        }

        /// Makes room for `n` more elements.
        pub fn reserve(&mut self, n: usize, _flags: Flags) -> Result<(), AllocError> {
            if self.0.capacity() - self.0.len() < n {
                allocate()?;
            }
            self.0.try_reserve(n).map_err(|_| AllocError)
        }

        /// Keeps the elements for which `f` is true.
        pub fn retain(&mut self, f: impl FnMut(&mut T) -> bool) {
            self.0.retain_mut(f);
        }

        /// Removes an element. `EINVAL`: there is no element at this index.
        pub fn remove(&mut self, at: usize) -> Result<T, Error> {
            match at < self.0.len() {
                true => Ok(self.0.remove(at)),
                false => Err(crate::error::EINVAL),
            }
        }

        /// Drops all elements.
        pub fn clear(&mut self) {
            self.0.clear();
        }

        /// Appends copies of elements.
        pub fn extend_from_slice(&mut self, other: &[T], flags: Flags) -> Result<(), AllocError>
        where
            T: Clone,
        {
            self.reserve(other.len(), flags)?;
            self.0.extend_from_slice(other);
            Ok(())
        }

        /// The address of the elements.
        pub fn as_mut_ptr(&mut self) -> *mut T {
            self.0.as_mut_ptr()
        }

        /// The room after the elements.
        pub fn spare_capacity_mut(&mut self) -> &mut [MaybeUninit<T>] {
            self.0.spare_capacity_mut()
        }

        /// The elements.
        pub fn as_slice(&self) -> &[T] {
            &self.0
        }

        /// The elements, mutable.
        pub fn as_mut_slice(&mut self) -> &mut [T] {
            &mut self.0
        }

        /// Changes the length to `n`, with copies of `value` as new elements.
        pub fn resize(&mut self, n: usize, value: T, flags: Flags) -> Result<(), AllocError>
        where
            T: Clone,
        {
            self.reserve(n.saturating_sub(self.0.len()), flags)?;
            self.0.resize(n, value);
            Ok(())
        }
    }

    impl<T> Default for KVVec<T> {
        fn default() -> Self {
            Self::new()
        }
    }

    impl<T> Deref for KVVec<T> {
        type Target = [T];
        fn deref(&self) -> &[T] {
            &self.0
        }
    }

    impl<T> DerefMut for KVVec<T> {
        fn deref_mut(&mut self) -> &mut [T] {
            &mut self.0
        }
    }

    impl<'a, T> IntoIterator for &'a KVVec<T> {
        type Item = &'a T;
        type IntoIter = core::slice::Iter<'a, T>;
        fn into_iter(self) -> Self::IntoIter {
            self.0.iter()
        }
    }

    impl<'a, T> IntoIterator for &'a mut KVVec<T> {
        type Item = &'a mut T;
        type IntoIter = core::slice::IterMut<'a, T>;
        fn into_iter(self) -> Self::IntoIter {
            self.0.iter_mut()
        }
    }
}

/// Error numbers.
pub mod error {
    /// An errno.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Error(i32);

    impl Error {
        /// From a negative number.
        pub const fn from_errno(errno: i32) -> Self {
            Self(errno)
        }

        /// As a negative number.
        pub const fn to_errno(self) -> i32 {
            self.0
        }
    }

    /// No such entry.
    pub const ENOENT: Error = Error(-2);
    /// Exists already.
    pub const EEXIST: Error = Error(-17);
    /// Interrupted.
    pub const EINTR: Error = Error(-4);
    /// No such device.
    pub const ENODEV: Error = Error(-19);
    /// Out of memory.
    pub const ENOMEM: Error = Error(-12);
    /// Permission denied.
    pub const EACCES: Error = Error(-13);
    /// Operation not permitted.
    pub const EPERM: Error = Error(-1);
    /// Try again.
    pub const EAGAIN: Error = Error(-11);
    /// Invalid argument.
    pub const EINVAL: Error = Error(-22);
    /// No space left.
    pub const ENOSPC: Error = Error(-28);
    /// Too big.
    pub const E2BIG: Error = Error(-7);

    /// A result with an errno.
    pub type Result<T = (), E = Error> = core::result::Result<T, E>;
}

/// Shared memory and locks.
pub mod sync {
    pub use crate::new_mutex;
    pub use std::sync::Arc;

    /// The kernel's mutex, which has no poisoning.
    pub struct Mutex<T>(std::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// Creates an unlocked mutex.
        pub fn new(value: T) -> Self {
            Self(std::sync::Mutex::new(value))
        }

        /// Locks the mutex.
        pub fn lock(&self) -> std::sync::MutexGuard<'_, T> {
            let locked = self.0.lock();
            locked.unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }
}

/// Creates a mutex; the name is ignored.
#[macro_export]
macro_rules! new_mutex {
    ($value:expr, $name:literal) => {
        $crate::sync::Mutex::new($value)
    };
}

/// Names that kernel code uses everywhere.
pub mod prelude {
    pub use crate::alloc::{KBox, GFP_KERNEL};
    pub use crate::error::*;
    pub use crate::pr_err;
    pub use core::pin::Pin;
}

/// Prints to standard error, in place of the kernel's log.
#[macro_export]
macro_rules! pr_err {
    ($($arg:tt)*) => { std::eprint!($($arg)*) };
}
