// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The compiler's interface to its environment: probes, types, symbols and processes.
//!
//! The compiler itself opens no file and no device. It accesses the running kernel through these
//! four traits. All of them are lazy, so that a program that needs no kernel type does not cause
//! BTF to be read, and they allow tests to compile against fixtures.

use dtrace_objects::pattern::ProbePattern;
use dtrace_objects::processes::{Nowhere, ProcessSource};
use dtrace_types::TypeSource;
use dtrace_uapi::types::{ProbeId, ProviderAttributes};

/// A probe that a pattern matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeInfo {
    /// The probe's id.
    pub id: ProbeId,
    /// Its provider.
    pub provider: String,
    /// Its module; empty if it has none.
    pub module: String,
    /// Its function; empty if it has none.
    pub func: String,
    /// Its name.
    pub name: String,
}

/// The type of one of a probe's `args[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgInfo {
    /// The index of the native argument that it is derived from.
    pub mapping: u32,
    /// The native type, in C syntax.
    pub native: String,
    /// The type of the element of `args[]`, if a translator applies; else empty.
    pub translated: String,
}

/// The probes of the running kernel.
pub trait ProbeSource {
    /// Returns the first `limit` probes that match `pattern`. Providers that create probes on
    /// demand do so.
    fn matching(&self, pattern: &ProbePattern, limit: usize) -> Vec<ProbeInfo>;

    /// Returns the attributes of the provider with this name, if there is one.
    fn attributes(&self, _provider: &str) -> Option<ProviderAttributes> {
        None
    }

    /// Returns the type of argument `index` of probe `id`; `None` if it has no such argument.
    fn argument(&self, id: ProbeId, index: u32) -> Option<ArgInfo>;
}

/// A kernel symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its address.
    pub address: u64,
    /// The module that defines it: `vmlinux` or a module's name.
    pub module: String,
}

/// The kernel's symbols.
pub trait SymbolSource {
    /// Returns the symbol `name`, of `module` only if that is given.
    fn symbol(&self, module: Option<&str>, name: &str) -> Option<Symbol>;
}

/// The complete environment of the compiler.
pub trait World: ProbeSource + TypeSource + SymbolSource + ProcessSource {
    /// Returns the types alone.
    fn types(&self) -> &dyn TypeSource;
}

impl<T: ProbeSource + TypeSource + SymbolSource + ProcessSource> World for T {
    fn types(&self) -> &dyn TypeSource {
        self
    }
}

impl ProbeSource for Nowhere {
    fn matching(&self, pattern: &ProbePattern, _limit: usize) -> Vec<ProbeInfo> {
        vec![ProbeInfo {
            id: 1,
            provider: pattern.provider.clone(),
            module: pattern.module.clone(),
            func: pattern.func.clone(),
            name: pattern.name.clone(),
        }]
    }

    fn argument(&self, _id: ProbeId, _index: u32) -> Option<ArgInfo> {
        None
    }
}

impl SymbolSource for Nowhere {
    fn symbol(&self, _module: Option<&str>, _name: &str) -> Option<Symbol> {
        None
    }
}
