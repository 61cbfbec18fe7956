// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Instructions of processes at which consumers listen: they are told when a process comes there.
//!
//! An instruction has one breakpoint, and there may be probes at this one. So the breakpoint is that of the provider of processes, whose
//! place tells the listeners before it fires what probes it has.

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
    /// Whether whoever listens may trace his own processes alone.
    pub is_users: bool,
    /// Who pays for it.
    pub payer: Payer,
}

/// Who listens at one instruction.
#[pin_data]
pub struct Listeners {
    /// Locked where nobody may sleep. Whoever holds it elsewhere is in the kernel, where no breakpoint of a program is hit.
    #[pin]
    all: SpinLock<KVec<Ear>>,
}

impl Listeners {
    /// Nobody.
    pub fn new() -> Result<Arc<Self>> {
        let init = pin_init!(Self {
            all <- new_spinlock!(KVec::new(), "dtrace::Listeners"),
        });
        Arc::pin_init(init, GFP_KERNEL)
    }

    /// One more; `EEXIST`: it listens already.
    pub fn add(&self, ear: Ear) -> Result {
        let mut all = self.all.lock();
        if all.iter().any(|one| one.is(&ear)) {
            return Err(EEXIST);
        }
        Ok(all.push(ear, GFP_ATOMIC)?)
    }

    /// Whether one listened, which does so no more.
    pub fn remove(&self, ear: &Ear) -> bool {
        let mut all = self.all.lock();
        let at = all.iter().position(|one| one.is(ear));
        // What it has is given back without the lock.
        let gone = at.and_then(|at| all.remove(at).ok());
        drop(all);
        gone.is_some()
    }

    /// Whether nobody listens.
    pub fn is_empty(&self) -> bool {
        self.all.lock().is_empty()
    }

    /// Tells all of them that nobody will hear of it any more: the breakpoint has gone.
    pub fn lose(&self) {
        self.all.lock().iter().for_each(Ear::lost);
    }

    /// Tells all of them.
    pub fn tell(&self) {
        self.all.lock().iter().for_each(Ear::reached);
    }
}

impl State {
    /// Has one told wherever a process comes to an instruction.
    pub fn listen(&self, post: Post, ear: Ear) -> Result<(), Refusal> {
        let (_, provider) = self.processes()?;
        Ok(provider.listen(post, ear)?)
    }

    /// Tells it no more of these, addresses in processes.
    pub fn ignore(&self, posts: &mut dyn Iterator<Item = (&Process, u64)>, ear: &Ear) {
        if let Ok((_, provider)) = self.processes() {
            provider.ignore(posts, ear);
        }
    }
}
