// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! An instruction that probes are at, and what happens when a program comes to it.
//!
//! A firing takes of the program's memory what is there. So that a clause finds what it loads, a site whose clauses load such memory
//! is rehearsed before it fires. What is missing then is brought: in the exception by having the program wait on its
//! way back, and come here again; in the handler of uprobes, which others wait for, only as far as that needs no waiting.

use super::super::usdt::{Mark, Passed};
use super::Made;
use crate::framework::{any_reads_user, fire, lose, miss, rehearse};
use crate::framework::{Args, FireArgs, Probe, ProbeRef};
use crate::sys::arch::program::{Instruction, Leaving, Step};
use crate::sys::breakpoint::{Hit, Stopped};
use crate::sys::faults::{self, Span, Use};
use crate::sys::process::Text;
use crate::sys::regs::Regs;
use crate::sys::staticref::StaticRef;
use crate::sys::task;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use dtrace_uapi::process::{ADDRESS, ENTRY, LINE, OFFSET, RETURN, USDT};
use kernel::sync::{rcu, Arc, SetOnce};

/// Kinds of probes, [`ENTRY`] to [`LINE`].
const KINDS: usize = LINE as usize + 1;

/// An instruction of a process that probes are at.
pub struct Site {
    pub address: u64,
    pub instruction: Instruction,
    pub text: Text,
    /// Its probes, by kind.
    probes: [StaticRef<Probe>; KINDS],
    /// Where the function begins and ends that a return from it is of. Set before that probe is.
    function: [AtomicU64; 2],
    /// Whether there ever was a probe of another kind than entry and return.
    has_others: AtomicBool,
    /// What is known of its USDT probe. Set before that is.
    pub mark: SetOnce<Mark>,
    /// The thread that has fired here and left the instruction to uprobes, or comes to it again; 0 for none.
    fired: AtomicU32,
}

impl Site {
    /// One without probes.
    pub fn new(address: u64, text: Text, instruction: Instruction) -> Self {
        Self {
            address,
            instruction,
            text,
            probes: [const { StaticRef::none() }; KINDS],
            function: [const { AtomicU64::new(0) }; 2],
            has_others: AtomicBool::new(false),
            mark: SetOnce::new(),
            fired: AtomicU32::new(0),
        }
    }

    /// Takes its probe of a kind away.
    pub fn remove(&self, kind: u32) {
        if let Some(slot) = self.probes.get(kind as usize) {
            slot.set(None);
        }
    }

    /// Whether it has a probe of a kind.
    pub fn has(&self, kind: u32) -> bool {
        self.probe(kind).is_some()
    }

    fn probe(&self, kind: u32) -> Option<ProbeRef> {
        self.probes.get(kind as usize)?.get()
    }

    fn function(&self) -> Range<u64> {
        let [start, end] = &self.function;
        start.load(Ordering::Relaxed)..end.load(Ordering::Relaxed)
    }

    /// Fires what is to fire before the instruction is executed.
    fn before(&self, regs: &Regs) {
        if self.has_others.load(Ordering::Relaxed) {
            self.all(regs);
        } else {
            self.entered(regs);
        }
    }

    /// All kinds. That of an address is the first: DTrace 2.0 has this order.
    #[inline(never)]
    fn all(&self, regs: &Regs) {
        self.bare(ADDRESS);
        self.entered(regs);
        if let Some(probe) = self.probe(USDT) {
            self.marked(probe, regs);
        }
        self.bare(OFFSET);
        self.bare(LINE);
    }

    #[inline]
    fn entered(&self, regs: &Regs) {
        if let Some(probe) = self.probe(ENTRY) {
            fire(probe, &FireArgs::new(Args::Called(regs)).nowhere());
        }
    }

    /// A probe without arguments.
    #[inline(always)]
    fn bare(&self, kind: u32) {
        if let Some(probe) = self.probe(kind) {
            fire_bare(probe);
        }
    }

    fn marked(&self, probe: ProbeRef, regs: &Regs) {
        if let Some(mark) = self.mark.as_ref().filter(|mark| !mark.answer(regs)) {
            let passed = Passed { mark, regs };
            fire(probe, &FireArgs::new(Args::Computed(&passed)).nowhere());
        }
    }

