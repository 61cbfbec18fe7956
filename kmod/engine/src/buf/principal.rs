// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The principal buffer: records one after the other, with four-byte zeros (EPID 0) as padding.
//!
//! A record is reserved, written and then committed; a fault in between leaves no trace of it. What is full depends on the
//! policy: a *switch* buffer drops until it is switched; a *fill* buffer stops recording for good, which is no drop but what
//! was asked for; a *ring* buffer wraps around and lets the oldest records go.
//!
//! A buffer's size is what its user computes: a record is charged for its EPID and its data, but not for its time, which
//! has room beyond that size ([`buffer_room`]). As long as a record ends within the size itself nothing need be computed.

use super::{set_half, Aside};
use crate::budget::{CLEARED, LET_GO};
use crate::error::NoMem;
use crate::mem::alloc::Bytes;
use dtrace_uapi::ioctl::RECORD_TIME;
use dtrace_uapi::limits::buffer_room;
use dtrace_uapi::option::{BUFPOLICY_FILL, BUFPOLICY_RING, BUFPOLICY_SWITCH};
use dtrace_uapi::types::Epid;

/// Bytes of padding: an EPID of 0 alone.
const PADDING: usize = size_of::<Epid>();

/// What happens when a buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The oldest records go.
    Ring,
    /// Recording ends.
    Fill,
    /// Records are dropped until the consumer switches.
    Switch,
}

impl Policy {
    /// The policy that an option's value means.
    pub fn from_option(value: u64) -> Option<Self> {
        match value {
            BUFPOLICY_RING => Some(Self::Ring),
            BUFPOLICY_FILL => Some(Self::Fill),
            BUFPOLICY_SWITCH => Some(Self::Switch),
            _ => None,
        }
    }
}

/// What is kept for `END` in a fill buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    /// What its records may be charged.
    pub charge: usize,
    /// The bytes that they take.
    pub room: usize,
}

impl Reserve {
    /// Keeps room for one more record, wherever it comes to lie.
    pub fn add(&mut self, charge: usize, size: usize, align: usize) {
        self.charge = self.charge.saturating_add(charge).saturating_add(align);
        self.room = self.room.saturating_add(size).saturating_add(align);
    }
}

/// A record of a ring: its offset, and how many lie before it.
#[derive(Clone, Copy, Debug)]
struct Oldest {
    at: usize,
    before: usize,
}

/// What the bytes before `at`, among them `records` records, are charged.
#[inline(always)]
fn charge(at: usize, records: usize) -> usize {
    at.saturating_sub(records.saturating_mul(RECORD_TIME))
}

/// The half of a CPU's principal buffer that is being filled.
#[derive(Debug)]
pub struct Principal {
    mem: Bytes,
    /// What records may be charged in all.
    size: usize,
    used: usize,
    /// How many records lie in `used`.
    records: usize,
    policy: Policy,
    /// Ring: the oldest record, once it has wrapped.
    wrapped: Option<Oldest>,
    /// Ring: where the records of the last round end.
    end: usize,
    /// Fill: it is full.
    full: bool,
    full_told: bool,
    /// Up to where records are written without further thought: 0 where a ring has wrapped or a fill buffer is full.
    limit: usize,
    /// What only `END` may use.
    reserve: Reserve,
    drops: u64,
    errors: u32,
    /// Ring: what it took to make room, units.
    toil: u64,
}

/// Room for a record: its bytes are `at..at + size` once written, and `end` is what [`Principal::commit`] needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Offset of the record.
    pub at: usize,
    end: usize,
}

impl Principal {
    /// An empty buffer of `size` bytes.
    pub fn new(size: usize, policy: Policy, reserve: Reserve) -> Result<Self, NoMem> {
        Ok(Self {
            mem: Bytes::new(buffer_room(size as u64) as usize)?,
            size,
            used: 0,
            records: 0,
            policy,
            wrapped: None,
            end: 0,
            full: false,
            full_told: false,
            limit: size.saturating_sub(reserve.room),
            reserve,
            drops: 0,
            errors: 0,
            toil: 0,
        })
    }

