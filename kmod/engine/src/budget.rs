// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! How much one firing may do.
//!
//! A firing runs with interrupts off, so it must end soon, whatever the program and its data: a verified program may have thousands of
//! instructions, each of which works on a string of 64 KiB, and loops that are not proved to end. Everything whose work depends
//! on the program or on data takes from one budget: a unit for an instruction, a byte copied, a byte compared, a
//! speculation looked at, [`MOVED`] bytes of one that is committed; a dynamic variable looked for counts as [`LOOKUP`] of
//! them, a load from memory that is not the engine's as [`LOADED`], a clock as [`CLOCK`], anything else that the machine is asked
//! for as [`ASKED`], an unwound stack frame as [`FRAME`] or [`USER_FRAME`], an ancestor as [`HOP`], a floating-point operation as [`FLOAT`], a magnitude
//! that `llquantize()` tries as [`MAGNITUDE`], an instruction of a loop as [`LOOPED`] in each round but the first. When the budget is gone,
//! the clause ends in the fault [`Fault::Overrun`].
//! What is taken is known before the work is done, or is bounded by one string or one stack.
//!
//! What a clause does whatever the data has a *price*, which is known when it is built (the module `price` of `ecb`). The ways past the
//! interpreter take nothing from a budget: there the price stands for all of it. How many old records a ring lets go of for a new one the ring
//! tells afterwards.
//!
//! A probe runs all its clauses in one firing, and there may be thousands. So what the heavy ones take is also added up, for each consumer:
//! one that takes more than [`FIRING`] is ended, as by a deadman. Light ones cost a comparison; where many are at one probe, each is
//! taken for [`LIGHT`]. Users who may trace their own processes alone have [`FIRING_OF_USERS`] together, and time counts as well ([`work`]); what
//! they would do beyond that is dropped, and their consumer that has done most is ended. No user's clauses end what an administrator traces.

use crate::error::Trap;
use dtrace_uapi::fault::Fault;

/// Units of one firing: some milliseconds of string work, and more than 60 strings of the greatest size.
pub const UNITS: u64 = 4 << 20;

/// What a clause may take without being counted, units.
pub const LIGHT: u64 = 1024;

/// What a consumer's clauses at a probe may take in one firing, units: a tenth of a second, about.
pub const FIRING: u64 = 16 * UNITS;

/// The same of all consumers together of users who may trace their own processes alone: some ten milliseconds.
pub const FIRING_OF_USERS: u64 = 2 * UNITS;

/// The time in which a unit is done at least, nanoseconds.
const UNIT_NS: u64 = 2;

/// A unit counts for at most so many times that: in a longer time nothing was done, as when a virtual machine is stopped.
const SLOWEST: u64 = 8;

/// What work counts for that was counted as so many units, and took so many nanoseconds.
pub fn work(units: u64, ns: u64) -> u64 {
    let most = units.saturating_mul(SLOWEST);
    units.max((ns / UNIT_NS).min(most))
}

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

/// Units of looking for a thread-local or an element of an associative array.
pub const LOOKUP: usize = 256;

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
pub struct Budget(u64);

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
        Self(UNITS)
    }

    /// One of so many units.
    pub const fn of(units: u64) -> Self {
        Self(units)
    }

    /// What was taken, where there were so many.
    pub fn taken_of(&self, units: u64) -> u64 {
        units.saturating_sub(self.0)
    }

    /// What was taken of a whole one.
    #[inline(always)]
    pub fn taken(&self) -> u64 {
        UNITS.saturating_sub(self.0)
    }

    /// Takes `n` units. What failed once fails ever after.
    #[inline(always)]
    pub fn spend(&mut self, n: usize) -> Result<(), Spent> {
        match self.0.checked_sub(n as u64) {
            Some(left) => {
                self.0 = left;
                Ok(())
            }
            None => {
                self.0 = 0;
                Err(Spent)
            }
        }
    }
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
        assert_eq!(b.taken(), UNITS);
    }

    #[test]
    fn little_does_not_count() {
        let mut b = Budget::full();
        assert_eq!(b.spend(LIGHT as usize), Ok(()));
        assert_eq!(heavy(b.taken()), None);
        assert_eq!(b.spend(1), Ok(()));
        assert_eq!(heavy(b.taken()), Some(LIGHT + 1));
    }

    #[test]
    fn time_counts_as_far_as_it_was_worked() {
        // As fast as can be, slower, and with a pause of an hour.
        assert_eq!(work(1000, 1000), 1000);
        assert_eq!(work(1000, 6000), 3000);
        assert_eq!(work(1000, 3_600_000_000_000), 8000);
        assert_eq!(work(0, u64::MAX), 0);
        assert_eq!(work(u64::MAX, u64::MAX), u64::MAX);
    }
}
