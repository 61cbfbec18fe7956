// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Snapshots of principal buffers cut into records.
//!
//! A snapshot is a sequence of records that begin with a [`RecHdr`] at a word's boundary; a word of zero where one
//! could begin is padding. A ring buffer that has wrapped begins at its oldest record, runs to the end and goes on at the front.
//! Nothing is copied: a [`Record`] is a place in its snapshot.
//!
//! Invariant: the bytes of a [`Record`] lie within the snapshot it was cut from.

use super::layout::{EnabledProbe, Layouts};
use super::{ConsumeError, Context};
use crate::program::PART_BITS;
use dtrace_uapi::ioctl::RecHdr;
use std::rc::Rc;
use zerocopy::FromBytes;

/// One record.
#[derive(Clone, Debug)]
pub struct Record {
    /// When it was made, ns.
    pub timestamp: u64,
    /// What made it.
    pub enabled: Rc<EnabledProbe>,
    /// Where it begins.
    pub offset: usize,
}

impl Record {
    /// Whether `next`, which follows on the same CPU, is a later part of the same clause in the same firing.
    pub fn goes_on(&self, next: &Self) -> bool {
        let (this, other) = (&self.enabled, &next.enabled);
        self.timestamp == next.timestamp
            && this.probe.id == other.probe.id
            && this.clause >> PART_BITS == other.clause >> PART_BITS
            && this.clause < other.clause
    }
}

/// Memory that a snapshot was read into, and how much of it that took.
#[derive(Debug, Default)]
pub struct Filled {
    /// The memory, which is larger as a rule.
    pub room: Vec<u8>,
    /// How many bytes of it are the snapshot.
    pub len: usize,
}

impl Filled {
    /// The snapshot's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.room.get(..self.len).unwrap_or(&self.room)
    }
}

/// One CPU's snapshot and its records, oldest first.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The bytes.
    pub data: Filled,
    /// The records.
    pub records: Vec<Record>,
}

impl Snapshot {
    /// Cuts `data`, whose oldest record begins at `oldest`.
    pub fn parse(
        context: Context<'_>,
        layouts: &mut Layouts,
        data: Filled,
        oldest: u64,
    ) -> Result<Self, ConsumeError> {
        let bytes = data.bytes();
        let oldest = usize::try_from(oldest)
            .ok()
            .filter(|oldest| *oldest <= bytes.len())
            .ok_or(ConsumeError::Layout(
                "the oldest record lies outside its buffer",
            ))?;
        let mut records = Vec::new();
        cut(context, layouts, bytes, oldest..bytes.len(), &mut records)?;
        cut(context, layouts, bytes, 0..oldest, &mut records)?;
        Ok(Self { data, records })
    }

    /// The bytes of `record`, with its head.
    pub fn bytes(&self, record: &Record) -> &[u8] {
        &self.data.bytes()[record.offset..record.offset + record.enabled.size]
    }
}

fn cut(
    context: Context<'_>,
    layouts: &mut Layouts,
    data: &[u8],
    range: std::ops::Range<usize>,
    records: &mut Vec<Record>,
) -> Result<(), ConsumeError> {
    let mut offset = range.start;
    while let Some((epid, _)) = data
        .get(offset..range.end)
        .and_then(|rest| u32::read_from_prefix(rest).ok())
    {
        if epid == 0 {
            offset += size_of::<u32>();
            continue;
        }
        let enabled = match records.last() {
            Some(last) if last.enabled.epid == epid => Rc::clone(&last.enabled),
            _ => layouts.enabled(context, epid)?,
        };
        let end = offset
            .checked_add(enabled.size)
            .filter(|end| *end <= range.end);
        let (Some(end), Ok((head, _))) = (end, RecHdr::read_from_prefix(&data[offset..])) else {
            return Err(ConsumeError::Layout("a record exceeds its buffer"));
        };
        records.push(Record {
            timestamp: head.timestamp(),
            enabled,
            offset,
        });
        // The next one begins at a word.
        offset = end.next_multiple_of(size_of::<u32>());
    }
    Ok(())
}
