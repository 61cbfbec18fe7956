// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Consumes what the kernel records: the device, and the order and meaning of its records.

#![deny(unsafe_code)]

pub mod aggregate;
pub mod consume;
pub mod device;
pub mod stack;
pub mod symbolizer;
#[cfg(any(test, feature = "fixture"))]
pub mod testing;
pub mod value;
