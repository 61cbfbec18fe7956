// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Which consumer an open file speaks for: its own or, after a claim, another one (INV-24).
//!
//! A consumer is claimed as a whole, with its ECBs, buffers, variables and options. Nothing is
//! moved, so probes go on firing into it meanwhile. From then on all control calls go to the
//! claimed consumer. The file's own consumer stays, because references to it may still be in use,
//! and traces nothing.

use core::ops::Deref;
use dtrace_engine::mem::sync::Once;
use dtrace_engine::mem::Boxed;

/// The consumer that a file speaks for. See the [module documentation](self).
pub struct Claimable<C> {
    own: C,
    claimed: Once<C>,
}

impl<C> Claimable<C> {
    /// Makes that of a file which speaks for its own consumer.
    pub const fn new(own: C) -> Self {
        Self {
            own,
            claimed: Once::new(),
        }
    }

    /// Whether the file speaks for a claimed consumer.
    pub fn has_claimed(&self) -> bool {
        self.claimed.get().is_some()
    }

    /// Makes the file speak for `other` from now on. Can be done once; a second `other` is
    /// returned.
    pub fn claim(&self, other: Boxed<C>) -> Result<(), Boxed<C>> {
        self.claimed.set(other).map(drop)
    }
}

impl<C> Deref for Claimable<C> {
    type Target = C;

    fn deref(&self) -> &C {
        self.claimed.get().unwrap_or(&self.own)
    }
}
