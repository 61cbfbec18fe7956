// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! How much one firing may do.
//!
//! A firing runs with interrupts off, so it must end soon, whatever the program and its data: a verified program may have thousands of
//! instructions, each of which works on a string of 64 KiB, and loops that are not proved to end. Everything whose work depends
//! on the program or on data takes from one budget: a unit for an instruction, a byte copied, a byte compared, a speculation looked
//! at, [`MOVED`] bytes of one that is committed; a dynamic variable looked for counts as [`LOOKUP`] of them, a subroutine as
//! [`CALLED`], a load from memory that is not the engine's as [`LOADED`], a clock as [`CLOCK`], anything else that the machine is
//! asked for as [`ASKED`], an unwound stack frame as [`FRAME`], [`USER_FRAME`] or [`USER_STEP`], the owner of code that a program has made as
//! [`SOUGHT`], an ancestor as [`HOP`], a floating-point operation as [`FLOAT`], a magnitude that `llquantize()` tries as
//! [`MAGNITUDE`], an instruction of a loop as [`LOOPED`] in each round but the first. When the budget is gone, the clause ends in
//! the fault [`Fault::Overrun`].
//! What is taken is known before the work is done, or is bounded by one string or one stack.
//!
//! What a clause does whatever the data has a *price*, which is known when it is built (the module `price` of `ecb`). The ways past the
//! interpreter take nothing from a budget: there the price stands for all of it. How many old records a ring lets go of for a new one the ring
//! tells afterwards.
//!
//! A probe runs all its clauses in one firing, and there may be thousands. So what the heavy ones take is also added up, for each consumer:
//! one that takes more than [`FIRING`] is ended, as by a deadman. Time counts as well ([`work`]). Light ones cost a comparison; where many are at
//! one probe, each is taken for [`LIGHT`]. Users who may trace their own processes alone have [`FIRING_OF_USERS`] together; what
//! they would do beyond that is dropped, and their consumer that has done most is ended. No user's clauses end what an administrator traces.
//!
//! A load may take ten times as long as is meant, where caches do not help. So time is looked at while a clause runs: whenever it has done
//! [`PORTION`] since, the machine is told, and asked whether the firing [is over](Machine::is_over); if so the clause ends as one whose budget
//! is gone. That is asked where the machine is at hand ([`Budget::pay`]); what is taken elsewhere ([`Budget::spend`]) is work on bytes that the
//! engine has, which takes no longer than is meant. What has done less is never ended, nor is anything by a pause: a virtual machine that was
//! stopped has done little, and time counts for so many times a portion at most.
//!
//! Some work is paid for before it is done: the instructions of a program, and the price of a clause. Where that is more than a
//! portion ([`Budget::begin`]) it counts as it is done ([`Budget::did`]).

use crate::error::Trap;
use crate::machine::Machine;
use dtrace_uapi::fault::Fault;

/// Units of one firing: some milliseconds of string work, and more than 60 strings of the greatest size.
pub const UNITS: u64 = 4 << 20;

/// What a clause may take without being counted, units.
pub const LIGHT: u64 = 1024;

/// What a consumer's clauses at a probe may take in one firing, units: a tenth of a second, about.
pub const FIRING: u64 = 16 * UNITS;

/// The same of all consumers together that see everything: each that does a portion more is ended.
pub const FIRING_OF_ALL: u64 = 2 * FIRING;

/// The same of all consumers together of users who may trace their own processes alone: some ten milliseconds.
pub const FIRING_OF_USERS: u64 = 2 * UNITS;

/// What is done before the machine is asked whether that is all, units: an eighth of a millisecond, as it is meant.
pub const PORTION: u64 = 64 << 10;

/// The time in which a unit is done at least, nanoseconds.
const UNIT_NS: u64 = 2;

/// What was done between two looks counts for so many portions at most: in a longer time nothing was done, as when a virtual machine is stopped.
/// A clause may be short and take long nevertheless, as memory may be a device's.
const SLOWEST: u64 = 8;

