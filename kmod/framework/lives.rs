// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Signs of life of CPUs, for the deadman (INV-27).
//!
//! A consumer can starve one CPU and no other: its probes fire in what that CPU does between two
//! tasks, or it traces that CPU only. So each CPU where probes fire is requested to run a work
//! item. The scheduler gives it the CPU as any ordinary task, so a CPU that does not run it shows
//! no life.
//!
//! A CPU where nothing fires gets no request: no probe starves it, and it may be isolated on
//! purpose.

use crate::sys::deferred::{Chore, Deferred};
use crate::sys::percpu::{firings, nr_cpus, online, possible};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use kernel::alloc::KVVec;
use kernel::prelude::*;

/// The state of one CPU. `Relaxed` is enough: each word stands for itself.
#[derive(Default)]
struct Life {
    /// It was requested, and has not run yet.
    owes: AtomicBool,
    /// Number of firings on the CPU at the last look.
    fired: AtomicU64,
    /// Time for which it has not run, ns.
    without: AtomicU64,
}

impl Chore for Life {
    fn run(&self) {
        self.owes.store(false, Ordering::Relaxed);
    }
}

/// The states of all CPUs, for one consumer. Only the consumer's deadman timer calls
/// [`longest_without`](Self::longest_without), so calls do not overlap.
pub struct Lives(KVVec<Option<Pin<KBox<Deferred<Life>>>>>);

impl Lives {
    /// No CPU has been requested yet.
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

    /// Requests a sign of life from each CPU where probes have fired since the last call. Returns
    /// the longest time for which a CPU has not given one, ns. `since` is the time since the last
    /// call, ns. Called in a hard interrupt; does not wait.
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