    /// Tells a program that asks by a register whether its probe is enabled. What the instruction does there, nothing or a return, leaves that.
    fn answer(&self, stopped: &mut Stopped<'_>) {
        if !self.has_others.load(Ordering::Relaxed) || self.probe(USDT).is_none() {
            return;
        }
        let register = self.mark.as_ref().and_then(Mark::answer_register);
        if let Some(register) = register {
            stopped.regs_mut().set_general(register, 1);
        }
    }

    /// Whether memory may be missing that a clause, or an argument, is loaded from.
    #[inline(always)]
    fn may_miss(&self) -> bool {
        let has_others = self.has_others.load(Ordering::Relaxed);
        any_reads_user() || has_others && self.mark.as_ref().is_some_and(Mark::loads)
    }

    /// Memory of the program that is not there, and that a clause would load if the site fired, or an argument.
    #[cold]
    fn missing(&self, regs: &Regs) -> Option<Span> {
        let called = FireArgs::new(Args::Called(regs)).nowhere();
        let bare = FireArgs::new(Args::Words(&[])).nowhere();
        self.probe(ENTRY)
            .and_then(|probe| rehearse(probe, &called))
            .or_else(|| self.missing_of_mark(regs))
            .or_else(|| {
                let others = [OFFSET, ADDRESS, LINE];
                let mut others = others.iter().filter_map(|kind| self.probe(*kind));
                others.find_map(|probe| rehearse(probe, &bare))
            })
            .or_else(|| self.missing_of_return(regs))
    }

    fn missing_of_mark(&self, regs: &Regs) -> Option<Span> {
        let probe = self.probe(USDT)?;
        let mark = self.mark.as_ref().filter(|mark| !mark.asks())?;
        let passed = Passed { mark, regs };
        let by_clause = || rehearse(probe, &FireArgs::new(Args::Computed(&passed)).nowhere());
        passed.missing().or_else(by_clause)
    }

    fn missing_of_return(&self, regs: &Regs) -> Option<Span> {
        let probe = self.probe(RETURN)?;
        let step = self.instruction.step(regs);
        let Leaving::Yes = self.leaves(step.as_ref().map(Step::ip)) else {
            return None;
        };
        let mut after = *regs;
        if let Some(step) = step {
            step.apply(&mut after);
        }
        let words = self.return_words(&after);
        rehearse(probe, &FireArgs::new(Args::Words(&words)).nowhere())
    }

    /// Whether the program is to come here again, with memory that a clause misses.
    #[cold]
    fn awaits(&self, regs: &Regs) -> bool {
        let missing = self.missing(regs);
        if missing.is_some_and(|missing| missing.await_at(self.address, Use::Clause)) {
            return true;
        }
        faults::settle();
        false
    }

    /// Brings memory that a clause misses, as far as that needs no waiting.
    #[cold]
    fn bring(&self, regs: &Regs) {
        let missing = || {
            let _seen = rcu::read_lock();
            self.missing(regs)
        };
        faults::bring_all(missing, Span::bring);
    }

    /// Whether the function ends here.
    fn leaves(&self, to: Option<u64>) -> Leaving {
        self.instruction.leaves(self.address, &self.function(), to)
    }

    /// Fires what is to fire behind the instruction.
    #[inline]
    fn after(&self, regs: &Regs) {
        if let Some(probe) = self.probe(RETURN) {
            if let Leaving::Yes = self.leaves(Some(regs.ip())) {
                self.returned(probe, regs);
            }
        }
    }

    /// Fires the return, with the registers behind the instruction.
    fn returned(&self, probe: ProbeRef, regs: &Regs) {
        let words = self.return_words(regs);
        fire(probe, &FireArgs::new(Args::Words(&words)).nowhere());
    }

    /// Its arguments: where in the function it is, and what that gives back.
    fn return_words(&self, regs: &Regs) -> [u64; 3] {
        let offset = self.address.wrapping_sub(self.function().start);
        let [first, second] = regs.results();
        [offset, first, second]
    }

