// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The third name of a frame: in most formats a line table, which maps a position in a function's
//! code to a line.
//!
//! The tables come from a process's memory, so they are untrusted. An invalid one yields no line.

use dtrace_uapi::interp::NAME_MAX;

/// The format of the third name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line table of CPython from 3.11 on (`Objects/locations.md`): entries for a number of code
    /// units, each with a difference to the previous line.
    Python,
    /// The class that the function belongs to; the position is the line.
    Scope,
    /// A line table of HotSpot from JDK 20 on (`src/hotspot/share/code/compressedStream.hpp`,
    /// `share/utilities/unsigned5.hpp`): pairs of differences to the previous index in a method's
    /// bytecode and to its line. The position is the index plus one; 0 means that it is not known.
    Java,
    /// A position table of V8 (`src/codegen/source-position-table.cc`): entries for a number of
    /// bytes of code, each with a difference to the previous position in the source. `first` is the
    /// source's length. The position has flag bits ([`IN_CODE`], [`ANONYMOUS`]).
    V8,
}

/// Bit of a position of [`Format::V8`]: the rest is an offset in the code plus one, else a position
/// in the source.
const IN_CODE: u32 = 0x80_0000;
/// Bit of a position of [`Format::V8`]: the function has no name.
const ANONYMOUS: u32 = 0x40_0000;

impl Format {
    /// Returns the format with that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "java" => Some(Self::Java),
            "python" => Some(Self::Python),
            "scope" => Some(Self::Scope),
            "v8" => Some(Self::V8),
            _ => None,
        }
    }

    /// Returns the line of a position. `first` is the line that the table counts from.
    pub fn line(self, table: &[u8], first: u32, position: u32) -> Option<u32> {
        match self {
            Self::Python => python(table, first, position),
            Self::Java => java(table, position.checked_sub(1)?),
            Self::Scope => Some(position),
            Self::V8 => None,
        }
    }

    /// Whether a position says that its function has no name.
    pub fn is_anonymous(self, position: u32) -> bool {
        self == Self::V8 && position & ANONYMOUS != 0
    }

    /// Returns the source position of a position, in formats that have source positions instead of
    /// lines.
    pub fn place(self, table: &[u8], position: u32) -> Option<u32> {
        match self {
            Self::V8 if position & IN_CODE != 0 => v8(table, position & !(IN_CODE | ANONYMOUS)),
            Self::V8 => Some(position & !ANONYMOUS),
            Self::Java | Self::Python | Self::Scope => None,
        }
    }
}

/// The first byte of an entry has its highest bit set; bits 3 to 6 are its kind, bits 0 to 2 its
/// number of code units minus one. The bytes that follow have the highest bit clear.
fn python(table: &[u8], first: u32, position: u32) -> Option<u32> {
    let mut line = i64::from(first);
    let mut end = 0u32;
    let mut rest = table;
    loop {
        let (head, tail) = rest.split_first()?;
        let next = tail.iter().position(|byte| byte & 0x80 != 0);
        let (body, after) = tail.split_at(next.unwrap_or(tail.len()));
        let kind = head >> 3 & 15;
        line += match kind {
            13 | 14 => signed(body)?,
            10..=12 => i64::from(kind - 10),
            _ => 0,
        };
        end += u32::from(head & 7) + 1;
        if position < end {
            // Kind 15 is code that belongs to no line.
            return u32::try_from(line).ok().filter(|_| kind != 15);
        }
        rest = after;
    }
}

/// A pair is one byte, with the difference of the index above the three bits of the line's
/// difference, or else a byte of ones and two signed numbers. A byte of 0 ends the table. Lines
/// need not be in the order of the indices.
fn java(table: &[u8], place: u32) -> Option<u32> {
    let mut rest = table.iter().copied();
    let (mut at, mut line) = (0i64, 0i64);
    let mut best: Option<(i64, i64)> = None;
    loop {
        match rest.next() {
            // A table without an end was cut off.
            None => return None,
            Some(0) => break,
            Some(0xff) => {
                at += unsigned5(&mut rest)?;
                line += unsigned5(&mut rest)?;
            }
            Some(byte) => {
                at += i64::from(byte >> 3);
                line += i64::from(byte & 7);
            }
        }
        if at <= i64::from(place) && best.is_none_or(|(before, _)| before <= at) {
            best = Some((at, line));
        }
    }
    u32::try_from(best?.1).ok()
}

/// Reads a signed number of up to five digits to the base 64, the lowest first. Each byte is its
/// digit plus one. The number ends with a digit below 191 or with the fifth. The lowest bit of the
/// value is the sign.
fn unsigned5(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let mut value = 0u64;
    for n in 0..5 {
        let digit = u64::from(bytes.next()?.checked_sub(1)?);
        value += digit << (6 * n);
        if digit < 191 || n == 4 {
            break;
        }
    }
    let value = value as u32;
    Some(i64::from((value >> 1) as i32 ^ -((value & 1) as i32)))
}

/// The table is pairs of numbers, each a difference to the previous pair: the code offset, encoded
/// as -n - 1 if no statement begins there, and the source position plus one, shifted left by one
/// bit. Code offsets start at -1, and `position` is a code offset plus one.
fn v8(table: &[u8], position: u32) -> Option<u32> {
    let mut rest = table.iter().copied();
    let (mut code, mut source) = (0i64, 0i64);
    let mut place = None;
    while let Some(step) = zigzag(&mut rest) {
        code += if step < 0 { -(step + 1) } else { step };
        // A table that was cut off has no such entry.
        if code > i64::from(position) {
            return place;
        }
        source += zigzag(&mut rest)?;
        place = u32::try_from((source >> 1) - 1).ok();
    }
    place.filter(|_| table.len() < NAME_MAX[2])
}

