// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! An instruction that has probes, and what happens when a program comes to it.
//!
//! A firing takes no fault: it uses the memory of the program that is present. So a site whose
//! clauses load such memory is rehearsed before it fires (INV-47), and the missing memory is
//! brought. In the exception, the program is sent on its way, waits for the memory before it is
//! back in user mode, and comes to the breakpoint again. In the handler of uprobes, which other
//! tasks wait for, only memory that needs no waiting is brought.

use super::super::usdt::{Mark, Passed};
use super::fired::{Fired, Notes};
use super::marks::{Marked, Marks};
use super::Made;
use crate::framework::quota::Debt;
use crate::framework::{any_reads_user, fire, lose, miss, rehearse};
use crate::framework::{Args, Ear, FireArgs, Listeners, Probe, ProbeRef};
use crate::sys::arch::program::{Instruction, Leaving, Step, Stored, SLOT};
use crate::sys::births;
use crate::sys::breakpoint::{Hit, Rest, Restarts, Slot, Stopped};
use crate::sys::faults::{self, Span, Use};
use crate::sys::process::Text;
use crate::sys::regs::Regs;
use crate::sys::staticref::StaticRef;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering};
use dtrace_uapi::process::{ADDRESS, ENTRY, LINE, OFFSET, RETURN, USDT};
use kernel::alloc::KVec;
use kernel::prelude::*;
use kernel::sync::{rcu, Arc, SetOnce};

/// How often an atomic store is tried in one exception.
const STORES_MAX: usize = 1000;

/// The kinds of probes, from [`ENTRY`] to [`LINE`].
const KINDS: usize = LINE as usize + 1;

/// The site has had a probe other than an entry or return.
const OTHERS: u8 = 1;
/// The site has had a USDT probe that the program asks about by a register.
const ANSWERS: u8 = 2;
/// The site has had a listener.
const LISTENERS: u8 = 4;
/// The site has had several probes of one kind.
const FURTHER: u8 = 8;

/// How many probes a site may have beyond one of each kind: for members, and for other consumers.
/// The others have room of their own, also for one of each kind, because those may be members'.
const FURTHER_MAX: [usize; 2] = [8, 8 + KINDS];

/// Room for a further probe of a kind: consumers may know a function by different names.
struct Further {
    /// [`NO_KIND`], or the kind for good, so that whoever finds the kind finds a probe of it.
    kind: AtomicU32,
    probe: StaticRef<Probe>,
    /// As [`Site::function`].
    function: Addresses,
}

const NO_KIND: u32 = u32::MAX;

/// The addresses of the function that a return probe belongs to. Stored before that probe is.
struct Addresses([AtomicU64; 2]);

impl Addresses {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 2])
    }

    fn set(&self, range: &Range<u64>) {
        let [start, end] = &self.0;
        start.store(range.start, Ordering::Relaxed);
        end.store(range.end, Ordering::Relaxed);
    }

    fn get(&self) -> Range<u64> {
        let [start, end] = &self.0;
        start.load(Ordering::Relaxed)..end.load(Ordering::Relaxed)
    }
}

impl Further {
    const fn new() -> Self {
        Self {
            kind: AtomicU32::new(NO_KIND),
            probe: StaticRef::none(),
            function: Addresses::new(),
        }
    }

    /// Whether a probe of a kind can be added.
    fn has_room(&self, kind: u32) -> bool {
        let its = self.kind.load(Ordering::Relaxed);
        (its == NO_KIND || its == kind) && self.probe.get().is_none()
    }
}

/// An instruction of a process that probes may be at.
pub struct Site {
    pub address: u64,
    pub instruction: Instruction,
    pub text: Text,
    /// Its probes by kind, but for USDT.
    probes: [StaticRef<Probe>; KINDS],
    /// Of its first return probe.
    function: Addresses,
    /// Further probes of kinds that it has one of already, members' and others'. Made before the
    /// first is added.
    further: [SetOnce<KVec<Further>>; 2],
    /// What it has ever had besides entry and return probes: [`OTHERS`], [`ANSWERS`],
    /// [`LISTENERS`], [`FURTHER`]. If this is 0, only an entry probe can fire before the
    /// instruction.
    extras: AtomicU8,
    /// Its USDT probes.
    marks: Marks,
    /// The consumers that listen here.
    listeners: SetOnce<Arc<Listeners>>,
    /// Threads that have fired here and have yet to execute the instruction: uprobes or a debugger
    /// do it for them, or they come here again.
    fired: Notes,
}

