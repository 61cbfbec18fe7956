// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Memory. All `unsafe` code of the crate is in this folder (INV-39).
//!
//! Its modules are:
//! - [`alloc`]: two platform functions provide and free zeroed memory; every allocation can fail,
//!   none aborts
//! - [`Vec`] and [`Boxed`]: containers whose growth returns an error
//! - [`atomic`]: atomic words of memory, and their stand-ins for tests of all interleavings
//! - [`shared`]: words and bytes that several CPUs read and write at the same time, through relaxed
//!   atomics only, so a race can tear a string but is never undefined behaviour
//! - [`sort`]: sorting without recursion
//! - [`sync`]: a cell that is set once and read by every CPU, values that belong to one CPU, and a
//!   lock for the control path that refuses instead of waiting
//!
//! Outside of this folder, slices are indexed with `get`, or with an index masked to the array's
//! size.
// Sizes and offsets are within one allocation.
#![allow(clippy::arithmetic_side_effects)]
#![allow(unsafe_code)]

pub mod alloc;
pub mod atomic;
pub mod shared;
pub mod sort;
pub mod sync;
pub mod vec;

pub use vec::{Boxed, Vec};
