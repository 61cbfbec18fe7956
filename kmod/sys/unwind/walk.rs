// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The walk of a program's stack from a probe: by steps that were taken earlier as far as they are
//! known, otherwise by the tables of its text.

use super::known::{teller, Known, Mapped, Text};
use super::steps::{follow, Sink, Steps};
use crate::bindings;
use crate::sys::arch::TEXT;
use crate::sys::nofault;
use crate::sys::percpu::CpuGuard;
use crate::sys::regs::Regs;
use core::cell::Cell;
use dtrace_engine::{Pause, Spot, Spots, UserWalk};
use dtrace_uapi::types::{STACK_GUESSED, STACK_NOWHERE};
use dtrace_unwind::{Ended, Evaluators, Frame, Memory, Place, Plain, Walk, Word};

/// The memory and registers of the current program for a walk.
struct Program<'a> {
    regs: &'a Regs,
    /// Whether the processor certainly has the program's memory: the program itself has come here,
    /// or a word was loaded.
    is_there: Cell<bool>,
    _interrupts_off: &'a CpuGuard,
}

impl Program<'_> {
    /// Whether the processor has the program's memory, and a word can be loaded from that address.
    fn is_there(&self, address: u64) -> bool {
        self.is_there.get() || self.word(address, Word::Eight).is_some()
    }
}

impl Memory for Program<'_> {
    fn word(&self, address: u64, word: Word) -> Option<u64> {
        let size = word.bytes();
        if self.is_there.get() {
            let mut found = 0;
            // SAFETY: The processor has the program's memory and interrupts are off, so that stays
            // so; `found` is valid for the write. A fault of the load is caught.
            let is_found =
                unsafe { bindings::dtrace_unwind_word(address, size as u32, &mut found) };
            return is_found.then_some(found);
        }
        let mut bytes = [0; 8];
        let part = bytes.get_mut(..size as usize)?;
        nofault::user_load(address, part).ok()?;
        self.is_there.set(true);
        Some(u64::from_le_bytes(bytes))
    }

    fn register(&self, n: u8) -> Option<u64> {
        self.regs.dwarf(n)
    }
}

/// How to walk a stack.
pub struct How<'a> {
    /// The program's registers.
    pub regs: &'a Regs,
    /// Whether a function has just been called: then the frame pointer is still its caller's.
    pub is_called: bool,
    /// Whether the processor certainly has the program's memory.
    pub is_there: bool,
    /// Whether to use tables and frame pointers.
    pub by: UserWalk,
}

impl How<'_> {
    /// Whether kept steps can be used. Not with [`UserWalk::Told`], because a kept step does not
    /// say whether a guess led to its frame.
    fn has_steps(&self) -> bool {
        matches!(self.by, UserWalk::Auto | UserWalk::Tables) && self.regs.is_long()
    }

    /// Whether the processor has the program's memory, and a word can be loaded from where the
    /// stack begins.
    #[inline]
    fn is_there(&mut self) -> bool {
        let sp = self.regs.sp();
        self.is_there = self.is_there || nofault::user_load(sp, &mut [0; 8]).is_ok();
        self.is_there
    }
}

/// The most frames of a stack that are walked.
const FRAMES_MAX: u32 = 512;
/// The most frames that are walked beyond the wanted ones, to find the owner of generated code.
const BEYOND_MAX: u32 = 64;

/// Walks the user stack of the current program, innermost frame first. Gives each program counter
/// to `to` until it wants no more or there is no caller, and notifies `to` if a caller was not
/// found. Notes the frames of evaluators in `spots`. Returns a pause behind a frame whose walker
/// must find the caller; a later call with `from` goes on there.
#[inline]
pub fn walk(
    guard: &CpuGuard,
    mut how: How<'_>,
    spots: Option<&mut Spots>,
    mut to: Sink<'_, '_>,
    from: Option<Pause>,
) -> Option<Pause> {
    let regs = how.regs;
    let mut frame = Frame {
        ip: regs.user_ip(),
        sp: regs.sp(),
        fp: Some(regs.fp()),
        is_exact: true,
        is_innermost: true,
        is_guess: false,
    };
    let mut n = 0;
    // Most stacks were walked earlier.
    if how.has_steps() && from.is_none() && how.is_there() {
        // SAFETY: `is_there` has just found that the processor has the program's memory.
        let followed = unsafe { follow(guard, &mut frame, &mut to, FRAMES_MAX) };
        if followed.is_last {
            to.put(frame.ip);
        }
        if followed.is_last || followed.is_full {
            return None;
        }
        n = followed.count;
    }
    go(guard, how, spots, to, from, frame, n)
}