/// What work counts for that was counted as so many units, and took so many nanoseconds.
pub fn work(units: u64, ns: u64) -> u64 {
    match units {
        0 => 0,
        _ => units.max((ns / UNIT_NS).min(SLOWEST * PORTION)),
    }
}

/// Units of a subroutine that is called, of two strings that are compared, or of a piece of memory that is copied, however short they are.
pub const CALLED: usize = 32;

/// Units of a number that is written as text, of 64 digits at most.
pub const NUMBER: usize = 256;

/// Units of an address or a UUID that is written as text.
pub const ADDRESS: usize = 128;

/// Units of a load from the kernel's or a program's memory, whose address is looked at first.
pub const LOADED: usize = 32;

/// Units of a clock that is read.
pub const CLOCK: usize = 32;

/// Units of anything else that the machine is asked for.
pub const ASKED: usize = 8;

/// Units of a frame of the kernel's stack.
pub const FRAME: usize = 64;

/// Units of a frame of a program's stack: the file that it leads into and its rule are looked up.
pub const USER_FRAME: usize = 256;

/// Units of such a frame whose way to its caller is remembered.
pub const USER_STEP: usize = 32;

/// Units of looking for whose the code is that a program has made, among hundreds of its mappings.
pub const SOUGHT: usize = 32 << 10;

/// Units of looking for a thread-local or an element of an associative array.
pub const LOOKUP: usize = 256;

/// Units of another CPU that is asked whether it has room for a variable.
pub const ANOTHER: usize = 16;

/// Units of a process that is asked for its parent.
pub const HOP: usize = 16;

/// Units of a floating-point operation, which takes up to some hundred instructions of the CPU's.
pub const FLOAT: usize = 32;

/// Units of a magnitude that is tried for a value: some divisions.
pub const MAGNITUDE: usize = 32;

/// Units of an instruction that a loop does again: it may load a program's memory.
pub const LOOPED: usize = 32;

/// Units of an old record that a ring lets go of for a new one.
pub const LET_GO: u64 = 16;

/// Bytes that are a unit where they are cleared.
pub const CLEARED: usize = 64;

/// Bytes of committed records that are a unit.
pub const MOVED: usize = 16;

/// What a clause has taken, where that is so much that it counts for the firing.
#[inline(always)]
pub fn heavy(units: u64) -> Option<u64> {
    (units > LIGHT).then_some(units)
}

/// What is left for the firing.
#[derive(Debug)]
pub struct Budget {
    left: u64,
    /// Where the machine is to be asked: when that little is left.
    due: i64,
    /// How much of what was taken is still to be done.
    ahead: u64,
    /// What all that counts for that was done until the machine was asked last.
    counted: u64,
}

/// There is not enough left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent;

impl From<Spent> for Trap {
    fn from(_: Spent) -> Self {
        Self::new(Fault::Overrun, UNITS)
    }
}

impl Budget {
    /// A whole budget.
    pub const fn full() -> Self {
        Self {
            left: UNITS,
            due: due(UNITS),
            ahead: 0,
            counted: 0,
        }
    }

    /// What was done since the machine was asked.
    fn since(&self) -> u64 {
        self.due.wrapping_sub(due(self.left)) as u64
    }

    /// What the clause has done, if that is so much that it counts for the firing: then the machine is told the rest of it.
    #[inline(always)]
    pub fn toil<M: Machine>(&mut self, m: &M) -> Option<u64> {
        heavy(UNITS.saturating_sub(self.left)).map(|_| {
            self.finish(0);
            self.count(m)
        })
    }

    #[cold]
    fn count<M: Machine>(&mut self, m: &M) -> u64 {
        let work = m.toil(self.since());
        self.counted = self.counted.saturating_add(work);
        self.due = due(self.left);
        self.counted
    }

    /// Asks the machine whether the firing may go on, if a portion was done since it was asked.
    #[inline(always)]
    fn ask<M: Machine>(&mut self, m: &M) -> Result<(), Spent> {
        match self.left as i64 > self.due {
            true => Ok(()),
            false => self.ask_now(m),
        }
    }

