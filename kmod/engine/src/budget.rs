// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Limits on the work of one firing (INV-5).
//!
//! A firing runs with interrupts off, so it must end soon, whatever the program and its data are: a
//! verified program may have thousands of instructions, each of which works on a string of 64 KiB,
//! and its loops are not proved to end. All work that depends on the program or on data is taken
//! from one budget, which counts units. These cost one unit each: an instruction, a byte copied, a
//! byte compared, a speculation examined, and [`MOVED`] bytes of a committed speculation. Other
//! work costs:
//!
//! - the look-up of a dynamic variable: [`LOOKUP`]
//! - a subroutine: [`CALLED`]
//! - a load from memory that is not the engine's: [`LOADED`]
//! - reading a clock: [`CLOCK`]
//! - any other request to the machine: [`ASKED`]
//! - an unwound stack frame: [`FRAME`], [`USER_FRAME`] or [`USER_STEP`]
//! - finding the owner of code that a program has generated: [`SOUGHT`]
//! - an ancestor of a process: [`HOP`]
//! - a floating-point operation: [`FLOAT`]
//! - a magnitude that `llquantize()` tries: [`MAGNITUDE`]
//! - an instruction of a loop, in each round but the first: [`LOOPED`]
//!
//! When the budget is used up, the clause ends in the fault [`Fault::Overrun`]. The amount taken is
//! known before the work is done, or is bounded by one string or one stack.
//!
//! Work that a clause does independently of data has a *price*, which is known when the clause is
//! built (the module `price` of `ecb`). The paths that bypass the interpreter take nothing from a
//! budget: there the price stands for all work. Only the number of old records that a ring drops
//! for a new one is reported by the ring afterwards.
//!
//! A probe runs all its clauses in one firing, and there may be thousands. So the work of heavy
//! clauses is also summed up for each consumer: a consumer that takes more than [`FIRING`] is
//! killed, as by a deadman. Time counts as well ([`work`]). Light clauses cost one comparison; if
//! many are at one probe, each is counted as [`LIGHT`]. Members share [`FIRING_OF_USERS`]. What
//! they would do beyond that is dropped, and their consumer that has done most is killed (INV-28).
//! Members' clauses never end the clauses of other consumers.
//!
//! A load may take ten times the expected time if caches do not help. So a clause's time is checked
//! while it runs: after each [`PORTION`] of work the budget reports the work to the machine, and
//! asks whether the firing [is over](Machine::is_over). If so, the clause ends as if its budget
//! were used up. This check is made where the machine is at hand ([`Budget::pay`]). Units taken
//! elsewhere ([`Budget::spend`]) stand for work on bytes in the engine's own memory, which takes no
//! longer than expected. A clause that has done less than a portion is never ended. A pause does
//! not end any clause either: a virtual machine that was stopped has done little work, and the time
//! between two checks counts as a few portions at most.
//!
//! Some work is paid for before it is done: the instructions of a program, and the price of a
//! clause. If that is more than a portion ([`Budget::begin`]), it is counted as it is done
//! ([`Budget::did`]).

use crate::error::Trap;
use crate::machine::Machine;
use dtrace_uapi::fault::Fault;

/// Budget of one clause in a firing, in units: some milliseconds of string work, and more than 60
/// strings of maximum size.
pub const UNITS: u64 = 4 << 20;

/// Work of a clause that is not counted for the firing, in units.
pub const LIGHT: u64 = 1024;

/// Limit on the work of a consumer's clauses at one probe in one firing, in units: about an eighth
/// of a second.
pub const FIRING: u64 = 16 * UNITS;

/// Limit on the same work of all consumers together that are not members'. If it is exceeded, each
/// of them that has itself done more than a portion is killed (INV-27).
pub const FIRING_OF_ALL: u64 = 2 * FIRING;

/// Limit on the same work of all members' consumers together: some ten milliseconds.
pub const FIRING_OF_USERS: u64 = 2 * UNITS;

/// Work between two checks with the machine, in units: nominally an eighth of a millisecond.
pub const PORTION: u64 = 64 << 10;

/// Nominal time of a unit, in nanoseconds.
const UNIT_NS: u64 = 2;

/// Maximum number of portions that the time between two checks can count as. Beyond that no work
/// was done, as when a virtual machine is stopped. Time counts even for a short clause, because the
/// memory that it loads may be a device's.
const SLOWEST: u64 = 8;

/// Returns the units that work counts as: `units` were counted for it, and it took `ns`
/// nanoseconds.
pub fn work(units: u64, ns: u64) -> u64 {
    match units {
        0 => 0,
        _ => units.max((ns / UNIT_NS).min(SLOWEST * PORTION)),
    }
}

/// Units of a call of a subroutine, of a comparison of two strings, or of a copy of a piece of
/// memory, however short they are.
pub const CALLED: usize = 32;

/// Units of formatting a number, of at most 64 digits.
pub const NUMBER: usize = 256;

/// Units of formatting an address or a UUID.
pub const ADDRESS: usize = 128;

/// Units of a load from the kernel's or a program's memory, including the check of its address.
pub const LOADED: usize = 32;

/// Units of reading a clock.
pub const CLOCK: usize = 32;

/// Units of any other request to the machine.
pub const ASKED: usize = 8;

