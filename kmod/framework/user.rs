// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Copies structures of the contract from and to user space.

use crate::sys::faults::Span;
use crate::sys::nofault;
use kernel::prelude::*;
use kernel::uaccess::{UserPtr, UserSlice};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Reads a structure at `addr`. May wait for the memory.
pub fn get<T: FromBytes + IntoBytes>(addr: u64) -> Result<T> {
    let mut value = T::new_zeroed();
    read(addr, value.as_mut_bytes())?;
    Ok(value)
}

/// Writes a structure to `addr`. May wait for the memory.
pub fn put<T: IntoBytes + Immutable + ?Sized>(addr: u64, value: &T) -> Result {
    let bytes = value.as_bytes();
    UserSlice::new(pointer(addr), bytes.len())
        .writer()
        .write_slice(bytes)
}

/// Fills `out` from `addr`. May wait for the memory.
pub fn read(addr: u64, out: &mut [u8]) -> Result {
    UserSlice::new(pointer(addr), out.len())
        .reader()
        .read_slice(out)
}

/// Number of bytes that are copied at a time.
const PIECE: usize = 32 << 10;
/// Maximum number of times that a call has missing memory brought.
const FETCHES: usize = 64;

/// Reads a structure at `addr`, as [`fetch_bytes`] does.
pub fn fetch<T: FromBytes + IntoBytes>(addr: u64) -> Result<T> {
    let mut value = T::new_zeroed();
    fetch_bytes(addr, value.as_mut_bytes())?;
    Ok(value)
}

/// Fills `out` from `addr` without waiting for a program: memory that takes long to come, because
/// its server does not answer, is `EFAULT`. `ERESTARTSYS` if a signal is pending.
pub fn fetch_bytes(addr: u64, out: &mut [u8]) -> Result {
    let mut left = FETCHES;
    let mut at = addr;
    for piece in out.chunks_mut(PIECE) {
        let size = piece.len();
        let span = Span {
            addr: at,
            size: size as u64,
        };
        while nofault::user_load(at, piece).is_err() {
            if current!().signal_pending() {
                return Err(ERESTARTSYS);
            }
            left = left.checked_sub(1).ok_or(EFAULT)?;
            span.fetch();
        }
        at = offset(at, size)?;
    }
    Ok(())
}

/// Returns the address `by` bytes after `addr`. `EFAULT` if there is none.
pub fn offset(addr: u64, by: usize) -> Result<u64> {
    addr.checked_add(by as u64).ok_or(EFAULT)
}

fn pointer(addr: u64) -> UserPtr {
    UserPtr::from_addr(addr as usize)
}
