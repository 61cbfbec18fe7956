// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Runs the walkers for a stack.
//!
//! A stack is recorded in the middle of a clause, and walkers run at that point. So a walker has
//! registers, clause-local variables and a budget of its own, leaves scratch memory unchanged, and
//! its calls do not change the number of entries on the tuple stack. If a program requests a stack
//! as a value, the walkers run in the middle of that program, so the entries themselves are kept
//! too.

use super::spots::{Caller, Pause, Spots};
use super::Interp;
use crate::budget::{USER_FRAME, USER_STEP};
use crate::buf::copy;
use crate::dif::env::{user_load, user_load_str, Env};
use crate::dif::exec;
use crate::error::{NoMem, Trap};
use crate::frames::Frames;
use crate::machine::{Machine, UserWalk};
use crate::mem::alloc::Bytes;
use crate::mem::Vec;
use core::ops::Range;
use dtrace_uapi::fault::Fault;
use dtrace_uapi::interp::{
    NameHead, Word, ASKED_CALLER, ASKED_INTERRUPTED, NAME_MAX, WALK_ASKED, WALK_THREAD, WALK_TID,
    WORDS_MAX,
};
use dtrace_uapi::limits::FRAMES_MAX;

/// Budget units that the walkers of one stack share.
const UNITS: u64 = 1 << 20;

/// Units of starting a walker, in addition to its instructions.
const EACH: usize = 256;
/// Units of adding a frame, in addition to its names.
const FRAME: usize = 128;

/// Maximum size of the addresses and words of a stack that is a value, in bytes.
const VALUE: usize = (FRAMES_MAX as usize)
    .saturating_add(WORDS_MAX)
    .saturating_mul(8);

/// The state of a CPU for walkers.
#[derive(Debug)]
pub struct Walk {
    /// The frames of evaluators in the current stack.
    spots: Spots,
    /// Index of the frame whose walker is running, if one is.
    now: Option<usize>,
    /// What that walker must do: the value of [`WALK_ASKED`].
    asked: u64,
    /// The caller that it has found.
    caller: Option<Caller>,
    /// Address and maximum size of the name of the scope to which the function of the next frame
    /// belongs.
    scope: (u64, u64),
    /// The frames of interpreted code.
    words: Vec<u64>,
    /// Number of valid elements of `words`.
    count: usize,
    /// The clause-local variables of each walker.
    locals: Vec<Bytes>,
    /// Bit mask of the walkers whose variables have been set to 0 for this stack. There are at most
    /// [`WALKERS_MAX`](dtrace_uapi::interp::WALKERS_MAX) walkers.
    begun: u32,
    /// Buffer for the names of a frame.
    text: Bytes,
    /// Buffer for a stack that becomes a value: the value lies in scratch memory, of which walkers
    /// use the rest. Taken away while it is in use.
    value: Bytes,
}

impl Walk {
    /// Allocates the state for the walkers of `interp`.
    pub fn new(interp: &Interp) -> Result<Self, NoMem> {
        let locals = |n| Bytes::new(interp.locals.get(n).copied().unwrap_or(0));
        Ok(Self {
            spots: Spots::new()?,
            now: None,
            asked: 0,
            caller: None,
            scope: (0, 0),
            words: Vec::try_from_fn(WORDS_MAX, |_| Ok::<_, NoMem>(0))?,
            count: 0,
            locals: Vec::try_from_fn(interp.locals.len(), locals)?,
            begun: 0,
            text: Bytes::new(NAME_MAX.iter().sum())?,
            value: Bytes::new(VALUE)?,
        })
    }

    /// Forgets the last stack. Returns where the frames of the next one are noted.
    fn begin(&mut self) -> &mut Spots {
        self.spots.clear();
        self.count = 0;
        self.begun = 0;
        self.asked = 0;
        &mut self.spots
    }

    fn put(&mut self, word: Word) -> Result<(), Trap> {
        let slot = self.words.get_mut(self.count);
        *slot.ok_or(Trap::new(Fault::NoScratch, 0))? = word.encode();
        self.count = self.count.saturating_add(1);
        Ok(())
    }
}

/// Writes at most `most` frames of the user stack and, if `to` has room for more, the frames of
/// interpreted code behind them, a word each, and charges the work to the budget. Returns the
/// number of bytes written, including a zero at the end if there is room. Bytes after that are
/// unchanged.
#[inline(always)]
pub fn ustack<M: Machine>(env: &mut Env<'_, M>, most: usize, to: &mut [u8]) -> Result<usize, Trap> {
    let size = to.len();
    let mut frames = Frames::up_to(most, to);
    let work = walk(env, env.core.ustacks, &mut frames, None);
    env.pay(work.frames.saturating_add(work.others))?;
    Ok(size.saturating_sub(frames.end().len()))
}

