// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Signs of life of CPUs.
//!
//! A consumer can starve one CPU and leave the others alone: its probes fire in what that CPU does between two tasks, or
//! it traces that CPU only. So each CPU on which probes fire is asked to run a piece of work, which is what the scheduler gives any
//! ordinary task. A CPU that leaves it undone is without life.
//!
//! A CPU where nothing fires is not asked: nothing of ours starves it, and it may be isolated on purpose.

use crate::sys::deferred::{Chore, Deferred};
use crate::sys::percpu::{firings, nr_cpus, online, possible};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// One CPU's.
#[derive(Default)]
struct Life {
    /// It has been asked, and has not answered.
    owes: AtomicBool,
    /// How many firings it had seen when it was asked last.
    fired: AtomicU64,
    /// How long it has owed an answer, ns.
    without: AtomicU64,
}

impl Chore for Life {
    fn run(&self) {
        self.owes.store(false, Ordering::Relaxed);
    }
}

/// Those of all CPUs, for one consumer, whose timer alone looks at them.
pub struct Lives(KVVec<Option<Pin<KBox<Deferred<Life>>>>>);

impl Lives {
    /// Of CPUs that have not been asked yet.
    pub fn new() -> Result<Self> {
        let mut lives = KVVec::with_capacity(nr_cpus(), GFP_KERNEL)?;
        for cpu in 0..nr_cpus() as u32 {
            let life = match possible(cpu) {
                true => Some(KBox::pin_init(Deferred::new(Life::default()), GFP_KERNEL)?),
                false => None,
            };
            lives.push(life, GFP_KERNEL)?;
        }
        Ok(Self(lives))
    }

    /// Asks the CPUs where probes have fired; gives the longest that one has owed its answer, ns. `since` is when this was last called.
    /// Does not wait.
    pub fn longest_without(&self, since: u64) -> u64 {
        let lives = self.0.iter().enumerate();
        lives
            .filter_map(|(cpu, life)| Some(look(cpu as u32, life.as_ref()?, since)))
            .max()
            .unwrap_or(0)
    }
}

fn look(cpu: u32, work: &Deferred<Life>, since: u64) -> u64 {
    let life = work.chore();
    if life.owes.load(Ordering::Relaxed) {
        return life
            .without
            .fetch_add(since, Ordering::Relaxed)
            .saturating_add(since);
    }
    life.without.store(0, Ordering::Relaxed);
    let fired = firings(cpu);
    if life.fired.swap(fired, Ordering::Relaxed) != fired && online(cpu) {
        life.owes.store(true, Ordering::Relaxed);
        work.ask_on(cpu);
    }
    0
}
