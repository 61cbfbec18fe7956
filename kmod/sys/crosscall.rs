// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Runs a closure on another CPU in place of probe context there.

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

/// Runs `f` on `cpu` in probe context, and waits for it. Fails with `EINVAL` if there is no such
/// CPU, and with `ENXIO` if it is offline. Interrupts must be on.
pub fn probe_on(cpu: u32, f: &mut dyn FnMut(&CpuGuard)) -> Result {
    if !possible(cpu) {
        return Err(EINVAL);
    }
    let mut call = Call { f, done: false };
    // Before Linux 7.3 the parameter is an `int`.
    #[allow(clippy::useless_conversion)]
    let wait = true.into();
    // SAFETY: `run` gets a pointer to `call`, which outlives the call, because it waits until `run`
    // has returned. The kernel checks that the CPU is online, and a CPU that goes offline still
    // handles the calls that were made before.
    to_result(unsafe {
        bindings::smp_call_function_single(
            cpu as i32,
            Some(run),
            (&raw mut call).cast::<c_void>(),
            wait,
        )
    })?;
    // `enter()` fails only if the CPU is already in probe context, and that has interrupts off:
    // `run`, which is called by an interrupt, cannot find it so. Only an NMI could.
    call.done.then_some(()).ok_or(EBUSY)
}

/// Runs `f` with `cpu` claimed, on that CPU, and waits for it. An offline CPU fires no probes, but
/// its buffers still hold records: `f` then runs on another CPU in its place, and `cpu` is kept
/// from coming online meanwhile. Fails with `EINVAL` if there is no such CPU. May sleep. The caller
/// must hold the consumer's mutex of visits.
pub fn on_cpu(cpu: u32, f: &mut (dyn FnMut(&Cpu) + Send)) -> Result {
    loop {
        match probe_on(cpu, &mut |guard| f(guard.cpu())) {
            Err(ENXIO) => {}
            answer => return answer,
        }
        let mut done = false;
        // In a worker for a member: a task that holds the hotplug lock holds up every CPU that is
        // to come or go.
        patch(|| {
            let lock = HotplugLock::new();
            if !lock.online(cpu) {
                // SAFETY: The claim must be the only one of this CPU. The CPU is offline, so
                // nothing runs on it, and the lock keeps it offline. Two calls of this function at
                // the same time are excluded by the consumer's mutex of visits, which the caller
                // holds; the claim is used for that consumer's buffers alone.
                f(&unsafe { Cpu::claim(cpu as usize) });
                done = true;
            }
        });
        if done {
            return Ok(());
        }
        // It has come online since the first attempt: try again.
    }
}

/// # Safety
///
/// `info` must point to a `Call` that nothing else uses during this call.
unsafe extern "C" fn run(info: *mut c_void) {
    // SAFETY: By the caller's promise, the pointer is valid and the access exclusive.
    let call = unsafe { &mut *info.cast::<Call<'_>>() };
    if let Some(guard) = CpuGuard::enter() {
        (call.f)(&guard);
        call.done = true;
    }
}
