// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The order in which the records of all CPUs are consumed.
//!
//! The records of each CPU are ordered by time, but the buffers are switched one after another. So
//! the last snapshot of a round may hold records that are later than the end of the first snapshot.
//! Records are merged up to the earliest switching time of the round. Later ones wait for the next
//! round, when all earlier records are certain to have been read. Without `temporal` a round is
//! consumed CPU by CPU, and no record waits.
//!
//! The memory of a consumed snapshot is kept for the next, because getting fresh memory from the
//! kernel costs more than filling it.
//!
//! Invariant: records of one CPU are never reordered.

use super::records::{Record, Snapshot};
use std::collections::VecDeque;

/// The records of all CPUs that wait to be consumed.
#[derive(Debug, Default)]
pub struct Queue {
    cpus: Vec<VecDeque<Pending>>,
    rooms: Vec<Vec<u8>>,
}

/// A snapshot whose records are consumed from `next` on.
#[derive(Debug)]
struct Pending {
    snapshot: Snapshot,
    next: usize,
}

/// The record to consume.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The CPU that recorded it.
    pub cpu: u32,
    /// Its bytes, with the head.
    pub bytes: &'a [u8],
    /// The record.
    pub record: &'a Record,
    /// The record that follows on the same CPU, if it was read already. Later parts of the same
    /// clause in the same firing are skipped.
    pub following: Option<&'a Record>,
    /// Whether the next record is a later part of the same clause in the same firing.
    pub goes_on: bool,
}

