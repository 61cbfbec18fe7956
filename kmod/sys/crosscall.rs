// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Running a closure on a CPU, in the place of probe context there.

use super::hotplug::HotplugLock;
use super::percpu::{possible, CpuGuard};
use crate::bindings;
use core::ffi::c_void;
use dtrace_engine::Cpu;
use kernel::error::to_result;
use kernel::prelude::*;

struct Call<'a> {
    f: &'a mut dyn FnMut(&CpuGuard),
    done: bool,
}

/// Runs `f` on `cpu` as probe context, and waits for it. `EINVAL`: there is no such CPU; `ENXIO`: it is offline.
pub fn probe_on(cpu: u32, f: &mut dyn FnMut(&CpuGuard)) -> Result {
    if !possible(cpu) {
        return Err(EINVAL);
    }
    let lock = HotplugLock::new();
    if !lock.online(cpu) {
        return Err(ENXIO);
    }
    call(&lock, cpu, f)
}

/// Runs `f` on `cpu` with that CPU claimed, and waits for it. An offline CPU fires no probe, but its buffers still hold
/// records: `f` then runs here in its stead, while the CPU is kept from coming back. `EINVAL`: there is no such CPU.
pub fn on_cpu(cpu: u32, f: &mut dyn FnMut(&Cpu)) -> Result {
    if !possible(cpu) {
        return Err(EINVAL);
    }
    let lock = HotplugLock::new();
    if lock.online(cpu) {
        return call(&lock, cpu, &mut |guard| f(guard.cpu()));
    }
    // SAFETY: The CPU is offline and the lock keeps it so. Two at a time are kept apart by the consumer's mutex of visits,
    // under which this is called; its buffers are all that the claim is used for.
    f(&unsafe { Cpu::claim(cpu as usize) });
    Ok(())
}

fn call(_lock: &HotplugLock, cpu: u32, f: &mut dyn FnMut(&CpuGuard)) -> Result {
    let mut call = Call { f, done: false };
    // A number before 7.3.
    #[allow(clippy::useless_conversion)]
    let wait = true.into();
    // SAFETY: `run` gets the pointer to `call`, which outlives the call, since it waits.
    to_result(unsafe {
        bindings::smp_call_function_single(
            cpu as i32,
            Some(run),
            (&raw mut call).cast::<c_void>(),
            wait,
        )
    })?;
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
        (call.f)(&guard);
        call.done = true;
    }
}
