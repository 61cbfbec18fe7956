// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The frames of evaluators in a stack.
//!
//! What a file's table says about its evaluators is copied, because the table may be gone when the
//! walk has ended. Most stacks have evaluators of one file; evaluators of more than two files are
//! not noted.
//!
//! A program that compiles code at run time has frames in code that belongs to no file. Such frames
//! are *open* until the walk meets a frame of a file that claims such code for its runtime. If a
//! program has no such file, they are forgotten. If the file says that its walker tells the callers
//! of such frames, the walk looks for the file at the first of them, and makes a [`Pause`] at each.

use crate::budget::{SOUGHT, USER_FRAME};
use crate::error::NoMem;
use crate::mem::Vec;
use dtrace_uapi::interp::{
    CONSTANTS_MAX, WALK_BASE, WALK_CONSTANTS, WALK_FP, WALK_NEXT, WALK_NTH, WALK_PC, WALK_SP,
};

/// Maximum number of frames of evaluators in a stack.
const SPOTS_MAX: usize = 128;
/// Once this many frames are noted, no further one is left open, because other frames need room
/// too.
const OPEN_MAX: usize = 48;
/// Maximum number of files with evaluators in a stack.
const FILES_MAX: usize = 2;

/// Value of `file` for a frame that is open.
const OPEN: usize = usize::MAX;

/// A frame of an evaluator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spot {
    /// Index of the frame in the stack, counted from the innermost.
    pub frame: u32,
    /// The address at which it continues.
    pub pc: u64,
    /// Its stack pointer.
    pub sp: u64,
    /// Its frame pointer, 0 if it is not known.
    pub fp: u64,
    /// Address at which offset 0 of its file is mapped, or would be.
    pub base: u64,
    /// Index of its file, or [`OPEN`].
    file: usize,
}

impl Spot {
    /// Makes the description of a frame.
    pub fn new(frame: u32, pc: u64, sp: u64, fp: Option<u64>, base: u64) -> Self {
        Self {
            frame,
            pc,
            sp,
            fp: fp.unwrap_or(0),
            base,
            file: 0,
        }
    }
}

/// A walk that is suspended: the walker of the frame that was noted last must find that frame's
/// caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Number of frames walked, including this one.
    pub walked: u32,
    /// Whether the frame was interrupted; otherwise it has made a call.
    pub is_exact: bool,
    /// The address at which the frame continues.
    pub pc: u64,
    /// Its stack pointer.
    pub sp: u64,
    /// Its frame pointer, if known.
    pub fp: Option<u64>,
    /// The walker's answer. It comes from the memory of the process, so it can be anything.
    pub caller: Option<Caller>,
}

/// The caller of a frame, as a walker found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The address at which it continues.
    pub pc: u64,
    /// Its stack pointer.
    pub sp: u64,
    /// Its frame pointer, if known.
    pub fp: Option<u64>,
}

/// What the table of a file says about its evaluators.
#[derive(Debug)]
struct File {
    walker: u64,
    base: u64,
    /// The constants; the first `count` are valid.
    constants: Vec<u64>,
    count: usize,
}

/// The frames of evaluators in a stack.
#[derive(Debug)]
pub struct Spots {
    files: Vec<File>,
    file_count: usize,
    /// The frames; the first `count` are valid.
    spots: Vec<Spot>,
    count: usize,
    /// Index of the file that claims the code that belongs to no file.
    made: Option<usize>,
    /// Whether the walker of that file tells the callers of frames in such code.
    is_told: bool,
    /// Whether some frames are open.
    are_open: bool,
    /// Whether the search for the owner of such code was suggested, by `ask_owner`.
    is_asked: bool,
    /// Whether the search was made.
    is_sought: bool,
    /// Number of frames beyond those that are wanted that were walked to find the owner.
    passed: usize,
}

impl Spots {
    /// Makes room for the frames of one stack.
    pub fn new() -> Result<Self, NoMem> {
        let file = |_| {
            Ok::<_, NoMem>(File {
                walker: 0,
                base: 0,
                constants: Vec::try_from_fn(CONSTANTS_MAX, |_| Ok::<_, NoMem>(0))?,
                count: 0,
            })
        };
        Ok(Self {
            files: Vec::try_from_fn(FILES_MAX, file)?,
            file_count: 0,
            spots: Vec::try_from_fn(SPOTS_MAX, |_| Ok::<_, NoMem>(Spot::default()))?,
            count: 0,
            made: None,
            is_told: false,
            are_open: false,
            is_asked: false,
            is_sought: false,
            passed: 0,
        })
    }

    /// Forgets the frames of the last stack.
    #[inline]
    pub fn clear(&mut self) {
        self.file_count = 0;
        self.count = 0;
        self.made = None;
        self.is_told = false;
        self.are_open = false;
        self.is_asked = false;
        self.is_sought = false;
        self.passed = 0;
    }

    /// Whether the caller should search for the owner of code that belongs to no file. Returns
    /// `true` once per stack, if the owner is unknown.
    pub fn ask_owner(&mut self) -> bool {
        self.made.is_none() && !core::mem::replace(&mut self.is_asked, true)
    }

