// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Firing: records what an ECB requests, by the cheapest path that can do it.
//!
//! A condition on one built-in variable is tested before the CPU's state is claimed. Then the
//! clause's body says which path can do it. A count or a record that cannot be made has changed
//! nothing, and the general path starts anew.

use super::run::{CpuState, Run, Work};
use super::{Activity, Config, Consumer, Ecb, FaultReport};
use crate::budget::{heavy, FIRING, LIGHT, PORTION};
use crate::buf::principal::Principal;
use crate::dif::env::{At, Env, Rehearsal, Vm};
use crate::dif::exec::Stopped;
use crate::dif::locals::Locals;
use crate::ecb::fast::record::{self, Values};
use crate::ecb::fast::stacks::CountByStack;
use crate::ecb::fast::timing::Timing;
use crate::ecb::fast::Body;
use crate::ecb::fire;
use crate::ecb::output::{End, Failed, Outputs};
use crate::ecb::rehearsal::{self, Missing};
use crate::ecb::Prepared;
use crate::machine::{BadAddr, Machine};
use crate::mem::sync::Cpu;
use core::cell::Cell;
use core::sync::atomic::Ordering;
use dtrace_uapi::dif::Instr;
use dtrace_uapi::types::{Epid, ProbeId};

/// Returns the environment of a clause's programs, without what the last clause left there.
#[inline(always)]
fn ready<'a, M: Machine>(
    run: &'a Run,
    vm: &'a mut Vm,
    m: &'a M,
    at: At,
    rehearsal: Rehearsal<'a>,
) -> Env<'a, M> {
    vm.reset();
    Env {
        m,
        core: &run.core,
        vm,
        at,
        rehearsal,
    }
}

impl Consumer {
    /// Whether `probe` fires although the consumer was not found `Active`.
    #[cold]
    fn fires_inactive(&self, probe: ProbeId) -> bool {
        let Config {
            begin, end, error, ..
        } = self.config;
        match self.activity() {
            // If `BEGIN` calls exit(), the state becomes `Draining`, so its other clauses do not
            // run.
            Activity::Warmup => probe == begin || probe == error,
            Activity::Draining => probe == error,
            Activity::Cooldown => probe == end || probe == error,
            Activity::Active => true,
            Activity::Inactive | Activity::Stopped | Activity::Killed => false,
        }
    }

    /// Whether `probe` is one of the consumer's own probes, which fire for this consumer alone, in
    /// any process.
    pub fn is_own(&self, probe: ProbeId) -> bool {
        self.config.own(probe).is_some()
    }