impl Site {
    /// Creates a site without probes.
    pub fn new(address: u64, text: Text, instruction: Instruction) -> Self {
        Self {
            address,
            instruction,
            text,
            probes: [const { StaticRef::none() }; KINDS],
            function: Addresses::new(),
            further: [const { SetOnce::new() }; 2],
            extras: AtomicU8::new(0),
            marks: Marks::new(),
            listeners: SetOnce::new(),
            fired: Notes::new(),
        }
    }

    /// Removes a probe of a kind.
    pub fn remove(&self, kind: u32, probe: ProbeRef) {
        let first = self.probes.get(kind as usize).into_iter();
        let further = self.slots().map(|slot| &slot.probe);
        let is_it = |slot: &&StaticRef<Probe>| slot.get().is_some_and(|it| it.id() == probe.id());
        if let Some(slot) = Iterator::chain(first, further).find(is_it) {
            slot.set(None);
        }
        self.marks.remove(probe);
    }

    /// Whether its first probe of a kind is there.
    pub fn has(&self, kind: u32) -> bool {
        self.probe(kind).is_some()
    }

    /// Whether there is room for `n` further probes of a kind, beyond the first: for members or for
    /// others.
    pub fn make_room(&self, kind: u32, n: usize, is_users: bool) -> Result<bool> {
        let at = usize::from(!is_users);
        let (of, most) = (self.further.get(at), FURTHER_MAX.get(at));
        let (of, most) = of.zip(most).ok_or(EINVAL)?;
        if of.as_ref().is_none() {
            let mut slots = KVec::with_capacity(*most, GFP_KERNEL)?;
            while slots.push_within_capacity(Further::new()).is_ok() {}
            // Calls of the provider do not overlap, so nothing else sets this.
            of.populate(slots);
        }
        let room = self.room(is_users).iter();
        Ok(room.filter(|slot| slot.has_room(kind)).count() >= n)
    }

    /// The slots for further probes of members, or of others.
    fn room(&self, is_users: bool) -> &[Further] {
        let of = self.further.get(usize::from(!is_users));
        let slots = of.and_then(SetOnce::as_ref);
        slots.map_or(&[], |slots| slots.as_slice())
    }

    fn slots(&self) -> impl Iterator<Item = &Further> {
        Iterator::chain(self.room(true).iter(), self.room(false).iter())
    }

    /// The slots of the probes of a kind beyond the first.
    fn further(&self, kind: u32) -> impl Iterator<Item = &Further> {
        let slots = self.slots();
        slots.filter(move |slot| slot.kind.load(Ordering::Relaxed) == kind)
    }

