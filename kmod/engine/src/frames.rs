// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The frames of a stack, put where they are wanted while it is walked.
//!
//! Who wants a stack has bytes for it, in a record, a key or scratch memory, and the machine that walks it has one program
//! counter after the other. Invariant: [`Frames::finish`] leaves no byte as it was, so that equal stacks are equal bytes and
//! nothing old is told.

/// Room for program counters, 8 bytes each.
#[derive(Debug)]
pub struct Frames<'a> {
    rest: &'a mut [u8],
    put: usize,
}

impl<'a> Frames<'a> {
    /// As many as `bytes` hold.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self {
            rest: bytes,
            put: 0,
        }
    }

    /// How many more there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.rest.len() / 8
    }

    /// Puts the next one, if there is room; returns whether another is wanted.
    #[inline]
    pub fn put(&mut self, pc: u64) -> bool {
        if self.room() != 0 {
            if let Some((slot, rest)) = core::mem::take(&mut self.rest).split_first_chunk_mut() {
                *slot = pc.to_ne_bytes();
                self.rest = rest;
                self.put = self.put.saturating_add(1);
            }
        }
        self.room() != 0
    }

    /// Fills up with zeros; returns how many were put.
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
