// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! What one consumer has enabled at one probe: a node of the probe's list.
//!
//! Whoever comes to the probe passes one node for each consumer that traces it, however many clauses that has there, and asks once whether any
//! of them concerns the current task. The first clause's ECB is at hand; the engine has the others chained behind it.

use super::probe::{Held, ProbeRef};
use super::tracer::Tracer;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use dtrace_engine::Ecb;
use dtrace_uapi::types::Epid;
use kernel::sync::Arc;

/// The ECBs of a consumer at a probe.
///
/// Its atomics are written with the framework's mutex held; probe context reads `count`.
pub struct Enabled {
    /// Whose they are.
    pub tracer: Arc<Tracer>,
    /// Where they are.
    pub probe: Held,
    /// The first one.
    pub first: Ecb,
    last: AtomicU32,
    count: AtomicU32,
    reads_user: AtomicBool,
}

impl Enabled {
    /// A consumer's first ECB at a probe.
    pub fn new(tracer: &Arc<Tracer>, probe: ProbeRef, first: Ecb) -> Self {
        Self {
            tracer: tracer.clone(),
            probe: Held::new(probe),
            first,
            last: AtomicU32::new(first.epid),
            count: AtomicU32::new(1),
            reads_user: AtomicBool::new(false),
        }
    }

    /// Has one more fire after those that there are. Its EPID is greater than theirs.
    pub fn append(&self, epid: Epid) {
        let last = self.last.load(Ordering::Relaxed);
        self.tracer.engine.chain(last, epid);
        self.last.store(epid, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// How many there are.
    #[inline(always)]
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// Those after the first one.
    pub fn others(&self) -> impl Iterator<Item = Ecb> + '_ {
        self.tracer.engine.chained(self.first.epid)
    }

    /// Calls `f` with each in turn, until it returns something. Of one alone that is as quick as it can be.
    #[inline(always)]
    pub fn find_map<T>(&self, mut f: impl FnMut(Ecb) -> Option<T>) -> Option<T> {
        let found = f(self.first);
        if found.is_some() || self.count() == 1 {
            return found;
        }
        self.others().find_map(f)
    }

    /// Notes that one of their clauses loads user memory; whether that is new.
    pub fn read_user(&self) -> bool {
        !self.reads_user.swap(true, Ordering::Relaxed)
    }

    /// Whether one of their clauses loads user memory.
    pub fn reads_user(&self) -> bool {
        self.reads_user.load(Ordering::Relaxed)
    }
}