    /// Whether the current thread has fired what comes before the instruction, and could not execute it.
    fn has_fired(&self) -> bool {
        if self.fired.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let me = task::number();
        let taken = self
            .fired
            .compare_exchange(me, 0, Ordering::Relaxed, Ordering::Relaxed);
        taken.is_ok()
    }

    /// Gives it one probe more.
    pub fn add(&self, made: &Made) {
        if made.kind == RETURN {
            let [start, end] = &self.function;
            start.store(made.function.start, Ordering::Relaxed);
            end.store(made.function.end, Ordering::Relaxed);
        }
        if !matches!(made.kind, ENTRY | RETURN) {
            self.has_others.store(true, Ordering::Relaxed);
        }
        if let Some(slot) = self.probes.get(made.kind as usize) {
            slot.set(Some(made.probe));
        }
    }
}

#[inline(never)]
fn fire_bare(probe: ProbeRef) {
    fire(probe, &FireArgs::new(Args::Words(&[])).nowhere());
}

/// What a breakpoint fires.
pub struct At(pub Arc<Site>);

impl At {
    /// Fires, and does an instruction that is none of the common ones: as [`Hit::trap`].
    #[inline(never)]
    fn trap_slowly(&self, mut stopped: Stopped<'_>, is_alone: bool) -> bool {
        let site = &*self.0;
        let Some(step) = site.instruction.step(stopped.regs()) else {
            return is_alone && self.awaits(stopped.regs());
        };
        if !site.has_fired() {
            site.before(stopped.regs());
        }
        if !step.store() {
            // The page has gone since that was tried.
            site.fired.store(task::number(), Ordering::Relaxed);
            return is_alone;
        }
        step.apply(stopped.regs_mut());
        site.answer(&mut stopped);
        site.after(stopped.regs());
        true
    }

    /// Whether the program is to come here again, with memory that the instruction misses.
    #[cold]
    fn awaits(&self, regs: &Regs) -> bool {
        let missing = self.0.instruction.missing(regs);
        missing.is_some_and(|(span, for_what)| span.await_at(self.0.address, for_what))
    }
}

impl Hit for At {
    fn trap(&self, mut stopped: Stopped<'_>, is_alone: bool) -> bool {
        let site = &*self.0;
        let instruction = &site.instruction;
        if instruction.is_more() {
            return false;
        }
        if site.may_miss() && site.awaits(stopped.regs()) {
            return true;
        }
        let Some(step) = instruction.step_briefly(stopped.regs()) else {
            return self.trap_slowly(stopped, is_alone);
        };
        if !site.has_fired() {
            site.before(stopped.regs());
        }
        site.answer(&mut stopped);
        let regs = stopped.regs_mut();
        regs.set_ip(step.ip);
        regs.set_sp(step.sp);
        site.after(stopped.regs());
        true
    }

    fn lose(&self) {
        let _seen = rcu::read_lock();
        for probe in self.0.probes.iter().filter_map(StaticRef::get) {
            miss(probe);
        }
    }

    fn hit(&self, mut stopped: Stopped<'_>) {
        let site = &*self.0;
        let has_fired = site.has_fired();
        if site.may_miss() && !has_fired {
            site.bring(stopped.regs());
        }
        // What a place has lost is used again when all who may have seen it are out of here.
        let _seen = rcu::read_lock();
        if !has_fired {
            site.before(stopped.regs());
            site.answer(&mut stopped);
        }
        let Some(probe) = site.probe(RETURN) else {
            return;
        };
        let step = site.instruction.step(stopped.regs());
        match (site.leaves(step.as_ref().map(Step::ip)), step) {
            (Leaving::No, _) => {}
            (Leaving::Unknown, _) => lose(probe, 1),
            (Leaving::Yes, None) => site.returned(probe, stopped.regs()),
            (Leaving::Yes, Some(step)) => {
                // Only while it fires: uprobes do the instruction.
                let before = *stopped.regs();
                step.apply(stopped.regs_mut());
                site.returned(probe, stopped.regs());
                *stopped.regs_mut() = before;
            }
        }
    }
}