/// Writes a user stack that becomes a value to a range of scratch memory: at most `most` addresses
/// and, behind the room for these, the frames of interpreted code; zeros elsewhere. The caller has
/// paid for `most` frames; other work is charged to the budget. Returns the number of addresses.
#[inline(never)]
pub fn value<M: Machine>(
    env: &mut Env<'_, M>,
    most: usize,
    at: Range<usize>,
) -> Result<usize, Trap> {
    // A program computes with the addresses, so they have no marks.
    let by = env.core.ustacks.bare();
    let addresses = most.saturating_mul(8);
    // A rehearsal is about the memory that the clause itself would miss.
    let wants_words = at.len() > addresses && env.rehearsal.is_none();
    let Some(state) = env.vm.walk.as_mut().filter(|_| wants_words) else {
        let to = env.vm.scratch.get_mut(at).unwrap_or_default();
        let mut frames = Frames::up_to(most, to);
        env.m.ustack(by, &mut frames, None, None);
        return Ok(frames.finish());
    };
    let mut buffer = core::mem::replace(&mut state.value, Bytes::empty());
    let tuple = env.vm.tuple;
    let to = buffer.get_mut(..at.len()).unwrap_or_default();
    let (addresses, words) = to.split_at_mut_checked(addresses).unwrap_or_default();
    let (mut frames, mut words) = (Frames::new(addresses), Frames::new(words));
    let work = walk(env, by, &mut frames, Some(&mut words));
    words.finish();
    let depth = frames.finish();
    env.vm.tuple = tuple;
    if let Some(scratch) = env.vm.scratch.get_mut(at) {
        copy(scratch, to);
    }
    if let Some(state) = env.vm.walk.as_mut() {
        state.value = buffer;
    }
    env.pay(work.others)?;
    Ok(depth)
}

/// Budget units of a walk.
struct Work {
    /// Of the frames that are written.
    frames: usize,
    /// Of all else that the walk has done. The walkers' own work is charged already.
    others: usize,
}

/// Writes the frames of the user stack, and those of interpreted code to `apart`; if that is
/// `None`, behind the others where `frames` has further room.
#[inline(always)]
fn walk<'f, M: Machine>(
    env: &mut Env<'_, M>,
    by: UserWalk,
    frames: &mut Frames<'f>,
    apart: Option<&mut Frames<'f>>,
) -> Work {
    let wants_words = apart.is_some() || frames.is_limited();
    let mut walk = env.vm.walk.as_mut().filter(|_| wants_words);
    let spots = walk.as_mut().map(|walk| walk.begin());
    let pause = env.m.ustack(by, frames, spots, None);
    let mut work = Work {
        frames: frames_units(frames),
        others: 0,
    };
    if let Some(walk) = walk {
        work.others = walk.spots.units();
        let interp = env.core.interp.as_ref();
        if let Some(interp) = interp.filter(|_| walk.spots.count() != 0) {
            work = interpreted(env, interp, by, frames, apart, pause);
        }
    }
    work
}

/// Returns the budget units of walking frames.
#[inline]
fn frames_units(frames: &Frames<'_>) -> usize {
    let (put, looked_up) = frames.counts();
    let remembered = put.saturating_sub(looked_up);
    (looked_up.saturating_mul(USER_FRAME)).saturating_add(remembered.saturating_mul(USER_STEP))
}

/// Adds the frames of interpreted code, see [`walk`]; if the walk made a pause, it is continued
/// first.
#[inline(never)]
fn interpreted<'f, M: Machine>(
    env: &mut Env<'_, M>,
    interp: &Interp,
    by: UserWalk,
    frames: &mut Frames<'f>,
    apart: Option<&mut Frames<'f>>,
    pause: Option<Pause>,
) -> Work {
    let mut work = Work {
        frames: 0,
        others: 0,
    };
    within(env, |env| {
        go_on(env, interp, by, frames, pause);
        work.others = env.vm.walk.as_ref().map_or(0, |walk| walk.spots.units());
        work.frames = frames_units(frames);
        let to = match apart {
            Some(apart) => apart,
            None => {
                frames.unlimit();
                frames
            }
        };
        run(env, interp, to.room().min(WORDS_MAX));
        if let Some(walk) = &env.vm.walk {
            let words = walk.words.iter().take(walk.count);
            words.for_each(|word| {
                to.put(*word);
            });
        }
    });
    work
}

