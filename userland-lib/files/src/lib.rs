// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads the files of others: ELF, DWARF, CTF, and the instructions in them.
//!
//! This is the library's lowest floor. Whoever wrote such a file is not trusted: how it is opened,
//! how much is read, and how much work its contents may cause is limited here. What is known of a
//! processor is here as well ([`arch`]).

#![forbid(unsafe_code)]

pub mod arch;
pub mod ctf;
pub mod dwarf;
pub mod elf;
pub mod file;
pub mod fnv;
pub mod names;
pub mod nearest;
pub mod outside;
#[cfg(any(test, feature = "fixture"))]
pub mod testing;
pub mod text;
