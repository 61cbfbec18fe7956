// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The order in which the CPUs' records are consumed.
//!
//! Each CPU's records are in the order of time, but the buffers are switched one after the other: the last
//! snapshot of a round holds records that are younger than the first snapshot's end. They are merged up to the
//! earliest of the round's switching times; what is younger waits for the next round, when everything older than
//! it is certain to be there. Without `temporal` a round is consumed CPU by CPU, and nothing waits.
//!
//! The memory of a snapshot that is consumed is kept for the next one: to get fresh memory from the kernel costs more than to fill
//! it.
//!
//! Invariant: a CPU's own records never change places.

use super::records::{Record, Snapshot};
use std::collections::VecDeque;

/// Records of all CPUs that wait to be consumed.
#[derive(Debug, Default)]
pub struct Queue {
    cpus: Vec<VecDeque<Pending>>,
    rooms: Vec<Vec<u8>>,
}

/// A snapshot that is partly consumed.
#[derive(Debug)]
struct Pending {
    snapshot: Snapshot,
    next: usize,
}

/// A record whose turn it is.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The CPU that made it.
    pub cpu: u32,
    /// Its bytes, with the head.
    pub bytes: &'a [u8],
    /// The record.
    pub record: &'a Record,
    /// The record that follows on the same CPU, if it is there already; not one of the same clause in the same firing.
    pub following: Option<&'a Record>,
    /// Whether the next record is of the same clause in the same firing.
    pub goes_on: bool,
}

impl Queue {
    /// Adds a snapshot of `cpu`.
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

    /// The memory of the snapshots that have been consumed since the last call.
    pub fn rooms(&mut self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.rooms.drain(..)
    }

    /// Gives the records up to the time `until` to `consume`, in the order of time.
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

    /// Gives all records to `consume`, CPU by CPU; `first` goes first and `last` last.
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

    /// The CPU with the oldest record, if that is not younger than `until`; of several the lowest.
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

/// The record that follows `record` and its clause's later parts of the same firing, and whether there are such parts. The one behind
/// `record` is record `next` of the first snapshot, if that has as many.
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
        // The memory of all three is free again.
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
