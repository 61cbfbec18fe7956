// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The framework's tables and lists as a crate of their own, so that their tests run on the host.
//!
//! The files are the module's own. What they reach for outside is either theirs too (arena, lists) or replaced here by the
//! least that compiles: an ECB is a number, and there is one CPU, always taken.
#![allow(dead_code)]

pub mod glob;
mod host_tests;
mod names;
mod probe;
mod provider;
mod table;

mod ecb {
    pub struct EcbRef(pub u32);
}

#[path = "../sys"]
mod sys {
    pub mod arena;
    pub mod rculist;

    pub mod percpu {
        pub struct CpuGuard;
    }
}

mod bindings {
    /// # Safety
    ///
    /// None is needed; the kernel's has the same signature.
    // SAFETY: does nothing.
    pub unsafe fn synchronize_rcu() {}
}
