// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The compiler's interface to its environment: probes, types, symbols and processes.
//!
//! The compiler itself opens no file and no device. It accesses the running kernel through these
//! four traits. All of them are lazy, so that a program that needs no kernel type does not cause
//! BTF to be read, and they allow tests to compile against fixtures.

use crate::ctf::Ctf;
use crate::dwarf::{self, DebugInfo};
use crate::pid::{Code, Module, Object, Place};
use crate::types::btf::{Btf, KernelBtf};
use crate::usdt::{Note, Point, Registration};
use dtrace_uapi::types::{ProbeId, ProviderAttributes};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// A probe description: four patterns, of which an empty one matches everything, or an id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProbePattern {
    /// The probe's id, or 0 if the patterns apply.
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

/// The types of the kernel, from the BTF that it publishes, and of processes.
pub trait TypeSource {
    /// Returns the BTF of `module`, whether it is loaded or not; `vmlinux` is the kernel itself.
    /// `None` if there is none.
    fn btf(&self, module: &str) -> Option<Arc<Btf>>;

    /// Returns the names of the loaded modules that have BTF, without `vmlinux`.
    fn modules(&self) -> Vec<String>;

    /// Returns the debugging information of a program or library of a process.
    fn process_module(&self, _pid: u32, _module: &str) -> Result<Rc<Module>, dwarf::Error> {
        Err(dwarf::Error::None)
    }
}

/// Files that are unreadable or invalid count as missing: a program that needs a type from them
/// gets the error for that type.
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
    /// Returns the symbol `name`, of `module` only if that is given.
    fn symbol(&self, module: Option<&str>, name: &str) -> Option<Symbol>;
}

/// Why the kernel did not create probes in a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmade {
    /// The index of the place that caused it, if one did.
    pub at: Option<usize>,
    /// The reason, as text.
    pub why: String,
    /// Whether we are not permitted to trace the process.
    pub is_denied: bool,
    /// Whether a limit that the user has set for this tracing has been reached.
    pub is_limit: bool,
}

impl Unmade {
    /// Returns the reason for a kernel that does not support probes in processes.
    pub fn no_probes() -> Self {
        Self {
            at: None,
            why: "the kernel has no probes in processes".to_owned(),
            is_denied: false,
            is_limit: false,
        }
    }
}

/// The running processes, for descriptions of probes in them.
pub trait ProcessSource {
    /// Returns the objects from which the process `pid` executes code, its program first. The error
    /// says why it cannot be examined.
    fn objects(&self, pid: u32) -> io::Result<Vec<Object>>;

    /// Returns the code that the process executes from no file and that has this name, which is not
    /// the name of any file.
    fn bare(&self, _pid: u32, _name: &str) -> Option<Object> {
        None
    }

    /// Returns functions and text of an object.
    fn code(&self, object: &Object) -> io::Result<Code>;

    /// Returns the probes that an object defines itself (USDT).
    fn notes(&self, _object: &Object) -> io::Result<Rc<[Note]>> {
        Ok(Rc::default())
    }

    /// Returns the probe definitions that a running process has registered.
    fn registered(&self, _pid: u32) -> io::Result<Rc<[Registration]>> {
        Ok(Rc::default())
    }

    /// Makes the kernel create such probes in the process. The error has the kernel's reason.
    fn make_own(&self, _pid: u32, _points: &[Point]) -> Result<(), Unmade> {
        Err(Unmade::no_probes())
    }

    /// Returns the debugging information of an object.
    fn debug(&self, _object: &Object) -> Result<Rc<DebugInfo>, dwarf::Error> {
        Err(dwarf::Error::None)
    }

    /// Returns the CTF of an object, from its own file or, if `apart`, from a separate file.
    fn ctf(&self, _object: &Object, _apart: bool) -> Option<Rc<Ctf>> {
        None
    }

    /// Makes the kernel create probes in the process. The error has the kernel's reason, and the
    /// place that caused it, if one did.
    fn make(&self, _pid: u32, _places: &[Place]) -> Result<(), Unmade> {
        Err(Unmade::no_probes())
    }
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

/// An environment without probes, types, symbols and processes, in which every description counts
/// as matching: for programs that are only compiled, and for unit tests.
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
