// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Tables by which programs' stacks are walked.
//!
//! They belong to files, and are the machine's: what one consumer has made all use. See `bindings/unwind.c`. Steps that were taken before
//! are kept: `bindings/follow.c`.

use super::nofault;
use super::percpu::CpuGuard;
use super::regs::Regs;
use crate::bindings;
use core::cell::Cell;
use core::ops::Range;
use core::ptr::{null_mut, NonNull};
use dtrace_engine::frames::Frames;
use dtrace_engine::{Pause, Spot, Spots, UserWalk};
use dtrace_uapi::types::{STACK_GUESSED, STACK_NOWHERE};
use dtrace_unwind::cache::{Cache, Slot, SLOTS};
use dtrace_unwind::{
    rule, Ended, Evaluators, Frame, Memory, Place, Plain, Rule, Table, Walk, Word,
};
use kernel::error::to_result;
use kernel::prelude::*;

/// The right to have tables.
pub struct Tables(());

impl Tables {
    /// The only ones.
    pub fn new() -> Result<Self> {
        // SAFETY: Called once in the life of the module.
        to_result(unsafe { bindings::dtrace_unwind_init() })?;
        Ok(Self(()))
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        // SAFETY: What fires and who serves has ended before.
        unsafe { bindings::dtrace_unwind_exit() };
    }
}

/// A table that is not in use yet.
pub struct Fresh {
    table: NonNull<bindings::dtrace_unwind>,
    bytes: NonNull<u8>,
    size: usize,
}

impl Fresh {
    /// Room for so many bytes.
    pub fn new(size: u32) -> Result<Self> {
        let mut bytes = null_mut();
        // SAFETY: `bytes` is valid for the write.
        let table = unsafe { bindings::dtrace_unwind_alloc(size, &mut bytes) };
        Ok(Self {
            table: NonNull::new(table).ok_or(ENOMEM)?,
            bytes: NonNull::new(bytes).ok_or(ENOMEM)?,
            size: size as usize,
        })
    }

    /// The bytes, which are to be filled.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: They are initialized, and as long as this is borrowed nobody else's.
        unsafe { core::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.size) }
    }

    /// Makes it that of a file of the current process, which was `changed` last at that time, in nanoseconds. `EEXIST`: it has one; `ESTALE`: it was
    /// changed since; `EBADF`, `EINVAL`: it is no such file; `ENOSPC`: there is no room.
    pub fn add(self, fd: i32, changed: u64) -> Result {
        // SAFETY: It is whole. It is nobody's but C's if it is taken over.
        to_result(unsafe { bindings::dtrace_unwind_add(self.table.as_ptr(), fd, changed) })?;
        core::mem::forget(self);
        Ok(())
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: It is ours alone.
        unsafe { bindings::dtrace_unwind_free(self.table.as_ptr()) };
    }
}

/// As long as there is one, files that have no table are noted.
pub struct Server(());

impl Server {
    /// One more.
    pub fn new() -> Self {
        // SAFETY: No preconditions.
        unsafe { bindings::dtrace_unwind_serve(true) };
        Self(())
    }

    /// A descriptor for the current process of the next file that is wanted. `ENOENT`: none is.
    pub fn wanted(&self) -> Result<i32> {
        // SAFETY: No preconditions.
        let fd = unsafe { bindings::dtrace_unwind_wanted() };
        to_result(fd)?;
        Ok(fd)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: It was counted.
        unsafe { bindings::dtrace_unwind_serve(false) };
    }
}

/// The current program, as a walk sees it.
struct Program<'a> {
    regs: &'a Regs,
    /// The processor certainly has the program's memory: the program has come here, or a word was loaded.
    is_there: Cell<bool>,
    _interrupts_off: &'a CpuGuard,
}

impl Program<'_> {
    /// Whether the processor has the program's memory, which has a word at that address.
    fn is_there(&self, address: u64) -> bool {
        self.is_there.get() || self.word(address, Word::Eight).is_some()
    }
}

