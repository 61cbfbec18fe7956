// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Control calls of the consumer's process: snapshots of buffers, descriptions of their contents,
//! the status.
// Arithmetic on counters and indexes.
#![allow(clippy::arithmetic_side_effects)]

use super::{Activity, Consumer, Which, NOT_STARTED};
use crate::buf::Aside;
use crate::error::{Errno, Reason};
use crate::mem::sync::{Cpu, TryLock};
use core::sync::atomic::Ordering;
use dtrace_uapi::ioctl::{AggDesc, EprobeDesc, RecDesc, Status};
use dtrace_uapi::types::{AggId, Epid};

/// The snapshot of a CPU's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The records.
    pub data: &'a [u8],
    /// Records dropped since the last snapshot.
    pub drops: u64,
    /// Faults since the last snapshot.
    pub errors: u32,
    /// Offset of the oldest record.
    pub oldest: u64,
    /// Time of the switch, in ns.
    pub timestamp: u64,
}

const NO_BUFFER: Reason = Reason::new(Errno::ENOENT, "CPU has no buffer");

impl Consumer {
    fn side(&self, cpu: usize, which: Which) -> Result<&TryLock<Aside>, Reason> {
        let run = self.run.get().ok_or(NOT_STARTED)?;
        let sides = run
            .sides
            .get(cpu)
            .ok_or(Reason::invalid("no such CPU"))?
            .get()
            .ok_or(NO_BUFFER)?;
        Ok(match which {
            Which::Principal => &sides.principal,
            Which::Aggregation => &sides.aggregation,
        })
    }

    /// Switches the halves of a buffer of `cpu`, so that the filled half can be read. Runs on that
    /// CPU, or on behalf of an offline one. `EBUSY` for ring and fill buffers until the consumer
    /// has ended, while the snapshot is being read, and if the CPU's state is in use by code that
    /// this one interrupted.
    pub fn switch(&self, cpu: &Cpu, which: Which, now: u64) -> Result<(), Reason> {
        let run = self.run.get().ok_or(NOT_STARTED)?;
        let stopped = self.is_over();
        let mut aside = self
            .side(cpu.index(), which)?
            .take()
            .ok_or(Reason::new(Errno::EBUSY, "buffer is being read"))?;
        let mut state = run
            .cpus
            .enter(cpu)
            .ok_or(Reason::new(Errno::EBUSY, "buffer is being written"))?;
        let out = &mut state.out;
        match which {
            Which::Principal if !out.principal.switches() && !stopped => {
                return Err(Reason::new(
                    Errno::EBUSY,
                    "buffer of this policy is read when tracing has stopped",
                ))
            }
            Which::Principal => out.principal.switch(&mut aside, now),
            Which::Aggregation => out.aggregations.switch(&mut aside, now),
        }
        Ok(())
    }

    /// Calls `read` with the snapshot that the last `switch` made, which does not change until the
    /// next switch.
    pub fn snapshot<R>(
        &self,
        cpu: usize,
        which: Which,
        read: impl FnOnce(Snapshot<'_>) -> R,
    ) -> Result<R, Reason> {
        let aside = self
            .side(cpu, which)?
            .take()
            .ok_or(Reason::new(Errno::EBUSY, "buffer is being switched"))?;
        Ok(read(Snapshot {
            data: aside.data(),
            drops: aside.drops,
            errors: aside.errors,
            oldest: aside.oldest as u64,
            timestamp: aside.timestamp,
        }))
    }

    /// Describes an enabled probe. `EINVAL` if there is none with this EPID.
    pub fn eprobe<R>(
        &self,
        epid: Epid,
        read: impl FnOnce(&EprobeDesc, &[RecDesc]) -> R,
    ) -> Result<R, Reason> {
        let none = Reason::invalid("no such enabled probe");
        let control = self.control()?;
        let (probe, clause) = self.ecbs.get(epid).ok_or(none)?;
        self.with_clause(&control, clause, |clause| {
            let desc = EprobeDesc {
                epid,
                probeid: probe,
                uarg: clause.uarg,
                size: clause.size as u32,
                nrecs: clause.records.len() as i32,
            };
            read(&desc, &clause.records)
        })
        .ok_or(none)
    }

    /// Describes an aggregation. `EINVAL` if there is none with this id.
    pub fn aggdesc<R>(
        &self,
        id: AggId,
        read: impl FnOnce(&AggDesc, &[RecDesc]) -> R,
    ) -> Result<R, Reason> {
        let none = Reason::invalid("no such aggregation");
        let control = self.control()?;
        // The description names one EPID. An aggregation belongs to a clause, so that is the EPID
        // of the first probe that was bound to the clause.
        let feeder = |wanted: usize| {
            let mut bound = self.ecbs.iter();
            let first = bound.find(|(_, _, clause)| clause.index as usize == wanted);
            first.map_or(0, |(epid, ..)| epid)
        };
        let clauses = self.run.get().map_or(&control.clauses, |run| &run.clauses);
        for (index, clause) in clauses.iter().enumerate() {
            if let Some(aggregate) = clause.aggregates().find(|a| a.id == id) {
                let desc = AggDesc {
                    id,
                    epid: feeder(index),
                    size: aggregate.size as u32,
                    nrecs: aggregate.records.len() as i32,
                    ..AggDesc::default()
                };
                return Ok(read(&desc, &aggregate.records));
            }
        }
        Err(none)
    }

    /// Passes a format, without its NUL, to `read`. `EINVAL` if there is none with this number.
    pub fn format<R>(&self, format: u16, read: impl FnOnce(&[u8]) -> R) -> Result<R, Reason> {
        let control = self.control()?;
        usize::from(format)
            .checked_sub(1)
            .and_then(|index| control.shared.formats.get(index))
            .map(|text| read(text))
            .ok_or(Reason::invalid("no such format"))
    }

    /// Returns drops and errors so far. `ENOENT` before `go`.
    pub fn status(&self) -> Result<Status, Reason> {
        let run = self.run.get().ok_or(NOT_STARTED)?;
        let activity = self.activity();
        let mut status = Status {
            errors: self.errors.load(Ordering::Relaxed),
            dblerrors: self.double_errors.load(Ordering::Relaxed),
            filled: self.filled.load(Ordering::Relaxed),
            unbuffered: run.unbuffered.load(Ordering::Relaxed),
            killed: u8::from(activity == Activity::Killed),
            exiting: u8::from(activity == Activity::Draining),
            ..Status::default()
        };
        if let Some(dynamics) = &run.core.dynamics {
            let drops = &dynamics.drops;
            status.dyndrops = drops.full.load(Ordering::Relaxed);
            status.dyndrops_rinsing = drops.rinsing.load(Ordering::Relaxed);
            status.dyndrops_dirty = drops.dirty.load(Ordering::Relaxed);
        }
        if let Some(all) = &run.core.speculations {
            status.specdrops = all.drops.load(Ordering::Relaxed);
            status.specdrops_busy = all.busy.load(Ordering::Relaxed);
            status.specdrops_unavail = all.unavailable.load(Ordering::Relaxed);
        }
        Ok(status)
    }
}