    /// Records that the search was made.
    pub fn seek_owner(&mut self) {
        self.is_sought = true;
    }

    /// Records that a frame was walked that is not wanted.
    pub fn pass(&mut self) {
        self.passed = self.passed.saturating_add(1);
    }

    /// Returns the budget units of all work that was done to find the owner.
    #[inline]
    pub fn units(&self) -> usize {
        let sought = if self.is_sought { SOUGHT } else { 0 };
        self.passed
            .saturating_mul(USER_FRAME)
            .saturating_add(sought)
    }

    /// Whether some frames are open.
    pub fn are_open(&self) -> bool {
        self.are_open
    }

    /// Notes a frame in code that belongs to no file. Returns whether its walker must find its
    /// caller.
    pub fn note_made(&mut self, spot: Spot) -> bool {
        let file = self.made.and_then(|n| Some((n, self.files.get(n)?.base)));
        let (file, base) = file.unwrap_or((OPEN, 0));
        let is_open = file == OPEN;
        if is_open && self.count >= OPEN_MAX {
            return false;
        }
        self.are_open |= is_open;
        self.put(Spot { file, base, ..spot }) && !is_open && self.is_told
    }

    /// Records that a file claims the code that belongs to no file. `is_told` says whether its
    /// walker tells callers in such code. The other arguments are as in [`note`](Self::note).
    pub fn own_made(
        &mut self,
        walker: u64,
        base: u64,
        is_told: bool,
        constant: impl Fn(usize) -> Option<u64>,
    ) {
        if self.made.is_some() {
            return;
        }
        self.made = self.of_file(walker, base, constant);
        let Some(file) = self.made else { return };
        self.is_told = is_told;
        let spots = self.spots.iter_mut().take(self.count);
        let open = spots.filter(|spot| spot.file == OPEN);
        open.for_each(|spot| (spot.file, spot.base) = (file, base));
        self.are_open = false;
    }

    /// Forgets the frames that are still open. Must be called when the walk has ended.
    pub fn close(&mut self) {
        if !core::mem::take(&mut self.are_open) {
            return;
        }
        let all = self.spots.get_mut(..self.count).unwrap_or_default();
        let mut kept = 0;
        for n in 0..all.len() {
            if all.get(n).is_some_and(|spot| spot.file != OPEN) {
                all.swap(kept, n);
                kept = kept.saturating_add(1);
            }
        }
        self.count = kept;
    }

    /// Notes a frame of an evaluator whose walker has the number `walker`. `constant` returns the
    /// constants of its file, and `None` after the last one.
    pub fn note(&mut self, spot: Spot, walker: u64, constant: impl Fn(usize) -> Option<u64>) {
        if let Some(file) = self.of_file(walker, spot.base, constant) {
            self.put(Spot { file, ..spot });
        }
    }

    /// Appends a frame. Returns whether there was room.
    fn put(&mut self, spot: Spot) -> bool {
        let Some(slot) = self.spots.get_mut(self.count) else {
            return false;
        };
        *slot = spot;
        self.count = self.count.saturating_add(1);
        true
    }

    /// Returns the index of a file. A new file is added if there is room.
    fn of_file(
        &mut self,
        walker: u64,
        base: u64,
        constant: impl Fn(usize) -> Option<u64>,
    ) -> Option<usize> {
        let is_it = |file: &File| (file.walker, file.base) == (walker, base);
        let known = self.files.iter().take(self.file_count).position(is_it);
        known.or_else(|| self.add(walker, base, constant))
    }

    fn add(
        &mut self,
        walker: u64,
        base: u64,
        constant: impl Fn(usize) -> Option<u64>,
    ) -> Option<usize> {
        let at = self.file_count;
        let file = self.files.get_mut(at)?;
        (file.walker, file.base, file.count) = (walker, base, 0);
        for (n, slot) in file.constants.iter_mut().enumerate() {
            let Some(value) = constant(n) else { break };
            *slot = value;
            file.count = n.saturating_add(1);
        }
        self.file_count = at.saturating_add(1);
        Some(at)
    }

    /// Returns the number of frames noted.
    pub fn count(&self) -> usize {
        self.count
    }

    fn file(&self, spot: &Spot) -> Option<&File> {
        self.files.iter().take(self.file_count).nth(spot.file)
    }

    /// Returns the frame with index `n`, and the number of its walker.
    pub fn get(&self, n: usize) -> Option<(Spot, u64)> {
        let spot = self.spots.iter().take(self.count).nth(n)?;
        Some((*spot, self.file(spot)?.walker))
    }

    /// Returns an element of `walk[]` for the frame with index `n`; 0 for elements that are unknown
    /// here.
    pub fn element(&self, n: usize, element: u64) -> u64 {
        let Some((spot, walker)) = self.get(n) else {
            return 0;
        };
        match element {
            WALK_NTH => self.before(n, walker),
            WALK_BASE => spot.base,
            WALK_SP => spot.sp,
            WALK_FP => spot.fp,
            WALK_PC => spot.pc,
            WALK_NEXT => self.next(n, walker),
            _ => self.constant(&spot, element).unwrap_or(0),
        }
    }

