// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Limits the cost of reading one file.
//!
//! If the user requests a file, reading may take as long as it takes. A file that is read only
//! because a traced process happens to run it may be crafted to be slow to read or to exhaust
//! memory: for example, a million entries of a few bytes each may all refer to one list of a
//! million ranges. So the operations that such reading uses (units, abbreviation tables, ranges,
//! line rows, strings, inlined copies) count their work and memory. When either limit is reached,
//! nothing more is read of the file.

use super::Error;
use std::cell::Cell;

/// Most steps for a file that the user did not request. Entries, their attributes, ranges, and
/// bytes of tables count as steps. The limit corresponds to a few seconds.
const STEPS_MAX: u64 = 1 << 27;
/// Most bytes of memory for such a file and for what is made from it.
pub const ROOM_MAX: u64 = 1 << 29;

/// What remains of the budget of a file.
#[derive(Debug)]
pub struct Budget {
    steps: Cell<u64>,
    room: Cell<u64>,
    kept: Cell<u64>,
    is_spent: Cell<bool>,
}

impl Budget {
    /// The budget of a file that the user requested.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX, u64::MAX)
    }

    /// The budget of any other file.
    pub fn limited() -> Self {
        Self::new(STEPS_MAX, ROOM_MAX)
    }

    /// A budget of `steps` steps and `room` bytes of memory.
    pub(crate) fn new(steps: u64, room: u64) -> Self {
        Self {
            steps: Cell::new(steps),
            room: Cell::new(room),
            kept: Cell::new(0),
            is_spent: Cell::new(false),
        }
    }

    /// Charges `steps` steps.
    pub fn spend(&self, steps: usize) -> Result<(), Error> {
        self.take(&self.steps, steps as u64)
    }

    /// Charges `bytes` bytes of memory.
    pub fn keep(&self, bytes: usize) -> Result<(), Error> {
        self.take(&self.room, bytes as u64)?;
        self.kept.set(self.kept.get().saturating_add(bytes as u64));
        Ok(())
    }

    /// Bytes that may still be charged.
    pub fn room(&self) -> u64 {
        self.room.get()
    }

    /// Bytes that were charged.
    pub fn kept(&self) -> u64 {
        self.kept.get()
    }

    /// Whether a charge was refused. From then on every charge is refused.
    pub fn is_spent(&self) -> bool {
        self.is_spent.get()
    }

    fn take(&self, of: &Cell<u64>, amount: u64) -> Result<(), Error> {
        let left = of.get().checked_sub(amount);
        let left = left.filter(|_| !self.is_spent());
        self.is_spent.set(left.is_none());
        of.set(left.ok_or(Error::Unsupported(
            "it takes too long to read, or too much memory",
        ))?);
        Ok(())
    }
}
