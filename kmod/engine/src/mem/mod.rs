// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Memory: all of the crate's `unsafe` lives here.
//!
//! The perimeter is five ideas, a file each:
//! - [`alloc`]: two platform functions give and take zeroed memory; everything can fail, nothing aborts;
//! - [`Vec`] and [`Boxed`]: containers whose growth returns an error;
//! - [`atomic`]: words of memory as atomic ones, and their stand-ins in tests of all orders;
//! - [`shared`]: words and bytes that several CPUs read and write at the same time, through relaxed atomics only, so
//!   that a race can tear a string but is never undefined;
//! - [`sync`]: a cell that is set once and read by every CPU, values that belong to one CPU, and a lock for the control
//!   path that refuses instead of waiting.
//!
//! Outside of this folder a slice is indexed with `get`, or with an index masked to the array's size.
// Sizes and offsets within one allocation.
#![allow(clippy::arithmetic_side_effects)]
#![allow(unsafe_code)]

pub mod alloc;
pub mod atomic;
pub mod shared;
pub mod sort;
pub mod sync;
pub mod vec;

pub use vec::{Boxed, Vec};
