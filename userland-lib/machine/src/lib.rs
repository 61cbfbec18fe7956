// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The running machine: its processes, the names of addresses in them and in the kernel, and the
//! tables from which the kernel walks their stacks.

#![deny(unsafe_code)]

pub mod interp;
pub mod proc;
pub mod symbols;
pub mod unwind;
