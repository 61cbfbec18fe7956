// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Instructions of processes at which consumers listen: they are notified when a process reaches
//! one (INV-25).
//!
//! An instruction can have only one breakpoint, and there may be probes at the same instruction. So
//! the breakpoint belongs to the provider of probes in processes. Its place notifies the listeners
//! before it fires the probes.

use super::holds::Ear;
use super::quota::Payer;
use super::state::State;
use super::text::Refusal;
use crate::sys::arch::program::Instruction;
use crate::sys::process::{Process, Text};
use kernel::alloc::KVec;
use kernel::prelude::*;
use kernel::sync::{new_spinlock, Arc, SpinLock};

/// An instruction of a process.
pub struct Post {
    pub process: Process,
    pub address: u64,
    pub text: Text,
    pub instruction: Instruction,
    /// Whether the listener is a member's consumer.
    pub is_users: bool,
    /// Who pays for it.
    pub payer: Payer,
}

/// The listeners at one instruction.
#[pin_data]
pub struct Listeners {
    /// Locked in the exception of the breakpoint, so no holder sleeps. A holder in process context
    /// is in the kernel, where no breakpoint of a program is hit; so this cannot deadlock on one
    /// CPU.
    #[pin]
    all: SpinLock<KVec<Ear>>,
}

impl Listeners {
    /// Makes an empty list.
    pub fn new() -> Result<Arc<Self>> {
        let init = pin_init!(Self {
            all <- new_spinlock!(KVec::new(), "dtrace::Listeners"),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }

    /// Adds a listener. `EEXIST` if it listens already.
    pub fn add(&self, ear: Ear) -> Result {
        let mut all = self.all.lock();
        if all.iter().any(|one| one.is(&ear)) {
            return Err(EEXIST);
        }
        Ok(all.push(ear, GFP_ATOMIC)?)
    }

    /// Removes a listener. Returns whether it listened.
    pub fn remove(&self, ear: &Ear) -> bool {
        let mut all = self.all.lock();
        let at = all.iter().position(|one| one.is(ear));
        // Dropped after the lock was released, because it may be the last reference to what the
        // consumer shares.
        let gone = at.and_then(|at| all.remove(at).ok());
        drop(all);
        gone.is_some()
    }

    /// Whether no consumer listens.
    pub fn is_empty(&self) -> bool {
        self.all.lock().is_empty()
    }

    /// Notes with each listener that it will not be notified any more: the breakpoint has gone.
    pub fn lose(&self) {
        self.all.lock().iter().for_each(Ear::lost);
    }

    /// Notifies each listener that the current process has reached the instruction. Called in the
    /// exception; does not sleep.
    pub fn tell(&self) {
        self.all.lock().iter().for_each(Ear::reached);
    }
}

impl State {
    /// Has `ear` notified when a process reaches an instruction, from now on. Sets the breakpoint.
    pub fn listen(&self, post: Post, ear: Ear) -> Result<(), Refusal> {
        let (_, provider) = self.processes()?;
        Ok(provider.listen(post, ear)?)
    }

    /// Stops notifying `ear` of these addresses in processes. Removes the breakpoints that are not
    /// needed any more, all with one wait.
    pub fn ignore(&self, posts: &mut dyn Iterator<Item = (&Process, u64)>, ear: &Ear) {
        if let Ok((_, provider)) = self.processes() {
            provider.ignore(posts, ear);
        }
    }
}