    /// All probes of a kind.
    fn each(&self, kind: u32) -> impl Iterator<Item = ProbeRef> + '_ {
        let further = self.further(kind).filter_map(|slot| slot.probe.get());
        Iterator::chain(self.probe(kind).into_iter(), further)
    }

    /// All its probes.
    pub fn all_probes(&self) -> impl Iterator<Item = ProbeRef> + '_ {
        let further = self.slots().map(|slot| &slot.probe);
        let slots = Iterator::chain(self.probes.iter(), further);
        Iterator::chain(slots, self.marks.iter().map(Marked::slot)).filter_map(StaticRef::get)
    }

    /// Its USDT probes.
    pub fn marks(&self) -> &Marks {
        &self.marks
    }

    fn probe(&self, kind: u32) -> Option<ProbeRef> {
        self.probes.get(kind as usize)?.get()
    }

    /// Its return probes, each with the addresses of its function.
    fn returns(&self) -> impl Iterator<Item = (ProbeRef, Range<u64>)> + '_ {
        let first = self.probe(RETURN).map(|probe| (probe, self.function.get()));
        Iterator::chain(first.into_iter(), self.further_returns())
    }

    fn further_returns(&self) -> impl Iterator<Item = (ProbeRef, Range<u64>)> + '_ {
        let returns = self.further(RETURN);
        returns.filter_map(|slot| Some((slot.probe.get()?, slot.function.get())))
    }

    /// What it has ever had besides entry and return probes.
    #[inline(always)]
    fn extras(&self) -> u8 {
        self.extras.load(Ordering::Relaxed)
    }

    /// Fires the probes that fire before the instruction is executed.
    #[inline(always)]
    fn before(&self, extras: u8, regs: &Regs) {
        if extras != 0 {
            self.all(extras, regs);
        } else if let Some(probe) = self.probe(ENTRY) {
            entered(probe, regs);
        }
    }

    /// Tells listeners and fires probes of all kinds. The probe that is named by an address fires
    /// first, as in DTrace 2.0.
    #[inline(never)]
    fn all(&self, extras: u8, regs: &Regs) {
        if let Some(listeners) = self.listeners.as_ref() {
            listeners.tell();
        }
        self.fire_each(ADDRESS, extras, fire_bare);
        self.fire_each(ENTRY, extras, |probe| entered(probe, regs));
        for (probe, mark) in self.marks.live() {
            marked(probe, mark, regs);
        }
        self.fire_each(OFFSET, extras, fire_bare);
        self.fire_each(LINE, extras, fire_bare);
    }

    /// Fires the probes of a kind.
    #[inline(always)]
    fn fire_each(&self, kind: u32, extras: u8, fire: impl Fn(ProbeRef)) {
        if let Some(probe) = self.probe(kind) {
            fire(probe);
        }
        if extras & FURTHER != 0 {
            self.fire_further(kind, fire);
        }
    }

    #[cold]
    fn fire_further(&self, kind: u32, fire: impl Fn(ProbeRef)) {
        let further = self.further(kind).filter_map(|slot| slot.probe.get());
        further.for_each(fire);
    }

    /// Answers a program that asks by a register whether its probe is enabled. The instruction at
    /// such a site is a nop or a return, so it leaves the register as it is.
    #[inline(always)]
    fn answer(&self, extras: u8, stopped: &mut Stopped<'_>) {
        if extras & ANSWERS != 0 {
            self.answer_by_register(stopped);
        }
    }

    #[inline(never)]
    fn answer_by_register(&self, stopped: &mut Stopped<'_>) {
        for (_, mark) in self.marks.live() {
            if let Some(register) = mark.answer_register() {
                stopped.regs_mut().set_general(register, 1);
            }
        }
    }

    /// The first memory of the program that is missing and that a clause would load if the site
    /// fired.
    #[cold]
    fn missing(&self, regs: &Regs) -> Option<Span> {
        let called = FireArgs::new(Args::Called(regs)).in_program();
        let bare = FireArgs::new(Args::Words(&[])).in_program();
        self.each(ENTRY)
            .find_map(|probe| rehearse(probe, &called))
            .or_else(|| self.missing_of_marks(regs))
            .or_else(|| {
                let others = [OFFSET, ADDRESS, LINE];
                let mut others = others.iter().flat_map(|kind| self.each(*kind));
                others.find_map(|probe| rehearse(probe, &bare))
            })
            .or_else(|| self.missing_of_return(regs))
    }

    fn missing_of_marks(&self, regs: &Regs) -> Option<Span> {
        let mut passing = self.marks.live().filter(|(_, mark)| !mark.asks());
        passing.find_map(|(probe, mark)| {
            let passed = Passed::new(mark, regs);
            let by_clause = rehearse(probe, &FireArgs::new(Args::Computed(&passed)).in_program());
            by_clause.or_else(|| passed.missing())
        })
    }

    fn missing_of_return(&self, regs: &Regs) -> Option<Span> {
        self.returns().next()?;
        let step = self.instruction.step(regs);
        let to = step.as_ref().map(Step::ip);
        let mut after = *regs;
        if let Some(step) = step {
            step.apply(&mut after);
        }
        self.returns().find_map(|(probe, function)| {
            let Leaving::Yes = self.leaves(&function, to) else {
                return None;
            };
            let words = self.return_words(&function, &after);
            rehearse(probe, &FireArgs::new(Args::Returned(&words)).in_program())
        })
    }

    /// Whether the program is to come here again, after it has waited for memory that a clause
    /// misses.
    #[cold]
    fn awaits(&self, regs: &Regs) -> bool {
        let missing = self.missing(regs);
        if missing.is_some_and(|missing| missing.await_at(self.address, Use::Clause)) {
            return true;
        }
        faults::settle();
        false
    }

    /// Brings memory that a clause misses, as far as that needs no waiting. May sleep.
    #[cold]
    fn bring(&self, regs: &Regs) {
        let missing = || {
            let _seen = rcu::read_lock();
            self.missing(regs)
        };
        faults::bring_all(missing, Span::bring);
    }

    /// Whether a function ends with this instruction, if the program goes on at `to`.
    fn leaves(&self, function: &Range<u64>, to: Option<u64>) -> Leaving {
        self.instruction.leaves(self.address, function, to)
    }

    /// Fires the return probes of functions that have ended with this instruction. `regs` are those
    /// after the instruction.
    #[inline]
    fn after(&self, regs: &Regs) {
        if let Some(probe) = self.probe(RETURN) {
            self.left(probe, &self.function.get(), regs);
        }
        if self.extras() & FURTHER != 0 {
            self.after_further(regs);
        }
    }

    #[cold]
    fn after_further(&self, regs: &Regs) {
        for (probe, function) in self.further_returns() {
            self.left(probe, &function, regs);
        }
    }

    /// Fires a return probe if its function has ended with this instruction.
    #[inline]
    fn left(&self, probe: ProbeRef, function: &Range<u64>, regs: &Regs) {
        let leaves = || matches!(self.leaves(function, Some(regs.ip())), Leaving::Yes);
        if self.instruction.is_return() || leaves() {
            self.returned(probe, function, regs);
        }
    }

    /// Fires a return probe, with the registers after the instruction.
    #[inline(never)]
    fn returned(&self, probe: ProbeRef, function: &Range<u64>, regs: &Regs) {
        let words = self.return_words(function, regs);
        fire(probe, &FireArgs::new(Args::Returned(&words)).in_program());
    }

    /// The arguments of a return: the offset in the function, and the two registers of its result.
    fn return_words(&self, function: &Range<u64>, regs: &Regs) -> [u64; 3] {
        let offset = self.address.wrapping_sub(function.start);
        let [first, second] = regs.results();
        [offset, first, second]
    }

    /// Fires all probes, including the return, before the instruction is executed, because uprobes
    /// or a debugger will execute it.
    fn ahead(&self, fired: Fired, stopped: &mut Stopped<'_>) {
        if fired == Fired::Nothing {
            let extras = self.extras();
            self.before(extras, stopped.regs());
            self.answer(extras, stopped);
        }
        if fired == Fired::All || self.returns().next().is_none() {
            return;
        }
        let step = self.instruction.step(stopped.regs());
        let to = step.as_ref().map(Step::ip);
        // Change the registers only while the probes fire, because the instruction is executed
        // later.
        let before = *stopped.regs();
        if let Some(step) = step {
            step.apply(stopped.regs_mut());
        }
        for (probe, function) in self.returns() {
            match self.leaves(&function, to) {
                Leaving::No => {}
                Leaving::Unknown => lose(probe, 1),
                Leaving::Yes => self.returned(probe, &function, stopped.regs()),
            }
        }
        *stopped.regs_mut() = before;
    }

    /// Adds a listener. `EEXIST`: it listens here already.
    pub fn listen(&self, ear: Ear) -> Result {
        if self.listeners.as_ref().is_none() {
            // Calls of the provider do not overlap, so nothing else sets this.
            self.listeners.populate(Listeners::new()?);
        }
        self.listeners.as_ref().ok_or(ENOMEM)?.add(ear)?;
        self.extras.fetch_or(LISTENERS, Ordering::Relaxed);
        Ok(())
    }

    /// Removes a listener. Returns whether it listened here.
    pub fn ignore(&self, ear: &Ear) -> bool {
        let listeners = self.listeners.as_ref();
        listeners.is_some_and(|listeners| listeners.remove(ear))
    }

    /// Whether any consumer listens here.
    pub fn is_listened_at(&self) -> bool {
        let listeners = self.listeners.as_ref();
        listeners.is_some_and(|listeners| !listeners.is_empty())
    }

    /// Adds a probe, the `claimer`th of its order. If there is one of the kind already, the caller
    /// has made sure that there is room for a further one, which is a member's or not.
    pub fn add(&self, made: &Made, claimer: u32, is_users: bool) {
        if made.kind == USDT {
            if let Some(mark) = self.marks.add(made.probe, claimer) {
                let answers = mark.answer_register().map_or(0, |_| ANSWERS);
                self.extras.fetch_or(OTHERS | answers, Ordering::Relaxed);
            }
            return;
        }
        // A probe may have a place twice.
        if self.each(made.kind).any(|it| it.id() == made.probe.id()) {
            return;
        }
        if !matches!(made.kind, ENTRY | RETURN) {
            self.extras.fetch_or(OTHERS, Ordering::Relaxed);
        }
        let first = self.probes.get(made.kind as usize);
        if let Some(slot) = first.filter(|slot| slot.get().is_none()) {
            if made.kind == RETURN {
                self.function.set(&made.function);
            }
            slot.set(Some(made.probe));
        } else if let Some(slot) = self
            .room(is_users)
            .iter()
            .find(|slot| slot.has_room(made.kind))
        {
            self.extras.fetch_or(FURTHER, Ordering::Relaxed);
            slot.kind.store(made.kind, Ordering::Relaxed);
            slot.function.set(&made.function);
            slot.probe.set(Some(made.probe));
        }
    }
}