impl Queue {
    /// Appends a snapshot of `cpu`.
    pub fn push(&mut self, cpu: u32, snapshot: Snapshot) {
        let cpu = cpu as usize;
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, VecDeque::new);
        }
        match snapshot.records.is_empty() {
            true => self.rooms.push(snapshot.data.room),
            false => self.cpus[cpu].push_back(Pending { snapshot, next: 0 }),
        }
    }

    /// Returns the memory of the snapshots that were consumed since the last call.
    pub fn rooms(&mut self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.rooms.drain(..)
    }

    /// Passes the records up to and including the time `until` to `consume`, in the order of time.
    pub fn merge<E>(
        &mut self,
        until: u64,
        mut consume: impl FnMut(Turn<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(cpu) = self.oldest(until) {
            self.take(cpu, &mut consume)?;
        }
        Ok(())
    }

    /// Passes all records to `consume`, CPU by CPU, with the CPU `first` first and `last` last.
    pub fn by_cpu<E>(
        &mut self,
        first: Option<u32>,
        last: Option<u32>,
        mut consume: impl FnMut(Turn<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut order: Vec<usize> = (0..self.cpus.len()).collect();
        order.sort_by_key(|cpu| {
            let is = |which: Option<u32>| which.is_some_and(|which| which as usize == *cpu);
            (is(last), !is(first))
        });
        for cpu in order {
            while !self.cpus[cpu].is_empty() {
                self.take(cpu, &mut consume)?;
            }
        }
        Ok(())
    }

    /// Returns the CPU with the oldest record, the lowest of several, if that record is not later
    /// than `until`.
    fn oldest(&self, until: u64) -> Option<usize> {
        let first = |queue: &VecDeque<Pending>| {
            let pending = queue.front()?;
            Some(pending.snapshot.records.get(pending.next)?.timestamp)
        };
        let times = self
            .cpus
            .iter()
            .enumerate()
            .filter_map(|(cpu, queue)| Some((first(queue)?, cpu)));
        times
            .min()
            .filter(|(time, _)| *time <= until)
            .map(|(_, cpu)| cpu)
    }

    /// Consumes the first record of `cpu`.
    fn take<E>(
        &mut self,
        cpu: usize,
        consume: &mut impl FnMut(Turn<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let queue = &mut self.cpus[cpu];
        let Some(pending) = queue.front() else {
            return Ok(());
        };
        let at = pending.next;
        if let Some(record) = pending.snapshot.records.get(at) {
            let (following, goes_on) = match pending.snapshot.records.get(at + 1) {
                Some(next) if !record.goes_on(next) => (Some(next), false),
                _ => after_parts(queue, record, at + 1),
            };
            consume(Turn {
                cpu: cpu as u32,
                bytes: pending.snapshot.bytes(record),
                record,
                following,
                goes_on,
            })?;
        }
        if at + 1 >= pending.snapshot.records.len() {
            let done = queue.pop_front();
            self.rooms.extend(done.map(|done| done.snapshot.data.room));
        } else if let Some(pending) = queue.front_mut() {
            pending.next += 1;
        }
        Ok(())
    }
}

/// Returns the record that follows `record` and all later parts of its clause in the same firing,
/// and whether there are such parts. `next` is the index, in the first snapshot of `queue`, of the
/// record behind `record`; it may be the snapshot's length.
fn after_parts<'a>(
    queue: &'a VecDeque<Pending>,
    record: &'a Record,
    next: usize,
) -> (Option<&'a Record>, bool) {
    let mut last = record;
    let snapshots = queue.iter().map(|pending| &pending.snapshot.records);
    let following = snapshots.flatten().skip(next).find(|next| {
        let goes_on = last.goes_on(next);
        last = if goes_on { next } else { last };
        !goes_on
    });
    (following, !std::ptr::eq(last, record))
}

#[cfg(test)]
mod tests {
    use super::super::layout::{EnabledProbe, ProbeName};
    use super::super::records::Filled;
    use super::*;
    use std::convert::Infallible;
    use std::rc::Rc;

    fn snapshot(times: &[u64]) -> Snapshot {
        let enabled = Rc::new(EnabledProbe {
            epid: 1,
            probe: Rc::new(ProbeName::default()),
            size: 12,
            clause: 0,
            groups: Vec::new(),
            is_error: false,
        });
        let record = |(index, time): (usize, &u64)| Record {
            timestamp: *time,
            enabled: Rc::clone(&enabled),
            offset: index * 12,
        };
        let len = times.len() * 12;
        Snapshot {
            data: Filled {
                room: vec![0; len + 100],
                len,
            },
            records: times.iter().enumerate().map(record).collect(),
        }
    }

    fn merged(queue: &mut Queue, until: u64) -> Vec<(u32, u64)> {
        let mut seen = Vec::new();
        let Ok(()) = queue.merge(until, |turn| {
            seen.push((turn.cpu, turn.record.timestamp));
            Ok::<_, Infallible>(())
        });
        seen
    }

    #[test]
    fn records_younger_than_the_round_wait_for_the_next() {
        let mut queue = Queue::default();
        queue.push(0, snapshot(&[10, 30]));
        queue.push(1, snapshot(&[20, 30, 55]));
        assert_eq!(merged(&mut queue, 40), [(0, 10), (1, 20), (0, 30), (1, 30)]);
        queue.push(0, snapshot(&[50, 60]));
        assert_eq!(merged(&mut queue, u64::MAX), [(0, 50), (1, 55), (0, 60)]);
        assert_eq!(merged(&mut queue, u64::MAX), []);
        // The memory of all three snapshots is released.
        assert_eq!((queue.rooms().count(), queue.rooms().count()), (3, 0));
    }

    #[test]
    fn without_time_begin_goes_first_and_end_last() {
        let mut queue = Queue::default();
        for cpu in 0..4 {
            queue.push(cpu, snapshot(&[5, 6]));
        }
        let mut seen = Vec::new();
        let Ok(()) = queue.by_cpu(Some(2), Some(0), |turn| {
            seen.push((turn.cpu, turn.following.is_some()));
            Ok::<_, Infallible>(())
        });
        let order: Vec<u32> = seen.iter().step_by(2).map(|(cpu, _)| *cpu).collect();
        assert_eq!(order, [2, 1, 3, 0]);
        assert_eq!(seen[..2], [(2, true), (2, false)]);
    }

    #[test]
    fn the_following_record_may_be_in_the_next_snapshot() {
        let mut queue = Queue::default();
        queue.push(0, snapshot(&[1]));
        queue.push(0, snapshot(&[2]));
        let mut following = Vec::new();
        let Ok(()) = queue.merge(u64::MAX, |turn| {
            following.push(turn.following.map(|record| record.timestamp));
            Ok::<_, Infallible>(())
        });
        assert_eq!(following, [Some(2), None]);
    }
}