impl Memory for Program<'_> {
    fn word(&self, address: u64, word: Word) -> Option<u64> {
        let size = word.bytes();
        if self.is_there.get() {
            let mut found = 0;
            // SAFETY: Interrupts are off, and the processor has the program's memory since; `found` is valid for the write.
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

/// What is known of the text of a mapping.
enum Text<'a> {
    /// It is none.
    Nowhere,
    /// Nothing.
    Untold,
    /// No file has it: the program has made it.
    Made,
    /// Its file's rules, the number of its table, and where in the file it begins.
    Told(Table<'a>, u64, u64),
}

/// What is known of the text from the start to the end.
struct Mapped<'a> {
    start: u64,
    end: u64,
    text: Text<'a>,
}

impl<'a> Mapped<'a> {
    fn has(&self, address: u64) -> bool {
        address >= self.start && address < self.end
    }

    /// Whether nothing is there that can be executed.
    fn is_nowhere(&self) -> bool {
        matches!(self.text, Text::Nowhere)
    }

    /// The bytes of the rule of an instruction of it, if its file has any.
    fn rule(&self, address: u64, rules: Cache<'_>) -> Option<[u8; rule::SIZE]> {
        let Text::Told(table, number, offset) = &self.text else {
            return None;
        };
        let offset = address.wrapping_sub(self.start).wrapping_add(*offset);
        Some(rules.rule(*number, table, offset))
    }

    /// What is known of that instruction.
    fn place(&self, rule: Option<[u8; rule::SIZE]>) -> Place {
        match (&self.text, rule) {
            (Text::Nowhere, _) => Place::NoText,
            (_, None) => Place::Nothing,
            (_, Some(rule)) => Place::Rule(Rule::decode(rule).unwrap_or(Rule::UNKNOWN)),
        }
    }

    /// Whether a frame there is nothing but native code of a file that has rules.
    fn is_only_native(&self, address: u64) -> bool {
        let is_free = |(told, base): (&Evaluators<'_>, u64)| {
            !told.have_made() && !told.cover(address.wrapping_sub(base))
        };
        matches!(self.text, Text::Told(..)) && self.evaluators().is_none_or(is_free)
    }

    /// What the file says of evaluators, and where offset 0 of the file is, or would be.
    fn evaluators(&self) -> Option<(&Evaluators<'a>, u64)> {
        let Text::Told(table, _, offset) = &self.text else {
            return None;
        };
        Some((table.evaluators()?, self.start.wrapping_sub(*offset)))
    }

    /// Whether the file's walker tells the callers of frames in code that the program has made.
    fn tells_callers(&self) -> bool {
        let told = self.evaluators();
        told.is_some_and(|(told, _)| told.tell_callers())
    }
}

/// Where the frames of a stack go.
pub enum Sink<'a, 'b> {
    /// Their program counters are put there, as long as there is room.
    Frames(&'a mut Frames<'b>),
    /// They are counted, all of them.
    Depth(&'a mut u32),
}

impl Sink<'_, '_> {
    /// Takes the next one; returns whether another is wanted.
    fn put(&mut self, pc: u64) -> bool {
        match self {
            Self::Frames(frames) => frames.put(pc),
            Self::Depth(depth) => {
                **depth = depth.saturating_add(1);
                true
            }
        }
    }

    /// The caller of the last one was not found.
    fn lost(&mut self) {
        if let Self::Frames(frames) = self {
            frames.lost();
        }
    }
}

/// How far steps led.
#[derive(Default)]
struct Followed {
    /// How many frames were left behind.
    count: u32,
    /// No more are wanted.
    is_full: bool,
    /// The next one has no caller.
    is_last: bool,
}

/// Steps that were taken before on this CPU in the same epoch.
#[derive(Clone, Copy)]
struct Steps<'a> {
    epoch: u64,
    _guard: &'a CpuGuard,
}

impl<'a> Steps<'a> {
    /// Those of the current program, if there can be any.
    fn new(guard: &'a CpuGuard) -> Option<Self> {
        // SAFETY: The guard says that this CPU is claimed, and interrupts are off.
        let epoch = unsafe { bindings::dtrace_unwind_epoch() };
        let steps = Self {
            epoch,
            _guard: guard,
        };
        (epoch != 0).then_some(steps)
    }

    /// Goes as far as is known, and at most `most` frames; gives those that were left behind to `to`.
    #[inline]
    fn follow(self, frame: &mut Frame, to: &mut Sink<'_, '_>, most: u32) -> Followed {
        let Some(fp) = frame.fp else {
            return Followed::default();
        };
        let mut at = bindings::dtrace_unwind_frame {
            ip: frame.ip,
            sp: frame.sp,
            fp,
            is_exact: frame.is_exact,
            is_last: false,
        };
        let (pcs, room) = match to {
            Sink::Frames(frames) => {
                let room = frames.room();
                (frames.rest().as_mut_ptr(), room)
            }
            Sink::Depth(_) => (null_mut(), usize::MAX),
        };
        let room = u32::try_from(room).unwrap_or(u32::MAX).min(most);
        // SAFETY: The CPU is claimed, interrupts are off, and the processor has the program's memory, as the caller knows. `pcs` is
        // valid for `room` words, or null.
        let n = unsafe { bindings::dtrace_unwind_follow(&mut at, self.epoch, pcs, room) };
        if n != 0 {
            *frame = Frame::calling(at.ip, at.sp, Some(at.fp));
        }
        let is_full = match to {
            Sink::Frames(frames) => !frames.took(n as usize),
            Sink::Depth(depth) => {
                **depth = depth.saturating_add(n);
                false
            }
        };
        Followed {
            count: n,
            is_full,
            is_last: at.is_last,
        }
    }

    /// Keeps the step from the instruction at an address by that rule; none: it has no caller.
    fn keep(self, at: u64, rule: Option<Plain>) {
        let step = bindings::dtrace_unwind_step {
            at,
            epoch: self.epoch,
            cfa: rule.map_or(0, |rule| rule.offset),
            saved: rule.and_then(|rule| rule.saved).unwrap_or(0),
            by_fp: rule.is_some_and(|rule| rule.is_fp),
            is_saved: rule.is_some_and(|rule| rule.saved.is_some()),
            is_last: rule.is_none(),
        };
        // SAFETY: The CPU is claimed, and interrupts are off.
        unsafe { bindings::dtrace_unwind_keep(&step) };
    }
}

/// What is known of text, as long as interrupts are off.
struct Known<'a> {
    /// The mappings that were looked up last: most callers are in that of who they call, or of who called that.
    mapped: [Mapped<'a>; 2],
    /// Whether the last address was in the second.
    is_second: bool,
    rules: Cache<'a>,
    guard: &'a CpuGuard,
}

// The rules are C's memory.
const _: () = assert!(
    size_of::<[Slot; SLOTS]>()
        == bindings::DTRACE_UNWIND_RULES as usize * size_of::<bindings::dtrace_unwind_rule>()
        && align_of::<Slot>() == align_of::<bindings::dtrace_unwind_rule>()
);

impl<'a> Known<'a> {
    fn new(guard: &'a CpuGuard) -> Self {
        // SAFETY: No preconditions.
        let any = unsafe { bindings::dtrace_unwind_any() };
        // Without tables nothing is known anywhere.
        let nothing = |end| Mapped {
            start: 0,
            end,
            text: Text::Untold,
        };
        // SAFETY: The guard says that this CPU is claimed: until it is let go nobody else gets at its rules, of which there are so
        // many, zeroed when they were allocated and written as slots alone; they stay until all claims have ended.
        let rules = unsafe { &*bindings::dtrace_unwind_rules_here().cast::<[Slot; SLOTS]>() };
        Self {
            mapped: [nothing(if any { 0 } else { u64::MAX }), nothing(0)],
            is_second: false,
            rules: Cache(rules),
            guard,
        }
    }

    /// Whether the mapping of an address was looked up.
    fn has(&self, address: u64) -> bool {
        self.mapped.iter().any(|mapped| mapped.has(address))
    }

    /// The mapping of an address.
    fn at(&mut self, address: u64) -> &Mapped<'a> {
        let [first, second] = &mut self.mapped;
        let (last, other) = match self.is_second {
            false => (first, second),
            true => (second, first),
        };
        if last.has(address) {
            return last;
        }
        self.is_second = !self.is_second;
        if !other.has(address) {
            *other = mapped(address, self.guard);
        }
        other
    }
}