/// Units of a frame of a kernel stack.
pub const FRAME: usize = 64;

/// Units of a frame of a user stack: the file that it leads into and its rule are looked up.
pub const USER_FRAME: usize = 256;

/// Units of a user frame for which the step to its caller is remembered (INV-13).
pub const USER_STEP: usize = 32;

/// Units of finding the owner of code that a program has generated, among hundreds of mappings.
pub const SOUGHT: usize = 32 << 10;

/// Units of a look-up of a thread-local variable or of an element of an associative array.
pub const LOOKUP: usize = 256;

/// Units of asking another CPU whether it has room for a variable.
pub const ANOTHER: usize = 16;

/// Units of a step from a process to its parent.
pub const HOP: usize = 16;

/// Units of a floating-point operation, which takes up to some hundred CPU instructions.
pub const FLOAT: usize = 32;

/// Units of trying a magnitude for a value: a few divisions.
pub const MAGNITUDE: usize = 32;

/// Units of an instruction that a loop repeats: it may load a program's memory.
pub const LOOPED: usize = 32;

/// Units of an old record that a ring drops for a new one.
pub const LET_GO: u64 = 16;

/// Bytes that are cleared for one unit.
pub const CLEARED: usize = 64;

/// Bytes of committed records that are moved for one unit.
pub const MOVED: usize = 16;

/// Returns the work of a clause if it is so much that it counts for the firing.
#[inline(always)]
pub fn heavy(units: u64) -> Option<u64> {
    (units > LIGHT).then_some(units)
}

/// The budget of a clause that is running.
#[derive(Debug)]
pub struct Budget {
    /// Units that are left.
    left: u64,
    /// Threshold for the next check with the machine: it is due when no more than this is left.
    due: i64,
    /// Units that are taken but whose work is not done yet.
    ahead: u64,
    /// What the work until the last check counts as, summed up.
    counted: u64,
}

/// The budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent;

impl From<Spent> for Trap {
    fn from(_: Spent) -> Self {
        Self::new(Fault::Overrun, UNITS)
    }
}

impl Budget {
    /// Returns a whole budget.
    pub const fn full() -> Self {
        Self {
            left: UNITS,
            due: due(UNITS),
            ahead: 0,
            counted: 0,
        }
    }

    /// Returns the work done since the last check.
    fn since(&self) -> u64 {
        self.due.wrapping_sub(due(self.left)) as u64
    }

    /// Returns what the clause's work counts as, if it is so much that it counts for the firing.
    /// Reports the part to the machine that was not reported yet.
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

    /// Asks the machine whether the firing may go on, if a portion was done since the last check.
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

    /// Takes `n` units. After the first failure nothing is left, so all further requests fail too.
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

    /// Takes `n` units, and checks whether the firing may go on.
    #[inline(always)]
    pub fn pay<M: Machine>(&mut self, m: &M, n: usize) -> Result<(), Spent> {
        self.spend(n)?;
        self.ask(m)
    }

    /// Takes `n` units for work that will be [done](Self::did) bit by bit. Returns the value to
    /// pass to [`finish`](Self::finish).
    pub fn begin(&mut self, n: usize) -> Result<u64, Spent> {
        self.spend(n)?;
        let before = self.ahead;
        self.set_ahead(before.saturating_add(n as u64));
        Ok(before)
    }

    /// Records that a part of the work begun was done, or is about to be. If nothing was begun,
    /// `units` is not called.
    #[inline(always)]
    pub fn did<M: Machine>(&mut self, m: &M, units: impl FnOnce() -> usize) -> Result<(), Spent> {
        if self.ahead == 0 {
            return Ok(());
        }
        self.set_ahead(self.ahead.saturating_sub(units() as u64));
        self.ask(m)
    }

    /// Ends the work begun: all of it is done, or the rest will not be done.
    pub fn finish(&mut self, before: u64) {
        self.set_ahead(before.min(self.ahead));
    }

    fn set_ahead(&mut self, ahead: u64) {
        let less = self.ahead.wrapping_sub(ahead) as i64;
        self.due = self.due.wrapping_add(less);
        self.ahead = ahead;
    }

    /// Sets the budget aside and starts one of `units` for a separate program. Returns the value to
    /// pass to [`take_back`](Self::take_back).
    pub fn lend(&mut self, units: u64) -> u64 {
        let whole = self.left;
        self.set_left(units);
        whole
    }

    /// Restores the budget that was set aside, less the part of `units` that was used. If less is
    /// left than was used, nothing is left, and the next request fails.
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

/// Returns the threshold of the next check, which is due after another portion.
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
        // At full speed, slower, and with a pause of an hour.
        assert_eq!(work(1000, 1000), 1000);
        assert_eq!(work(1000, 6000), 3000);
        assert_eq!(work(1000, HOUR), 8 * PORTION);
        // However much was done before the check, a pause counts as a few portions.
        assert_eq!(work(PORTION, HOUR), 8 * PORTION);
        assert_eq!(work(4 * PORTION, HOUR), 8 * PORTION);
        assert_eq!(work(9 * PORTION, HOUR), 9 * PORTION);
        assert_eq!(work(0, u64::MAX), 0);
        assert_eq!(work(u64::MAX, u64::MAX), u64::MAX);
    }
}
