// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A CPU's pieces of the speculations: `specsize` bytes for each.
//!
//! Records lie in a piece as they will in the principal buffer, to which they are moved in one go and in their order.
//! They get the time of that, as if they had been recorded then: times never step back within a buffer.

use crate::buf::principal::Principal;
use crate::buf::{copy, half, set_head};
use crate::error::NoMem;
use crate::mem::alloc::Bytes;
use crate::mem::Vec;
use dtrace_uapi::ioctl::RecHdr;

/// How far a piece is filled.
#[derive(Clone, Copy, Debug, Default)]
struct Fill {
    used: usize,
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
    begun: usize,
    end: usize,
}

/// Where moved records go, and what they need there.
pub struct Target<'a, S> {
    /// The buffer.
    pub principal: &'a mut Principal,
    /// The time of the move.
    pub now: u64,
    /// The records may use what is kept for `END`.
    pub last: bool,
    /// Tells the size of the record that begins a piece of a buffer.
    pub size_at: S,
}

impl Pieces {
    /// `count` empty pieces of `size` bytes.
    pub fn new(count: usize, size: usize) -> Result<Self, NoMem> {
        let stride = size.checked_next_multiple_of(8).ok_or(NoMem)?;
        Ok(Self {
            mem: Bytes::new(stride.checked_mul(count).ok_or(NoMem)?)?,
            size,
            fills: Vec::try_from_fn(count, |_| Ok::<_, NoMem>(Fill::default()))?,
        })
    }

    /// How many bytes such pieces take.
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

    /// How many bytes of records the piece has.
    pub fn used(&self, id: u64) -> usize {
        self.fills.get(Self::index(id)).map_or(0, |fill| fill.used)
    }

    /// The bytes of a piece.
    pub fn bytes(&mut self, id: u64) -> &mut [u8] {
        let size = self.size;
        let stride = size.saturating_add(7) & !7;
        Self::index(id)
            .checked_mul(stride)
            .and_then(|at| self.mem.get_mut(at..at.checked_add(size)?))
            .unwrap_or(&mut [])
    }

    /// Room for a record of `size` bytes, aligned to `align`, a power of two up to 8. `None`: dropped, and counted should the
    /// speculation be committed.
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

    /// Keeps the record that was written to `room`, unless the piece was emptied since.
    pub fn keep(&mut self, id: u64, room: Room) {
        if let Some(fill) = self.fill(id).filter(|fill| fill.used == room.begun) {
            fill.used = room.end;
        }
    }

    /// Forgets the records and drops of a piece.
    pub fn empty(&mut self, id: u64) {
        if let Some(fill) = self.fill(id) {
            *fill = Fill::default();
        }
    }

    /// Moves the records of a piece to the principal buffer; returns how many were dropped for want of room here.
    /// Where there is no room for them there they are lost, and counted there as one drop.
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

/// Gives all records the time `now`; returns how many there are.
fn stamp(records: &mut [u8], now: u64, size_at: impl Fn(&[u8]) -> usize) -> usize {
    let mut count = 0usize;
    let mut rest = records;
    while !rest.is_empty() {
        let size = size_at(rest).clamp(1, rest.len());
        let epid = half(rest, 0);
        let (record, after) = rest.split_at_mut(size);
        // Padding is an EPID of 0 alone.
        if epid != 0 {
            set_head(record, 0, RecHdr::new(epid, now));
            count = count.saturating_add(1);
        }
        rest = after;
    }
    count
}
