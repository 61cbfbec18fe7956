// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The enabled probes of a consumer, by EPID: from 1, without gaps.
//!
//! Those that it has at one probe are chained, in the order in which they fire. Whoever fires the probe has the first one, and finds the others
//! from there.
//!
//! They are read at any time: by the consumer's calls, which describe them, and in probe context, where a ring asks for the
//! size of the record that it lets go. They are added under the framework's mutex, which keeps two that add apart, and
//! not under that of the consumer's calls: a probe that appears with a kernel module is bound while its consumer may be
//! in the middle of any of them.

use super::{ClauseId, Ecb};
use crate::error::{Errno, Reason};
use crate::mem::sync::Growing;
use core::sync::atomic::{AtomicU32, Ordering};
use dtrace_uapi::types::{Epid, ProbeId};

/// The table.
#[derive(Debug, Default)]
pub struct Ecbs {
    rows: Growing<4>,
    /// Those that are there; what the rows hold beyond is of no meaning.
    count: AtomicU32,
    /// Those of the probes that fire for one consumer at a time.
    own: [Own; OWN],
}

/// What is known of one.
#[derive(Clone, Copy)]
struct Row {
    probe: ProbeId,
    clause: ClauseId,
    /// The EPID of the next one at the probe, which is greater; else 0.
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

/// How many EPIDs a user's consumer may give out who may trace his own processes alone. They are not given back where a probe goes, and some bytes
/// are kept of each: four times as many as he may have at a time.
pub const OF_USER: u32 = 256 << 10;

/// How many probes fire for one consumer at a time.
pub const OWN: usize = 3;

/// What is enabled of one of these probes.
#[derive(Debug, Default)]
struct Own {
    epids: Growing<1>,
    /// Those that fire.
    count: AtomicU32,
    /// The same, with those that are being added.
    added: AtomicU32,
}

impl Ecbs {
    /// How many there are, and the greatest EPID.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// Adds one; `own`: which it is of the probes that fire for one consumer at a time. Of those it fires when it is [kept](Self::keep). Calls must
    /// not overlap.
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

    /// Keeps what was added. Must not overlap with [`add`](Self::add).
    pub fn keep(&self) {
        for own in &self.own {
            let added = own.added.load(Ordering::Relaxed);
            own.count.store(added, Ordering::Release);
        }
    }

    /// Forgets those above `count`, which are not kept. Must not overlap with [`add`](Self::add).
    pub fn truncate(&self, count: u32) {
        self.count.store(count, Ordering::Release);
        for own in &self.own {
            let kept = own.count.load(Ordering::Relaxed);
            own.added.store(kept, Ordering::Relaxed);
        }
    }

    /// What is enabled of one of the probes that fire for one consumer at a time, in the order of EPIDs.
    pub fn own(&self, own: usize) -> impl Iterator<Item = Ecb> + '_ {
        self.own.get(own).into_iter().flat_map(|own| {
            let kept = 0..own.count.load(Ordering::Acquire) as usize;
            kept.filter_map(|at| {
                let [epid] = own.epids.get(at);
                self.ecb(epid)
            })
        })
    }

    /// Has `next` fire after `last`, which is the last one that there is at its probe. Calls must not overlap.
    pub fn chain(&self, last: Epid, next: Epid) {
        if let Some(row) = self.row(last) {
            // Its row is there, so that this cannot fail.
            let _ = self.rows.set(last as usize, Row { next, ..row }.words());
        }
    }

    /// The one that fires after `epid`.
    #[inline]
    pub fn after(&self, epid: Epid) -> Option<Ecb> {
        // As they ascend, each walk ends.
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

    /// Probe and clause of an EPID.
    pub fn get(&self, epid: Epid) -> Option<(ProbeId, ClauseId)> {
        let row = self.row(epid)?;
        Some((row.probe, row.clause))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Epid, ProbeId, ClauseId)> + '_ {
        (1..=self.count())
            .filter_map(|epid| self.get(epid).map(|(probe, clause)| (epid, probe, clause)))
    }

    /// Size of the records of an EPID, bytes; 0 where there is none.
    pub fn record_size(&self, epid: Epid) -> usize {
        Row::of(self.rows.get(epid as usize)).clause.size as usize
    }
}
