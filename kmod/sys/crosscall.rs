// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Running a closure on a CPU, in the place of probe context there.

use super::percpu::CpuGuard;
use crate::bindings;
use core::ffi::c_void;
use dtrace_engine::Cpu;
use kernel::prelude::*;

struct Call<'a> {
    f: &'a mut dyn FnMut(&Cpu),
    done: bool,
}

/// Runs `f` on `cpu` with that CPU taken, and waits for it. An offline CPU fires no probe, but its buffers still hold
/// records: `f` then runs here in its stead, while the CPU is kept from coming back.
///
/// `EINVAL`: there is no such CPU.
pub fn on_cpu(cpu: u32, f: &mut dyn FnMut(&Cpu)) -> Result {
    if !super::percpu::possible(cpu) {
        return Err(EINVAL);
    }
    let mut call = Call { f, done: false };
    // SAFETY: `run` gets the pointer to `call`, which outlives the call, since it waits. An offline CPU cannot
    // run anything until the lock is given back, so its claim is ours.
    unsafe {
        bindings::cpus_read_lock();
        if bindings::dtrace_cpu_online(cpu) {
            bindings::smp_call_function_single(
                cpu as i32,
                Some(run),
                (&raw mut call).cast::<c_void>(),
                1,
            );
        } else {
            (call.f)(&Cpu::claim(cpu as usize));
            call.done = true;
        }
        bindings::cpus_read_unlock();
    }
    // The CPU can only be found taken by an NMI, and an interrupt does not come on top of one.
    call.done.then_some(()).ok_or(EBUSY)
}

/// # Safety
///
/// `info` points to a `Call` that nobody else uses meanwhile.
unsafe extern "C" fn run(info: *mut c_void) {
    // SAFETY: By the contract.
    let call = unsafe { &mut *info.cast::<Call<'_>>() };
    if let Some(guard) = CpuGuard::enter() {
        (call.f)(guard.cpu());
        call.done = true;
    }
}
