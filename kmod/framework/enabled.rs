// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What one consumer has enabled at one probe: a node of the probe's list (INV-20).
//!
//! A firing passes one node per consumer that traces the probe, whatever the number of its clauses,
//! and asks once whether the consumer may see the current task. The node holds the first ECB; the
//! engine chains the others behind it.

use super::consumer::Consumer;
use super::probe::{Held, ProbeRef};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use dtrace_engine::Ecb;
use dtrace_uapi::types::Epid;
use kernel::sync::Arc;

/// The ECBs of a consumer at a probe.
///
/// The atomics are written with the framework's mutex held. Probe context reads `count` and,
/// through the engine, the chain. `Relaxed` is enough: an ECB that is appended during a firing may
/// fire in it or not.
pub struct Enabled {
    /// The consumer.
    pub consumer: Arc<Consumer>,
    /// The probe.
    pub probe: Held,
    /// The first ECB.
    pub first: Ecb,
    last: AtomicU32,
    count: AtomicU32,
    reads_user: AtomicBool,
}

impl Enabled {
    /// Makes the node of a consumer's first ECB at a probe.
    pub fn new(consumer: &Arc<Consumer>, probe: ProbeRef, first: Ecb) -> Self {
        Self {
            consumer: consumer.clone(),
            probe: Held::new(probe),
            first,
            last: AtomicU32::new(first.epid),
            count: AtomicU32::new(1),
            reads_user: AtomicBool::new(false),
        }
    }

    /// Appends an ECB, which fires after the others. Its EPID is greater than theirs.
    pub fn append(&self, epid: Epid) {
        let last = self.last.load(Ordering::Relaxed);
        self.consumer.engine.chain(last, epid);
        self.last.store(epid, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of ECBs.
    #[inline(always)]
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the ECBs after the first one.
    pub fn others(&self) -> impl Iterator<Item = Ecb> + '_ {
        self.consumer.engine.chained(self.first.epid)
    }

    /// Calls `f` with each ECB in order until it returns something. A single ECB costs no look at
    /// the chain.
    #[inline(always)]
    pub fn find_map<T>(&self, mut f: impl FnMut(Ecb) -> Option<T>) -> Option<T> {
        let found = f(self.first);
        if found.is_some() || self.count() == 1 {
            return found;
        }
        self.others().find_map(f)
    }

    /// Notes that one of the clauses loads user memory. Returns whether that is new.
    pub fn read_user(&self) -> bool {
        !self.reads_user.swap(true, Ordering::Relaxed)
    }

    /// Whether one of the clauses loads user memory.
    pub fn reads_user(&self) -> bool {
        self.reads_user.load(Ordering::Relaxed)
    }
}
