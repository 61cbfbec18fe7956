// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! `strstr()`, `index()`, `rindex()`, `substr()` and `strtok()`.
//!
//! A search compares at every position and is quadratic in the worst case, so it takes the compared
//! bytes from a budget.

use crate::budget::{Budget, Spent};

/// Units of each position that is tried, in addition to the bytes that are compared there.
const POSITION: usize = 8;

/// Returns the length of the common prefix.
fn common(a: &[u8], b: &[u8]) -> usize {
    const WORD: usize = 8;
    let words = a.chunks_exact(WORD).zip(b.chunks_exact(WORD));
    let word = |bytes: &[u8]| bytes.first_chunk().map(|word| u64::from_ne_bytes(*word));
    let same = words.take_while(|(a, b)| word(a) == word(b)).count();
    let at = same.saturating_mul(WORD);
    let rest = |bytes| <[u8]>::get(bytes, at..).unwrap_or(&[]);
    let rest = rest(a).iter().zip(rest(b)).take_while(|(a, b)| a == b);
    at.saturating_add(rest.count())
}

/// Returns the first of `places` at which `needle` occurs in `hay`.
fn search(
    hay: &[u8],
    needle: &[u8],
    mut places: impl Iterator<Item = usize>,
    budget: &mut Budget,
) -> Result<Option<usize>, Spent> {
    for at in &mut places {
        let tail = hay.get(at..).unwrap_or(&[]);
        let same = common(tail, needle);
        budget.spend(same.saturating_add(POSITION))?;
        if same == needle.len() {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Returns the offset of the first occurrence of `needle`; 0 if it is empty.
pub fn strstr(hay: &[u8], needle: &[u8], budget: &mut Budget) -> Result<Option<usize>, Spent> {
    search(hay, needle, 0..=hay.len(), budget)
}

/// Returns the offset of the first occurrence at or after `pos`, or -1. A negative position counts
/// as 0. An empty needle is found at the position itself, or at the end if that is smaller.
pub fn index(hay: &[u8], needle: &[u8], pos: i64, budget: &mut Budget) -> Result<i64, Spent> {
    let from = usize::try_from(pos).unwrap_or(0).min(hay.len());
    let found = search(hay, needle, from..=hay.len(), budget)?;
    Ok(found.map_or(-1, |at| at as i64))
}

/// Returns the offset of the last occurrence at or before `pos`, or -1. Without a position, returns
/// the last of all. At a negative position only the empty needle is found, at 0.
pub fn rindex(
    hay: &[u8],
    needle: &[u8],
    pos: Option<i64>,
    budget: &mut Budget,
) -> Result<i64, Spent> {
    let to = match pos {
        Some(pos) if pos < 0 => return Ok(if needle.is_empty() { 0 } else { -1 }),
        Some(pos) => usize::try_from(pos).unwrap_or(usize::MAX).min(hay.len()),
        None => hay.len(),
    };
    let found = search(hay, needle, (0..=to).rev(), budget)?;
    Ok(found.map_or(-1, |at| at as i64))
}

/// Returns the part of `s` from `start` on, of `len` bytes or to the end. A negative start counts
/// from the end; a negative length omits that many bytes at the end. A length counts from the start
/// even if the start is before the beginning; with such a start a negative length gives an empty
/// result.
pub fn substr(s: &[u8], start: i64, len: Option<i64>) -> &[u8] {
    let size = s.len() as i64;
    let first = if start < 0 {
        start.saturating_add(size)
    } else {
        start
    };
    let end = match len {
        Some(len) if len < 0 && first < 0 => 0,
        Some(len) if len < 0 => size.saturating_add(len),
        Some(len) => first.saturating_add(len).min(size),
        None => size,
    };
    let (first, end) = (first.max(0), end.max(0));
    s.get(first as usize..end as usize).unwrap_or(&[])
}

/// Returns the bounds in `s` of the first token at or after `from`: the longest run without a byte
/// of `delims`.
pub fn token(s: &[u8], delims: &[u8], from: usize) -> Option<(usize, usize)> {
    let delims = ByteSet::new(delims);
    let tail = s.get(from..)?;
    let skipped = tail.iter().position(|&b| !delims.contains(b))?;
    let start = from.checked_add(skipped)?;
    let run = s.get(start..)?;
    let end = run
        .iter()
        .position(|&b| delims.contains(b))
        .map_or(s.len(), |n| start.saturating_add(n));
    Some((start, end))
}

/// A set of bytes, one bit each.
struct ByteSet([u64; 4]);

impl ByteSet {
    fn new(bytes: &[u8]) -> Self {
        let mut set = [0u64; 4];
        for &byte in bytes {
            if let Some(word) = set.get_mut(usize::from(byte >> 6)) {
                *word |= 1 << (byte & 63);
            }
        }
        Self(set)
    }

    fn contains(&self, byte: u8) -> bool {
        let word = self.0.get(usize::from(byte >> 6)).copied().unwrap_or(0);
        word >> (byte & 63) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strstr(hay: &[u8], needle: &[u8]) -> Option<usize> {
        super::strstr(hay, needle, &mut Budget::full()).unwrap()
    }

    fn index(hay: &[u8], needle: &[u8], pos: i64) -> i64 {
        super::index(hay, needle, pos, &mut Budget::full()).unwrap()
    }

    fn rindex(hay: &[u8], needle: &[u8], pos: Option<i64>) -> i64 {
        super::rindex(hay, needle, pos, &mut Budget::full()).unwrap()
    }

    #[test]
    #[cfg_attr(miri, ignore = "as many comparisons take too long there")]
    fn searches_that_compare_too_much_are_given_up() {
        let (hay, mut needle) = (std::vec![b'a'; 60_000], std::vec![b'a'; 30_000]);
        assert_eq!(strstr(&hay, &needle), Some(0));
        needle.push(b'b');
        assert_eq!(
            super::strstr(&hay, &needle, &mut Budget::full()),
            Err(Spent)
        );
        assert_eq!(
            super::index(&hay, &needle, 9, &mut Budget::full()),
            Err(Spent)
        );
        needle.reverse();
        assert_eq!(strstr(&hay, &needle), None);
        needle[0] = b'a';
        needle[29_000] = b'b';
        assert_eq!(
            super::rindex(&hay, &needle, None, &mut Budget::full()),
            Err(Spent)
        );
    }

    #[test]
    fn strstr_finds_the_first() {
        assert_eq!(strstr(b"abcabc", b"ca"), Some(2));
        assert_eq!(strstr(b"abc", b""), Some(0));
        assert_eq!(strstr(b"abc", b"abcd"), None);
        assert_eq!(strstr(b"", b""), Some(0));
    }

    #[test]
    fn index_and_rindex_clamp_their_positions() {
        let s = b"canal";
        assert_eq!(
            [index(s, b"a", 0), index(s, b"a", 2), index(s, b"a", 4)],
            [1, 3, -1]
        );
        assert_eq!(
            [index(s, b"a", -7), index(s, b"", 3), index(s, b"", 99)],
            [1, 3, 5]
        );
        assert_eq!(index(s, b"", i64::MIN), 0);
        assert_eq!(
            [
                rindex(s, b"a", None),
                rindex(s, b"a", Some(2)),
                rindex(s, b"a", Some(0))
            ],
            [3, 1, -1]
        );
        assert_eq!(
            [
                rindex(s, b"a", Some(-1)),
                rindex(s, b"", Some(-1)),
                rindex(s, b"", None)
            ],
            [-1, 0, 5]
        );
        assert_eq!(rindex(s, b"l", Some(i64::MAX)), 4);
    }

    #[test]
    fn substr_counts_from_either_end() {
        let s = b"abcdef";
        assert_eq!(substr(s, 2, None), b"cdef");
        assert_eq!(substr(s, 2, Some(2)), b"cd");
        assert_eq!(substr(s, -3, Some(2)), b"de");
        assert_eq!(substr(s, 1, Some(-2)), b"bcd");
        assert_eq!(substr(s, -8, Some(4)), b"ab");
        assert_eq!(substr(s, -6, Some(-2)), b"abcd");
        assert_eq!(substr(s, -7, Some(-2)), b"");
        assert_eq!(substr(s, -8, Some(-2)), b"");
        assert_eq!(substr(s, 6, None), b"");
        assert_eq!(substr(s, 7, None), b"");
        assert_eq!(substr(s, 4, Some(-4)), b"");
        assert_eq!(substr(s, i64::MIN, Some(i64::MIN)), b"");
        assert_eq!(substr(s, i64::MAX, Some(i64::MAX)), b"");
    }

    #[test]
    fn token_skips_and_stops_at_delimiters() {
        let s = b"::ab:c";
        assert_eq!(token(s, b":", 0), Some((2, 4)));
        assert_eq!(token(s, b":", 4), Some((5, 6)));
        assert_eq!(token(s, b":", 6), None);
        assert_eq!(token(s, b":", 60), None);
        assert_eq!(token(b"ab", b"", 0), Some((0, 2)));
        assert_eq!(token(b"a\xffb", b"\xff", 0), Some((0, 1)));
    }
}
