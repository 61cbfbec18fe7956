// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads the functions that a stripped file names in an embedded, compressed file.
//!
//! Some distributions remove a program's symbols but keep the names of the functions that it does
//! not export. The section `.gnu_debugdata` then contains, in XZ format, an ELF file with a symbol
//! table and no code. Its addresses are those of the program. It never contains types or lines.

use super::Function;
use lzma_rust2::XzReader;
use object::{Object as _, ObjectSection as _, ReadRef};
use std::io::Read as _;

/// Name of the section.
const SECTION: &str = ".gnu_debugdata";
/// Most unpacked bytes.
const UNPACKED_MAX: u64 = 1 << 28;
/// Most memory for unpacking, in KiB: 128 MiB, about twice the 65 MiB that the densest preset of
/// the format needs.
const MEMORY_MAX: u32 = 1 << 17;

/// Largest section, in bytes.
const PACKED_MAX: u64 = 1 << 26;

/// Returns the functions whose names are shorter than `most` bytes; none if the section is missing
/// or cannot be unpacked.
pub fn functions<'a, R: ReadRef<'a>>(file: &object::File<'a, R>, most: usize) -> Vec<Function> {
    let unpacked = file.section_by_name(SECTION).and_then(|section| {
        let packed = (section.size() <= PACKED_MAX).then(|| section.data().ok())??;
        unpack(packed, UNPACKED_MAX)
    });
    let names = unpacked
        .as_ref()
        .and_then(|bytes| object::File::parse(&**bytes).ok());
    names.map_or_else(Vec::new, |names| super::functions(names.symbols(), most))
}

fn unpack(packed: &[u8], most: u64) -> Option<Vec<u8>> {
    let mut unpacked = Vec::new();
    let reader = XzReader::new_mem_limit(packed, false, MEMORY_MAX);
    let size = reader.take(most + 1).read_to_end(&mut unpacked).ok()?;
    (size as u64 <= most).then_some(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn packed(command: &str) -> Vec<u8> {
        let done = Command::new("sh").args(["-c", command]).output();
        done.expect("a shell").stdout
    }

    #[test]
    fn what_would_take_too_much_is_left_packed() {
        let zeros = |most: u64, how: &str| {
            let packed = packed(&format!("head -c 10000 /dev/zero | xz {how}"));
            unpack(&packed, most)
        };
        assert_eq!(zeros(10_000, "-9e"), Some(vec![0; 10_000]));
        assert_eq!(zeros(9_999, "-9e"), None);
        assert_eq!(zeros(10_000, "--lzma2=dict=256MiB"), None);
    }
}
