// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Who does for users what takes locks of the kernel's that everybody needs (`bindings/patching.c`).

use crate::bindings;
use core::ffi::c_void;
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

/// Has `f` done by a worker, unless the caller may decide about priorities, and waits for it. See `dtrace_patch()` for what the caller may hold.
pub(super) fn patch(mut f: impl FnMut() + Send) {
    let mut f: &mut (dyn FnMut() + Send) = &mut f;
    // SAFETY: `run` gets the pointer to `f`, once, before this returns.
    unsafe { bindings::dtrace_patch(Some(run), (&raw mut f).cast()) };
}

/// # Safety
///
/// `f` points to a closure that nobody else uses meanwhile.
unsafe extern "C" fn run(f: *mut c_void) {
    // SAFETY: By the contract.
    unsafe { (*f.cast::<&mut (dyn FnMut() + Send)>())() };
}