    /// Returns how many of the first `n` frames have this walker.
    fn before(&self, n: usize, walker: u64) -> u64 {
        let earlier = self.spots.iter().take(n);
        let walkers = earlier.filter_map(|spot| self.file(spot).map(|file| file.walker));
        walkers.filter(|theirs| *theirs == walker).count() as u64
    }

    /// Returns the stack pointer of the next frame with this walker.
    fn next(&self, n: usize, walker: u64) -> u64 {
        let later = (n.saturating_add(1)..self.count).filter_map(|n| self.get(n));
        let mut theirs = later.filter(|(_, number)| *number == walker);
        theirs.next().map_or(u64::MAX, |(spot, _)| spot.sp)
    }

    fn constant(&self, spot: &Spot, element: u64) -> Option<u64> {
        let n = usize::try_from(element.checked_sub(WALK_CONSTANTS)?).ok()?;
        let file = self.file(spot)?;
        file.constants.iter().take(file.count).nth(n).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spot_has_what_its_file_says() {
        let mut spots = Spots::new().unwrap();
        let spot = |frame, base| Spot::new(frame, 0x10, 0x20, Some(0x30), base);
        let constants = |first: u64| move |n: usize| (n < 2).then_some(first + n as u64);
        spots.note(spot(1, 0x1000), 7, constants(100));
        spots.note(spot(3, 0x2000), 8, constants(200));
        spots.note(spot(4, 0x1000), 7, constants(300));
        // A third file has no room.
        spots.note(spot(5, 0x3000), 7, constants(400));
        assert_eq!(spots.count(), 3);
        let elements =
            |n| [0, 1, 2, 3, 4, 16, 17, 18, 200].map(|element| spots.element(n, element));
        let next = [0, 1, 2].map(|n| spots.element(n, 6));
        assert_eq!(next, [0x20, u64::MAX, u64::MAX]);
        assert_eq!(elements(0), [0, 0x1000, 0x20, 0x30, 0x10, 100, 101, 0, 0]);
        assert_eq!(elements(1), [0, 0x2000, 0x20, 0x30, 0x10, 200, 201, 0, 0]);
        assert_eq!(elements(2), [1, 0x1000, 0x20, 0x30, 0x10, 100, 101, 0, 0]);
        assert_eq!(elements(3), [0; 9]);
        spots.clear();
        assert_eq!((spots.count(), spots.get(0)), (0, None));
        spots.note(spot(1, 0x1000), 9, |_| None);
        assert_eq!(spots.element(0, 16), 0);
        for n in 0..2 * SPOTS_MAX {
            spots.note(spot(n as u32, 0x1000), 9, |_| None);
        }
        assert_eq!(spots.count(), SPOTS_MAX);
    }

    #[test]
    fn made_code_is_of_the_file_that_says_so() {
        let mut spots = Spots::new().unwrap();
        let spot = |frame, base| Spot::new(frame, 0x10, 0x20, Some(0x30), base);
        let constants = |n: usize| (n < 1).then_some(77);
        spots.note_made(spot(0, 0));
        spots.note(spot(1, 0x1000), 7, |_| None);
        spots.note_made(spot(2, 0));
        assert!(spots.are_open());
        spots.own_made(8, 0x2000, false, constants);
        assert!(!spots.are_open());
        assert!(!spots.ask_owner() && !spots.note_made(spot(3, 0)));
        spots.own_made(9, 0x3000, true, constants);
        spots.note(spot(4, 0x2000), 8, constants);
        spots.close();
        let told = |n| {
            let (spot, walker) = spots.get(n).unwrap();
            (spot.frame, spot.base, walker, spots.element(n, 16))
        };
        assert_eq!(told(0), (0, 0x2000, 8, 77));
        assert_eq!(told(1), (1, 0x1000, 7, 0));
        assert_eq!(told(2), (2, 0x2000, 8, 77));
        assert_eq!(told(3), (3, 0x2000, 8, 77));
        assert_eq!(told(4), (4, 0x2000, 8, 77));
        // No file claims the code.
        spots.clear();
        spots.note_made(spot(0, 0));
        spots.note(spot(1, 0x1000), 7, |_| None);
        spots.note_made(spot(2, 0));
        spots.note(spot(3, 0x1000), 7, |_| None);
        spots.close();
        assert_eq!(spots.count(), 2);
        let frames = [0, 1].map(|n| spots.get(n).unwrap().0.frame);
        assert_eq!(frames, [1, 3]);
        assert!(!spots.are_open());
        // The walker tells callers, but only of frames that there was room for.
        spots.clear();
        assert!(spots.ask_owner() && !spots.ask_owner());
        spots.seek_owner();
        spots.pass();
        assert_eq!(spots.units(), SOUGHT + USER_FRAME);
        spots.clear();
        assert!(spots.units() == 0 && spots.ask_owner());
        spots.own_made(8, 0x2000, true, constants);
        let asked = (0..2 * SPOTS_MAX).filter(|n| spots.note_made(spot(*n as u32, 0)));
        assert_eq!(asked.count(), SPOTS_MAX);
    }
}
