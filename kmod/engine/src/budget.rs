// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! How much one firing of a clause may do.
//!
//! A firing runs with interrupts off, so it must end soon, whatever the program and its data: a verified program has no loop,
//! but it may have thousands of instructions, each of which works on a string of 64 KiB. Everything whose work depends
//! on the program or on data takes from one budget: a unit for an instruction, a byte copied, a byte compared, a
//! speculation looked at; a dynamic variable looked for counts as [`LOOKUP`], an unwound stack frame counts as [`FRAME`] of them, an ancestor as [`HOP`], a floating-point operation as
//! [`FLOAT`]. When the budget is gone, the clause ends in the fault [`Fault::Overrun`]. What is taken is known before the work is
//! done, or is bounded by one string or one stack.

use crate::error::Trap;
use dtrace_uapi::fault::Fault;

/// Units of one firing: some milliseconds of string work, and more than 60 strings of the greatest size.
const UNITS: u64 = 4 << 20;

/// Units of a stack frame.
pub const FRAME: usize = 64;

/// Units of looking for a thread-local or an element of an associative array.
pub const LOOKUP: usize = 256;

/// Units of a process that is asked for its parent.
pub const HOP: usize = 16;

/// Units of a floating-point operation, which takes up to some hundred instructions of the CPU's.
pub const FLOAT: usize = 32;

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
    }
}
