// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The addresses at which a process has the segments of a file.
//!
//! A file assigns addresses to its segments. A segment may have more memory than bytes in the file;
//! the rest is zero (`.bss`). The loader moves all segments by the same distance, which follows
//! from the mapping of the code. Each code segment is one mapping. Data segments are not: the part
//! that becomes read-only after relocation is a separate mapping, and two segments may share a page
//! of the file. Therefore an address of data is looked up as an address of the file rather than as
//! a file offset.

use super::image::FILE_MAX;
use super::maps::Mapping;
use dtrace_files::elf::is_code;
use dtrace_files::outside;
use object::{Object as _, ObjectSegment as _, ReadCache};
use std::fs::File;
use std::ops::Range;

/// Bytes of a page; no supported machine has smaller ones.
const PAGE: u64 = 4096;
/// Maximum number of segments of a file.
const SEGMENTS_MAX: usize = 64;

/// The segments of a file in one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    /// The distance from an address of the file to the address in the process.
    moved: u64,
    /// The address ranges of the segments, as the file assigns them.
    wanted: Vec<Range<u64>>,
}

impl Segments {
    /// Returns the segments of `file`, of which `code` is mapped.
    pub fn of(file: &File, code: &Mapping) -> Option<Self> {
        outside::check(file, FILE_MAX).ok()?;
        let cache = ReadCache::new(file);
        let elf = object::File::parse(&cache).ok()?;
        let mut moved = None;
        let mut wanted = Vec::new();
        for segment in elf.segments().take(SEGMENTS_MAX) {
            let (offset, size) = segment.file_range();
            let (start, end) = (
                segment.address(),
                segment.address().checked_add(segment.size())?,
            );
            wanted.push(start..end);
            // Whole pages are mapped: the mapping may begin before the segment.
            let is_mapped =
                code.offset <= offset.checked_add(size)? && offset - offset % PAGE <= code.offset;
            if is_code(segment.flags()) && is_mapped {
                let at = start.wrapping_add(code.offset).wrapping_sub(offset);
                moved = Some(code.start.wrapping_sub(at));
            }
        }
        Some(Self {
            moved: moved?,
            wanted,
        })
    }

    /// Returns the file's address for `address` of the process, if a segment contains it.
    pub fn of_address(&self, address: u64) -> Option<u64> {
        let there = address.wrapping_sub(self.moved);
        let mut wanted = self.wanted.iter();
        wanted.any(|range| range.contains(&there)).then_some(there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::mappings_of;

    static ZERO: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    static DATA: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(7);

    fn own() -> Segments {
        let all = mappings_of(std::process::id()).expect("mappings");
        let code = all.iter().find(|mapping| mapping.is_code).expect("code");
        let file = File::open("/proc/self/exe").expect("this program");
        Segments::of(&file, code).expect("its segments")
    }

    #[test]
    fn variables_are_where_the_file_wants_them() {
        let segments = own();
        for variable in [&ZERO, &DATA] {
            let address = std::ptr::from_ref(variable) as usize as u64;
            let there = segments.of_address(address).expect("an address");
            assert_eq!(there.wrapping_add(segments.moved), address);
        }
        let local = 0;
        let stack = std::ptr::from_ref(&local) as usize as u64;
        assert_eq!(segments.of_address(stack), None);
    }

    #[test]
    fn what_is_no_program_has_no_segments() {
        let all = mappings_of(std::process::id()).expect("mappings");
        let code = all.iter().find(|mapping| mapping.is_code).expect("code");
        let text = File::open("/etc/passwd").expect("a file");
        assert_eq!(Segments::of(&text, code), None);
        let file = File::open("/proc/self/exe").expect("this program");
        let elsewhere = Mapping {
            offset: u64::MAX,
            ..code.clone()
        };
        assert_eq!(Segments::of(&file, &elsewhere), None);
    }
}
