// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Who may do what.
//!
//! `CAP_SYS_ADMIN` may do everything, `CAP_PERFMON` see what happens, everywhere. Memory is more: Linux gives what lies at an
//! address, the kernel's or any process's, to programs of BPF, for which one needs `CAP_BPF` as well; so do we. `CAP_SYS_PTRACE` does not do: it
//! passes neither Yama's last word nor Landlock. A group that the administrator names may trace processes of
//! its members' own, each member his, and sees nothing of the kernel. A kernel that is locked down keeps its secrets, or
//! also user memory from being written, from the first two as well. So does a security module that keeps perf events or BPF from a task. What a
//! consumer may do is decided when it is opened. Which processes a member may trace [`rights`](super::rights) say.

use super::symbols::{self, Address};
use crate::bindings;
use dtrace_engine::Privileges;
use kernel::prelude::*;
use kernel::sync::SetOnce;

/// The group that nobody is in.
const NOBODY: u32 = u32::MAX;

/// What the current task may do, a member of `group` among others; `None` where that is nothing. An error: the security modules cannot be
/// asked.
pub fn of_current(group: u32) -> Result<Option<Privileges>> {
    let [perf, bpf] = security_hooks()?;
    // What does not matter is not asked for: the kernel logs what it keeps from the caller where it is locked down.
    // SAFETY: These need nothing, or the addresses of the kernel's functions.
    Ok(unsafe {
        let admin = bindings::dtrace_capable(bindings::CAP_SYS_ADMIN as i32);
        let all = admin || bindings::dtrace_capable(bindings::CAP_PERFMON as i32);
        let all = all && bindings::dtrace_security_sees(perf);
        let reads = all && (admin || bindings::dtrace_capable(bindings::CAP_BPF as i32));
        let reads = reads && bindings::dtrace_security_reads(bpf);
        let may_see = all && bindings::dtrace_may_read_kernel();
        let may_see = may_see && bindings::dtrace_security_sees_kernel(perf);
        let some = all || (group != NOBODY && bindings::dtrace_in_group(group));
        some.then(|| Privileges {
            kernel: may_see,
            kernel_memory: reads && may_see,
            all_users: all,
            user_memory: reads || !all,
            destructive: admin && all && bindings::dtrace_may_write(),
        })
    })
}

/// Where the kernel asks its security modules for perf events and for BPF; 0 where it does not.
fn security_hooks() -> Result<[usize; 2]> {
    static HOOKS: SetOnce<[usize; 2]> = SetOnce::new();

    if let Some(found) = HOOKS.as_ref() {
        return Ok(*found);
    }
    let [perf, bpf] = [c"security_perf_event_open", c"security_bpf"].map(symbols::find);
    let found = [perf?, bpf?].map(|hook| hook.map_or(0, Address::get));
    HOOKS.populate(found);
    Ok(found)
}

/// Whether the kernel still allows what a consumer may do: it may have been locked down since.
pub fn are_allowed(rights: Privileges) -> bool {
    // SAFETY: These need nothing.
    unsafe {
        (!rights.kernel || bindings::dtrace_may_read_kernel())
            && (!rights.destructive || bindings::dtrace_may_write())
    }
}

/// Whether the kernel lets anybody write to programs, as far as it is locked down.
pub fn may_write() -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_may_write() }
}

/// The real user of the current task.
pub fn user() -> u32 {
    let mut raw = bindings::dtrace_identity::default();
    // SAFETY: `raw` is valid for the write.
    unsafe { bindings::dtrace_current_identity(&mut raw) };
    raw.uid
}