/// Fires the entry of a function.
#[inline(never)]
fn entered(probe: ProbeRef, regs: &Regs) {
    fire(probe, &FireArgs::new(Args::Called(regs)).in_program());
}

/// Fires a USDT probe, or answers where the program asks about it.
fn marked(probe: ProbeRef, mark: &Mark, regs: &Regs) {
    if !mark.answer(regs) {
        let passed = Passed::new(mark, regs);
        fire(probe, &FireArgs::new(Args::Computed(&passed)).in_program());
    }
}

#[inline(never)]
fn fire_bare(probe: ProbeRef) {
    fire(probe, &FireArgs::new(Args::Words(&[])).in_program());
}

/// The handler of a breakpoint: the site that it fires, and what a member owes if the breakpoint
/// cannot be taken away.
pub struct At(pub Arc<Site>, pub Debt);

impl At {
    /// As [`Hit::trap`], for instructions that are not the commonest ones.
    #[inline(never)]
    fn trap_slowly(&self, mut stopped: Stopped<'_>, rest: Rest) -> bool {
        let site = &*self.0;
        let extras = site.extras();
        let Some(step) = site.instruction.step(stopped.regs()) else {
            return match rest.slot() {
                Some(slot) => self.moves(stopped, slot),
                None => rest.is_nobody() && self.awaits(stopped.regs()),
            };
        };
        let fired = site.fired.take(stopped.regs());
        let resumes = || rest.slot().is_some_and(|slot| slot.resumes(stopped.regs()));
        if fired == Fired::Nothing && !resumes() {
            site.before(extras, stopped.regs());
        }
        let Some(step) = self.store(step, stopped.regs()) else {
            let all = fired == Fired::All;
            let done = if all { fired } else { Fired::Before };
            site.fired.note(done, stopped.regs());
            return rest.slot().is_some() || rest.is_nobody();
        };
        step.apply(stopped.regs_mut());
        site.answer(extras, &mut stopped);
        if fired != Fired::All {
            site.after(stopped.regs());
        }
        true
    }

