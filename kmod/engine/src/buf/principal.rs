// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The principal buffer: records one after the other, with zeros of four bytes (EPID 0) as padding.
//!
//! A record is reserved, written and then committed. If a fault occurs in between, there is no
//! record (but a ring may already have dropped old records for it). The policy says what a full
//! buffer does:
//! - A *switch* buffer drops records until it is switched.
//! - A *fill* buffer stops recording for good. That is not a drop, because the consumer requested
//!   it (INV-6).
//! - A *ring* buffer wraps around and drops the oldest records.
//!
//! The size of a buffer is meant as its user computes it: a record is charged for its EPID and its
//! data, but not for its time, for which there is room beyond that size ([`buffer_room`]). As long
//! as a record ends within the size itself, no charge has to be computed.

use super::{set_half, Aside};
use crate::budget::{CLEARED, LET_GO};
use crate::error::NoMem;
use crate::mem::alloc::Bytes;
use dtrace_uapi::ioctl::RECORD_TIME;
use dtrace_uapi::limits::buffer_room;
use dtrace_uapi::option::{BUFPOLICY_FILL, BUFPOLICY_RING, BUFPOLICY_SWITCH};
use dtrace_uapi::types::Epid;

/// Size of padding in bytes: an EPID of 0 without a time.
const PADDING: usize = size_of::<Epid>();

/// What a full buffer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Drops the oldest records.
    Ring,
    /// Stops recording.
    Fill,
    /// Drops records until the consumer switches.
    Switch,
}

impl Policy {
    /// Returns the policy that an option's value stands for.
    pub fn from_option(value: u64) -> Option<Self> {
        match value {
            BUFPOLICY_RING => Some(Self::Ring),
            BUFPOLICY_FILL => Some(Self::Fill),
            BUFPOLICY_SWITCH => Some(Self::Switch),
            _ => None,
        }
    }
}

/// Space in a fill buffer that is kept for `END`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    /// Maximum charge of its records, in bytes.
    pub charge: usize,
    /// Maximum space that they take, in bytes.
    pub room: usize,
}

impl Reserve {
    /// Adds space for one more record, whatever its position will be.
    pub fn add(&mut self, charge: usize, size: usize, align: usize) {
        self.charge = self.charge.saturating_add(charge).saturating_add(align);
        self.room = self.room.saturating_add(size).saturating_add(align);
    }
}

/// The oldest record of a ring: its offset, and the number of records before it.
#[derive(Clone, Copy, Debug)]
struct Oldest {
    at: usize,
    before: usize,
}

/// Returns the charge for the bytes before `at`, which contain `records` records.
#[inline(always)]
fn charge(at: usize, records: usize) -> usize {
    at.saturating_sub(records.saturating_mul(RECORD_TIME))
}

/// The half of a CPU's principal buffer that is being filled.
#[derive(Debug)]
pub struct Principal {
    mem: Bytes,
    /// Limit on the charge of all records together.
    size: usize,
    used: usize,
    /// Number of records within `used`.
    records: usize,
    policy: Policy,
    /// Ring: the oldest record of the previous round; `None` if no record of that round is left.
    wrapped: Option<Oldest>,
    /// Ring: end of the records of the previous round.
    end: usize,
    /// Fill: the buffer is full.
    full: bool,
    /// Fill: [`newly_full`](Self::newly_full) has reported that.
    full_told: bool,
    /// A record that ends within this offset needs no further checks. 0 if a ring has wrapped or a
    /// fill buffer is full.
    limit: usize,
    /// Space that only `END` may use.
    reserve: Reserve,
    drops: u64,
    errors: u32,
    /// Ring: work of making room, in units, since it was last taken.
    toil: u64,
}

/// Room for a record, which is to be written at `at`. [`Principal::commit`] needs `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Offset of the record.
    pub at: usize,
    end: usize,
}

impl Principal {
    /// Makes an empty buffer of `size` bytes.
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

