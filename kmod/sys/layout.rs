// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The paths of the devices. Nothing can lie below a device node, so programs that open
//! `/dev/dtrace/helper` need a directory there.

use crate::bindings;
use core::ffi::CStr;
use kernel::prelude::*;

/// Returns the paths below `/dev` of the consumers' device and of the programs' device, according
/// to the module's parameter `layout`. Fails with `EINVAL` if that has another value.
pub fn paths() -> Result<[&'static CStr; 2]> {
    // SAFETY: The helper reads the parameter, which is set before the module's code runs and cannot
    // be changed afterwards.
    match unsafe { bindings::dtrace_layout() } {
        0 => Ok([c"dtrace", c"dtracehelper"]),
        1 => Ok([c"dtrace/dtrace", c"dtrace/helper"]),
        _ => {
            pr_err!("the parameter layout is neither file nor dir\n");
            Err(EINVAL)
        }
    }
}
