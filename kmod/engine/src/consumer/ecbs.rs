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
}

impl Ecbs {
    /// How many there are, and the greatest EPID.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// Adds one. Calls must not overlap.
    pub fn add(&self, clause: ClauseId, probe: ProbeId) -> Result<Ecb, Reason> {
        let too_many = Reason::new(Errno::E2BIG, "too many enabled probes");
        let epid = self.count().checked_add(1).ok_or(too_many)?;
        let set =
            |numbers: &Growing, value| -> Result<(), NoMem> { numbers.set(epid as usize, value) };
        set(&self.probes, probe)?;
        set(&self.clauses, clause.index)?;
        set(&self.sizes, clause.size)?;
        self.count.store(epid, Ordering::Release);
        Ok(Ecb {
            epid,
            probe,
            clause,
        })
    }

    /// Forgets those above `count`. Must not overlap with [`add`](Self::add).
    pub fn truncate(&self, count: u32) {
        self.count.store(count, Ordering::Release);
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
