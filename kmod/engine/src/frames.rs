// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The frames of a stack, written to their destination while the stack is walked.
//!
//! A caller that wants a stack supplies the bytes for it (in a record, a key or scratch memory),
//! and the machine that walks the stack delivers one program counter after the other. Invariant:
//! [`Frames::finish`] overwrites every byte, so equal stacks are equal bytes and no stale data is
//! disclosed. A caller of [`Frames::end`] must compare nothing beyond the zero, and must clear what
//! follows it before any other party can see it.

use dtrace_uapi::types::STACK_LOST;
use zerocopy::IntoBytes;

/// Room for program counters, 8 bytes each.
#[derive(Debug)]
pub struct Frames<'a> {
    rest: &'a mut [u8],
    /// Number of further frames that are accepted; there are bytes for all of them.
    room: usize,
    /// Number of frames written so far.
    put: usize,
    /// How many of `put` were written [several at once](Self::took).
    took: usize,
}

impl<'a> Frames<'a> {
    /// Accepts as many frames as `bytes` hold.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self {
            room: bytes.len() / 8,
            rest: bytes,
            put: 0,
            took: 0,
        }
    }

    /// Accepts as many frames as `bytes` hold, but at most `most` until [`unlimit`](Self::unlimit)
    /// is called.
    #[inline]
    pub fn up_to(most: usize, bytes: &'a mut [u8]) -> Self {
        let mut frames = Self::new(bytes);
        frames.room = frames.room.min(most);
        frames
    }

    /// Whether `bytes` have room for more frames than are accepted.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.room < self.rest.len() / 8
    }

    /// Lifts the limit: accepts as many further frames as the bytes hold.
    #[inline]
    pub fn unlimit(&mut self) {
        self.room = self.rest.len() / 8;
    }

    /// Returns the number of further frames that are accepted.
    #[inline]
    pub fn room(&self) -> usize {
        self.room
    }

    /// Appends a frame if there is room. Returns whether another one is wanted.
    #[inline]
    pub fn put(&mut self, pc: u64) -> bool {
        if let Some(room) = self.room.checked_sub(1) {
            if let Some((slot, rest)) = core::mem::take(&mut self.rest).split_first_chunk_mut() {
                *slot = pc.to_ne_bytes();
                self.rest = rest;
                self.room = room;
                self.put = self.put.saturating_add(1);
            }
        }
        self.room != 0
    }

    /// Appends as many of `pcs` as there is room for.
    pub fn extend(&mut self, pcs: &[usize]) {
        let count = pcs.len().min(self.room);
        let (Some(from), Some(to)) = (
            pcs.get(..count),
            self.rest.get_mut(..count.saturating_mul(8)),
        ) else {
            return;
        };
        to.copy_from_slice(from.as_bytes());
        self.took(count);
    }

    /// Returns the bytes that are not written yet, for a caller that writes several frames at once
    /// and then calls [`took`](Self::took).
    #[inline]
    pub fn rest(&mut self) -> &mut [u8] {
        self.rest
    }

    /// Records that the caller has written the next `count` frames, as far as there was room.
    /// Returns whether another one is wanted.
    #[inline]
    pub fn took(&mut self, count: usize) -> bool {
        let count = count.min(self.room);
        let rest = core::mem::take(&mut self.rest);
        self.rest = rest.get_mut(count.wrapping_mul(8)..).unwrap_or_default();
        // Cannot overflow, because there are bytes for all of them.
        self.room = self.room.wrapping_sub(count);
        self.put = self.put.wrapping_add(count);
        self.took = self.took.wrapping_add(count);
        self.room != 0
    }

    /// Returns the number of frames written, and how many of them were written one at a time.
    #[inline]
    pub fn counts(&self) -> (usize, usize) {
        (self.put, self.put.saturating_sub(self.took))
    }

    /// Appends the mark for a caller that was not found ([`STACK_LOST`]), if there is room. The
    /// mark does not count as a frame. Nothing may be appended after it.
    pub fn lost(&mut self) {
        let put = self.put;
        self.put(STACK_LOST);
        self.put = put;
    }

    /// Appends a zero if the bytes have room for it. Returns the bytes after the zero, which are
    /// unchanged.
    #[inline]
    pub fn end(mut self) -> &'a mut [u8] {
        self.unlimit();
        self.put(0);
        self.rest
    }

    /// Fills the rest with zeros. Returns the number of frames written.
    pub fn finish(self) -> usize {
        self.rest.fill(0);
        self.put
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_put_is_zero() {
        let mut bytes = [0xff; 28];
        let mut frames = Frames::new(&mut bytes);
        assert_eq!(frames.room(), 3);
        assert!(frames.put(1));
        assert!(frames.put(u64::MAX));
        assert_eq!(frames.finish(), 2);
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words, [1, u64::MAX, 0]);
        assert_eq!(bytes[24..], [0; 4]);
    }

    #[test]
    fn what_is_behind_the_end_is_left() {
        let mut bytes = [0xff; 24];
        let mut frames = Frames::new(&mut bytes);
        frames.put(1);
        assert_eq!(frames.end(), [0xff; 8]);
        assert_eq!(bytes[8..], [[0; 8], [0xff; 8]].concat());
        let mut full = [0xff; 8];
        let mut frames = Frames::new(&mut full);
        frames.put(1);
        assert_eq!(frames.end(), []);
        assert_eq!(full, 1u64.to_ne_bytes());
    }

    #[test]
    fn more_than_are_wanted_are_taken_behind_them() {
        let mut bytes = [0xff; 40];
        let mut frames = Frames::up_to(2, &mut bytes);
        assert!(frames.is_limited());
        assert!(frames.put(1));
        assert!(!frames.took(3));
        assert!(!frames.put(9));
        frames.lost();
        frames.unlimit();
        assert!(!frames.is_limited());
        assert!(frames.put(3));
        assert_eq!(frames.end(), [0xff; 8]);
        assert_eq!(
            bytes[16..],
            [[3, 0, 0, 0], [0; 4], [0; 4], [0; 4], [0xff; 4], [0xff; 4]].concat()
        );
        assert!(!Frames::up_to(5, &mut bytes).is_limited());
        let mut frames = Frames::up_to(1, &mut bytes);
        frames.put(1);
        // The limit does not apply to the zero at the end.
        assert_eq!(frames.end().len(), 24);
    }

    #[test]
    fn a_caller_that_is_not_found_is_no_frame() {
        let mut bytes = [0xff; 32];
        let mut frames = Frames::new(&mut bytes);
        frames.put(7);
        frames.lost();
        assert_eq!(frames.finish(), 1);
        let words = [7, STACK_LOST, 0, 0].map(u64::to_ne_bytes);
        assert_eq!(bytes[..], words.concat());
        let mut full = [0xff; 8];
        let mut frames = Frames::new(&mut full);
        frames.put(7);
        frames.lost();
        assert_eq!(frames.finish(), 1);
        assert_eq!(full, 7u64.to_ne_bytes());
    }

    #[test]
    fn several_are_put_at_once() {
        let mut bytes = [0xff; 40];
        let mut frames = Frames::new(&mut bytes);
        assert!(frames.put(1));
        frames.rest()[..16].copy_from_slice(&[2; 16]);
        assert!(frames.took(2));
        frames.extend(&[3]);
        assert!(!frames.took(7));
        assert_eq!(frames.finish(), 5);
        let ends: Vec<u8> = bytes.iter().skip(7).step_by(8).copied().collect();
        assert_eq!(ends, [0, 2, 2, 0, 0xff]);
        let mut frames = Frames::up_to(2, &mut bytes);
        frames.extend(&[7, 8, 9]);
        assert_eq!((frames.room(), frames.end().len()), (0, 16));
        let words = [7, 8, 0].map(u64::to_ne_bytes);
        assert_eq!(bytes[..24], words.concat());
    }

    #[test]
    fn what_has_no_room_is_not_wanted() {
        let mut bytes = [0; 8];
        let mut frames = Frames::new(&mut bytes);
        assert!(!frames.put(1));
        assert!(!frames.put(2));
        assert_eq!(frames.finish(), 1);
        assert_eq!(bytes, 1u64.to_ne_bytes());
        assert!(!Frames::new(&mut []).put(1));
    }
}