/// From where to where there is the same text as at an address, and what is known of it as long as interrupts are off.
fn mapped(address: u64, interrupts_off: &CpuGuard) -> Mapped<'_> {
    let mut found = bindings::dtrace_unwind_place::default();
    // SAFETY: Interrupts are off; `found` is valid for the write.
    unsafe { bindings::dtrace_unwind_at(address, &mut found) };
    found_there(&found, interrupts_off)
}

/// What was found there.
fn found_there<'a>(
    found: &bindings::dtrace_unwind_place,
    _interrupts_off: &'a CpuGuard,
) -> Mapped<'a> {
    let text = if found.is_nowhere {
        Text::Nowhere
    } else if found.is_made {
        Text::Made
    } else if found.bytes.is_null() {
        Text::Untold
    } else {
        // SAFETY: They stay and do not change while interrupts are off.
        let bytes = unsafe { core::slice::from_raw_parts(found.bytes, found.size as usize) };
        match Table::new(bytes) {
            Some(table) => Text::Told(table, found.number, found.offset),
            None => Text::Untold,
        }
    };
    Mapped {
        start: found.start,
        end: found.end,
        text,
    }
}

/// Most files, and most mappings, that are looked at for whose the code is that the program has made. It is done for any program, and nobody
/// pays for it.
const TEXTS_MAX: usize = 64;
const MAPPINGS_MAX: u32 = 512;

