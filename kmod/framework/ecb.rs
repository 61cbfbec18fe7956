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
use dtrace_engine::budget::LIGHT;
use dtrace_engine::{Ecb, FaultReport, Missing};
use kernel::sync::Arc;

/// Of so many clauses the work is counted at once.
const BLOCK: u32 = 64;

/// Fires the machine's probe for every consumer that has enabled it.
///
/// Where a block of clauses ends, all of it is put down to the consumer that it ends at: to look whose each is would cost every firing, and
/// a block is a thousandth of what a consumer may do.
#[inline(always)]
pub fn fire_all(guard: &CpuGuard, machine: &KernelMachine<'_>) {
    let mut left = BLOCK;
    for at in machine.probe().ecbs().iter(guard) {
        if !at.tracer.sees_all {
            fire_limited(guard, at, machine);
            continue;
        }
        fire_whole(guard, &at.tracer, at.ecb, machine);
        left = left.wrapping_sub(1);
        if left == 0 {
            let cpu = guard.cpu();
            at.tracer.engine.note_clauses(cpu, machine, BLOCK.into());
            left = BLOCK;
        }
    }
}

/// Fires the machine's probe, one of the consumer's own, for `tracer`.
pub fn fire_own(guard: &CpuGuard, tracer: &Arc<Tracer>, machine: &KernelMachine<'_>) {
    let mut passed = 0u64;
    for ecb in tracer.engine.own(machine.probe().id()) {
        passed = passed.wrapping_add(1);
        match tracer.sees_all {
            true => fire_whole(guard, tracer, ecb, machine),
            false => fire_alone(guard, tracer, ecb, machine),
        }
    }
    note_clauses(guard, tracer, machine, passed);
}

/// Rehearses the machine's probe for every consumer that has enabled it, until somebody misses memory: clause-local variables are
/// handed on from clause to clause.
pub fn rehearse_all(guard: &CpuGuard, machine: &KernelMachine<'_>) -> Option<Missing> {
    let mut passed = 0u64;
    let mut last = None;
    let missing = machine.probe().ecbs().iter(guard).find_map(|at| {
        let engine = &at.tracer.engine;
        if at.tracer.sees_all {
            passed = passed.wrapping_add(1);
            last = Some(engine);
            return engine.rehearse(guard.cpu(), at.ecb, machine);
        }
        machine.pass_of_users();
        match machine.users_are_over() {
            true => None,
            false => engine.rehearse(guard.cpu(), at.ecb, &Seen::new(machine, &at.tracer)),
        }
    });
    if let Some(engine) = last {
        engine.note_clauses(guard.cpu(), machine, passed);
    }
    missing
}

/// Fires for a consumer that sees everything.
#[inline(always)]
fn fire_whole(guard: &CpuGuard, tracer: &Arc<Tracer>, ecb: Ecb, machine: &KernelMachine<'_>) {
    if let Some(fault) = tracer.engine.fire(guard.cpu(), ecb, machine) {
        fire_error(guard, tracer, machine, &fault);
    }
}

/// Fires for a consumer that does not see everything, as long as there is anything left of what such consumers may do together. The one that
/// has done most of it is ended.
#[inline(never)]
fn fire_limited(guard: &CpuGuard, at: &EcbRef, machine: &KernelMachine<'_>) {
    if machine.users_are_over() {
        let seen = Seen::new(machine, &at.tracer);
        return at.tracer.engine.drop_firing(guard.cpu(), &seen);
    }
    machine.pass_of_users();
    fire_restricted(guard, &at.tracer, at.ecb, machine);
    if machine.users_are_over() {
        end_greatest(guard, machine);
    }
}

/// Fires for such a consumer a probe that fires for it alone.
fn fire_alone(guard: &CpuGuard, tracer: &Arc<Tracer>, ecb: Ecb, machine: &KernelMachine<'_>) {
    if machine.users_are_over() {
        return tracer.engine.kill();
    }
    machine.pass_of_users();
    fire_restricted(guard, tracer, ecb, machine);
}