/// Calls `run`, which runs walkers, with a separate budget. Restores everything else that a walker
/// may change.
fn within<M: Machine>(env: &mut Env<'_, M>, run: impl FnOnce(&mut Env<'_, M>)) {
    let whole = env.vm.budget.lend(UNITS);
    let (used, left, ntuple) = (env.vm.used, env.vm.left, env.vm.ntuple);
    run(env);
    let vm = &mut *env.vm;
    if let Some(walk) = &mut vm.walk {
        walk.now = None;
    }
    (vm.used, vm.left, vm.ntuple) = (used, left, ntuple);
    vm.budget.take_back(whole, UNITS);
}

/// Continues a walk to its end that the machine has suspended: at each pause a walker runs, which
/// may find the caller with which the walk goes on.
fn go_on<M: Machine>(
    env: &mut Env<'_, M>,
    interp: &Interp,
    by: UserWalk,
    frames: &mut Frames<'_>,
    mut pause: Option<Pause>,
) {
    while let Some(at) = pause {
        let caller = ask(env, interp, &at);
        let spots = env.vm.walk.as_mut().map(|walk| &mut walk.spots);
        let from = Pause { caller, ..at };
        pause = env.m.ustack(by, frames, spots, Some(from));
    }
    if let Some(walk) = &mut env.vm.walk {
        walk.spots.close();
    }
}

/// Runs the walker of the frame that was noted last, and returns the caller that it finds.
fn ask<M: Machine>(env: &mut Env<'_, M>, interp: &Interp, pause: &Pause) -> Option<Caller> {
    let walk = env.vm.walk.as_mut()?;
    let n = walk.spots.count().checked_sub(1)?;
    walk.caller = None;
    walk.asked = match pause.is_exact {
        true => ASKED_INTERRUPTED,
        false => ASKED_CALLER,
    };
    let number = next(env, n, usize::MAX)?;
    run_one(env, interp, number);
    let walk = env.vm.walk.as_mut()?;
    walk.asked = 0;
    walk.caller.take()
}

/// Runs the walkers of all noted frames, until there are `room` frames of interpreted code.
fn run<M: Machine>(env: &mut Env<'_, M>, interp: &Interp, room: usize) {
    let mut n = 0;
    while let Some(number) = next(env, n, room) {
        run_one(env, interp, number);
        n = n.saturating_add(1);
    }
    if let Some(walk) = &mut env.vm.walk {
        walk.count = walk.count.min(room);
    }
}

/// Runs the walker with a number, if it exists. The frames that a failing walker has added are
/// kept.
fn run_one<M: Machine>(env: &mut Env<'_, M>, interp: &Interp, number: u64) {
    if let Some((index, walker)) = interp.find(number) {
        let own = swap_locals(env, index);
        env.vm.ntuple = 0;
        if env.pay(own.saturating_add(EACH)).is_ok() {
            let _ = exec::run(&walker.program, env);
        }
        swap_locals(env, index);
    }
}

/// Selects the frame with index `n` as the one whose walker runs. Returns the walker's number;
/// `None` if there is no such frame, or if there are `room` frames of interpreted code already.
fn next<M: Machine>(env: &mut Env<'_, M>, n: usize, room: usize) -> Option<u64> {
    let walk = env.vm.walk.as_mut().filter(|walk| walk.count < room)?;
    let (_, number) = walk.spots.get(n)?;
    walk.now = Some(n);
    walk.scope = (0, 0);
    Some(number)
}

/// Swaps the clause-local variables with those of a walker. Returns the number of bytes that were
/// set to 0.
fn swap_locals<M: Machine>(env: &mut Env<'_, M>, index: usize) -> usize {
    let vm = &mut *env.vm;
    let own =
        (vm.walk.as_mut()).and_then(|walk| Some((walk.locals.get_mut(index)?, &mut walk.begun)));
    let Some((own, begun)) = own else {
        return 0;
    };
    let bit = 1u32.checked_shl(index as u32).unwrap_or(0);
    let is_new = *begun & bit == 0;
    if is_new {
        own.fill(0);
        *begun |= bit;
    }
    let size = own.len();
    core::mem::swap(own, &mut vm.locals);
    if is_new {
        size
    } else {
        0
    }
}

