// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Running a closure on a CPU, in the place of probe context there.

use super::hotplug::HotplugLock;
use super::patching::patch;
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
    let mut call = Call { f, done: false };
    // A number before 7.3.
    #[allow(clippy::useless_conversion)]
    let wait = true.into();
    // SAFETY: `run` gets the pointer to `call`, which outlives the call, since it waits. The kernel looks whether the CPU is online, and
    // a CPU that goes answers those who have called before.
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

/// Runs `f` on `cpu` with that CPU claimed, and waits for it. An offline CPU fires no probe, but its buffers still hold
/// records: `f` then runs elsewhere in its stead, while the CPU is kept from coming back. `EINVAL`: there is no such CPU.
pub fn on_cpu(cpu: u32, f: &mut (dyn FnMut(&Cpu) + Send)) -> Result {
    loop {
        match probe_on(cpu, &mut |guard| f(guard.cpu())) {
            Err(ENXIO) => {}
            answer => return answer,
        }
        let mut done = false;
        // Who keeps CPUs from coming and going holds up whoever does that.
        patch(|| {
            let lock = HotplugLock::new();
            if !lock.online(cpu) {
                // SAFETY: The CPU is offline and the lock keeps it so. Two at a time are kept apart by the consumer's mutex of visits,
                // under which this is called; its buffers are all that the claim is used for.
                f(&unsafe { Cpu::claim(cpu as usize) });
                done = true;
            }
        });
        if done {
            return Ok(());
        }
        // It has come meanwhile.
    }
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
