// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where types of the kernel and of processes come from.

use super::btf::{Btf, KernelBtf};
use dtrace_files::dwarf;
use dtrace_objects::pid::Module;
use dtrace_objects::processes::Nowhere;
use std::rc::Rc;
use std::sync::Arc;

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

impl TypeSource for Nowhere {
    fn btf(&self, _module: &str) -> Option<Arc<Btf>> {
        None
    }

    fn modules(&self) -> Vec<String> {
        Vec::new()
    }
}
