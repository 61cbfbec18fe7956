// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Who does for users what takes locks of the kernel's that everybody needs (`bindings/patching.c`).

use crate::bindings;
use kernel::error::to_result;
use kernel::prelude::*;

/// The workers. Nobody patches before they are there, nor when they have gone.
pub struct Patchers(());

impl Patchers {
    /// The only ones.
    pub fn new() -> Result<Self> {
        // SAFETY: Called once in the life of the module.
        to_result(unsafe { bindings::dtrace_patching_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Patchers {
    fn drop(&mut self) {
        // SAFETY: The module drops this last.
        unsafe { bindings::dtrace_patching_exit() };
    }
}
