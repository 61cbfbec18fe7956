// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The time that threads run, without that of firings.
//!
//! While somebody asks for it ([`Measuring`]), each firing's time is charged to the thread that it stopped, from where it takes the CPU
//! to where it gives it back. What hits a firing is part of it. Interrupts are off meanwhile, so the thread has had all
//! that time from the scheduler. Otherwise a firing passes two branches that are patched out.

use super::audience::{Crowd, Source};
use super::percpu::CpuGuard;
use super::task::Current;
use crate::bindings;
use dtrace_engine::ledger::Ledger;
use kernel::prelude::*;
use kernel::sync::Arc;

/// Sets of eight accounts: a thread's is lost to eight others at least.
const SETS: usize = 512;

static LEDGER: Ledger<SETS> = Ledger::new();

/// Firings are measured as long as the value lives. There is one at a time, that of the [audience](super::audience) that everybody joins who
/// asks for it: to begin and to end changes the kernel's text.
pub struct Measuring(());

impl Source for Measuring {
    type Ear = ();

    fn begin(_crowd: &Arc<Crowd<()>>) -> Result<Self> {
        // SAFETY: Process context.
        unsafe { bindings::dtrace_measure() };
        Ok(Self(()))
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        // SAFETY: Process context.
        unsafe { bindings::dtrace_measure_no_more() };
    }
}

/// How long the current thread had run when this firing began, without earlier firings; ns.
pub fn net(guard: &CpuGuard) -> u64 {
    // SAFETY: The CPU is taken.
    let (gross, since) = unsafe {
        let raw = guard.raw();
        (bindings::dtrace_gross_vtime(raw), (*raw).since)
    };
    let who = Current::get(guard).who(guard.cpu().index());
    LEDGER.net(who, since, gross)
}

/// Charges the current task with a firing of `ns` that ends `now`.
///
/// # Safety
///
/// The CPU of `raw` is this one, and taken.
#[no_mangle]
unsafe extern "C" fn dtrace_charge(raw: *mut bindings::dtrace_cpu, now: u64, ns: u64) {
    // SAFETY: By the contract.
    let who = unsafe { Current::of(raw).who((*raw).cpu as usize) };
    LEDGER.charge(who, now, ns);
}
