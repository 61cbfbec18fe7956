// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Who may do what.

use crate::bindings;

/// Whether the current task may see everything the kernel does.
pub fn may_trace() -> bool {
    // SAFETY: Needs nothing.
    unsafe { bindings::capable(bindings::CAP_SYS_ADMIN as i32) }
}
