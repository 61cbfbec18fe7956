// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Splits snapshots of principal buffers into records.
//!
//! A snapshot is a sequence of records. Each begins with a [`RecHdr`] at a multiple of 4 bytes; 4
//! zero bytes at such an offset are padding. A ring buffer that has wrapped is read from its oldest
//! record to its end and then from its start. Nothing is copied: a [`Record`] has an offset in its
//! snapshot.
//!
//! Invariant: the bytes of a [`Record`] lie within the snapshot from which it was parsed.

use super::layout::{EnabledProbe, Layouts};
use super::{ConsumeError, Context};
use dtrace_compiler::program::PART_BITS;
use dtrace_uapi::ioctl::RecHdr;
use std::rc::Rc;
use zerocopy::FromBytes;

/// One record.
#[derive(Clone, Debug)]
pub struct Record {
    /// The time at which it was recorded, ns.
    pub timestamp: u64,
    /// The enabled probe that recorded it.
    pub enabled: Rc<EnabledProbe>,
    /// Its offset in the snapshot, bytes.
    pub offset: usize,
}

impl Record {
    /// Whether `next`, the following record of the same CPU, is a later part of the same clause in
    /// the same firing.
    pub fn goes_on(&self, next: &Self) -> bool {
        let (this, other) = (&self.enabled, &next.enabled);
        self.timestamp == next.timestamp
            && this.probe.id == other.probe.id
            && this.clause >> PART_BITS == other.clause >> PART_BITS
            && this.clause < other.clause
    }
}

/// Memory into which a snapshot was read, and the snapshot's size.
#[derive(Debug, Default)]
pub struct Filled {
    /// The memory, usually larger than the snapshot.
    pub room: Vec<u8>,
    /// Size of the snapshot, bytes.
    pub len: usize,
}

impl Filled {
    /// Returns the snapshot's bytes.
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
    /// Splits `data`, whose oldest record is at offset `oldest`. Fails if `oldest` or a record lies
    /// outside of `data`.
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

    /// Returns the bytes of `record` with its head. `record` must be one of this snapshot, or this
    /// may panic.
    pub fn bytes(&self, record: &Record) -> &[u8] {
        &self.data.bytes()[record.offset..record.offset + record.enabled.size]
    }
}

/// Appends the records in `range` of `data` to `records`.
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
        // Records are aligned to 4 bytes.
        offset = end.next_multiple_of(size_of::<u32>());
    }
    Ok(())
}
