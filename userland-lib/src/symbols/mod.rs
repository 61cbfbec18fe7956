// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Names for addresses, of the kernel and of processes.

mod kernel;
mod modules;
mod user;

pub use kernel::{KernelSymbols, Symbol, VMLINUX};
pub(crate) use user::{mappings_of, Mapping};
pub use user::{UserSymbol, UserSymbols};
