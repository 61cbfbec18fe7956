// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Symbolization: names for addresses of the kernel and of processes.

mod compiled;
mod demangle;
mod files;
mod folder;
mod image;
mod inlines;
mod kernel;
mod maps;
mod modules;
mod remains;
mod segments;
mod user;

pub use demangle::demangled;
pub use files::{open_mapped, path_to_mapped, vdso};
pub use folder::folder_of;
pub use kernel::{KernelSymbols, Symbol};
pub use maps::{all_mappings_of, mappings_of, Backing, Mapping};
pub use remains::{Relic, Remains, Remnant};
pub use user::{UserSymbol, UserSymbols};