/// Whether the user stack, of at most `most` frames, is one that has come before and whose number
/// `is_known`. If not, [`recorded`] returns the number that the next walk of it has found.
#[inline]
pub fn again(
    _interrupts_off: &CpuGuard,
    how: Option<How<'_>>,
    most: usize,
    is_known: impl FnOnce(u64) -> bool,
) -> bool {
    let most = u32::try_from(most).unwrap_or(u32::MAX).min(FRAMES_MAX);
    let how = how.filter(How::has_steps);
    let at = how.and_then(|mut how| how.is_there().then_some(how.regs));
    let [ip, sp, fp] = at.map_or([0; 3], |regs| [regs.user_ip(), regs.sp(), regs.fp()]);
    // SAFETY: The guard proves that this CPU is claimed and interrupts are off. The processor has
    // the program's memory, unless `sp` is 0, which means that there is no stack.
    let number = unsafe { bindings::dtrace_unwind_again(ip, sp, fp, most) };
    let is_again = number != 0 && is_known(number);
    if number != 0 && !is_again {
        // SAFETY: As above; `dtrace_unwind_again()` has just found a recorded stack.
        unsafe { bindings::dtrace_unwind_record_anew() };
    }
    is_again
}

/// Returns the number of the stack that was walked since [`again`] was called; 0: it has none.
pub fn recorded(_interrupts_off: &CpuGuard) -> u64 {
    // SAFETY: The guard proves that this CPU is claimed and interrupts are off.
    unsafe { bindings::dtrace_unwind_recorded() }
}

/// Does the rest of [`walk`], from frame number `n` on, or from behind a pause.
#[inline(never)]
fn go(
    guard: &CpuGuard,
    how: How<'_>,
    spots: Option<&mut Spots>,
    to: Sink<'_, '_>,
    from: Option<Pause>,
    frame: Frame,
    n: u32,
) -> Option<Pause> {
    let memory = Program {
        regs: how.regs,
        is_there: Cell::new(how.is_there),
        _interrupts_off: guard,
    };
    let word = match how.regs.is_long() {
        true => Word::Eight,
        false => Word::Four,
    };
    let by = By {
        guard,
        memory: &memory,
        walk: Walk::new(&memory, word),
        steps: how.has_steps().then(|| Steps::new(guard)).flatten(),
        way: how.by,
        is_called: how.is_called,
    };
    let mut going = Going {
        frame,
        n,
        spots,
        to,
        is_wanted: true,
        left: BEYOND_MAX,
    };
    if let Some(pause) = &from {
        going.go_on(pause, &by)?;
        if going.follow(&by) {
            return None;
        }
    }
    going.walk(&by)
}

/// What a stack is walked by.
struct By<'a> {
    guard: &'a CpuGuard,
    memory: &'a Program<'a>,
    walk: Walk<'a, Program<'a>>,
    steps: Option<Steps<'a>>,
    way: UserWalk,
    is_called: bool,
}

impl By<'_> {
    /// Keeps the step from address `at` of a mapping, unless something has to be noted there.
    /// Without a rule: it has no caller.
    fn keep(&self, mapped: &Mapped<'_>, at: u64, rule: Option<Plain>) {
        if let Some(steps) = self.steps.filter(|_| mapped.is_only_native(at)) {
            steps.keep(at, rule);
        }
    }
}

/// The state of a walk.
struct Going<'a, 'b, 'c> {
    frame: Frame,
    /// The number of frames that were passed.
    n: u32,
    spots: Option<&'a mut Spots>,
    to: Sink<'b, 'c>,
    /// Whether more frames are wanted.
    is_wanted: bool,
    /// If not, how many more are looked at; see [`BEYOND_MAX`].
    left: u32,
}