    #[cold]
    fn ask_now<M: Machine>(&mut self, m: &M) -> Result<(), Spent> {
        self.count(m);
        if !m.is_over() {
            return Ok(());
        }
        (self.left, self.due, self.ahead) = (0, due(0), 0);
        Err(Spent)
    }

    /// Takes `n` units. What failed once fails ever after.
    #[inline(always)]
    pub fn spend(&mut self, n: usize) -> Result<(), Spent> {
        match self.left.checked_sub(n as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(Spent)
            }
        }
    }

    /// Takes `n` units, and sees to it that the firing may go on.
    #[inline(always)]
    pub fn pay<M: Machine>(&mut self, m: &M, n: usize) -> Result<(), Spent> {
        self.spend(n)?;
        self.ask(m)
    }

    /// Takes `n` units for work that will be [done](Self::did) bit by bit; returns what [`finish`](Self::finish) is to be given.
    pub fn begin(&mut self, n: usize) -> Result<u64, Spent> {
        self.spend(n)?;
        let before = self.ahead;
        self.set_ahead(before.saturating_add(n as u64));
        Ok(before)
    }

    /// So much of that was done, or is about to be. Where nothing was begun it is not asked how much.
    #[inline(always)]
    pub fn did<M: Machine>(&mut self, m: &M, units: impl FnOnce() -> usize) -> Result<(), Spent> {
        if self.ahead == 0 {
            return Ok(());
        }
        self.set_ahead(self.ahead.saturating_sub(units() as u64));
        self.ask(m)
    }

    /// All of it is done, or will not be.
    pub fn finish(&mut self, before: u64) {
        self.set_ahead(before.min(self.ahead));
    }

    fn set_ahead(&mut self, ahead: u64) {
        let less = self.ahead.wrapping_sub(ahead) as i64;
        self.due = self.due.wrapping_add(less);
        self.ahead = ahead;
    }

    /// Puts aside what is left, for something that has `units` of its own; returns what [`take_back`](Self::take_back) is to be given.
    pub fn lend(&mut self, units: u64) -> u64 {
        let whole = self.left;
        self.set_left(units);
        whole
    }

    /// Takes what was done with `units` from what was put aside. If there is not so much left, the next one who asks is told.
    pub fn take_back(&mut self, whole: u64, units: u64) {
        let taken = units.saturating_sub(self.left);
        self.set_left(whole.saturating_sub(taken));
    }

    fn set_left(&mut self, left: u64) {
        let more = left.wrapping_sub(self.left) as i64;
        self.due = self.due.wrapping_add(more);
        self.left = left;
    }
}

/// What will be left when a portion was done.
const fn due(left: u64) -> i64 {
    left.wrapping_sub(PORTION) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_gone() {
        let mut b = Budget::full();
        assert_eq!(b.spend(UNITS as usize - 1), Ok(()));
        assert_eq!(b.spend(0), Ok(()));
        assert_eq!(b.spend(2), Err(Spent));
        assert_eq!(b.spend(1), Err(Spent));
        assert_eq!(Trap::from(Spent).fault, Fault::Overrun);
    }

    #[test]
    fn time_counts_as_far_as_it_was_worked() {
        const HOUR: u64 = 3_600_000_000_000;
        // As fast as can be, slower, and with a pause of an hour.
        assert_eq!(work(1000, 1000), 1000);
        assert_eq!(work(1000, 6000), 3000);
        assert_eq!(work(1000, HOUR), 8 * PORTION);
        // However much was done before anybody looked, a pause counts for a few portions.
        assert_eq!(work(PORTION, HOUR), 8 * PORTION);
        assert_eq!(work(4 * PORTION, HOUR), 8 * PORTION);
        assert_eq!(work(9 * PORTION, HOUR), 9 * PORTION);
        assert_eq!(work(0, u64::MAX), 0);
        assert_eq!(work(u64::MAX, u64::MAX), u64::MAX);
    }
}