    /// Returns the buffer's bytes.
    #[inline(always)]
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.mem
    }

    /// Counts `n` dropped records.
    pub fn count_drops(&mut self, n: u64) {
        self.drops = self.drops.wrapping_add(n);
    }

    /// Counts a fault.
    pub fn count_error(&mut self) {
        self.errors = self.errors.wrapping_add(1);
    }

    /// Returns the work of making room since the last call, in units of a [budget](crate::budget).
    /// It is known only afterwards, because how many old records a new one replaces depends on
    /// their sizes.
    pub fn take_toil(&mut self) -> u64 {
        core::mem::take(&mut self.toil)
    }

    /// Whether there is such work.
    #[inline(always)]
    pub fn toiled(&self) -> bool {
        self.toil > 0
    }

    /// Whether a fill buffer has become full since the last call.
    pub fn newly_full(&mut self) -> bool {
        let new = self.full && !self.full_told;
        self.full_told |= new;
        new
    }

    /// Reserves room for a record of `size` bytes, aligned to `align`, a power of two of at least
    /// 4. `last` says that the record is `END`'s, which may use the reserve. `oldest_size` returns
    /// the size of the record at the beginning of a slice; a ring needs it to drop old records. If
    /// there is no room, returns `None` and counts a drop, except that a fill buffer becomes full
    /// instead.
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

    /// As [`reserve`](Self::reserve), for `records` records that take `size` bytes together. If
    /// there is no room for all of them, all are dropped, and each is counted.
    #[inline(always)]
    pub fn reserve_several(
        &mut self,
        records: usize,
        size: usize,
        align: usize,
        last: bool,
        oldest_size: impl Fn(&[u8]) -> usize,
    ) -> Option<Room> {
        // No overflow: sizes and alignments of records are bounded, and so is `used`.
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
            _ => self.count_drops(records as u64),
        }
        None
    }

    /// Whether `records` more records may end at `end` and leave `kept` free.
    fn fits(&self, end: usize, records: usize, kept: Reserve) -> bool {
        end + kept.room <= self.mem.len()
            && charge(end, self.records + records) + kept.charge <= self.size
    }

    /// Drops old records until the new one has room between the last record and the oldest.
    fn reserve_ring(
        &mut self,
        records: usize,
        size: usize,
        align: usize,
        oldest_size: impl Fn(&[u8]) -> usize,
    ) -> Option<Room> {
        if size > self.mem.len() || charge(size, records) > self.size {
            self.count_drops(records as u64);
            return None;
        }
        let mut at = self.used.next_multiple_of(align);
        if !self.fits(at + size, records, Reserve::default()) {
            // Wrap around. The bytes behind the last record become padding.
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
            // If no record of the previous round is left, the oldest record is the first of this
            // one.
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

    /// Commits the record that was written to `room`.
    #[inline(always)]
    pub fn commit(&mut self, room: Room) {
        self.commit_several(room, 1);
    }

    /// Commits the `records` records that were written to `room`.
    #[inline(always)]
    pub fn commit_several(&mut self, room: Room, records: usize) {
        self.used = room.end;
        self.records = self.records.wrapping_add(records);
    }

    /// Whether [`switch`](Self::switch) is allowed while tracing.
    pub fn switches(&self) -> bool {
        self.policy == Policy::Switch
    }

    /// Exchanges this half with the snapshot.
    pub fn switch(&mut self, aside: &mut Aside, now: u64) {
        core::mem::swap(&mut self.mem, &mut aside.mem);
        if let (Some(oldest), Some(gap)) = (self.wrapped, aside.mem.get_mut(self.used..)) {
            // Between the newest and the oldest record of a ring are remains of overwritten
            // records. Clear them, so that they read as padding.
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

    /// Writes a record: in these tests a record is a length and a number.
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
                    // Records of one size: the ring keeps as many as their charges allow.
                    if sizes == [16; 3] {
                        assert_eq!(got.len(), 12.min(n as usize));
                    }
                }
            }
        }
    }
}