fn fire_restricted(guard: &CpuGuard, tracer: &Arc<Tracer>, ecb: Ecb, machine: &KernelMachine<'_>) {
    match machine.args().cause {
        Cause::Passage => fire_and_tell(guard, tracer, ecb, machine),
        // Where the kernel was stopped is not for it to see.
        Cause::Sample if machine.args().of_kernel => {}
        Cause::Sample | Cause::Tick => fire_timed(guard, tracer, ecb, machine),
    }
}

/// Ends the consumer that has done most at the machine's probe, of those that do not see everything. Where another CPU has just done so, that is
/// enough: nobody else is ended for it.
#[cold]
fn end_greatest(guard: &CpuGuard, machine: &KernelMachine<'_>) {
    let work = |tracer: &Tracer, passed: u64| {
        let counted = tracer.engine.work(guard.cpu(), machine);
        counted.saturating_add(passed.saturating_mul(LIGHT))
    };
    let mut greatest: Option<(u64, &Arc<Tracer>)> = None;
    let mut passed = 0u64;
    let mut nodes = machine.probe().ecbs().iter(guard).peekable();
    while let Some(at) = nodes.next() {
        passed = passed.wrapping_add(1);
        // What a consumer has enabled together lies together.
        let is_last = |next: &&EcbRef| !Arc::ptr_eq(&next.tracer, &at.tracer);
        if !nodes.peek().is_none_or(is_last) {
            continue;
        }
        let done = work(&at.tracer, core::mem::take(&mut passed));
        let is_more = greatest.is_none_or(|(most, _)| done > most);
        if !at.tracer.sees_all && is_more {
            greatest = Some((done, &at.tracer));
        }
    }
    if let Some((_, tracer)) = greatest {
        tracer.engine.kill();
    }
}

/// Fires for such a consumer, which is ended where its user's timers, or those of all users, have taken too much of the machine's time.
fn fire_timed(guard: &CpuGuard, tracer: &Arc<Tracer>, ecb: Ecb, machine: &KernelMachine<'_>) {
    let Some(shares) = tracer.payer.shares() else {
        return fire_and_tell(guard, tracer, ecb, machine);
    };
    let began = clock::monotonic();
    if shares.are_spent(began) {
        return tracer.engine.kill();
    }
    fire_and_tell(guard, tracer, ecb, machine);
    if shares.take(began, clock::monotonic()) {
        tracer.engine.kill();
    }
}

fn fire_and_tell(guard: &CpuGuard, tracer: &Arc<Tracer>, ecb: Ecb, machine: &KernelMachine<'_>) {
    let seen = Seen::new(machine, tracer);
    if let Some(fault) = tracer.engine.fire(guard.cpu(), ecb, &seen) {
        fire_error(guard, tracer, machine, &fault);
    }
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
    for ecb in tracer.engine.own(tracer.error.id()) {
        if machine.users_are_over() && !tracer.sees_all {
            break;
        }
        passed = passed.wrapping_add(1);
        // A fault within ERROR is counted by the engine; there is nothing more to fire.
        let _ = KernelMachine::within(machine, tracer.error, &args, |machine| {
            let cpu = guard.cpu();
            match tracer.sees_all {
                true => tracer.engine.fire(cpu, ecb, machine),
                false => tracer.engine.fire(cpu, ecb, &Seen::new(machine, tracer)),
            }
        });
    }
    note_clauses(guard, tracer, machine, passed);
}

/// Counts that clauses of a consumer were passed by, beside what they took that is counted.
#[cold]
fn note_clauses(guard: &CpuGuard, tracer: &Tracer, machine: &KernelMachine<'_>, clauses: u64) {
    let cpu = guard.cpu();
    match tracer.sees_all {
        true => tracer.engine.note_clauses(cpu, machine, clauses),
        false => {
            let seen = Seen::new(machine, tracer);
            tracer.engine.note_clauses(cpu, &seen, clauses);
        }
    }
}
