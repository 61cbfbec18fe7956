// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The enabled probes of a consumer, by EPID: from 1, without gaps.
//!
//! They are read at any time: by the consumer's calls, which describe them, and in probe context, where a ring asks for the
//! size of the record that it lets go. They are added under the framework's mutex, which keeps two that add apart, and
//! not under that of the consumer's calls: a probe that appears with a kernel module is bound while its consumer may be
//! in the middle of any of them.

use super::{ClauseId, Ecb};
use crate::error::{Errno, NoMem, Reason};
use crate::mem::sync::Growing;
use core::sync::atomic::{AtomicU32, Ordering};
use dtrace_uapi::types::{Epid, ProbeId};

/// The table.
#[derive(Debug, Default)]
pub struct Ecbs {
    probes: Growing,
    clauses: Growing,
    /// Sizes of records, bytes.
    sizes: Growing,
    /// Those that are there; what the arrays hold beyond is of no meaning.
    count: AtomicU32,
    /// The EPIDs of the probes that fire for one consumer at a time.
    own: Growing,
    /// How many of these there are.
    owned: AtomicU32,
}

/// How many there were at some time.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    count: u32,
    owned: u32,
}

impl Ecbs {
    /// How many there are, and the greatest EPID.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// How many there are, to be [forgotten](Self::truncate) again what comes.
    pub fn mark(&self) -> Mark {
        Mark {
            count: self.count(),
            owned: self.owned.load(Ordering::Acquire),
        }
    }

    /// Adds one; `own`: its probe fires for one consumer at a time. Calls must not overlap.
    pub fn add(&self, clause: ClauseId, probe: ProbeId, own: bool) -> Result<Ecb, Reason> {
        let too_many = Reason::new(Errno::E2BIG, "too many enabled probes");
        let epid = self.count().checked_add(1).ok_or(too_many)?;
        let set_at = |numbers: &Growing, at, value| -> Result<(), NoMem> { numbers.set(at, value) };
        let set = |numbers: &Growing, value| set_at(numbers, epid as usize, value);
        set(&self.probes, probe)?;
        set(&self.clauses, clause.index)?;
        set(&self.sizes, clause.size)?;
        if own {
            let owned = self.owned.load(Ordering::Relaxed);
            set_at(&self.own, owned as usize, epid)?;
            self.owned.store(owned.wrapping_add(1), Ordering::Release);
        }
        self.count.store(epid, Ordering::Release);
        Ok(Ecb {
            epid,
            probe,
            clause,
        })
    }

    /// Forgets what has come since. Must not overlap with [`add`](Self::add).
    pub fn truncate(&self, mark: Mark) {
        self.count.store(mark.count, Ordering::Release);
        self.owned.store(mark.owned, Ordering::Release);
    }

    /// What is enabled of a probe that fires for one consumer at a time, in the order of EPIDs.
    pub fn own(&self, probe: ProbeId) -> impl Iterator<Item = Ecb> + '_ {
        let owned = 0..self.owned.load(Ordering::Acquire) as usize;
        owned.filter_map(move |at| {
            let epid = self.own.get(at);
            let (of, clause) = self.get(epid)?;
            (of == probe).then_some(Ecb {
                epid,
                probe,
                clause,
            })
        })
    }

    /// Probe and clause of an EPID.
    pub fn get(&self, epid: Epid) -> Option<(ProbeId, ClauseId)> {
        if epid == 0 || epid > self.count() {
            return None;
        }
        let at = epid as usize;
        let clause = ClauseId {
            index: self.clauses.get(at),
            size: self.sizes.get(at),
        };
        Some((self.probes.get(at), clause))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Epid, ProbeId, ClauseId)> + '_ {
        (1..=self.count())
            .filter_map(|epid| self.get(epid).map(|(probe, clause)| (epid, probe, clause)))
    }

    /// Size of the records of an EPID, bytes; 0 where there is none.
    pub fn record_size(&self, epid: Epid) -> usize {
        self.sizes.get(epid as usize) as usize
    }
}