/// The text of the current program whose file says that its walker tells the callers of frames in code that the program has made.
fn teller(guard: &CpuGuard) -> Option<Mapped<'_>> {
    // SAFETY: The guard says that this CPU is claimed, and interrupts are off.
    let kept = unsafe { bindings::dtrace_unwind_teller() };
    match kept {
        u64::MAX => return None,
        0 => {}
        kept => {
            let found = mapped(kept, guard);
            if found.tells_callers() {
                return Some(found);
            }
        }
    }
    let found = search_teller(guard);
    let start = found.as_ref().map_or(u64::MAX, |found| found.start);
    // SAFETY: As above.
    unsafe { bindings::dtrace_unwind_keep_teller(start) };
    found
}

/// The same among the mappings, from the highest address on: what a program has loaded first lies there.
fn search_teller(guard: &CpuGuard) -> Option<Mapped<'_>> {
    let mut place = bindings::dtrace_unwind_place::default();
    let mut left = MAPPINGS_MAX;
    let mut at = u64::MAX;
    for _ in 0..TEXTS_MAX {
        // SAFETY: Interrupts are off; `left` and `place` are valid for the writes.
        at = unsafe { bindings::dtrace_unwind_below(at, &mut left, &mut place) };
        if at == 0 {
            return None;
        }
        let found = found_there(&place, guard);
        if found.tells_callers() {
            return Some(found);
        }
    }
    None
}

/// How a stack is walked.
pub struct How<'a> {
    /// The program's registers.
    pub regs: &'a Regs,
    /// A function has just been called: the frame pointer is still its caller's.
    pub is_called: bool,
    /// The processor certainly has the program's memory.
    pub is_there: bool,
    /// Where no table tells, functions are taken to have frame pointers if they may be gone by.
    pub by: UserWalk,
}

/// Most frames of a stack that are walked.
const FRAMES_MAX: u32 = 512;
/// Where a program's text may be: nothing is mapped in the first page, and addresses of programs have at most 56 bits (Linux:
/// `Documentation/arch/x86/x86_64/mm.rst`).
const TEXT: Range<u64> = 4096..1 << 56;
/// Most frames that are walked beyond those that are wanted, to learn whose the code is that the program has made.
const BEYOND_MAX: u32 = 64;

/// Walks the user stack, innermost frame first, giving each program counter to `to` until it wants no more or there is no caller. `to` is told
/// if a caller was not found. Frames of evaluators are noted in `spots`. Returns a pause behind one whose walker is to tell its caller; `from`
/// there it goes on.
#[inline]
pub fn walk(
    guard: &CpuGuard,
    how: How<'_>,
    spots: Option<&mut Spots>,
    to: Sink<'_, '_>,
    from: Option<Pause>,
) -> Option<Pause> {
    let How { regs, .. } = how;
    let memory = Program {
        regs,
        is_there: Cell::new(how.is_there),
        _interrupts_off: guard,
    };
    let word = match regs.is_long() {
        true => Word::Eight,
        false => Word::Four,
    };
    // A step that was kept does not say whether a guess led to where it begins.
    let is_by_table = matches!(how.by, UserWalk::Auto | UserWalk::Tables);
    let have_steps = is_by_table && word == Word::Eight;
    let by = By {
        guard,
        memory: &memory,
        walk: Walk::new(&memory, word),
        steps: have_steps.then(|| Steps::new(guard)).flatten(),
        way: how.by,
        is_called: how.is_called,
    };
    let mut going = Going {
        frame: Frame {
            ip: regs.user_ip(),
            sp: regs.sp(),
            fp: Some(regs.fp()),
            is_exact: true,
            is_innermost: true,
            is_guess: false,
        },
        n: 0,
        spots,
        to,
        is_wanted: true,
        left: BEYOND_MAX,
    };
    if let Some(pause) = &from {
        going.go_on(pause, &by)?;
    }
    // Most stacks were walked before.
    match by.steps {
        Some(steps) if going.follow(steps, &memory) => None,
        _ => going.walk(&by),
    }
}

/// By what a stack is walked.
struct By<'a> {
    guard: &'a CpuGuard,
    memory: &'a Program<'a>,
    walk: Walk<'a, Program<'a>>,
    steps: Option<Steps<'a>>,
    way: UserWalk,
    is_called: bool,
}

