// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Limits on the matching that a call does with the framework's mutex held (INV-31).
//!
//! Many tasks wait for that mutex: those that load a kernel module, and those that begin or end a
//! tracing. A description costs its author a few bytes, and its matching may compare a glob with
//! each name that exists. So comparisons are counted, in steps. A call that can go on later
//! releases the mutex in between. Any other call is refused if it takes too many steps and its
//! consumer has no rights over the kernel; if the consumer has them, the call ends when its caller
//! is killed.
//!
//! A call may make probes, and a module that is loaded brings some. These are compared with what
//! all consumers retain. During one *occasion*, which is the time for which the mutex is held, all
//! consumers of a member together have as many steps for this as one call ([`Allowance`]).

use crate::sys::task;
use core::cell::Cell;
use core::ops::Deref;
use core::sync::atomic::{AtomicU64, Ordering};
use kernel::prelude::*;

/// Steps of a call: some ten milliseconds.
pub const STEPS: u64 = 16 << 20;
/// Steps between two checks whether the caller is killed. Also the maximum for which a call that
/// can go on later holds the mutex at a time.
const STRETCH: u64 = 1 << 20;

/// Steps of asking whether a consumer may know of a probe, in a call that can go on later.
pub const ASKED: u64 = 256;
/// The same in a call that is whole or not at all. The steps of a call allow four times as many
/// questions as a member may have ECBs.
pub const ASKED_AT_ONCE: u64 = 64;
/// Steps of asking whether a consumer may have a probe that has appeared.
pub const PERMITTED: u64 = 16;
/// Steps of making a pattern from a description.
pub const DESCRIBED: u64 = 128;
/// Steps of asking a provider whether it makes probes to order for a description.
pub const PROVIDED: u64 = 64;
/// Steps of each probe that a provider makes to order, which it looks up among thousands.
pub const MADE: u64 = 64 << 10;
/// Steps of looking up whether a process still has a place.
pub const LOOKED_UP: u64 = 128;

/// The steps that a call has left.
pub struct Patience {
    left: Cell<u64>,
    /// The number of steps left at which the next check is due.
    look: Cell<u64>,
}

impl Patience {
    const fn new(steps: u64) -> Self {
        Self {
            left: Cell::new(steps),
            look: Cell::new(steps.saturating_sub(STRETCH)),
        }
    }

    /// The steps of a call that is whole or not at all; without limit if `endless`, for a trusted
    /// consumer.
    pub const fn of_call(endless: bool) -> Self {
        Self::new(if endless { u64::MAX } else { STEPS })
    }

    /// The steps of one stretch.
    pub const fn of_stretch() -> Self {
        Self::new(STRETCH)
    }

    /// Takes steps that were done. `E2BIG` if not so many are left; `EINTR` if the caller is
    /// killed.
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

/// The steps that all consumers of a member have left together on an occasion.
pub struct Allowance {
    /// Both fields are accessed with the framework's mutex held, so `Relaxed` is enough.
    occasion: AtomicU64,
    left: AtomicU64,
}

impl Allowance {
    /// Nothing has been taken.
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

/// The steps that a consumer has left on an occasion. What it takes is missing for the user's other
/// consumers from the drop on. So only one may exist at a time for an allowance.
pub struct Drawn<'a> {
    patience: Patience,
    from: Option<&'a Allowance>,
}

impl<'a> Drawn<'a> {
    /// Draws from the allowance of the consumer's user. Without a limit if `endless`, for a trusted
    /// consumer.
    pub fn from(allowance: Option<&'a Allowance>, occasion: u64, endless: bool) -> Self {
        let from = allowance.filter(|_| !endless);
        let patience = match from {
            Some(allowance) => Patience::new(allowance.left(occasion)),
            None => Patience::of_call(endless),
        };
        Self { patience, from }
    }

    /// Ignores whether the caller is killed, because the call is another consumer's.
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