    /// Fires, and makes the program continue in a slot with the instruction. `false`: it must not
    /// be executed there.
    fn moves(&self, mut stopped: Stopped<'_>, slot: Slot) -> bool {
        let site = &*self.0;
        if !site.instruction.is_meant(stopped.regs()) {
            return false;
        }
        match Restarts::at(site.address) {
            Restarts::No => {}
            Restarts::Yes => return false,
            Restarts::Missing(span) => return span.await_at(site.address, Use::Load),
        }
        if site.fired.take(stopped.regs()) == Fired::Nothing && !slot.resumes(stopped.regs()) {
            let extras = site.extras();
            site.before(extras, stopped.regs());
            site.answer(extras, &mut stopped);
        }
        stopped.regs_mut().set_ip(slot.address());
        true
    }

    /// Makes the store of a step. If another CPU has changed the memory since the step was
    /// computed, computes the step again. `None`: the page has gone, or other CPUs were faster each
    /// time.
    fn store(&self, mut step: Step, regs: &Regs) -> Option<Step> {
        for _ in 0..STORES_MAX {
            match step.store() {
                Stored::Done => return Some(step),
                Stored::Late => step = self.0.instruction.step(regs)?,
                Stored::Gone => return None,
            }
        }
        None
    }

    /// Whether the program is to come here again, after it has waited for memory that the
    /// instruction misses.
    #[cold]
    fn awaits(&self, regs: &Regs) -> bool {
        let missing = self.0.instruction.missing(regs);
        missing.is_some_and(|(span, for_what)| span.await_at(self.0.address, for_what))
    }
}

