// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The rights of consumers (INV-35).
//!
//! `CAP_SYS_ADMIN` may do everything, and `CAP_PERFMON` may see what happens, everywhere. Memory
//! takes more: Linux lets BPF programs read what lies at an address of the kernel or of any
//! process, and requires `CAP_BPF` for that as well; so does this module. `CAP_SYS_PTRACE` is not
//! enough, because it passes neither Yama's strictest scope nor Landlock. A group that the
//! administrator names may trace its members' own processes, each member their own, and sees
//! nothing of the kernel. A locked-down kernel withholds its secrets, or also writes to user
//! memory, from holders of these capabilities too. So does a security module that denies a task
//! perf events or BPF. What a consumer may do is decided when its file is opened.
//! [`rights`](super::rights) says which processes a member may trace.

use super::symbols::{self, Address};
use crate::bindings;
use dtrace_engine::Privileges;
use kernel::prelude::*;
use kernel::sync::SetOnce;

/// The value of the parameter `group` that means no group.
const NOBODY: u32 = u32::MAX;

/// Returns what the current task may do, also as a member of `group`; `None` if that is nothing. An
/// error means that the security modules could not be asked. May sleep.
pub fn of_current(group: u32) -> Result<Option<Privileges>> {
    let [perf, bpf] = security_hooks()?;
    // What does not matter is not asked, because a locked-down kernel logs each refusal.
    // SAFETY: These helpers need nothing, or the addresses of the kernel's functions or 0, which
    // `security_hooks` returns.
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

/// Returns the addresses of the functions by which the kernel asks its security modules about perf
/// events and about BPF; 0 for one that it does not have.
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
    // SAFETY: No preconditions.
    unsafe {
        (!rights.kernel || bindings::dtrace_may_read_kernel())
            && (!rights.destructive || bindings::dtrace_may_write())
    }
}

/// Whether the kernel, as far as it is locked down, allows writes to programs at all.
pub fn may_write() -> bool {
    // SAFETY: No preconditions.
    unsafe { bindings::dtrace_may_write() }
}

/// Returns the real user id of the current task.
pub fn user() -> u32 {
    let mut raw = bindings::dtrace_identity::default();
    // SAFETY: `raw` is valid for the write.
    unsafe { bindings::dtrace_current_identity(&mut raw) };
    raw.uid
}
