// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The ECBs (enabled probes) of a consumer, by EPID: from 1, without gaps.
//!
//! The ECBs of a consumer at one probe are chained in the order in which they fire. The framework's
//! list at the probe has the first one, from which the others are found (INV-20).
//!
//! The table is read at any time: by the consumer's control calls, which describe ECBs, and in
//! probe context, where a ring needs the size of the record that it drops. ECBs are added under the
//! framework's mutex, which keeps additions apart, and not under the mutex of the consumer's
//! control calls: a probe that appears with a kernel module is bound while any of these calls may
//! be under way.

use super::{ClauseId, Ecb};
use crate::error::{Errno, Reason};
use crate::mem::sync::Growing;
use core::sync::atomic::{AtomicU32, Ordering};
use dtrace_uapi::types::{Epid, ProbeId};

/// The table of ECBs.
#[derive(Debug, Default)]
pub struct Ecbs {
    rows: Growing<4>,
    /// Number of ECBs, stored after their rows; what rows beyond it contain has no meaning.
    count: AtomicU32,
    /// The ECBs of the consumer's own probes (`BEGIN`, `END` and `ERROR`).
    own: [Own; OWN],
}

/// The row of an ECB.
#[derive(Clone, Copy)]
struct Row {
    probe: ProbeId,
    clause: ClauseId,
    /// The EPID of the next ECB at the probe, which is greater; 0 if there is none.
    next: Epid,
}

impl Row {
    fn of([probe, index, size, next]: [u32; 4]) -> Self {
        let clause = ClauseId { index, size };
        Self {
            probe,
            clause,
            next,
        }
    }

    fn words(self) -> [u32; 4] {
        [self.probe, self.clause.index, self.clause.size, self.next]
    }
}

/// Maximum number of EPIDs that a member's consumer may give out. EPIDs are not given back when a
/// probe goes, and some bytes are kept of each. This is four times the number that a member may
/// have at a time.
pub const OF_USER: u32 = 256 << 10;

/// Number of own probes of a consumer, which fire for one consumer at a time.
pub const OWN: usize = 3;

/// The ECBs of one of these probes.
#[derive(Debug, Default)]
struct Own {
    epids: Growing<1>,
    /// Number of ECBs that fire.
    count: AtomicU32,
    /// The same, including those that are being added.
    added: AtomicU32,
}

impl Ecbs {
    /// Returns the number of ECBs, which is also the greatest EPID.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// Adds an ECB. `own` says which of the own probes `probe` is, if it is one; such an ECB does
    /// not fire before it is [kept](Self::keep). Calls must not overlap.
    pub fn add(&self, clause: ClauseId, probe: ProbeId, own: Option<usize>) -> Result<Ecb, Reason> {
        let too_many = Reason::new(Errno::E2BIG, "too many enabled probes");
        let epid = self.count().checked_add(1).ok_or(too_many)?;
        let row = Row {
            probe,
            clause,
            next: 0,
        };
        self.rows.set(epid as usize, row.words())?;
        if let Some(own) = own.and_then(|own| self.own.get(own)) {
            let added = own.added.load(Ordering::Relaxed);
            own.epids.set(added as usize, [epid])?;
            own.added.store(added.wrapping_add(1), Ordering::Relaxed);
        }
        self.count.store(epid, Ordering::Release);
        Ok(Ecb {
            epid,
            probe,
            clause,
        })
    }

    /// Keeps the ECBs that were added. Must not overlap with [`add`](Self::add).
    pub fn keep(&self) {
        for own in &self.own {
            let added = own.added.load(Ordering::Relaxed);
            own.count.store(added, Ordering::Release);
        }
    }

    /// Removes the ECBs above `count`, which are not kept. Must not overlap with
    /// [`add`](Self::add).
    pub fn truncate(&self, count: u32) {
        self.count.store(count, Ordering::Release);
        for own in &self.own {
            let kept = own.count.load(Ordering::Relaxed);
            own.added.store(kept, Ordering::Relaxed);
        }
    }

    /// Returns the ECBs of one of the own probes, in the order of EPIDs.
    pub fn own(&self, own: usize) -> impl Iterator<Item = Ecb> + '_ {
        self.own.get(own).into_iter().flat_map(|own| {
            let kept = 0..own.count.load(Ordering::Acquire) as usize;
            kept.filter_map(|at| {
                let [epid] = own.epids.get(at);
                self.ecb(epid)
            })
        })
    }

    /// Makes `next` fire after `last`, which is the last ECB at its probe so far. Calls must not
    /// overlap.
    pub fn chain(&self, last: Epid, next: Epid) {
        if let Some(row) = self.row(last) {
            // Cannot fail, because the row exists.
            let _ = self.rows.set(last as usize, Row { next, ..row }.words());
        }
    }

    /// Returns the ECB that fires after `epid` at the same probe.
    #[inline]
    pub fn after(&self, epid: Epid) -> Option<Ecb> {
        // EPIDs ascend along a chain, so each walk ends.
        let next = self.row(epid)?.next;
        self.ecb(next).filter(|_| next > epid)
    }

    #[inline]
    fn row(&self, epid: Epid) -> Option<Row> {
        let is_there = epid != 0 && epid <= self.count();
        is_there.then(|| Row::of(self.rows.get(epid as usize)))
    }

    fn ecb(&self, epid: Epid) -> Option<Ecb> {
        let Row { probe, clause, .. } = self.row(epid)?;
        Some(Ecb {
            epid,
            probe,
            clause,
        })
    }

    /// Returns the probe and the clause of an EPID.
    pub fn get(&self, epid: Epid) -> Option<(ProbeId, ClauseId)> {
        let row = self.row(epid)?;
        Some((row.probe, row.clause))
    }

    /// Returns all ECBs.
    pub fn iter(&self) -> impl Iterator<Item = (Epid, ProbeId, ClauseId)> + '_ {
        (1..=self.count())
            .filter_map(|epid| self.get(epid).map(|(probe, clause)| (epid, probe, clause)))
    }

    /// Returns the size of the records of an EPID, in bytes; 0 if there is no such EPID.
    pub fn record_size(&self, epid: Epid) -> usize {
        Row::of(self.rows.get(epid as usize)).clause.size as usize
    }
}
