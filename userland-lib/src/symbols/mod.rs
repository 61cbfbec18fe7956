// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Symbolization: names for addresses of the kernel and of processes.

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
pub(crate) use files::{open_mapped, path_to_mapped, vdso};
pub use kernel::{KernelSymbols, Symbol, VMLINUX};
pub(crate) use maps::{all_mappings_of, mappings_of, Backing, Mapping};
pub use remains::{Relic, Remains, Remnant};
pub use user::{UserSymbol, UserSymbols};

/// The names of D's own scope and of the C declarations of D programs, before a backquote.
pub const OWN_SCOPES: [&str; 2] = ["D", "C"];

/// Whether the name before a backquote, or its absence, refers to the declarations of D and its
/// programs.
pub fn is_own_scope(module: Option<&str>) -> bool {
    module.is_none_or(|module| OWN_SCOPES.contains(&module))
}
