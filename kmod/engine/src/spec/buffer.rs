// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A CPU's pieces of the speculations: `specsize` bytes for each.
//!
//! Records lie in a piece as they will lie in the principal buffer, to which they are moved at once
//! and in order. They get the time of the move, as if they had been recorded then, because times
//! never decrease within a buffer.

use crate::buf::principal::Principal;
use crate::buf::{copy, half, set_head};
use crate::error::NoMem;
use crate::mem::alloc::Bytes;
use crate::mem::Vec;
use dtrace_uapi::ioctl::RecHdr;

/// Fill level of a piece.
#[derive(Clone, Copy, Debug, Default)]
struct Fill {
    /// Bytes used by records and padding.
    used: usize,
    /// Records for which there was no room.
    drops: u64,
}

/// The pieces of one CPU.
#[derive(Debug)]
pub struct Pieces {
    mem: Bytes,
    size: usize,
    fills: Vec<Fill>,
}

/// Room for a record in a piece.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Offset of the record.
    pub at: usize,
    /// Bytes of the piece that were used before.
    begun: usize,
    /// End of the record.
    end: usize,
}

/// The destination of moved records.
pub struct Target<'a, S> {
    /// The principal buffer.
    pub principal: &'a mut Principal,
    /// The time of the move.
    pub now: u64,
    /// Whether the records may use the space that is reserved for `END`.
    pub last: bool,
    /// Returns the size of the record at the beginning of the given bytes.
    pub size_at: S,
}

impl Pieces {
    /// Makes `count` empty pieces of `size` bytes.
    pub fn new(count: usize, size: usize) -> Result<Self, NoMem> {
        let stride = size.checked_next_multiple_of(8).ok_or(NoMem)?;
        Ok(Self {
            mem: Bytes::new(stride.checked_mul(count).ok_or(NoMem)?)?,
            size,
            fills: Vec::try_from_fn(count, |_| Ok::<_, NoMem>(Fill::default()))?,
        })
    }

    /// Returns the memory that `count` such pieces take, in bytes.
    pub fn memory(count: usize, size: usize) -> usize {
        let piece = (size.saturating_add(7) & !7).saturating_add(size_of::<Fill>());
        piece.saturating_mul(count)
    }

    fn index(id: u64) -> usize {
        usize::try_from(id.wrapping_sub(1)).unwrap_or(usize::MAX)
    }

    fn fill(&mut self, id: u64) -> Option<&mut Fill> {
        self.fills.get_mut(Self::index(id))
    }

    /// Whether the piece has records.
    pub fn holds(&self, id: u64) -> bool {
        self.used(id) != 0
    }

    /// Returns the number of bytes of records in the piece.
    pub fn used(&self, id: u64) -> usize {
        self.fills.get(Self::index(id)).map_or(0, |fill| fill.used)
    }

    /// Returns the bytes of a piece.
    pub fn bytes(&mut self, id: u64) -> &mut [u8] {
        let size = self.size;
        let stride = size.saturating_add(7) & !7;
        Self::index(id)
            .checked_mul(stride)
            .and_then(|at| self.mem.get_mut(at..at.checked_add(size)?))
            .unwrap_or(&mut [])
    }

    /// Reserves room for a record of `size` bytes, aligned to `align`, a power of two up to 8.
    /// `None` means that the record is dropped; the drop counts if the speculation is committed.
    pub fn reserve(&mut self, id: u64, size: usize, align: usize) -> Option<Room> {
        let limit = self.size;
        let fill = self.fill(id)?;
        let at = fill.used.checked_next_multiple_of(align)?;
        let end = at.checked_add(size)?;
        if end > limit {
            fill.drops = fill.drops.saturating_add(1);
            return None;
        }
        let room = Room {
            at,
            begun: fill.used,
            end,
        };
        if let Some(pad) = self.bytes(id).get_mut(room.begun..room.at) {
            pad.fill(0);
        }
        Some(room)
    }

    /// Keeps the record that was written to `room`, unless the piece was emptied in between.
    pub fn keep(&mut self, id: u64, room: Room) {
        if let Some(fill) = self.fill(id).filter(|fill| fill.used == room.begun) {
            fill.used = room.end;
        }
    }

    /// Drops the records of a piece, and its count of drops.
    pub fn empty(&mut self, id: u64) {
        if let Some(fill) = self.fill(id) {
            *fill = Fill::default();
        }
    }

    /// Moves the records of a piece to the principal buffer. Returns how many records had not
    /// fitted into the piece. If the principal buffer has no room for the records, they are
    /// dropped, and counted there.
    pub fn transfer<S: Fn(&[u8]) -> usize>(&mut self, id: u64, to: Target<'_, S>) -> u64 {
        let Some(fill) = self.fill(id).map(core::mem::take) else {
            return 0;
        };
        if fill.used == 0 {
            return fill.drops;
        }
        let records = self.bytes(id).get_mut(..fill.used).unwrap_or(&mut []);
        let count = stamp(records, to.now, &to.size_at);
        let (size, last) = (records.len(), to.last);
        let room = to
            .principal
            .reserve_several(count, size, 8, last, &to.size_at);
        if let Some(room) = room {
            if let Some(place) = to.principal.bytes().get_mut(room.at..) {
                copy(place, records);
            }
            to.principal.commit_several(room, count);
        }
        fill.drops
    }
}

/// Sets the time of all records to `now`. Returns the number of records.
fn stamp(records: &mut [u8], now: u64, size_at: impl Fn(&[u8]) -> usize) -> usize {
    let mut count = 0usize;
    let mut rest = records;
    while !rest.is_empty() {
        let size = size_at(rest).clamp(1, rest.len());
        let epid = half(rest, 0);
        let (record, after) = rest.split_at_mut(size);
        // Padding consists of an EPID of 0 only.
        if epid != 0 {
            set_head(record, 0, RecHdr::new(epid, now));
            count = count.saturating_add(1);
        }
        rest = after;
    }
    count
}
