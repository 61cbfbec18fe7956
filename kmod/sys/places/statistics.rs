// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What operating systems count: places that are passed once for each thing that is counted.

use super::sched::{self, Why};
use super::task::Task;
use super::{At, Call};
use crate::bindings;
use crate::sys::arch::syscalls::{READS, WRITES};

/// System calls by which programs read.
pub const READ: At = At::Entries(&READS);
/// Their returns.
pub const READ_DONE: At = At::Returns(&READS);

/// System calls by which programs write.
pub const WRITE: At = At::Entries(&WRITES);
/// Their returns.
pub const WRITE_DONE: At = At::Returns(&WRITES);

/// Returns how many bytes such a call has moved; 0 if it failed.
#[inline]
pub fn moved(call: &Call<'_>) -> u64 {
    u64::try_from(call.word(0) as i64).unwrap_or(0)
}

/// A path is looked up.
pub const LOOKUP: At = At::Entries(&[c"path_init"]);

/// A System V message is sent. The system call itself, if the rest of it is inlined.
pub const MESSAGE_SENT: At = At::Entry(&[c"do_msgsnd", c"ksys_msgsnd"]);

/// A System V message is received; as above.
pub const MESSAGE_RECEIVED: At = At::Entry(&[c"do_msgrcv", c"ksys_msgrcv"]);

/// System V semaphores are operated on.
pub const SEMAPHORE: At = At::Entries(&[c"__do_semtimedop"]);

/// A module is loaded.
pub const MODULE_LOAD: At = At::Tracepoint("module_load");

/// A module is unloaded.
pub const MODULE_FREE: At = At::Tracepoint("module_free");

/// A CPU has another CPU call a function.
pub const CROSS_CALL: At = At::Tracepoint("csd_queue_cpu");

/// Whether a switch is involuntary for the current task, and whether it is to the idle task.
#[inline]
pub fn switch(call: &Call<'_>) -> (bool, bool) {
    let switch = sched::switch(call);
    (switch.why == Why::Preempted, switch.next.is_idle())
}

/// Whether the parent of the new task waits until that executes a program or ends (`vfork(2)`).
#[inline]
pub fn waits_for_child(call: &Call<'_>) -> bool {
    call.word(1) & u64::from(bindings::CLONE_VFORK) != 0
}

impl Task {
    fn is_idle(self) -> bool {
        // SAFETY: The task is alive, as the type says.
        unsafe { (*self.as_ptr()).pid == 0 }
    }
}

/// The kernel has handled a page fault of a program as far as it could.
pub const FAULT_DONE: At = At::Returns(&[c"handle_mm_fault"]);

/// Whether the access is to be tried again, which is the same fault once more.
#[inline]
pub fn is_retried(call: &Call<'_>) -> bool {
    call.word(0) & u64::from(bindings::vm_fault_reason_VM_FAULT_RETRY) != 0
}

/// Whether it had to read from a device.
#[inline]
pub fn was_major(call: &Call<'_>) -> bool {
    call.word(0) & u64::from(bindings::vm_fault_reason_VM_FAULT_MAJOR) != 0
}

/// The kernel itself faults, on its own memory or on a program's.
pub const KERNEL_FAULT: At = At::Tracepoint("page_fault_kernel");

/// Whether it faulted on its own memory.
#[inline]
pub fn is_own(call: &Call<'_>) -> bool {
    // SAFETY: The helper only compares the address.
    unsafe { bindings::dtrace_kernel_address(call.word(0)) }
}

/// A shared or protected page is written to.
pub const PROTECTION_FAULT: At = At::Entries(&[c"do_wp_page"]);

/// A huge page of no file is mapped for the first time.
pub const ZERO_FILL_HUGE: At = At::Entries(&[c"map_anon_folio_pmd_pf"]);

/// Returns the number of pages of the folio that a place passes first.
#[inline]
pub fn pages(call: &Call<'_>) -> u64 {
    // SAFETY: The folio must be alive. The place that passes it is at work on it, and this runs
    // during that.
    unsafe { bindings::dtrace_folio_pages(call.word(0) as *const _) }
}

/// A page of no file is needed for the first time; or, if that is inlined, is mapped.
pub const ZERO_FILL: At = At::Entry(&[c"do_anonymous_page", c"map_anon_folio_pte_pf"]);

/// Pages are read from swap.
pub const SWAP_IN: At = At::Entries(&[c"swap_read_folio"]);

/// Pages are written to swap.
pub const SWAP_OUT: At = At::Entries(&[c"__swap_writepage"]);

/// The least used pages are examined for reclaim.
pub const SCAN: At = At::Tracepoint("mm_vmscan_lru_isolate");

/// Returns how many.
#[inline]
pub fn scanned(call: &Call<'_>) -> u64 {
    call.word(3)
}

/// The thread that reclaims memory begins to work.
pub const RECLAIM: At = At::Tracepoint("mm_vmscan_kswapd_wake");