impl Going<'_, '_, '_> {
    /// Goes on behind a pause. `None`: there is no caller.
    #[cold]
    fn go_on(&mut self, pause: &Pause, by: &By<'_>) -> Option<()> {
        self.n = pause.walked;
        match after(&by.walk, pause, by.way) {
            Ok(frame) => {
                self.frame = frame;
                Some(())
            }
            Err(Ended::Outermost) => None,
            Err(Ended::Lost) => {
                self.to.lost();
                None
            }
        }
    }

    /// Whether the owner of generated code on this stack is still unknown.
    fn are_open(&self) -> bool {
        self.spots.as_ref().is_some_and(|spots| spots.are_open())
    }

    /// Goes as far as steps are known. Returns whether the walk is complete.
    fn follow(&mut self, by: &By<'_>) -> bool {
        if by.steps.is_none() || !self.is_wanted || !by.memory.is_there(self.frame.sp) {
            return false;
        }
        let most = FRAMES_MAX.saturating_sub(self.n);
        // SAFETY: `is_there` has just found that the processor has the program's memory.
        let followed = unsafe { follow(by.guard, &mut self.frame, &mut self.to, most) };
        if followed.is_last {
            self.to.put(self.frame.ip);
            return true;
        }
        self.n = self.n.saturating_add(followed.count);
        if followed.is_full {
            self.is_wanted = false;
            self.left = self.left.saturating_sub(1);
            return !self.are_open();
        }
        false
    }

    /// Goes to the end, or to a pause, by tables and frame pointers, and keeps what it finds as
    /// steps.
    fn walk(mut self, by: &By<'_>) -> Option<Pause> {
        let mut known = Known::new(by.guard);
        match self.walk_on(&mut known, by) {
            Ok(pause) => Some(pause),
            Err(Ended::Outermost) => None,
            Err(Ended::Lost) => {
                if self.is_wanted {
                    self.to.lost();
                }
                None
            }
        }
    }

    fn walk_on<'k>(&mut self, known: &mut Known<'k>, by: &By<'k>) -> Result<Pause, Ended> {
        while self.n < FRAMES_MAX {
            if self.put(known, by)? && by.memory.regs.is_long() {
                return Ok(pause(&self.frame, self.n));
            }
            self.step(known, by)?;
            if self.follow(by) {
                return Err(Ended::Outermost);
            }
        }
        Err(Ended::Lost)
    }

    /// Gives the frame to `to` if it is wanted, and notes it. Returns whether its walker must find
    /// its caller.
    fn put<'k>(&mut self, known: &mut Known<'k>, by: &By<'k>) -> Result<bool, Ended> {
        let at = self.frame.at();
        let is_guess = by.way != UserWalk::FramePointers && self.frame.is_guess;
        // A guess may lead to any word. The outermost function may have left a word on its stack
        // that is no address.
        let is_no_text = !self.frame.is_exact && !TEXT.contains(&self.frame.ip);
        if self.is_wanted && (is_no_text || is_guess && known.at(at).is_nowhere()) {
            return Err(Ended::Lost);
        }
        let noting = self.spots.as_mut();
        let noting = noting.filter(|spots| self.is_wanted || spots.are_open());
        let is_to_tell = noting.is_some_and(|spots| {
            let n = self.is_wanted.then_some(self.n);
            if n.is_none() {
                spots.pass();
            }
            note(spots, n, &self.frame, known.at(at), by.guard)
        });
        let mark = match by.way {
            // So that it is not taken for the end, for a mark, or for a frame of interpreted code.
            _ if self.frame.ip == 0 || self.frame.ip >= TEXT.end => STACK_NOWHERE,
            UserWalk::Told if is_guess => STACK_GUESSED,
            _ => 0,
        };
        if self.is_wanted && !self.to.put(self.frame.ip | mark) {
            self.is_wanted = false;
            // So that the next walk that ends here needs no look-up. Nothing is looked up for this
            // alone.
            if known.has(at) {
                self.keep_here(known, by);
            }
        }
        if !self.is_wanted {
            if !self.are_open() || self.left == 0 {
                return Err(Ended::Outermost);
            }
            self.left = self.left.saturating_sub(1);
        }
        self.n = self.n.saturating_add(1);
        Ok(is_to_tell)
    }

    /// Makes the caller of the frame the current frame.
    fn step<'k>(&mut self, known: &mut Known<'k>, by: &By<'k>) -> Result<(), Ended> {
        let at = self.frame.at();
        let is_asked = by.way != UserWalk::FramePointers;
        let rules = known.rules;
        // Only if a caller is wanted: a file without a table is requested by this look-up.
        let asked = is_asked.then(|| known.at(at));
        let rule = asked.and_then(|mapped| mapped.rule(at, rules));
        let plain = rule.and_then(Plain::of);
        if let (Some(mapped), Some(plain)) = (asked, plain) {
            if by.walk.plain(&mut self.frame, plain) {
                by.keep(mapped, at, Some(plain));
                return Ok(());
            }
        }
        let place = asked.map_or(Place::Unasked, |mapped| mapped.place(rule));
        if let Some(mapped) = asked.filter(|_| place.is_end()) {
            by.keep(mapped, at, None);
        }
        self.frame = match place.tells() {
            false if by.is_called && self.frame.is_innermost => by.walk.called(&self.frame),
            false if by.way == UserWalk::Tables => Err(Ended::Lost),
            _ => by.walk.step(&self.frame, place),
        }?;
        Ok(())
    }

    /// Keeps the step from the frame without taking it.
    fn keep_here<'k>(&self, known: &mut Known<'k>, by: &By<'k>) {
        if by.steps.is_some() {
            let at = self.frame.at();
            let rules = known.rules;
            let mapped = known.at(at);
            if let Some(plain) = mapped.rule(at, rules).and_then(Plain::of) {
                by.keep(mapped, at, Some(plain));
            }
        }
    }
}

