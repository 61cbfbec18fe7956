// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Fires a probe for its consumers: walks the probe's list, and for each consumer the ECBs that it
//! [has there](Enabled).
//!
//! Everything here runs in probe context (INV-4).

use super::consumer::Consumer;
use super::enabled::Enabled;
use super::fire::{Args, Cause, FireArgs};
use super::machine::KernelMachine;
use super::seen::Seen;
use crate::sys::clock;
use crate::sys::percpu::CpuGuard;
use dtrace_engine::{Activity, Ecb, FaultReport, Machine, Missing};

/// Number of clauses of one consumer whose passing is counted together. That many count as a
/// thousandth of what a consumer may do in a firing.
const BLOCK: u32 = 64;

/// Fires the machine's probe for every consumer on its list.
#[inline(always)]
pub fn fire_all(guard: &CpuGuard, machine: &KernelMachine<'_>) {
    guard.count();
    for at in machine.probe().enabled().iter(guard) {
        if !at.consumer.sees_all {
            fire_less(guard, at, machine);
            continue;
        }
        let several = at.count() > 1;
        // Tracing may begin between two clauses. This check makes all of them fire or none.
        if several && at.consumer.engine.activity() != Activity::Active {
            continue;
        }
        fire_whole(guard, &at.consumer, at.first, machine);
        if several {
            fire_others(guard, at, machine);
        }
    }
}

/// Fires the clauses after the first one, for a consumer that sees everything.
#[inline(never)]
fn fire_others(guard: &CpuGuard, at: &Enabled, machine: &KernelMachine<'_>) {
    let mut left = BLOCK;
    for ecb in at.others() {
        fire_another(guard, &at.consumer, ecb, machine);
        left = left.wrapping_sub(1);
        if left == 0 {
            note_clauses(guard, &at.consumer, machine, BLOCK.into());
            left = BLOCK;
        }
    }
}

/// Fires the machine's probe, which is `BEGIN`, `END` or `ERROR`, for `consumer` alone.
pub fn fire_own(guard: &CpuGuard, consumer: &Consumer, machine: &KernelMachine<'_>) {
    guard.count();
    for ecb in consumer.engine.own(machine.probe().id()) {
        if consumer.sees_all {
            fire_another(guard, consumer, ecb, machine);
        } else if is_over(consumer, machine) {
            return consumer.engine.kill();
        } else {
            machine.begin_of_user();
            fire_restricted(guard, consumer, ecb, &Seen::new(machine, consumer));
        }
        note_clauses(guard, consumer, machine, 1);
    }
}

/// Rehearses the machine's probe for the consumers on its list, until one of them lacks memory
/// (INV-47). A clause sees the clause-local variables of the clauses before it, so all clauses are
/// rehearsed in order.
pub fn rehearse_all(guard: &CpuGuard, machine: &KernelMachine<'_>) -> Option<Missing> {
    let mut nodes = machine.probe().enabled().iter(guard);
    let missing = nodes.find_map(|at| rehearse_each(guard, at, machine));
    if machine.users_are_over() {
        end_greatest(guard, machine);
    }
    missing
}

/// Rehearses the clauses of one consumer.
fn rehearse_each(guard: &CpuGuard, at: &Enabled, machine: &KernelMachine<'_>) -> Option<Missing> {
    let consumer = &at.consumer;
    let seen = match consumer.sees_all {
        true => None,
        false => Some(admit(consumer, machine)?),
    };
    at.find_map(|ecb| {
        if is_over(consumer, machine) {
            return None;
        }
        let missing = match &seen {
            None => consumer.engine.rehearse(guard.cpu(), ecb, machine),
            Some(seen) => {
                machine.begin_of_user();
                consumer.engine.rehearse(guard.cpu(), ecb, seen)
            }
        };
        note_clauses(guard, consumer, machine, 1);
        missing
    })
}

/// Fires one clause of a consumer that sees everything.
#[inline(always)]
fn fire_whole(guard: &CpuGuard, consumer: &Consumer, ecb: Ecb, machine: &KernelMachine<'_>) {
    if let Some(fault) = consumer.engine.fire(guard.cpu(), ecb, machine) {
        fire_error(guard, consumer, machine, &fault);
    }
}

/// As [`fire_whole`], out of line: for all calls but the one on the path that every firing takes.
#[inline(never)]
fn fire_another(guard: &CpuGuard, consumer: &Consumer, ecb: Ecb, machine: &KernelMachine<'_>) {
    fire_whole(guard, consumer, ecb, machine);
}

/// Whether a consumer is a member's, and members have done all that they may do together in this
/// firing (INV-28).
fn is_over(consumer: &Consumer, machine: &KernelMachine<'_>) -> bool {
    consumer.rights.is_some() && machine.users_are_over()
}

/// Returns the firing as a consumer sees it that does not see everything. `None` if it does not
/// fire for this consumer here and now.
fn admit<'a>(consumer: &'a Consumer, machine: &'a KernelMachine<'a>) -> Option<Seen<'a>> {
    let args = machine.args();
    // Where the kernel was interrupted is not for this consumer to see.
    let is_hidden = args.cause == Cause::Sample && args.of_kernel;
    let seen = Seen::new(machine, consumer);
    let fires = !is_hidden
        && consumer.engine.activity() == Activity::Active
        && (seen.is_of_nobody() || seen.owned());
    if !fires && consumer.rights.is_some() {
        machine.pass_of_users();
    }
    fires.then_some(seen)
}

