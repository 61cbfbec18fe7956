// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Names for addresses, of the kernel and of processes.

mod compiled;
mod demangle;
mod files;
mod image;
mod inlines;
mod kernel;
mod maps;
mod modules;
mod remains;
mod segments;
mod user;

pub use demangle::demangled;
pub(crate) use files::{is_stored, open_mapped, path_of, path_to_mapped, place, vdso};
pub use kernel::{KernelSymbols, Symbol, VMLINUX};
pub(crate) use maps::{all_mappings_of, mappings_of, Backing, Mapping};
pub use remains::{Relic, Remains, Remnant};
pub use user::{UserSymbol, UserSymbols};

/// The names of D's and C's own scopes before a backquote.
pub const OWN_SCOPES: [&str; 2] = ["D", "C"];

/// Whether a name before a backquote, or none, stands for what D and its programs declare.
pub fn is_own_scope(module: Option<&str>) -> bool {
    module.is_none_or(|module| OWN_SCOPES.contains(&module))
}