impl<M: Machine> Env<'_, M> {
    /// Returns an element of `walk[]`.
    pub fn walk_element(&self, n: u64) -> Result<u64, Trap> {
        let now = self
            .vm
            .walk
            .as_ref()
            .and_then(|walk| Some((walk, walk.now?)));
        let (walk, now) = now.ok_or(Trap::new(Fault::IllOp, n))?;
        Ok(match n {
            WALK_TID => u64::from(self.m.own_tid()),
            WALK_THREAD => self.m.thread_pointer(),
            WALK_ASKED => walk.asked,
            _ => walk.spots.element(now, n),
        })
    }

    /// Stores the caller of the frame whose walker is running. A fault if the walker was not asked
    /// for a caller.
    pub fn tell_caller(&mut self, pc: u64, sp: u64, fp: u64) -> Result<(), Trap> {
        let walk = self.vm.walk.as_mut().filter(|walk| walk.asked != 0);
        walk.ok_or(Trap::new(Fault::IllOp, 0))?.caller = Some(Caller {
            pc,
            sp,
            fp: (fp != 0).then_some(fp),
        });
        Ok(())
    }

    /// Sets the scope to which the function of the next frame belongs: the address of its name, and
    /// the maximum size of that.
    pub fn name_scope(&mut self, name: (u64, u64)) -> Result<(), Trap> {
        let walk = self.vm.walk.as_mut().ok_or(Trap::new(Fault::IllOp, 0))?;
        walk.scope = name;
        Ok(())
    }

    /// Adds a frame of interpreted code. The names of its function and file, and its line table,
    /// are given by addresses and maximum sizes. `position` is a line, or a location in that table,
    /// which starts at line `first`.
    pub fn put_frame(
        &mut self,
        [function, file, table]: [(u64, u64); 3],
        position: u64,
        first: u64,
    ) -> Result<(), Trap> {
        self.check_user_memory()?;
        let illegal = Trap::new(Fault::IllOp, 0);
        let interp = self.core.interp.as_ref().ok_or(illegal)?;
        let vm = &mut *self.vm;
        let walk = vm.walk.as_mut().ok_or(illegal)?;
        let now = walk.now.filter(|_| walk.asked == 0);
        let (spot, walker) = now.and_then(|n| walk.spots.get(n)).ok_or(illegal)?;
        let [functions, files, tables, scopes] = NAME_MAX;
        let scope = core::mem::take(&mut walk.scope);
        let units = FRAME.saturating_add(asked([function, file, table, scope]));
        vm.budget.pay(self.m, units)?;
        let mut text = Text {
            bytes: &mut walk.text,
            used: 0,
        };
        let (m, rehearsal) = (self.m, self.rehearsal);
        let string = |at: u64, to: &mut [u8]| user_load_str(m, rehearsal, at, to).ok();
        let bytes =
            |at: u64, to: &mut [u8]| user_load(m, rehearsal, at, to).ok().map(|()| to.len());
        let sizes = [
            text.add(function, functions, string),
            text.add(file, files, string),
            text.add(table, tables, bytes),
            text.add(scope, scopes, string),
        ];
        let head = NameHead {
            walker,
            first: first as u32,
            sizes,
            pad: [0; 2],
        };
        let used = text.used;
        let names = walk.text.get(..used).unwrap_or(&[]);
        let name = interp.names.number(&head, names);
        walk.put(Word {
            native: u16::try_from(spot.frame).unwrap_or(u16::MAX),
            position: u32::try_from(position).unwrap_or(u32::MAX),
            name,
        })
    }
}

/// Returns the maximum number of bytes that are read for names of these sizes.
fn asked(names: [(u64, u64); 4]) -> usize {
    let sizes = names.iter().zip(NAME_MAX);
    let sizes = sizes.map(|((_, size), most)| usize::try_from(*size).unwrap_or(most).min(most));
    sizes.fold(0, usize::saturating_add)
}

/// The names of a frame, one after the other.
struct Text<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl Text<'_> {
    /// Appends what `load` reads at an address, at most `most` bytes; nothing if it cannot be read.
    /// Returns its size.
    fn add(
        &mut self,
        (at, size): (u64, u64),
        most: usize,
        load: impl FnOnce(u64, &mut [u8]) -> Option<usize>,
    ) -> u16 {
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(most);
        let end = self.used.saturating_add(size);
        let to = self.bytes.get_mut(self.used..end).unwrap_or(&mut []);
        let got = match at {
            0 => 0,
            _ => load(at, to).unwrap_or(0).min(to.len()),
        };
        self.used = self.used.saturating_add(got);
        got as u16
    }
}
