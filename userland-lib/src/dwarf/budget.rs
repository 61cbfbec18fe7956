// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What reading one file may cost.
//!
//! Whoever asks for a file by its name waits for as long as it takes. But a file that is read because a process happened to run it may have
//! been made to be slow to read, or to fill the reader's memory: a few bytes each of a million entries may stand for one list of a
//! million ranges. So work and memory are counted where they go, whatever the reason, and when one of the two is used up nothing more is
//! read of that file.

use super::Error;
use std::cell::Cell;

/// Steps that are gone for a file nobody asked for by its name: entries, their attributes, ranges, bytes of tables. These are some seconds.
const STEPS_MAX: u64 = 1 << 27;
/// Bytes of memory for such a file and for what is made of it.
pub const ROOM_MAX: u64 = 1 << 29;

/// What is left of what a file may cost.
#[derive(Debug)]
pub struct Budget {
    steps: Cell<u64>,
    room: Cell<u64>,
    kept: Cell<u64>,
    is_spent: Cell<bool>,
}

impl Budget {
    /// That of a file that somebody asks for.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX, u64::MAX)
    }

    /// That of any other.
    pub fn limited() -> Self {
        Self::new(STEPS_MAX, ROOM_MAX)
    }

    /// So many steps, and so many bytes of memory.
    pub(crate) fn new(steps: u64, room: u64) -> Self {
        Self {
            steps: Cell::new(steps),
            room: Cell::new(room),
            kept: Cell::new(0),
            is_spent: Cell::new(false),
        }
    }

    /// Goes so many steps.
    pub fn spend(&self, steps: usize) -> Result<(), Error> {
        self.take(&self.steps, steps as u64)
    }

    /// Keeps so many bytes in memory.
    pub fn keep(&self, bytes: usize) -> Result<(), Error> {
        self.take(&self.room, bytes as u64)?;
        self.kept.set(self.kept.get().saturating_add(bytes as u64));
        Ok(())
    }

    /// Bytes that may still be kept.
    pub fn room(&self) -> u64 {
        self.room.get()
    }

    /// Bytes that are kept.
    pub fn kept(&self) -> u64 {
        self.kept.get()
    }

    /// Whether something could not be done for want of it.
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
