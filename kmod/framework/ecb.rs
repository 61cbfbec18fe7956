// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The walk over the enabling control blocks that hang at a probe.
//!
//! An ECB is one clause of one consumer at one probe. The framework's half of it, [`EcbRef`], says whose it is; the engine knows
//! the rest.

use super::fire::{Args, Cause, FireArgs};
use super::machine::KernelMachine;
use super::seen::Seen;
use super::tracer::{EcbRef, Tracer};
use crate::sys::clock;
use crate::sys::percpu::CpuGuard;
use dtrace_engine::{FaultReport, Missing};
use kernel::sync::Arc;

/// Of so many clauses the work is counted at once.
const BLOCK: u32 = 64;

/// Fires the machine's probe for every consumer that has enabled it.
#[inline(always)]
pub fn fire_all(guard: &CpuGuard, machine: &KernelMachine<'_>) {
    let mut left = BLOCK;
    for at in machine.probe().ecbs().iter(guard) {
        fire_one(guard, at, machine);
        left = left.wrapping_sub(1);
        if left == 0 {
            at.tracer.engine.note_clauses(machine, BLOCK.into());
            left = BLOCK;
        }
    }
}

/// Fires the machine's probe for `tracer` alone.
pub fn fire_for(guard: &CpuGuard, tracer: &Arc<Tracer>, machine: &KernelMachine<'_>) {
    for at in machine.probe().ecbs().iter(guard) {
        if Arc::ptr_eq(&at.tracer, tracer) {
            fire_one(guard, at, machine);
        }
    }
}

/// Rehearses the machine's probe for every consumer that has enabled it, until somebody misses memory: clause-local variables are
/// handed on from clause to clause.
pub fn rehearse_all(guard: &CpuGuard, machine: &KernelMachine<'_>) -> Option<Missing> {
    let mut passed = 0;
    let mut last = None;
    let missing = machine.probe().ecbs().iter(guard).find_map(|at| {
        passed += 1u64;
        last = Some(&at.tracer);
        let engine = &at.tracer.engine;
        match at.tracer.sees_all {
            true => engine.rehearse(guard.cpu(), at.ecb, machine),
            false => engine.rehearse(guard.cpu(), at.ecb, &Seen::new(machine, &at.tracer)),
        }
    });
    if let Some(tracer) = last {
        tracer.engine.note_clauses(machine, passed);
    }
    missing
}

#[inline(always)]
fn fire_one(guard: &CpuGuard, at: &EcbRef, machine: &KernelMachine<'_>) {
    if !at.tracer.sees_all {
        return fire_restricted(guard, at, machine);
    }
    if let Some(fault) = at.tracer.engine.fire(guard.cpu(), at.ecb, machine) {
        fire_error(guard, &at.tracer, machine, &fault);
    }
}

/// Fires for a consumer that does not see everything.
#[inline(never)]
fn fire_restricted(guard: &CpuGuard, at: &EcbRef, machine: &KernelMachine<'_>) {
    match machine.args().cause {
        Cause::Passage => fire_and_tell(guard, at, machine),
        // Where the kernel was stopped is not for it to see.
        Cause::Sample if machine.args().of_kernel => {}
        Cause::Sample | Cause::Tick => fire_timed(guard, at, machine),
    }
}

/// Fires for such a consumer, which is ended where its user's timers, or those of all users, have taken too much of the machine's time.
fn fire_timed(guard: &CpuGuard, at: &EcbRef, machine: &KernelMachine<'_>) {
    let Some(shares) = at.tracer.payer.shares() else {
        return fire_and_tell(guard, at, machine);
    };
    let began = clock::monotonic();
    if shares.are_spent(began) {
        return at.tracer.engine.kill();
    }
    fire_and_tell(guard, at, machine);
    if shares.take(began, clock::monotonic()) {
        at.tracer.engine.kill();
    }
}

fn fire_and_tell(guard: &CpuGuard, at: &EcbRef, machine: &KernelMachine<'_>) {
    if let Some(fault) = fire_seen(guard, at, machine) {
        fire_error(guard, &at.tracer, machine, &fault);
    }
}

fn fire_seen(guard: &CpuGuard, at: &EcbRef, machine: &KernelMachine<'_>) -> Option<FaultReport> {
    let seen = Seen::new(machine, &at.tracer);
    at.tracer.engine.fire(guard.cpu(), at.ecb, &seen)
}

/// Fires `dtrace:::ERROR` for the consumer whose clause faulted; the others are not concerned. The engine ends what
/// faults within.
#[cold]
fn fire_error(
    guard: &CpuGuard,
    tracer: &Arc<Tracer>,
    machine: &KernelMachine<'_>,
    fault: &FaultReport,
) {
    let words = [
        0,
        u64::from(fault.epid),
        u64::from(fault.action),
        u64::from(fault.offset),
        fault.fault as u64,
        fault.value,
    ];
    // The arguments are the consumer's own.
    let args = FireArgs {
        args: Args::Words(&words),
        cause: Cause::Passage,
        of_kernel: false,
        ..*machine.args()
    };
    let mut passed = 1u64;
    for at in tracer.error.ecbs().iter(guard) {
        passed = passed.wrapping_add(1);
        if Arc::ptr_eq(&at.tracer, tracer) {
            // A fault within ERROR is counted by the engine; there is nothing more to fire.
            let _ = KernelMachine::within(machine, tracer.error, &args, |machine| {
                match tracer.sees_all {
                    true => tracer.engine.fire(guard.cpu(), at.ecb, machine),
                    false => fire_seen(guard, at, machine),
                }
            });
        }
    }
    tracer.engine.note_clauses(machine, passed);
}
