// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The layout of data in a record and in an aggregation's entry.
//!
//! A record begins with its header; each datum follows at the next multiple of its alignment. An
//! entry of an aggregation begins, at a multiple of 8, with the aggregation's id; key and data
//! follow.
// Arithmetic on sizes up to `SIZE_MAX`.
#![allow(clippy::arithmetic_side_effects)]

use dtrace_uapi::ioctl::RecHdr;

/// A layout to which data are added, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    size: usize,
    align: usize,
}

/// Maximum size of one record or entry, in bytes.
pub const SIZE_MAX: usize = 64 << 20;

/// Returns the alignment of data of `size` bytes: the greatest power of two up to 8 that divides
/// it.
pub const fn alignment(size: usize) -> usize {
    if size == 0 {
        1
    } else {
        let align = size & size.wrapping_neg();
        if align > 8 {
            8
        } else {
            align
        }
    }
}

impl Layout {
    /// An empty record.
    pub const RECORD: Self = Self {
        size: size_of::<RecHdr>(),
        align: align_of::<RecHdr>(),
    };

    /// An entry without key and data.
    pub const ENTRY: Self = Self {
        size: size_of::<u32>(),
        align: 8,
    };

    /// Adds `size` bytes; returns their offset. `None` if the whole becomes too big.
    pub fn add(&mut self, size: usize) -> Option<usize> {
        let align = alignment(size);
        let offset = self.size.next_multiple_of(align);
        let end = offset.checked_add(size).filter(|end| *end <= SIZE_MAX)?;
        self.size = end;
        self.align = self.align.max(align);
        Some(offset)
    }

    /// Returns the size so far, in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the alignment of the whole.
    pub fn align(&self) -> usize {
        self.align
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_aligned_by_their_size() {
        assert_eq!(
            [0, 1, 2, 4, 8, 12, 256, 24].map(alignment),
            [1, 1, 2, 4, 8, 4, 8, 8]
        );
        let mut l = Layout::RECORD;
        assert_eq!(
            [1, 4, 8, 0, 3].map(|size| l.add(size).unwrap()),
            [12, 16, 24, 32, 32]
        );
        assert_eq!((l.size(), l.align()), (35, 8));
        let mut l = Layout::ENTRY;
        assert_eq!([4, 8, 256].map(|size| l.add(size).unwrap()), [4, 8, 16]);
        assert_eq!(l.add(usize::MAX), None);
    }
}
