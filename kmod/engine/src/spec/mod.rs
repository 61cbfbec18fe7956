// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Speculations: records that are set aside until a program decides whether they are kept.
//!
//! A speculation is a number, a [`State`] that all CPUs share, and a piece of memory on each CPU
//! ([`buffer`]). `speculate()` records into this CPU's piece, `commit()` moves the records of the
//! pieces to the principal buffers, and `discard()` drops them. A CPU touches only its own pieces.
//! So the CPU that ends a speculation at once does what concerns its own piece. If other CPUs may
//! have recorded too, it leaves the speculation in a state that only the *cleaner* ends. The
//! cleaner runs on each CPU in turn, between firings, and then frees the speculation.
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
//! All other events change nothing. Invariant: while a speculation is inactive, all its pieces are
//! empty. Records are added only in a firing that found the speculation active. If another CPU ends
//! the speculation during that firing, it leaves it to the cleaner, which visits this CPU after the
//! firing. If the CPU with the records ends an active-one speculation, no cleaner is needed: no
//! other CPU has recorded, and none can start to, because each change of state is one
//! compare-and-exchange.

pub mod buffer;

use crate::error::NoMem;
use crate::mem::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::mem::Vec;

/// The state of a speculation.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not in use.
    Inactive = 0,
    /// Opened; no CPU has recorded.
    Active = 1,
    /// One CPU has recorded.
    ActiveOne = 2,
    /// Several CPUs may have recorded.
    ActiveMany = 3,
    /// The only CPU that may have recorded is moving its records, or emptying its piece.
    Committing = 4,
    /// The cleaner must move the records of all CPUs.
    CommittingMany = 5,
    /// The cleaner must empty the pieces of all CPUs.
    Discarding = 6,
}

/// Flag in the state's word: the cleaner is ending this speculation. Speculations that are ended
/// later do not have it, and wait for its next round.
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

    /// Whether only the cleaner can free the speculation.
    fn is_ending(self) -> bool {
        matches!(self, Self::CommittingMany | Self::Discarding)
    }
}

/// What a CPU must do with its own piece.
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

/// The speculations of a consumer. Ids start at 1; 0 means none.
#[derive(Debug)]
pub struct Speculations {
    states: Vec<AtomicU32>,
    /// Number of calls of `speculation()` that found none free, but at least one that is being
    /// ended.
    pub busy: AtomicU64,
    /// Number of calls of `speculation()` that found none free and none being ended.
    pub unavailable: AtomicU64,
    /// Number of records that did not fit into a piece of a speculation that was committed.
    pub drops: AtomicU64,
}

impl Speculations {
    /// Makes `count` free speculations.
    pub fn new(count: usize) -> Result<Self, NoMem> {
        Ok(Self {
            states: Vec::try_from_fn(count, |_| Ok::<_, NoMem>(AtomicU32::new(0)))?,
            busy: AtomicU64::new(0),
            unavailable: AtomicU64::new(0),
            drops: AtomicU64::new(0),
        })
    }

    /// Returns all ids.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        1..=self.states.len() as u64
    }

    /// Whether a speculation with this id exists.
    pub fn exists(&self, id: u64) -> bool {
        self.word(id).is_some()
    }

    fn word(&self, id: u64) -> Option<&AtomicU32> {
        self.states.get(usize::try_from(id.checked_sub(1)?).ok()?)
    }

    /// Returns the state of a speculation.
    pub fn state(&self, id: u64) -> State {
        self.word(id).map_or(State::Inactive, |word| {
            State::of(word.load(Ordering::Acquire))
        })
    }

    /// Replaces a speculation's state by the one that `next` returns, and returns the value that
    /// `next` returned with it. If `next` returns `None`, nothing changes.
    fn change<T>(&self, id: u64, next: impl Fn(State) -> Option<(State, T)>) -> Option<T> {
        let word = self.word(id)?;
        let mut seen = word.load(Ordering::Acquire);
        // A retry means that another CPU has changed the state in between. A speculation passes
        // through few states, each once, before it is inactive again, so this ends.
        loop {
            let (to, value) = next(State::of(seen))?;
            match word.compare_exchange(seen, to as u32, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(value),
                Err(now) => seen = now,
            }
        }
    }

    /// Returns the number of speculations.
    pub fn count(&self) -> usize {
        self.states.len()
    }

    /// `speculation()`: takes a free speculation. If there is none, counts that and returns 0.
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

    /// `speculate()`: whether this CPU may record. `mine` says that its piece has records already.
    pub fn record(&self, id: u64, mine: bool) -> bool {
        let next = |state| match state {
            State::Active => Some((State::ActiveOne, ())),
            State::ActiveOne if mine => Some((State::ActiveOne, ())),
            State::ActiveOne | State::ActiveMany => Some((State::ActiveMany, ())),
            _ => None,
        };
        self.change(id, next).is_some()
    }

    /// `commit()`: returns what this CPU must do, `None` if there is nothing to commit. `mine` is
    /// as for [`record`](Self::record).
    pub fn commit(&self, id: u64, mine: bool) -> Option<Duty> {
        self.change(id, |state| match state {
            State::Active => Some((State::Committing, Duty::MoveAndRelease)),
            State::ActiveOne if mine => Some((State::Committing, Duty::MoveAndRelease)),
            State::ActiveOne | State::ActiveMany => Some((State::CommittingMany, Duty::Move)),
            _ => None,
        })
    }

    /// `discard()`: returns what this CPU must do, `None` if there is nothing to discard. `mine` is
    /// as for [`record`](Self::record).
    pub fn discard(&self, id: u64, mine: bool) -> Option<Duty> {
        self.change(id, |state| match state {
            // The speculation must not be opened again before the piece is empty.
            State::ActiveOne if mine => Some((State::Committing, Duty::EmptyAndRelease)),
            State::Active | State::ActiveOne | State::ActiveMany => {
                Some((State::Discarding, Duty::Empty))
            }
            _ => None,
        })
    }

    /// Frees a speculation that [`commit`](Self::commit) or [`discard`](Self::discard) left to this
    /// CPU alone.
    pub fn release(&self, id: u64) {
        self.change(id, |state| {
            (state == State::Committing).then_some((State::Inactive, ()))
        });
    }

    /// Starts a round of the cleaner with the speculations that are being ended. Returns whether
    /// there are any.
    pub fn begin_cleaning(&self) -> bool {
        let mut any = false;
        for word in self.states.iter() {
            if State::of(word.load(Ordering::Acquire)).is_ending() {
                // Only the cleaner takes a speculation out of such a state, so the word cannot
                // change in between.
                word.fetch_or(CLEANING, Ordering::AcqRel);
                any = true;
            }
        }
        any
    }

    /// Returns what the cleaner must do on each CPU with the piece of speculation `id`.
    pub fn cleaning(&self, id: u64) -> Option<Duty> {
        let seen = self.word(id)?.load(Ordering::Acquire);
        match State::of(seen) {
            State::CommittingMany if seen & CLEANING != 0 => Some(Duty::Move),
            State::Discarding if seen & CLEANING != 0 => Some(Duty::Empty),
            _ => None,
        }
    }

    /// Ends a round of the cleaner after it has visited all CPUs: frees the speculations of this
    /// round.
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
