// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

#![cfg_attr(not(feature = "std"), no_std)]
//! The portable heart of dtrace.ko.

#[cfg(any(feature = "std", test))]
extern crate std;

pub mod text;