impl By<'_> {
    /// Keeps the step from that address of a mapping, unless something is to be noted there; none: it has no caller.
    fn keep(&self, mapped: &Mapped<'_>, at: u64, rule: Option<Plain>) {
        if let Some(steps) = self.steps.filter(|_| mapped.is_only_native(at)) {
            steps.keep(at, rule);
        }
    }
}

/// A walk, where it is.
struct Going<'a, 'b, 'c> {
    frame: Frame,
    /// How many frames were left behind.
    n: u32,
    spots: Option<&'a mut Spots>,
    to: Sink<'b, 'c>,
    /// More frames are.
    is_wanted: bool,
    /// How many more are looked at if not, see [`BEYOND_MAX`].
    left: u32,
}

impl Going<'_, '_, '_> {
    /// Goes on behind a pause, if there is a caller.
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

    /// Whether it is not known yet whose the made code is.
    fn are_open(&self) -> bool {
        self.spots.as_ref().is_some_and(|spots| spots.are_open())
    }

    /// Goes as far as is known by steps. Returns whether that was all the way.
    #[inline(always)]
    fn follow(&mut self, steps: Steps<'_>, memory: &Program<'_>) -> bool {
        if !self.is_wanted || !memory.is_there(self.frame.sp) {
            return false;
        }
        let most = FRAMES_MAX.saturating_sub(self.n);
        let followed = steps.follow(&mut self.frame, &mut self.to, most);
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

    /// Goes to the end, or to a pause, by what is found, which is kept as steps.
    #[inline(never)]
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
            if by.steps.is_some_and(|steps| self.follow(steps, by.memory)) {
                return Err(Ended::Outermost);
            }
        }
        Err(Ended::Lost)
    }

    /// Gives the frame to who wants it, and notes it. Returns whether its walker is to tell its caller.
    fn put<'k>(&mut self, known: &mut Known<'k>, by: &By<'k>) -> Result<bool, Ended> {
        let at = self.frame.at();
        let is_guess = by.way != UserWalk::FramePointers && self.frame.is_guess;
        // A guess may lead to any word, and the outermost function may have found what is no address on its stack.
        let is_no_text = !self.frame.is_exact && !TEXT.contains(&self.frame.ip);
        if self.is_wanted && (is_no_text || is_guess && known.at(at).is_nowhere()) {
            return Err(Ended::Lost);
        }
        let noting = self.spots.as_mut();
        let noting = noting.filter(|spots| self.is_wanted || spots.are_open());
        let is_to_tell = noting.is_some_and(|spots| {
            let n = self.is_wanted.then_some(self.n);
            note(spots, n, &self.frame, known.at(at), by.guard)
        });
        let mark = match by.way {
            // Not to be taken for the end, for a mark, or for a frame of interpreted code.
            _ if self.frame.ip == 0 || self.frame.ip >= TEXT.end => STACK_NOWHERE,
            UserWalk::Told if is_guess => STACK_GUESSED,
            _ => 0,
        };
        if self.is_wanted && !self.to.put(self.frame.ip | mark) {
            self.is_wanted = false;
            // The next walk that ends here need not look for anything. But for that alone nothing is looked for.
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

    /// Makes the caller of the frame the frame.
    fn step<'k>(&mut self, known: &mut Known<'k>, by: &By<'k>) -> Result<(), Ended> {
        let at = self.frame.at();
        let is_asked = by.way != UserWalk::FramePointers;
        let rules = known.rules;
        // Only where a caller is wanted: a file without a table is asked for then.
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

    /// Keeps the step from the frame, which is not gone.
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
/// A pause behind a frame, the `n`th from 1 on.
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

/// The frame behind a pause: what was told, or what is found as of any code that nothing is known of.
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

/// Notes the `n`th frame, whose text is this, if it is an evaluator's. One without a number only tells whose made code is. Returns whether its walker
/// is to tell its caller.
fn note(
    spots: &mut Spots,
    n: Option<u32>,
    frame: &Frame,
    mapped: &Mapped<'_>,
    guard: &CpuGuard,
) -> bool {
    let spot = |n, base| Spot::new(n, frame.ip, frame.sp, frame.fp, base);
    if let (Text::Made, Some(n)) = (&mapped.text, n) {
        let found = (!spots.have_owner()).then(|| teller(guard)).flatten();
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

/// Whose the code is that the program has made, if it is that of the file that tells this.
fn own(spots: &mut Spots, told: &Evaluators<'_>, base: u64) {
    if told.have_made() {
        let (walker, is_told) = (told.walker(), told.tell_callers());
        spots.own_made(walker, base, is_told, |n| told.constant(n));
    }
}