/// Returns what is enabled at the machine's probe and fires for the current task.
pub fn concerned<'a>(
    guard: &'a CpuGuard,
    machine: &'a KernelMachine<'a>,
) -> impl Iterator<Item = &'a Enabled> {
    let nodes = machine.probe().enabled().iter(guard);
    nodes.filter(|at| at.consumer.sees_all || admit(&at.consumer, machine).is_some())
}

/// Fires for a consumer that does not see everything. For a member's consumer this ends when
/// members have used up their common limit: the rest counts as drops, and the member's consumer
/// that has done most is killed (INV-28).
#[inline(never)]
fn fire_less(guard: &CpuGuard, at: &Enabled, machine: &KernelMachine<'_>) {
    let consumer = &*at.consumer;
    let Some(seen) = admit(consumer, machine) else {
        return;
    };
    let mut left = u64::from(at.count());
    let over = at.find_map(|ecb| {
        if is_over(consumer, machine) {
            return Some(left);
        }
        machine.begin_of_user();
        fire_restricted(guard, consumer, ecb, &seen);
        note_clauses(guard, consumer, machine, 1);
        if is_over(consumer, machine) {
            end_greatest(guard, machine);
        }
        left = left.saturating_sub(1);
        None
    });
    if let Some(left) = over {
        consumer.engine.drop_firings(guard.cpu(), &seen, left);
    }
}

fn fire_restricted(guard: &CpuGuard, consumer: &Consumer, ecb: Ecb, seen: &Seen<'_>) {
    match seen.machine().args().cause {
        Cause::Passage => fire_and_tell(guard, consumer, ecb, seen),
        Cause::Sample | Cause::Tick => fire_timed(guard, consumer, ecb, seen),
    }
}

/// Kills the member's consumer that has done most work in this firing at the machine's probe. If
/// another CPU has just killed it, no other consumer is killed instead. Kills none if most of the
/// work was done at other probes at the same breakpoint.
#[cold]
fn end_greatest(guard: &CpuGuard, machine: &KernelMachine<'_>) {
    let nodes = machine.probe().enabled().iter(guard);
    let users = nodes.filter(|at| at.consumer.rights.is_some());
    let (mut sum, mut most) = (0_u64, None);
    for at in users {
        let work = at.consumer.engine.work(guard.cpu(), machine);
        sum = sum.saturating_add(work);
        if most.is_none_or(|(greatest, _)| work >= greatest) {
            most = Some((work, at));
        }
    }
    let elsewhere = guard.is_stopped() && sum < guard.work_of_users() / 2;
    if let Some((_, at)) = most.filter(|_| !elsewhere) {
        at.consumer.engine.kill();
    }
}

/// Fires a clause at a timer, for a consumer that does not see everything. Kills the consumer if
/// the timers of its user, or those of all members, have taken too much time (INV-33).
fn fire_timed(guard: &CpuGuard, consumer: &Consumer, ecb: Ecb, seen: &Seen<'_>) {
    let Some(shares) = consumer.payer.shares() else {
        return fire_and_tell(guard, consumer, ecb, seen);
    };
    let began = clock::monotonic();
    if shares.are_spent(began) {
        return consumer.engine.kill();
    }
    fire_and_tell(guard, consumer, ecb, seen);
    if shares.take(began, clock::monotonic()) {
        consumer.engine.kill();
    }
}

fn fire_and_tell(guard: &CpuGuard, consumer: &Consumer, ecb: Ecb, seen: &Seen<'_>) {
    if let Some(fault) = consumer.engine.fire(guard.cpu(), ecb, seen) {
        fire_error(guard, consumer, seen.machine(), &fault);
    }
}

/// Fires `dtrace:::ERROR` for the consumer whose clause faulted, and for no other one. The engine
/// counts a fault within `ERROR`.
#[cold]
fn fire_error(
    guard: &CpuGuard,
    consumer: &Consumer,
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
    // The arguments of `ERROR` are the consumer's own, so none are hidden from it.
    let args = FireArgs {
        args: Args::Words(&words),
        cause: Cause::Passage,
        of_kernel: false,
        ..*machine.args()
    };
    for ecb in consumer.engine.own(consumer.error.id()) {
        if is_over(consumer, machine) {
            let seen = Seen::new(machine, consumer);
            consumer.engine.drop_firings(guard.cpu(), &seen, 1);
            continue;
        }
        // The engine has counted a fault within `ERROR`. Nothing else fires for it.
        let _ = KernelMachine::within(machine, consumer.error, &args, |machine| {
            let cpu = guard.cpu();
            match consumer.sees_all {
                true => consumer.engine.fire(cpu, ecb, machine),
                false => consumer
                    .engine
                    .fire(cpu, ecb, &Seen::new(machine, consumer)),
            }
        });
        note_clauses(guard, consumer, machine, 1);
    }
    note_clauses(guard, consumer, machine, 1);
}

/// Counts the passing of `clauses` clauses of a consumer, in addition to the work that they have
/// counted themselves.
#[cold]
fn note_clauses(guard: &CpuGuard, consumer: &Consumer, machine: &KernelMachine<'_>, clauses: u64) {
    let cpu = guard.cpu();
    match consumer.sees_all {
        true => consumer.engine.note_clauses(cpu, machine, clauses),
        false => {
            let seen = Seen::new(machine, consumer);
            consumer.engine.note_clauses(cpu, &seen, clauses);
        }
    }
}
