// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Which consumer an open file speaks for: its own, or, once it has claimed that, another one.
//!
//! A consumer is claimed as a whole, with ECBs, buffers, variables and options: nothing of it moves, so that probes go on firing
//! into it meanwhile. All control calls go to the claimed consumer from then on. The file's own stays, for whoever still holds a
//! reference to it, and traces nothing.

use core::ops::Deref;
use dtrace_engine::mem::sync::Once;
use dtrace_engine::mem::Boxed;

/// What a file speaks for. See the [module](self)'s text.
pub struct Seat<C> {
    own: C,
    claimed: Once<C>,
}

impl<C> Seat<C> {
    /// A file's own consumer.
    pub const fn new(own: C) -> Self {
        Self {
            own,
            claimed: Once::new(),
        }
    }

    /// Whether another consumer than the file's own is spoken for.
    pub fn has_claimed(&self) -> bool {
        self.claimed.get().is_some()
    }

    /// Speaks for `other` from now on; gives it back where that has been done before.
    pub fn claim(&self, other: Boxed<C>) -> Result<(), Boxed<C>> {
        self.claimed.set(other).map(drop)
    }
}

impl<C> Deref for Seat<C> {
    type Target = C;

    fn deref(&self) -> &C {
        self.claimed.get().unwrap_or(&self.own)
    }
}
