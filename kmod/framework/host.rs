// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The framework's tables, lists and enablings as a crate of their own, for tests on the host.
//!
//! The source files are the module's. What they need from outside is either the module's too
//! (arena, lists) or replaced here by the minimum that compiles: there is one CPU, and it is always
//! claimed.
#![allow(dead_code)]

mod arming;
mod claim;
#[cfg(test)]
mod claim_tests;
mod enabled;
mod enabling;
#[cfg(test)]
mod enabling_tests;
#[cfg(test)]
mod host_tests;
mod ids;
mod linking;
mod names;
mod patience;
mod probe;
mod provider;
mod quota;
#[cfg(test)]
mod quota_tests;
mod retained;
mod share;
mod state;
mod table;
#[cfg(test)]
mod table_tests;
mod text;

/// A consumer has no owner here.
mod consumer {
    mod shared;

    pub use shared::Consumer;
}

/// There are no probes in processes here.
mod process {
    pub struct Order;
    pub struct ConsumerId;
    pub struct Stale;
}

mod posts {
    pub struct Post;
}

mod holds {
    pub struct Ear;
}

#[path = "../sys"]
mod sys {
    pub mod arena;
    pub mod ipmap;
    pub mod rculist;

    pub mod deferred {
        pub trait Chore: Send + Sync {
            fn run(&self);
        }

        /// Runs the chore at once.
        pub struct Deferred<T>(T);

        impl<T: Chore> Deferred<T> {
            pub fn new(chore: T) -> Self {
                Self(chore)
            }

            pub fn ask(&self) {
                self.0.run();
            }

            pub fn chore(&self) -> &T {
                &self.0
            }
        }
    }

    pub mod task {
        pub fn is_killed() -> bool {
            false
        }
    }

    pub mod process {
        pub struct Process;
    }

    pub mod shared {
        use kernel::error::Result;
        use kernel::sync::Arc;

        pub fn share<T>(value: T) -> Result<Arc<T>> {
            Ok(Arc::new(value))
        }
    }

    pub mod turn {
        use kernel::error::Result;

        /// Nothing ever waits.
        pub struct Turn(u8);

        impl Turn {
            pub fn new() -> Result<Self> {
                Ok(Self(0))
            }
        }
    }

    pub mod rights {
        use super::process::Process;
        use kernel::error::Result;

        /// All processes may be traced.
        pub struct Rights;

        impl Rights {
            pub fn may_trace(&self, _process: &Process, _wait: bool) -> Result<bool> {
                Ok(true)
            }

            pub fn unanswered(&self) -> u64 {
                0
            }
        }
    }

    pub mod percpu {
        /// # Safety
        ///
        /// No requirements; the kernel's trait is unsafe to implement.
        pub unsafe trait NoGracePeriod {}
        pub struct CpuGuard;
        // SAFETY: tests free nothing that they iterate over.
        unsafe impl NoGracePeriod for CpuGuard {}
    }
}

mod bindings {
    /// # Safety
    ///
    /// No requirements; the kernel's function has the same signature.
    // SAFETY: does nothing.
    pub unsafe fn synchronize_rcu() {}

    /// # Safety
    ///
    /// As above.
    // SAFETY: does nothing.
    pub unsafe fn synchronize_rcu_tasks() {}

    /// # Safety
    ///
    /// As above.
    // SAFETY: does nothing.
    pub unsafe fn synchronize_rcu_tasks_rude() {}

    use core::cell::Cell;

    std::thread_local! {
        /// Number of grace periods that have ended, and whether they end only by
        /// [`end_grace_period`].
        static GRACE: Cell<(usize, bool)> = const { Cell::new((0, false)) };
    }

    /// Decides whether this thread's grace periods end only by [`end_grace_period`], or each at
    /// once.
    pub fn hold_grace_periods(hold: bool) {
        GRACE.set((GRACE.get().0 + 1, hold));
    }

    /// Ends the grace periods that have begun.
    pub fn end_grace_period() {
        let (ended, hold) = GRACE.get();
        GRACE.set((ended + 1, hold));
    }

    /// # Safety
    ///
    /// As above.
    // SAFETY: does nothing.
    pub unsafe fn start_poll_synchronize_rcu() -> usize {
        GRACE.get().0
    }

    /// # Safety
    ///
    /// As above.
    // SAFETY: does nothing.
    pub unsafe fn poll_state_synchronize_rcu(begun: usize) -> bool {
        let (ended, hold) = GRACE.get();
        !hold || begun < ended
    }
}
