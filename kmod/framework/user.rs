// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The contract's structures, from and to user space.

use kernel::prelude::*;
use kernel::uaccess::{UserPtr, UserSlice};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Reads a structure at `addr`.
pub fn get<T: FromBytes + IntoBytes>(addr: u64) -> Result<T> {
    let mut value = T::new_zeroed();
    read(addr, value.as_mut_bytes())?;
    Ok(value)
}

/// Writes a structure to `addr`.
pub fn put<T: IntoBytes + Immutable + ?Sized>(addr: u64, value: &T) -> Result {
    let bytes = value.as_bytes();
    UserSlice::new(pointer(addr), bytes.len())
        .writer()
        .write_slice(bytes)
}

/// Reads as many bytes as `out` has.
pub fn read(addr: u64, out: &mut [u8]) -> Result {
    UserSlice::new(pointer(addr), out.len())
        .reader()
        .read_slice(out)
}

/// The address `by` bytes further on.
pub fn offset(addr: u64, by: usize) -> Result<u64> {
    addr.checked_add(by as u64).ok_or(EFAULT)
}

fn pointer(addr: u64) -> UserPtr {
    UserPtr::from_addr(addr as usize)
}