    /// Returns the ECBs at one of its own probes.
    pub fn own(&self, probe: ProbeId) -> impl Iterator<Item = Ecb> + '_ {
        let own = self.config.own(probe);
        own.into_iter().flat_map(|own| self.ecbs.own(own))
    }

    /// Makes `next` fire after `last`, which is the last ECB at its probe so far. Calls must not
    /// overlap.
    pub fn chain(&self, last: Epid, next: Epid) {
        self.ecbs.chain(last, next);
    }

    /// Returns the ECBs that fire after `epid` at the same probe.
    pub fn chained(&self, epid: Epid) -> impl Iterator<Item = Ecb> + '_ {
        let after = |ecb: &Ecb| self.ecbs.after(ecb.epid);
        core::iter::successors(self.ecbs.after(epid), after)
    }

    /// Fires `ecb` on `cpu`: predicate, actions, records, aggregations. If there is a fault,
    /// returns it for the framework, which must fire `ERROR` for this consumer with interrupts
    /// still off. A fault within `ERROR` is counted instead.
    ///
    /// Runs in probe context (INV-4). Inlined wherever a probe fires, because most firings end in
    /// here by paths that cost less than a call.
    #[inline(always)]
    pub fn fire<M: Machine>(&self, cpu: &Cpu, ecb: Ecb, m: &M) -> Option<FaultReport> {
        let (probe, clause) = (ecb.probe, ecb.clause.index as usize);
        if self.activity.load(Ordering::Relaxed) != Activity::Active as u8
            && !self.fires_inactive(probe)
        {
            return None;
        }
        let run = self.run.get()?;
        if !self.may_see(run, m) && !self.is_own(probe) {
            return None;
        }
        let clause: &Prepared = run.clauses.get(clause)?;
        // Made twice, so that it is in registers while the condition is tested.
        let at = || At {
            cpu: cpu.index(),
            epid: ecb.epid,
            probe,
        };
        match clause.condition.may_hold(m, at()) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(bad) => return self.untested(run, cpu, at(), bad),
        }
        let at = at();
        // The code that claims a CPU prevents nested claims, and counts the firings that this
        // costs. `miss` counts a CPU without memory.
        let Some(mut state) = run.cpus.enter(cpu) else {
            run.miss(at.cpu, 1);
            return None;
        };
        let state = &mut *state;
        // By far the most frequent body.
        if let Body::Count(count) = &clause.body {
            if count.count(m, &mut state.out) {
                return None;
            }
        }
        match &clause.body {
            Body::CountByNumber(count) => {
                if count.count(m, at, &mut state.out) {
                    return None;
                }
            }
            Body::CountByStack(count) => {
                if count.again(&run.core, m, &mut state.out) {
                    return None;
                }
                return self.count_stack(run, clause, count, state, m, at);
            }
            Body::Record(values) => {
                if self.record(run, clause, values, state, m, at) {
                    return None;
                }
            }
            Body::Timing(timing) => {
                let failed = self.run_timing(run, clause, timing, state, m, at).err()?;
                return self.failed(failed, at, &mut state.out);
            }
            Body::Count(_) | Body::Actions => {}
        }
        self.run_clause(run, clause, state, m, at)
    }

    /// The rest of [`fire`](Self::fire) for a clause that counts by a stack.
    #[inline(never)]
    fn count_stack<M: Machine>(
        &self,
        run: &Run,
        clause: &Prepared,
        count: &CountByStack,
        state: &mut CpuState,
        m: &M,
        at: At,
    ) -> Option<FaultReport> {
        let CpuState { vm, out, work } = state;
        let mut env = ready(run, vm, m, at, None);
        let counted = count.count(clause, &mut env, out);
        if let Some(units) = env.vm.budget.toil(m) {
            self.note_work(run, work, m, units);
        }
        self.failed(counted.err()?, at, out)
    }

    /// The rest of [`fire`](Self::fire) for a clause that records values which hardly ever fault.
    /// False if one of them faults this time.
    #[inline(never)]
    fn record<M: Machine>(
        &self,
        run: &Run,
        clause: &Prepared,
        values: &Values,
        state: &mut CpuState,
        m: &M,
        at: At,
    ) -> bool {
        let out = &mut state.out;
        let last = at.probe == self.config.end;
        let size_at = |record: &[u8]| self.size_at(record);
        match record::record(clause, values, m, at, &mut out.principal, last, size_at) {
            Ok(End::Done) => {}
            Ok(End::Dropped | End::Committed) => self.note_full(out),
            Err(_) => return false,
        }
        self.note_clause(
            run,
            &mut state.work,
            &mut out.principal,
            m,
            clause.price as u64,
        );
        true
    }

    /// The rest of [`fire`](Self::fire) for a clause that times something, in which hardly anything
    /// can fault. Returns whether the clause's condition holds.
    #[inline(never)]
    fn run_timing<M: Machine>(
        &self,
        run: &Run,
        clause: &Prepared,
        timing: &Timing,
        state: &mut CpuState,
        m: &M,
        at: At,
    ) -> Result<bool, Failed> {
        let CpuState { vm, out, work } = state;
        let dynamics = match &run.core.dynamics {
            Some(dynamics) if clause.dynamics => Some(dynamics),
            _ => None,
        };
        let _inside = dynamics.and_then(|dynamics| dynamics.enter(at.cpu, m.firing()));
        let locals = Locals::new(m, at.cpu, dynamics, vm);
        let done = timing.run(&clause.actions, m, at, locals, out);
        if done != Ok(false) {
            let units = (clause.price as u64).saturating_add(core::mem::take(&mut vm.toil));
            self.note_clause(run, work, &mut out.principal, m, units);
        }
        done
    }

    /// The rest of [`fire`](Self::fire) if the condition tests an argument that cannot be loaded.
    #[cold]
    fn untested(&self, run: &Run, cpu: &Cpu, at: At, bad: BadAddr) -> Option<FaultReport> {
        let Some(mut state) = run.cpus.enter(cpu) else {
            run.miss(at.cpu, 1);
            return None;
        };
        let stopped = Stopped {
            trap: bad.into(),
            pc: 0,
        };
        let failed = Failed { action: 0, stopped };
        self.failed(failed, at, &mut state.out)
    }

    /// The rest of [`fire`](Self::fire) for a clause that needs an environment.
    #[inline(never)]
    fn run_clause<M: Machine>(
        &self,
        run: &Run,
        clause: &Prepared,
        state: &mut CpuState,
        m: &M,
        at: At,
    ) -> Option<FaultReport> {
        let CpuState { vm, out, work } = state;
        let dynamics = run.core.dynamics.as_ref().filter(|_| clause.dynamics);
        let _inside = dynamics.and_then(|dynamics| dynamics.enter(at.cpu, m.firing()));
        let mut env = ready(run, vm, m, at, None);
        let last = at.probe == self.config.end;
        let size_at = |record: &[u8]| self.size_at(record);
        let end = fire::run(clause, &mut env, out, last, size_at, || self.exits());
        if let Some(units) = env.vm.budget.toil(m) {
            self.note_work(run, work, m, units);
        }
        self.note_clause(run, work, &mut out.principal, m, 0);
        match end {
            Ok(End::Done) => None,
            Ok(End::Dropped | End::Committed) => {
                self.note_full(out);
                None
            }
            Err(failed) => self.failed(failed, at, out),
        }
    }

    /// Rehearses `ecb` on `cpu` (INV-47): runs it without any effect, except on clause-local
    /// variables. Returns the first user memory that the clause would load and that is not in
    /// memory.
    #[cold]
    pub fn rehearse<M: Machine>(&self, cpu: &Cpu, ecb: Ecb, m: &M) -> Option<Missing> {
        let run = self.run.get()?;
        if self.activity() != Activity::Active || !run.core.all_users && !m.owned() {
            return None;
        }
        let clause: &Prepared = run.clauses.get(ecb.clause.index as usize)?;
        let at = At {
            cpu: cpu.index(),
            epid: ecb.epid,
            probe: ecb.probe,
        };
        if !clause.condition.may_hold(m, at).ok()? {
            return None;
        }
        let mut state = run.cpus.enter(cpu)?;
        let CpuState { vm, work, .. } = &mut *state;
        let dynamics = run.core.dynamics.as_ref().filter(|_| clause.dynamics);
        let _inside = dynamics.and_then(|dynamics| dynamics.enter(at.cpu, m.firing()));
        let missing = Cell::new(None);
        let mut env = ready(run, vm, m, at, Some(&missing));
        // Other faults are left to the firing, which reports them.
        let _ = rehearsal::run(clause, &mut env);
        if let Some(units) = env.vm.budget.toil(m) {
            self.note_work(run, work, m, units);
        }
        missing.get()
    }

    /// Counts the work of a clause if it is heavy, with the work of making room for its records.
    #[inline(always)]
    fn note_clause<M: Machine>(
        &self,
        run: &Run,
        work: &mut Work,
        principal: &mut Principal,
        m: &M,
        units: u64,
    ) {
        let units = match principal.toiled() {
            true => units.saturating_add(principal.take_toil()),
            false => units,
        };
        if let Some(units) = heavy(units) {
            self.note_toil(run, work, m, units);
        }
    }

    /// Counts `clauses` clauses of the consumer that were run or passed in `m`'s firing, each as
    /// [`LIGHT`]: the most that a clause may do without being counted otherwise.
    #[cold]
    pub fn note_clauses<M: Machine>(&self, cpu: &Cpu, m: &M, clauses: u64) {
        let run = self.run.get();
        let state = run.and_then(|run| Some((run, run.cpus.enter(cpu)?)));
        if let Some((run, mut state)) = state {
            self.note_toil(run, &mut state.work, m, clauses.saturating_mul(LIGHT));
        }
    }

    /// Reports a heavy clause's work to the machine and counts it. Kills the consumer if it does
    /// too much in a firing, unless it has the option `destructive` (INV-27). The framework limits
    /// what members' consumers may do together (INV-28).
    #[cold]
    fn note_toil<M: Machine>(&self, run: &Run, work: &mut Work, m: &M, units: u64) {
        self.note_work(run, work, m, m.toil(units));
    }

    /// The same for work that has been reported to the machine already.
    #[cold]
    fn note_work<M: Machine>(&self, run: &Run, work: &mut Work, m: &M, units: u64) {
        let sum = work.add(m.firing(), units);
        // If all consumers together have done too much, one that has done next to nothing goes on.
        if !run.destructive && (sum > FIRING || m.burden(units) && sum > PORTION) {
            self.kill();
        }
    }

    /// Returns the consumer's work on this CPU in `m`'s firing, as far as it was counted, in units.
    #[cold]
    pub fn work<M: Machine>(&self, cpu: &Cpu, m: &M) -> u64 {
        let state = self.run.get().and_then(|run| run.cpus.enter(cpu));
        state.map_or(0, |state| state.work.of(m.firing()))
    }

    /// Counts `n` clauses as drops, for which the work of other clauses has left nothing in this
    /// firing.
    #[cold]
    pub fn drop_firings<M: Machine>(&self, cpu: &Cpu, m: &M, n: u64) {
        let is_active = self.activity() == Activity::Active;
        let Some(run) = self.run.get().filter(|_| is_active) else {
            return;
        };
        if self.may_see(run, m) {
            match run.cpus.enter(cpu) {
                Some(mut state) => state.out.principal.count_drops(n),
                None => run.miss(cpu.index(), n),
            }
        }
    }

    /// Whether the consumer may see the firing, as far as that depends on the process.
    #[inline(always)]
    fn may_see<M: Machine>(&self, run: &Run, m: &M) -> bool {
        run.core.all_users || m.is_of_nobody() || m.owned()
    }

    /// Counts a fill buffer that has become full, which ends the tracing.
    #[cold]
    pub(super) fn note_full(&self, out: &mut Outputs) {
        if out.principal.newly_full() {
            self.filled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Handles a call of `exit()`; whether it counts. While tracing, only the first call counts, on
    /// whichever CPU. After that, calls in `END` count.
    #[cold]
    fn exits(&self) -> bool {
        self.advance(&[Activity::Warmup, Activity::Active], Activity::Draining)
            || self.activity() == Activity::Cooldown
    }

    /// Returns the size of the record at the beginning of `record`, in bytes; that of padding is 4.
    pub(super) fn size_at(&self, record: &[u8]) -> usize {
        let epid = record.first_chunk().map_or(0, |b| u32::from_ne_bytes(*b));
        self.ecbs.record_size(epid).max(4)
    }

    #[cold]
    fn failed(&self, failed: Failed, at: At, out: &mut Outputs) -> Option<FaultReport> {
        out.principal.count_error();
        self.note_full(out);
        if at.probe == self.config.error {
            self.double_errors.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        self.errors.fetch_add(1, Ordering::Relaxed);
        Some(FaultReport {
            epid: at.epid,
            action: failed.action,
            offset: failed.stopped.pc.wrapping_mul(size_of::<Instr>() as u32),
            fault: failed.stopped.trap.fault,
            value: failed.stopped.trap.value,
        })
    }
}