/// Reads a signed number of groups of seven bits, the lowest first. Bit 7 says that another group
/// follows; the lowest bit of the value is the sign.
fn zigzag(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let mut value = 0u64;
    for n in 0..5 {
        let byte = bytes.next()?;
        value |= u64::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    None
}

/// Reads a signed number of groups of six bits, the lowest first. Bit 6 says that another group
/// follows; the lowest bit of the value is the sign.
fn signed(bytes: &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for (n, byte) in bytes.iter().enumerate().take(8) {
        value |= u64::from(byte & 0x3f) << (6 * n);
        if byte & 0x40 == 0 {
            let magnitude = (value >> 1) as i64;
            return Some(if value & 1 != 0 {
                -magnitude
            } else {
                magnitude
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of each kind.
    #[test]
    fn lines_of_python() {
        let table = [
            // 1 unit of code of the first line, 2 of the next one.
            &[0x80, 0x10][..],
            &[0x80 | 11 << 3 | 1, 0x04, 0x08],
            // 4 units 100 lines further, 1 unit 99 lines back.
            &[0x80 | 13 << 3 | 3, 0x48, 0x03],
            &[0x80 | 14 << 3, 0x47, 0x03, 0x00, 0x00, 0x00],
            // 1 unit without a line.
            &[0x80 | 15 << 3],
        ]
        .concat();
        let line = |position| Format::Python.line(&table, 3, position);
        let lines: Vec<Option<u32>> = (0..10).map(line).collect();
        let expected = [3, 4, 4, 104, 104, 104, 104, 5].map(Some);
        assert_eq!(lines[..8], expected);
        assert_eq!(lines[8..], [None, None]);
    }

    #[test]
    fn lines_of_java() {
        let line = |table: &[u8], place: u32| Format::Java.line(table, 0, place + 1);
        // Line 17 from index 0, 18 from 5, 10 from 9, 1010 from 300 on.
        let table = [0xff, 1, 1 + 34, 5 << 3 | 1, 0xff, 1 + 8, 1 + 15];
        let far = [0xff, 1 + 192 + 6, 1 + 6, 1 + 192 + 16, 1 + 28, 0];
        let table = [&table[..], &far].concat();
        let lines = [0, 4, 5, 8, 9, 299, 300, 65535].map(|place| line(&table, place));
        assert_eq!(lines, [17, 17, 18, 18, 10, 10, 1010, 1010].map(Some));
        assert_eq!(Format::Java.line(&table, 0, 0), None);
        // Without an end, empty, without pairs, with a line below 0, and with an invalid digit.
        for bad in [
            &table[..table.len() - 1],
            &[],
            &[0],
            &[0xff, 1, 2, 0],
            &[0xff, 0, 1, 0],
        ] {
            assert_eq!(line(bad, 7), None, "{bad:?}");
        }
        for byte in 0..=255 {
            line(&[byte; 40], u32::MAX - 1);
        }
    }

    #[test]
    fn places_of_v8() {
        let number = |n: i64| {
            let mut left = (n << 1 ^ n >> 63) as u64;
            let mut bytes = Vec::new();
            while left > 0x7f {
                bytes.push(left as u8 | 0x80);
                left >>= 7;
            }
            bytes.push(left as u8);
            bytes
        };
        // As V8 writes it for a function with code offsets -1 (its entry), 0, 5, 9, 13 and 17.
        let table = [1, 0x2c, 2, 0x3c, 0x0b, 0, 8, 0x1c, 9, 0x50, 8, 0x14];
        let at = |table: &[u8], code: i32| {
            Format::V8.place(table, IN_CODE | ANONYMOUS | (code + 1) as u32)
        };
        let places = [-1, 0, 4, 5, 8, 9, 12, 13, 16, 17, 1000].map(|code| at(&table, code));
        assert_eq!(
            places,
            [10, 25, 25, 25, 25, 32, 32, 52, 52, 57, 57].map(Some)
        );
        // A position further back, and one that takes several bytes.
        let steps = [(0, 30), (-5, (301 - 15) * 2), (5, (21 - 301) * 2)];
        let table: Vec<u8> = steps
            .iter()
            .flat_map(|(code, place)| [number(*code), number(*place)].concat())
            .collect();
        let places = [0, 2, 3, 7, 8, 1000].map(|code| at(&table, code));
        assert_eq!(places, [14, 14, 300, 300, 20, 20].map(Some));
        assert_eq!(at(&table[..table.len() - 1], 8), None);
        assert_eq!(at(&[], 77), None);
        assert_eq!(Format::V8.place(&[], 77), Some(77));
        let cut = [table.clone(), vec![0; NAME_MAX[2] - table.len()]].concat();
        assert_eq!(at(&cut, 3), Some(300));
        assert_eq!(at(&cut, 1000), None);
        for byte in 0..=255 {
            Format::V8.place(&[byte; 40], u32::MAX);
        }
    }

    #[test]
    fn what_makes_no_sense_has_no_line() {
        let line = |table: &[u8], position| Format::Python.line(table, 3, position);
        assert_eq!(line(&[], 0), None);
        // A number without an end, one that is too long, and a line below 0.
        assert_eq!(line(&[0xe8, 0x40], 0), None);
        assert_eq!(
            line(
                &[0xe8, 0x41, 0x41, 0x41, 0x41, 0x41, 0x41, 0x41, 0x41, 0x41],
                0
            ),
            None
        );
        assert_eq!(line(&[0xe8, 0x09], 0), None);
        assert_eq!(line(&[0x80; 4], 4), None);
        for byte in 0..=255 {
            line(&[byte; 40], u32::MAX);
        }
    }
}
