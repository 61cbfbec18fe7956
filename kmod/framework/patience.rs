// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! How much a call may match with the framework's mutex held.
//!
//! Everybody waits for that mutex: who loads a kernel module, who begins to trace, who ends. A description costs its author a few bytes, and
//! may cost a comparison of globs with each name that there is. So what is compared is counted, by the steps that it takes. A call that can
//! go on later gives the mutex back in between; one that cannot is refused where its author has no rights over the kernel, and ends where
//! he is killed.
//!
//! A call may make probes, and a module that comes has some, which are compared with what all consumers retain. As long as the mutex is
//! held, which is an *occasion*, all consumers of a user have as much [together](Allowance) as a call has.

use crate::sys::task;
use core::cell::Cell;
use core::ops::Deref;
use core::sync::atomic::{AtomicU64, Ordering};
use kernel::prelude::*;

/// Steps of a call: some ten milliseconds.
pub const STEPS: u64 = 16 << 20;
/// Steps between two looks at whether the caller is killed, and the most that is done at a stretch by a call that can go on later.
const STRETCH: u64 = 1 << 20;

/// Steps of asking whether a consumer may be told of a probe, in a call that goes on later.
pub const ASKED: u64 = 256;
/// The same in a call that is whole or not at all: four times as many questions are allowed as a user may have ECBs.
pub const ASKED_AT_ONCE: u64 = 64;
/// Steps of asking whether a consumer may have a probe, where it appears.
pub const PERMITTED: u64 = 16;
/// Steps of making a pattern of a description.
pub const DESCRIBED: u64 = 128;
/// Steps of asking a provider whether it makes probes to order for a description, and of each probe that is made: it is looked for
/// among thousands.
pub const PROVIDED: u64 = 64;
pub const MADE: u64 = 64 << 10;

/// What is left for a call.
pub struct Patience {
    left: Cell<u64>,
    /// What is left when the next look is due.
    look: Cell<u64>,
}

impl Patience {
    const fn new(steps: u64) -> Self {
        Self {
            left: Cell::new(steps),
            look: Cell::new(steps.saturating_sub(STRETCH)),
        }
    }

    /// That of a call which is whole or not at all; `endless`: its author is trusted.
    pub const fn of_call(endless: bool) -> Self {
        Self::new(if endless { u64::MAX } else { STEPS })
    }

    /// That of one stretch.
    pub const fn of_stretch() -> Self {
        Self::new(STRETCH)
    }

    /// Takes steps that were done. `E2BIG`: there are none left; `EINTR`: the caller is killed.
    pub fn take(&self, steps: u64) -> Result {
        let left = self.left.get().checked_sub(steps).ok_or(E2BIG)?;
        self.left.set(left);
        if left >= self.look.get() {
            return Ok(());
        }
        self.look.set(left.saturating_sub(STRETCH));
        match task::is_killed() {
            true => Err(EINTR),
            false => Ok(()),
        }
    }
}

/// What is left for all consumers of a user together on an occasion.
pub struct Allowance {
    /// Both are changed with the framework's mutex held.
    occasion: AtomicU64,
    left: AtomicU64,
}

impl Allowance {
    /// None was drawn on.
    pub const fn new() -> Self {
        Self {
            occasion: AtomicU64::new(0),
            left: AtomicU64::new(STEPS),
        }
    }

    fn left(&self, occasion: u64) -> u64 {
        match self.occasion.swap(occasion, Ordering::Relaxed) == occasion {
            true => self.left.load(Ordering::Relaxed),
            false => STEPS,
        }
    }
}

/// What is left for a consumer on an occasion. What it has taken the others of its user have no more, from when this is dropped.
pub struct Drawn<'a> {
    patience: Patience,
    from: Option<&'a Allowance>,
}

impl<'a> Drawn<'a> {
    /// From what its user has; one who is trusted has all that it wants.
    pub fn from(allowance: Option<&'a Allowance>, occasion: u64, endless: bool) -> Self {
        let from = allowance.filter(|_| !endless);
        let patience = match from {
            Some(allowance) => Patience::new(allowance.left(occasion)),
            None => Patience::of_call(endless),
        };
        Self { patience, from }
    }

    /// The same, where somebody else's call is the occasion: whether that one is killed is no matter.
    #[must_use]
    pub fn deaf(self) -> Self {
        self.patience.look.set(0);
        self
    }
}

impl Deref for Drawn<'_> {
    type Target = Patience;

    fn deref(&self) -> &Patience {
        &self.patience
    }
}

impl Drop for Drawn<'_> {
    fn drop(&mut self) {
        if let Some(allowance) = self.from {
            let left = self.patience.left.get();
            allowance.left.store(left, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_taken_as_long_as_there_are_any() {
        let call = Patience::of_call(false);
        assert!((0..16).all(|_| call.take(1 << 20).is_ok()));
        assert_eq!(call.take(1), Err(E2BIG));
        assert_eq!(call.take(0), Ok(()));
        assert_eq!(Patience::of_stretch().take(STRETCH + 1), Err(E2BIG));
        let endless = Patience::of_call(true);
        assert!((0..1000).all(|_| endless.take(1 << 40).is_ok()));
    }

    #[test]
    fn consumers_of_a_user_draw_on_one_allowance() {
        let user = Allowance::new();
        let draw = |occasion| Drawn::from(Some(&user), occasion, false);
        assert_eq!(draw(1).take(STEPS - 10), Ok(()));
        assert_eq!(draw(1).take(11), Err(E2BIG));
        assert_eq!(draw(1).take(10), Ok(()));
        assert_eq!(draw(1).take(1), Err(E2BIG));
        assert_eq!(Drawn::from(Some(&user), 1, true).take(STEPS + 1), Ok(()));
        assert_eq!(Drawn::from(None, 1, false).take(STEPS), Ok(()));
        assert_eq!(draw(2).take(STEPS), Ok(()));
    }
}