impl Hit for At {
    #[inline(always)]
    fn trap(&self, mut stopped: Stopped<'_>, rest: Rest) -> bool {
        let site = &*self.0;
        let instruction = &site.instruction;
        if instruction.is_more() {
            return false;
        }
        let extras = site.extras();
        // With `PREEMPT_RT` the listeners' lock sleeps, so uprobes' handler tells them.
        if cfg!(CONFIG_PREEMPT_RT = "y") && extras & LISTENERS != 0 {
            return false;
        }
        if any_reads_user() && site.awaits(stopped.regs()) {
            return true;
        }
        // This makes the store of a `push` before the probes fire. That is harmless, because the
        // store is below the stack pointer.
        let Some(step) = instruction.step_briefly(stopped.regs()) else {
            return self.trap_slowly(stopped, rest);
        };
        let fired = site.fired.take(stopped.regs());
        if fired == Fired::Nothing {
            site.before(extras, stopped.regs());
        }
        site.answer(extras, &mut stopped);
        let regs = stopped.regs_mut();
        regs.set_ip(step.ip);
        regs.set_sp(step.sp);
        if fired != Fired::All {
            site.after(stopped.regs());
        }
        true
    }

    fn moved(&self, slot: u64) -> Option<[u8; SLOT]> {
        self.0.instruction.moved(self.0.address, slot)
    }

    fn leave(&self) {
        self.1.fall_due();
    }

    fn lose(&self) {
        let _seen = rcu::read_lock();
        self.0.all_probes().for_each(miss);
        if let Some(listeners) = self.0.listeners.as_ref() {
            listeners.lose();
        }
    }

    fn meet(&self, mut stopped: Stopped<'_>) -> bool {
        let site = &*self.0;
        if any_reads_user() && site.awaits(stopped.regs()) {
            return false;
        }
        site.ahead(Fired::Nothing, &mut stopped);
        // Nobody steps a thread over the instruction that is not traced, so it need not come again;
        // a later call with the same registers would be taken for that.
        if births::is_ptraced() {
            site.fired.note(Fired::All, stopped.regs());
        }
        true
    }

    fn hit(&self, mut stopped: Stopped<'_>) {
        let site = &*self.0;
        let fired = site.fired.take(stopped.regs());
        if any_reads_user() && fired == Fired::Nothing {
            site.bring(stopped.regs());
        }
        // Retired probes are reused after an RCU grace period, so one that is found from here on
        // stays.
        let _seen = rcu::read_lock();
        site.ahead(fired, &mut stopped);
    }
}
