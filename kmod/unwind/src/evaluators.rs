// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! The parts of a file that are an interpreter's evaluators.
//!
//! A file that has evaluators lists them behind its rules:
//!
//! | bytes | contents |
//! |---|---|
//! | 8 | the number of the walker for this kind of interpreter |
//! | 4 | the number of parts of the file |
//! | 4 | the number of constants |
//! | 16 × parts | the offsets in the file at which each begins and ends |
//! | 8 × constants | what the walker has to know of the file |
//!
//! A part that begins at [`MADE`] is not in the file. It stands for all code that is in no file. If
//! it ends at [`TOLD`], the walker tells the callers of frames in such code.

/// The most parts of a file.
pub const PARTS_MAX: u32 = 16;
/// The most constants.
pub const CONSTANTS_MAX: u32 = 64;

/// The start of the part that stands for code which the program has generated: that code belongs to
/// an evaluator as well.
pub const MADE: u64 = u64::MAX;

/// The end of that part if the walker tells the callers of frames in such code, because it has
/// neither rules nor frame pointers.
pub const TOLD: u64 = 0;

/// Bytes before the parts.
const HEADER: usize = 16;

/// The evaluators of a file.
#[derive(Clone, Copy, Debug)]
pub struct Evaluators<'a> {
    walker: u64,
    parts: &'a [u8],
    constants: &'a [u8],
}

fn word(bytes: &[u8], n: usize) -> Option<u64> {
    let from = n.checked_mul(8)?;
    let word = bytes.get(from..)?.first_chunk()?;
    Some(u64::from_le_bytes(*word))
}

impl<'a> Evaluators<'a> {
    /// Interprets all of `bytes`; `None` if they are invalid.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(HEADER)?;
        let counts = word(header, 1)?;
        let (parts, constants) = (counts as u32, (counts >> 32) as u32);
        if parts > PARTS_MAX || constants > CONSTANTS_MAX {
            return None;
        }
        let (parts, rest) = rest.split_at_checked((parts as usize).checked_mul(16)?)?;
        let (constants, rest) = rest.split_at_checked((constants as usize).checked_mul(8)?)?;
        rest.is_empty().then_some(Self {
            walker: word(header, 0)?,
            parts,
            constants,
        })
    }

    /// The number of the walker.
    pub fn walker(&self) -> u64 {
        self.walker
    }

    /// Whether the instruction at an offset of the file belongs to an evaluator.
    #[inline]
    pub fn cover(&self, offset: u64) -> bool {
        let is_in = |part: &[u8]| match (word(part, 0), word(part, 1)) {
            (Some(begin), Some(end)) => (begin..end).contains(&offset),
            _ => false,
        };
        self.parts.chunks_exact(16).any(is_in)
    }

    /// Whether code that is in no file belongs to an evaluator.
    #[inline]
    pub fn have_made(&self) -> bool {
        let mut parts = self.parts.chunks_exact(16);
        parts.any(|part| word(part, 0) == Some(MADE))
    }

    /// Whether the walker tells the callers of frames in such code.
    #[inline]
    pub fn tell_callers(&self) -> bool {
        let mut parts = self.parts.chunks_exact(16);
        parts.any(|part| (word(part, 0), word(part, 1)) == (Some(MADE), Some(TOLD)))
    }

    /// The `n`th constant.
    #[inline]
    pub fn constant(&self, n: usize) -> Option<u64> {
        word(self.constants, n)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::ops::Range;
    use std::vec;
    use std::vec::Vec;

    fn bytes(walker: u64, parts: &[Range<u64>], constants: &[u64]) -> Vec<u8> {
        let counts = parts.len() as u64 | (constants.len() as u64) << 32;
        let ends = parts.iter().flat_map(|part| [part.start, part.end]);
        let words = [walker, counts].into_iter().chain(ends);
        let words = words.chain(constants.iter().copied());
        words.flat_map(u64::to_le_bytes).collect()
    }

    #[test]
    fn evaluators_are_their_bytes() {
        let good = bytes(7, &[0x1000..0x2000, 0x8000..0x8010], &[11, 12, 13]);
        let told = Evaluators::new(&good).unwrap();
        assert_eq!(told.walker(), 7);
        let covered = [0xfff, 0x1000, 0x1fff, 0x2000, 0x8000, 0x8010].map(|at| told.cover(at));
        assert_eq!(covered, [false, true, true, false, true, false]);
        assert!(!told.have_made());
        let made = bytes(7, &[0x1000..0x2000, MADE..MADE], &[]);
        let made = Evaluators::new(&made).unwrap();
        assert!(made.have_made() && made.cover(0x1000) && !made.cover(MADE));
        assert!(!made.tell_callers());
        let all_made = Range {
            start: MADE,
            end: TOLD,
        };
        let told_of = bytes(7, &[all_made], &[]);
        let told_of = Evaluators::new(&told_of).unwrap();
        assert!(told_of.have_made() && told_of.tell_callers() && !told_of.cover(MADE));
        let constants = [0, 1, 2, 3, usize::MAX].map(|n| told.constant(n));
        assert_eq!(constants, [Some(11), Some(12), Some(13), None, None]);
        assert!(Evaluators::new(&good[..good.len() - 1]).is_none());
        assert!(Evaluators::new(&[&good[..], &[0]].concat()).is_none());
        assert!(Evaluators::new(&[0xff; 200]).is_none());
        assert!(Evaluators::new(&bytes(7, &vec![0..1; 17], &[])).is_none());
        assert!(Evaluators::new(&bytes(7, &[], &[0; 65])).is_none());
    }
}