    /// The buffer's bytes.
    #[inline(always)]
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.mem
    }

    /// Counts `n` records that are not made.
    pub fn count_drops(&mut self, n: u64) {
        self.drops = self.drops.wrapping_add(n);
    }

    /// Counts a fault.
    pub fn count_error(&mut self) {
        self.errors = self.errors.wrapping_add(1);
    }

    /// What it took to make room for records since this was last asked, units of a [budget](crate::budget). How many old records a new one takes the
    /// place of depends on what they are.
    pub fn take_toil(&mut self) -> u64 {
        core::mem::take(&mut self.toil)
    }

    /// Whether that is anything.
    #[inline(always)]
    pub fn toiled(&self) -> bool {
        self.toil > 0
    }

    /// Whether a fill buffer has become full since this was last asked.
    pub fn newly_full(&mut self) -> bool {
        let new = self.full && !self.full_told;
        self.full_told |= new;
        new
    }

    /// Room for a record of `size` bytes, aligned to `align`, a power of two of at least 4. `last` may use the reserve.
    /// `None`: dropped, and counted. `oldest_size` tells the size of the record at an offset, for the ring to let it go.
    #[inline(always)]
    pub fn reserve(
        &mut self,
        size: usize,
        align: usize,
        last: bool,
        oldest_size: impl Fn(&[u8]) -> usize,
    ) -> Option<Room> {
        self.reserve_several(1, size, align, last, oldest_size)
    }

    /// The same for `records` records, which take `size` bytes together. They are dropped together, and counted as one.
    #[inline(always)]
    pub fn reserve_several(
        &mut self,
        records: usize,
        size: usize,
        align: usize,
        last: bool,
        oldest_size: impl Fn(&[u8]) -> usize,
    ) -> Option<Room> {
        // A record's size and alignment are bounded, as is what is used: nothing here overflows.
        let at = self.used.wrapping_add(align).wrapping_sub(1) & align.wrapping_neg();
        let end = at.wrapping_add(size);
        if end <= self.limit {
            self.pad(at);
            return Some(Room { at, end });
        }
        self.reserve_slow(records, size, align, last, oldest_size)
    }

    #[cold]
    fn reserve_slow(
        &mut self,
        records: usize,
        size: usize,
        align: usize,
        last: bool,
        oldest_size: impl Fn(&[u8]) -> usize,
    ) -> Option<Room> {
        if self.policy == Policy::Ring {
            return self.reserve_ring(records, size, align, oldest_size);
        }
        let at = self.used.next_multiple_of(align);
        let kept = match last {
            true => Reserve::default(),
            false => self.reserve,
        };
        if (last || !self.full) && self.fits(at + size, records, kept) {
            self.pad(at);
            return Some(Room { at, end: at + size });
        }
        match self.policy {
            Policy::Fill if !last => {
                self.full = true;
                self.limit = 0;
            }
            _ => self.drops += 1,
        }
        None
    }

    /// Whether so many more records may end at `end` so that `kept` is left.
    fn fits(&self, end: usize, records: usize, kept: Reserve) -> bool {
        end + kept.room <= self.mem.len()
            && charge(end, self.records + records) + kept.charge <= self.size
    }

    /// Advances the oldest record until the new one has room between it and the last.
    fn reserve_ring(
        &mut self,
        records: usize,
        size: usize,
        align: usize,
        oldest_size: impl Fn(&[u8]) -> usize,
    ) -> Option<Room> {
        if size > self.mem.len() || charge(size, records) > self.size {
            self.drops += 1;
            return None;
        }
        let mut at = self.used.next_multiple_of(align);
        if !self.fits(at + size, records, Reserve::default()) {
            // Around: what follows the last record is padding.
            self.end = self.used;
            let used = self.used;
            if let Some(rest) = self.mem.get_mut(used..) {
                rest.fill(0);
                self.toil += (rest.len() / CLEARED) as u64;
            }
            (self.used, self.records) = (0, 0);
            at = 0;
            self.wrapped = Some(Oldest { at: 0, before: 0 });
            self.limit = 0;
        }
        let end = at + size;
        if let Some(mut oldest) = self.wrapped {
            let charged = charge(end, self.records + records);
            let in_the_way =
                |oldest: Oldest| oldest.at < end || charge(oldest.at, oldest.before) < charged;
            while oldest.at < self.end && in_the_way(oldest) {
                let record = self.mem.get(oldest.at..self.end).unwrap_or(&[]);
                let size = oldest_size(record).max(PADDING);
                oldest.before += usize::from(size > PADDING);
                oldest.at += size;
                self.toil += LET_GO;
            }
            // Nothing is left of the last round: the oldest record is the first of this one.
            self.wrapped = (oldest.at < self.end).then_some(oldest);
            if self.wrapped.is_none() {
                self.end = 0;
                self.limit = self.size;
            }
        }
        self.pad(at);
        Some(Room { at, end })
    }

    #[inline(always)]
    fn pad(&mut self, to: usize) {
        let mut at = self.used;
        while at < to {
            set_half(&mut self.mem, at, 0);
            at += 4;
        }
    }

    /// Keeps the record that was written to `room`.
    #[inline(always)]
    pub fn commit(&mut self, room: Room) {
        self.commit_several(room, 1);
    }

    /// Keeps the `records` records that were written to `room`.
    #[inline(always)]
    pub fn commit_several(&mut self, room: Room, records: usize) {
        self.used = room.end;
        self.records = self.records.wrapping_add(records);
    }

    /// Whether `switch` is possible while tracing.
    pub fn switches(&self) -> bool {
        self.policy == Policy::Switch
    }

    /// Exchanges this half with the one that was put aside.
    pub fn switch(&mut self, aside: &mut Aside, now: u64) {
        core::mem::swap(&mut self.mem, &mut aside.mem);
        if let (Some(oldest), Some(gap)) = (self.wrapped, aside.mem.get_mut(self.used..)) {
            // Between the newest and the oldest record of a ring lies what is left of overwritten ones.
            let gap_len = oldest.at.saturating_sub(self.used).min(gap.len());
            if let Some(gap) = gap.get_mut(..gap_len) {
                gap.fill(0);
            }
        }
        aside.used = if self.wrapped.is_some() {
            aside.mem.len()
        } else {
            self.used
        };
        aside.oldest = self.wrapped.map_or(0, |oldest| oldest.at);
        aside.drops = core::mem::take(&mut self.drops);
        aside.errors = core::mem::take(&mut self.errors);
        aside.timestamp = now;
        (self.used, self.records) = (0, 0);
        self.wrapped = None;
        self.end = 0;
        self.limit = match self.full {
            true => 0,
            false => self.size.saturating_sub(self.reserve.room),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Records here are a length and a number.
    fn put(b: &mut Principal, size: usize, n: u32) -> bool {
        let measure = |rec: &[u8]| match u32::from_ne_bytes(rec[..4].try_into().unwrap()) {
            0 => 4,
            size => size as usize,
        };
        let Some(room) = b.reserve(size, 4, false, measure) else {
            return false;
        };
        set_half(b.bytes(), room.at, size as u32);
        set_half(b.bytes(), room.at + 4, n);
        b.commit(room);
        true
    }

    fn read(data: &[u8], oldest: usize) -> Vec<u32> {
        let order: Vec<u8> = data[oldest..]
            .iter()
            .chain(&data[..oldest])
            .copied()
            .collect();
        let (mut at, mut out) = (0, Vec::new());
        let half = |at: usize| u32::from_ne_bytes(order[at..at + 4].try_into().unwrap());
        while at < order.len() {
            match half(at) {
                0 => at += 4,
                size => {
                    out.push(half(at + 4));
                    at += size as usize;
                }
            }
        }
        out
    }

    #[test]
    fn switch_buffers_count_every_drop() {
        // Records of 16 bytes are charged 8.
        let mut b = Principal::new(32, Policy::Switch, Reserve::default()).unwrap();
        let aside = Aside::new(96).unwrap();
        for n in 0..10 {
            assert_eq!(put(&mut b, 16, n), n < 4);
        }
        let mut aside = aside.take().unwrap();
        b.switch(&mut aside, 77);
        assert_eq!((aside.drops, aside.timestamp, aside.oldest), (6, 77, 0));
        assert_eq!(read(aside.data(), 0), [0, 1, 2, 3]);
        assert!(put(&mut b, 16, 10));
        b.switch(&mut aside, 78);
        assert_eq!((aside.drops, read(aside.data(), 0)), (0, Vec::from([10])));
    }

    #[test]
    fn records_are_aligned_and_gaps_read_as_padding() {
        let mut b = Principal::new(64, Policy::Switch, Reserve::default()).unwrap();
        b.bytes().fill(0xff);
        let room = b.reserve(12, 8, false, |_| 4).unwrap();
        b.commit(room);
        let room = b.reserve(8, 8, false, |_| 4).unwrap();
        assert_eq!(room.at, 16);
        assert_eq!(b.bytes()[12..16], [0; 4]);
        // Not committed: the next record takes its place.
        assert_eq!(b.reserve(8, 8, false, |_| 4), Some(room));
    }

    #[test]
    fn fill_buffers_keep_a_reserve_for_the_end() {
        let mut reserve = Reserve::default();
        reserve.add(8, 16, 4);
        let mut b = Principal::new(36, Policy::Fill, reserve).unwrap();
        for n in 0..6 {
            assert_eq!(put(&mut b, 16, n), n < 3);
        }
        assert!(b.newly_full() && !b.newly_full());
        assert_eq!(b.drops, 0);
        assert!(b.reserve(16, 4, true, |_| 4).is_some());
        assert!(b.reserve(32, 4, true, |_| 4).is_none());
        assert_eq!(b.drops, 1);
    }

    #[test]
    fn times_are_not_charged_as_far_as_there_is_room_for_them() {
        for (size, kept) in [(8, 1), (50, 6), (4096, 512), (64 << 10, 4608)] {
            let mut b = Principal::new(size, Policy::Switch, Reserve::default()).unwrap();
            let all = (0..10_000).filter(|n| put(&mut b, 16, *n)).count();
            assert_eq!(all, kept, "{size}");
        }
    }

    #[test]
    fn rings_keep_the_newest_records() {
        for sizes in [[16usize, 16, 16], [12, 20, 12], [24, 12, 40]] {
            let mut b = Principal::new(100, Policy::Ring, Reserve::default()).unwrap();
            let room = b.bytes().len();
            for n in 1..200u32 {
                assert!(put(&mut b, sizes[n as usize % 3], n));
                if n % 37 == 0 || n < 12 {
                    // Read from a copy.
                    let mut probe = Principal {
                        used: b.used,
                        wrapped: b.wrapped,
                        end: b.end,
                        ..Principal::new(100, Policy::Ring, Reserve::default()).unwrap()
                    };
                    probe.bytes().copy_from_slice(b.bytes());
                    let aside = Aside::new(room).unwrap();
                    let mut aside = aside.take().unwrap();
                    probe.switch(&mut aside, 0);
                    let got = read(aside.data(), aside.oldest);
                    let want: Vec<u32> = (n + 1 - got.len() as u32..=n).collect();
                    assert_eq!(got, want, "after {n}");
                    assert!(!got.is_empty());
                    // Records of one size: as many as their charges allow.
                    if sizes == [16; 3] {
                        assert_eq!(got.len(), 12.min(n as usize));
                    }
                }
            }
        }
    }
}
