// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Workers that do, for users, what takes locks of the kernel that everybody needs (INV-32,
//! `helpers/patching.c`).

use crate::bindings;
use core::ffi::c_void;
use kernel::error::to_result;
use kernel::prelude::*;

/// The workers. `patch()` may be used only while this value lives.
pub struct Patchers(());

impl Patchers {
    /// Starts them. Must be called at most once in the life of the module. May sleep.
    pub fn new() -> Result<Self> {
        // SAFETY: The module's entry point is the only caller, and calls it once.
        to_result(unsafe { bindings::dtrace_patching_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Patchers {
    fn drop(&mut self) {
        // SAFETY: No work may be queued any more. The module drops this value last.
        unsafe { bindings::dtrace_patching_exit() };
    }
}

/// Calls `f`: in a worker, unless the caller may decide about priorities (`CAP_SYS_NICE`, or a
/// kernel thread). Waits for it; may sleep. The caller must hold no lock that `f` takes, and no
/// lock that others need unless it is one with a gate (see `dtrace_patch()`).
pub(super) fn patch(mut f: impl FnMut() + Send) {
    let mut f: &mut (dyn FnMut() + Send) = &mut f;
    // SAFETY: `run` gets a pointer to `f`, is called once, and has returned before this does, so
    // the pointer is valid and nothing else uses `f` meanwhile. `f` is `Send`, so another task may
    // call it.
    unsafe { bindings::dtrace_patch(Some(run), (&raw mut f).cast()) };
}

/// # Safety
///
/// `f` must point to a closure that nothing else uses during the call.
unsafe extern "C" fn run(f: *mut c_void) {
    // SAFETY: By the caller's promise.
    unsafe { (*f.cast::<&mut (dyn FnMut() + Send)>())() };
}
