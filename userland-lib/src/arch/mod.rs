// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What differs between processors.

mod registers;
pub mod x86_64;

pub use registers::Registers;
