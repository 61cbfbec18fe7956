// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Speculations: records that are kept aside until it is known whether they are wanted.
//!
//! A speculation is a number, a [`State`] that all CPUs share, and a piece of memory on each CPU ([`buffer`]). `speculate()`
//! records into this CPU's piece; `commit()` moves what is in the pieces to the principal buffers, `discard()` forgets it.
//! A CPU touches only its own pieces. So whoever ends a speculation does at once what concerns his own CPU, and where
//! others may have recorded too leaves the speculation in a state of which nothing but the *cleaner* gets it out: that runs
//! on each CPU in turn, between firings, and then makes the speculation free.
//!
//! | from | event | to |
//! |---|---|---|
//! | inactive | `speculation()` | active |
//! | active | `speculate()` | active-one |
//! | active-one | `speculate()` on a CPU without records | active-many |
//! | active | `commit()` | inactive, by way of committing |
//! | active-one | `commit()` on the CPU with the records | inactive, by way of committing |
//! | active-one | `commit()` on another CPU | committing-many |
//! | active-many | `commit()` | committing-many |
//! | active-one | `discard()` on the CPU with the records | inactive, by way of committing |
//! | active, active-one, active-many | `discard()` otherwise | discarding |
//! | committing-many, discarding | the cleaner | inactive |
//!
//! Everything else changes nothing. Invariant: where a speculation is inactive, all its pieces are empty. Records are
//! added only in a firing that found the speculation active; should it be ended by another CPU meanwhile, that leaves it to the
//! cleaner, which comes after the firing. A move from active-one by the CPU with the records needs no cleaner, as no other CPU
//! has recorded, and none can begin to: each change of state is one compare-and-exchange.

pub mod buffer;

use crate::error::NoMem;
use crate::mem::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::mem::Vec;

/// Where a speculation is in its life.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Free.
    Inactive = 0,
    /// Given out; nobody has recorded.
    Active = 1,
    /// One CPU has recorded.
    ActiveOne = 2,
    /// Several CPUs may have recorded.
    ActiveMany = 3,
    /// The only CPU that may have recorded is moving its records, or emptying its piece.
    Committing = 4,
    /// The cleaner is to move the records of all CPUs.
    CommittingMany = 5,
    /// The cleaner is to empty the pieces of all CPUs.
    Discarding = 6,
}

/// Set beside the state from when the cleaner takes a speculation up: those that come later wait for its next round.
const CLEANING: u32 = 0x100;

impl State {
    fn of(word: u32) -> Self {
        match word & !CLEANING {
            1 => Self::Active,
            2 => Self::ActiveOne,
            3 => Self::ActiveMany,
            4 => Self::Committing,
            5 => Self::CommittingMany,
            6 => Self::Discarding,
            _ => Self::Inactive,
        }
    }

    /// Only the cleaner makes it free.
    fn is_ending(self) -> bool {
        matches!(self, Self::CommittingMany | Self::Discarding)
    }
}

/// What a CPU has to do with its own piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Move the records, then call [`Speculations::release`].
    MoveAndRelease,
    /// Move the records.
    Move,
    /// Empty the piece, then call [`Speculations::release`].
    EmptyAndRelease,
    /// Empty the piece.
    Empty,
}

/// The speculations of a consumer. Ids are from 1; 0 is none.
#[derive(Debug)]
pub struct Speculations {
    states: Vec<AtomicU32>,
    /// `speculation()` found none free, but some that are being ended.
    pub busy: AtomicU64,
    /// `speculation()` found none free.
    pub unavailable: AtomicU64,
    /// Records for which a piece of a committed speculation had no room.
    pub drops: AtomicU64,
}

impl Speculations {
    /// `count` free speculations.
    pub fn new(count: usize) -> Result<Self, NoMem> {
        Ok(Self {
            states: Vec::try_from_fn(count, |_| Ok::<_, NoMem>(AtomicU32::new(0)))?,
            busy: AtomicU64::new(0),
            unavailable: AtomicU64::new(0),
            drops: AtomicU64::new(0),
        })
    }