/// Returns a pause behind a frame that is the `n`th, counted from 1.
fn pause(frame: &Frame, n: u32) -> Pause {
    Pause {
        walked: n,
        is_exact: frame.is_exact,
        pc: frame.ip,
        sp: frame.sp,
        fp: frame.fp,
        caller: None,
    }
}

/// Returns the frame behind a pause: the walker's answer, or what is found as for any code about
/// which nothing is known.
fn after(walk: &Walk<'_, impl Memory>, pause: &Pause, by: UserWalk) -> Result<Frame, Ended> {
    let frame = Frame {
        ip: pause.pc,
        sp: pause.sp,
        fp: pause.fp,
        is_exact: pause.is_exact,
        is_innermost: false,
        is_guess: false,
    };
    match pause.caller {
        Some(told) => frame.told(told.pc, told.sp, told.fp),
        None if by == UserWalk::Tables => Err(Ended::Lost),
        None => walk.step(&frame, Place::Nothing),
    }
}

/// Notes the frame, the `n`th, whose text is `mapped`, if it is in an evaluator or in generated
/// code. A frame without a number only says who owns generated code. Returns whether its walker
/// must find its caller.
fn note(
    spots: &mut Spots,
    n: Option<u32>,
    frame: &Frame,
    mapped: &Mapped<'_>,
    guard: &CpuGuard,
) -> bool {
    let spot = |n, base| Spot::new(n, frame.ip, frame.sp, frame.fp, base);
    if let (Text::Made, Some(n)) = (&mapped.text, n) {
        let found = spots
            .ask_owner()
            .then(|| teller(guard, || spots.seek_owner()))
            .flatten();
        if let Some((told, base)) = found.as_ref().and_then(Mapped::evaluators) {
            own(spots, told, base);
        }
        return spots.note_made(spot(n, 0));
    }
    let Some((told, base)) = mapped.evaluators() else {
        return false;
    };
    own(spots, told, base);
    if let Some(n) = n.filter(|_| told.cover(frame.at().wrapping_sub(base))) {
        spots.note(spot(n, base), told.walker(), |n| told.constant(n));
    }
    false
}

/// Records the file as the owner of generated code, if it claims such code.
fn own(spots: &mut Spots, told: &Evaluators<'_>, base: u64) {
    if told.have_made() {
        let (walker, is_told) = (told.walker(), told.tell_callers());
        spots.own_made(walker, base, is_told, |n| told.constant(n));
    }
}
