// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! How much one firing may do.
//!
//! A firing runs with interrupts off, so it must end soon, whatever the program and its data: a verified program may have thousands of
//! instructions, each of which works on a string of 64 KiB, and loops that are not proved to end. Everything whose work depends
//! on the program or on data takes from one budget: a unit for an instruction, a byte copied, a byte compared, a
//! speculation looked at, [`MOVED`] bytes of one that is committed; a dynamic variable looked for counts as [`LOOKUP`] of
//! them, an unwound stack frame as [`FRAME`] or [`USER_FRAME`], an ancestor as [`HOP`], a floating-point operation as [`FLOAT`], a magnitude
//! that `llquantize()` tries as [`MAGNITUDE`], an instruction of a loop as [`LOOPED`] in each round but the first. When the budget is gone,
//! the clause ends in the fault [`Fault::Overrun`].
//! What is taken is known before the work is done, or is bounded by one string or one stack.
//!
//! A probe runs all its clauses in one firing, and there may be thousands. So what the heavy ones take is also added up, over all
//! consumers: where that is more than [`FIRING`], the consumer whose clause has run is ended, as by a deadman. Light ones cost a
//! comparison; where many are at one probe, each is taken for [`LIGHT`]. So are those that a fault passes by on its way to the
//! clauses of `ERROR`.

use crate::error::Trap;
use dtrace_uapi::fault::Fault;

/// Units of one firing: some milliseconds of string work, and more than 60 strings of the greatest size.
const UNITS: u64 = 4 << 20;

/// What a clause may take without being counted, units.
pub const LIGHT: u64 = 512;

/// What the heavy clauses at a probe may take in one firing, units: a tenth of a second, about.
pub const FIRING: u64 = 16 * UNITS;

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

/// Bytes of committed records that are a unit.
pub const MOVED: usize = 16;

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

    /// What was taken, where that is so much that it counts for the firing.
    #[inline(always)]
    pub fn toil(&self) -> Option<u64> {
        let taken = UNITS.saturating_sub(self.0);
        (taken > LIGHT).then_some(taken)
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
        assert_eq!(b.toil(), Some(UNITS));
    }

    #[test]
    fn little_does_not_count() {
        let mut b = Budget::full();
        assert_eq!(b.spend(LIGHT as usize), Ok(()));
        assert_eq!(b.toil(), None);
        assert_eq!(b.spend(1), Ok(()));
        assert_eq!(b.toil(), Some(LIGHT + 1));
    }
}