    /// The ids.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        1..=self.states.len() as u64
    }

    /// Whether there is a speculation of this id.
    pub fn exists(&self, id: u64) -> bool {
        self.word(id).is_some()
    }

    fn word(&self, id: u64) -> Option<&AtomicU32> {
        self.states.get(usize::try_from(id.checked_sub(1)?).ok()?)
    }

    /// The state of a speculation.
    pub fn state(&self, id: u64) -> State {
        self.word(id).map_or(State::Inactive, |word| {
            State::of(word.load(Ordering::Acquire))
        })
    }

    /// Changes a speculation's state to what `next` says, unless that is nothing; returns what else `next` gave.
    fn change<T>(&self, id: u64, next: impl Fn(State) -> Option<(State, T)>) -> Option<T> {
        let word = self.word(id)?;
        let mut seen = word.load(Ordering::Acquire);
        // Another CPU's change leads on through the states and is followed by no more than one of each, so that this ends.
        loop {
            let (to, value) = next(State::of(seen))?;
            match word.compare_exchange(seen, to as u32, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(value),
                Err(now) => seen = now,
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.states.len()
    }

    /// `speculation()`: takes a free speculation; 0, and counted, where there is none.
    pub fn open(&self) -> u64 {
        let mut ending = false;
        for id in self.ids() {
            let free = |state| (state == State::Inactive).then_some((State::Active, ()));
            if self.change(id, free).is_some() {
                return id;
            }
            ending |= self.state(id).is_ending() || self.state(id) == State::Committing;
        }
        let counter = if ending {
            &self.busy
        } else {
            &self.unavailable
        };
        counter.fetch_add(1, Ordering::Relaxed);
        0
    }

    /// `speculate()`: whether a CPU may record; `mine` says that its piece has records already.
    pub fn record(&self, id: u64, mine: bool) -> bool {
        let next = |state| match state {
            State::Active => Some((State::ActiveOne, ())),
            State::ActiveOne if mine => Some((State::ActiveOne, ())),
            State::ActiveOne | State::ActiveMany => Some((State::ActiveMany, ())),
            _ => None,
        };
        self.change(id, next).is_some()
    }

    /// `commit()`: what a CPU has to do, `None` where there is nothing to commit.
    pub fn commit(&self, id: u64, mine: bool) -> Option<Duty> {
        self.change(id, |state| match state {
            State::Active => Some((State::Committing, Duty::MoveAndRelease)),
            State::ActiveOne if mine => Some((State::Committing, Duty::MoveAndRelease)),
            State::ActiveOne | State::ActiveMany => Some((State::CommittingMany, Duty::Move)),
            _ => None,
        })
    }

    /// `discard()`: what a CPU has to do, `None` where there is nothing to discard.
    pub fn discard(&self, id: u64, mine: bool) -> Option<Duty> {
        self.change(id, |state| match state {
            // It must not be given out again before the piece is empty.
            State::ActiveOne if mine => Some((State::Committing, Duty::EmptyAndRelease)),
            State::Active | State::ActiveOne | State::ActiveMany => {
                Some((State::Discarding, Duty::Empty))
            }
            _ => None,
        })
    }

    /// Ends what [`commit`](Self::commit) or [`discard`](Self::discard) left to this CPU alone.
    pub fn release(&self, id: u64) {
        self.change(id, |state| {
            (state == State::Committing).then_some((State::Inactive, ()))
        });
    }

    /// The cleaner takes up what is to be ended; returns whether there is any.
    pub fn begin_cleaning(&self) -> bool {
        let mut any = false;
        for word in self.states.iter() {
            if State::of(word.load(Ordering::Acquire)).is_ending() {
                // Nobody else takes a speculation out of such a state.
                word.fetch_or(CLEANING, Ordering::AcqRel);
                any = true;
            }
        }
        any
    }

    /// What the cleaner has to do on each CPU with the piece of speculation `id`.
    pub fn cleaning(&self, id: u64) -> Option<Duty> {
        let seen = self.word(id)?.load(Ordering::Acquire);
        match State::of(seen) {
            State::CommittingMany if seen & CLEANING != 0 => Some(Duty::Move),
            State::Discarding if seen & CLEANING != 0 => Some(Duty::Empty),
            _ => None,
        }
    }

    /// The cleaner has been on all CPUs: frees what it took up.
    pub fn end_cleaning(&self) {
        for word in self.states.iter() {
            if word.load(Ordering::Acquire) & CLEANING != 0 {
                word.store(State::Inactive as u32, Ordering::Release);
            }
        }
    }
}

#[cfg(test)]
mod tests;
