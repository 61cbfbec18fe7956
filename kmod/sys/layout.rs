// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Where the devices lie. A path cannot lie below a node, so programs that open `/dev/dtrace/helper` need a directory there.

use crate::bindings;
use core::ffi::CStr;
use kernel::prelude::*;

/// The paths below `/dev` of the consumers' device and of the programs', by the module's parameter `layout`. `EINVAL`: it says something else.
pub fn paths() -> Result<[&'static CStr; 2]> {
    // SAFETY: The parameter is set before the module is loaded, and not after.
    match unsafe { bindings::dtrace_layout() } {
        0 => Ok([c"dtrace", c"dtracehelper"]),
        1 => Ok([c"dtrace/dtrace", c"dtrace/helper"]),
        _ => {
            pr_err!("the parameter layout is neither file nor dir\n");
            Err(EINVAL)
        }
    }
}
