// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What the compiler asks of the world: probes, types, symbols and processes.
//!
//! The compiler itself opens no file and no device. It reaches the running kernel through these four traits, all
//! of them lazy, so that a program that needs no kernel type costs no reading of BTF, and so that tests compile
//! against fixtures.

use crate::ctf::Ctf;
use crate::dwarf::{self, DebugInfo};
use crate::pid::{Code, Module, Object, Place};
use crate::types::btf::{Btf, KernelBtf};
use crate::usdt::{Note, Point, Registration};
use dtrace_uapi::types::{ProbeId, ProviderAttributes};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// A probe description: four patterns, an empty one matching everything, or an id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProbePattern {
    /// The probe's id, or 0 where the patterns decide.
    pub id: ProbeId,
    /// Glob for the provider.
    pub provider: String,
    /// Glob for the module.
    pub module: String,
    /// Glob for the function.
    pub func: String,
    /// Glob for the name.
    pub name: String,
}

impl std::fmt::Display for ProbePattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.id != 0 {
            return write!(f, "{}", self.id);
        }
        write!(
            f,
            "{}:{}:{}:{}",
            self.provider, self.module, self.func, self.name
        )
    }
}

/// A probe that a pattern matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeInfo {
    /// The probe's id.
    pub id: ProbeId,
    /// Its provider.
    pub provider: String,
    /// Its module, empty where it has none.
    pub module: String,
    /// Its function, empty where it has none.
    pub func: String,
    /// Its name.
    pub name: String,
}

/// Type of one of a probe's `args[]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgInfo {
    /// Which of the probe's native arguments it is.
    pub mapping: u32,
    /// The native type, in C's words.
    pub native: String,
    /// The type that `args[]` has, where a translator stands between; else empty.
    pub translated: String,
}

/// The probes of the running kernel.
pub trait ProbeSource {
    /// The first `limit` probes that match `pattern`; making probes to order where a provider can.
    fn matching(&self, pattern: &ProbePattern, limit: usize) -> Vec<ProbeInfo>;

    /// The attributes of the provider of this name, if there is one.
    fn attributes(&self, _provider: &str) -> Option<ProviderAttributes> {
        None
    }

    /// Type of argument `index` of probe `id`, or `None` where it has no such argument.
    fn argument(&self, id: ProbeId, index: u32) -> Option<ArgInfo>;
}

/// The kernel's types: BTF as the kernel publishes it. And those of processes.
pub trait TypeSource {
    /// The BTF of `module`, loaded or not, `vmlinux` being the kernel itself; `None` where there is none.
    fn btf(&self, module: &str) -> Option<Arc<Btf>>;

    /// Names of the loaded modules that have BTF, without `vmlinux`.
    fn modules(&self) -> Vec<String>;

    /// What is known of a program or library of a process.
    fn process_module(&self, _pid: u32, _module: &str) -> Result<Rc<Module>, dwarf::Error> {
        Err(dwarf::Error::None)
    }
}

/// Files that cannot be read or hold nonsense are as good as none: a program that needs a type of theirs says so.
impl TypeSource for KernelBtf {
    fn btf(&self, module: &str) -> Option<Arc<Btf>> {
        self.module(module).ok().flatten()
    }

    fn modules(&self) -> Vec<String> {
        KernelBtf::modules(self)
    }
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
    /// The symbol `name`, of `module` only where given.
    fn symbol(&self, module: Option<&str>, name: &str) -> Option<Symbol>;
}

/// Why the kernel has made no probes in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmade {
    /// Which of the places it is about, if it is about one.
    pub at: Option<usize>,
    /// In words.
    pub why: String,
    /// We may not trace the process.
    pub is_denied: bool,
    /// The user has set a limit for this tracing, and it is reached.
    pub is_limit: bool,
}

impl Unmade {
    /// The kernel cannot do that.
    pub fn no_probes() -> Self {
        Self {
            at: None,
            why: "the kernel has no probes in processes".to_owned(),
            is_denied: false,
            is_limit: false,
        }
    }
}

/// The processes that run, for descriptions of probes in them.
pub trait ProcessSource {
    /// What the process `pid` runs code of, its program first; an error says why it cannot be looked at.
    fn objects(&self, pid: u32) -> io::Result<Vec<Object>>;

    /// What it runs that is in no file and has this name, which is no file's.
    fn bare(&self, _pid: u32, _name: &str) -> Option<Object> {
        None
    }

    /// Functions and text of one of these.
    fn code(&self, object: &Object) -> io::Result<Code>;

    /// The probes that one of these has of its own.
    fn notes(&self, _object: &Object) -> io::Result<Rc<[Note]>> {
        Ok(Rc::default())
    }

    /// What a process has registered that runs.
    fn registered(&self, _pid: u32) -> io::Result<Rc<[Registration]>> {
        Ok(Rc::default())
    }

    /// Has the kernel make such probes of the process; an error has its reason.
    fn make_own(&self, _pid: u32, _points: &[Point]) -> Result<(), Unmade> {
        Err(Unmade::no_probes())
    }

    /// What its compiler has told of one of these.
    fn debug(&self, _object: &Object) -> Result<Rc<DebugInfo>, dwarf::Error> {
        Err(dwarf::Error::None)
    }

    /// What it has told in the short form, by that file or, if wanted, by one `apart`.
    fn ctf(&self, _object: &Object, _apart: bool) -> Option<Rc<Ctf>> {
        None
    }

    /// Has the kernel make probes of the process; an error has its reason, and the place that it is about, if it is about one.
    fn make(&self, _pid: u32, _places: &[Place]) -> Result<(), Unmade> {
        Err(Unmade::no_probes())
    }
}

/// All that the compiler asks of the world.
pub trait World: ProbeSource + TypeSource + SymbolSource + ProcessSource {
    /// The types alone.
    fn types(&self) -> &dyn TypeSource;
}

impl<T: ProbeSource + TypeSource + SymbolSource + ProcessSource> World for T {
    fn types(&self) -> &dyn TypeSource {
        self
    }
}

/// A world without probes, types, symbols and processes, in which every description is taken to match: what `-n` programs
/// that are only compiled, and unit tests, need.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

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

impl TypeSource for Nowhere {
    fn btf(&self, _module: &str) -> Option<Arc<Btf>> {
        None
    }

    fn modules(&self) -> Vec<String> {
        Vec::new()
    }
}

impl SymbolSource for Nowhere {
    fn symbol(&self, _module: Option<&str>, _name: &str) -> Option<Symbol> {
        None
    }
}

impl ProcessSource for Nowhere {
    fn objects(&self, _pid: u32) -> io::Result<Vec<Object>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn code(&self, _object: &Object) -> io::Result<Code> {
        Err(io::ErrorKind::NotFound.into())
    }
}
