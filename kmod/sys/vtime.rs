// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The time that threads run, without the time of firings (INV-7).
//!
//! While a tracing reads it ([`Measuring`]), the time of each firing is charged to the thread that
//! it stopped, from the moment at which the firing takes the CPU to that at which it gives it back.
//! Firings on top of it are part of it. Interrupts are off meanwhile, so the scheduler has counted
//! all of that time as the thread's. Otherwise a firing passes two branches that are patched out.

use super::audience::{Crowd, Source};
use super::percpu::CpuGuard;
use super::task::Current;
use crate::bindings;
use dtrace_engine::ledger::Ledger;
use kernel::prelude::*;
use kernel::sync::Arc;

/// The number of sets of eight accounts. An account goes to another thread only if nine or more
/// threads of its set fire.
const SETS: usize = 512;

static LEDGER: Ledger<SETS> = Ledger::new();

/// Firings are measured as long as the value lives. There is one at a time, that of the
/// [audience](super::audience) which all tracings join that need it, because beginning and ending
/// change the kernel's text.
pub struct Measuring(());

impl Source for Measuring {
    type Ear = ();

    fn begin(_crowd: &Arc<Crowd<()>>) -> Result<Self> {
        // SAFETY: Must be called in process context, without a call of `dtrace_measure_no_more()`
        // at the same time; the audience's mutex ensures that.
        unsafe { bindings::dtrace_measure() };
        Ok(Self(()))
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        // SAFETY: As in `begin`.
        unsafe { bindings::dtrace_measure_no_more() };
    }
}

/// Returns how long the current thread had run when this firing began, without earlier firings; ns.
pub fn net(guard: &CpuGuard) -> u64 {
    // SAFETY: The guard proves that `raw` is this CPU's structure and that only this code accesses
    // it. `task` in it is the current task.
    let (gross, since) = unsafe {
        let raw = guard.raw();
        (bindings::dtrace_gross_vtime(raw), (*raw).since)
    };
    let who = Current::get(guard).who(guard.cpu().index());
    LEDGER.net(who, since, gross)
}

/// Charges the current task with a firing of `ns` nanoseconds that ends `now`.
///
/// # Safety
///
/// `raw` must be the structure of this CPU, which must be in probe context.
#[no_mangle]
unsafe extern "C" fn dtrace_charge(raw: *mut bindings::dtrace_cpu, now: u64, ns: u64) {
    // SAFETY: By the caller's promise.
    let who = unsafe { Current::of(raw).who((*raw).cpu as usize) };
    LEDGER.charge(who, now, ns);
}
