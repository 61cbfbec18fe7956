// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! FNV-1a: a hash for texts that are our own, or for which nobody gains anything from a collision.

/// The initial hash.
pub const FNV: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues a hash with `text`. The function is also evaluated at compile time, where iterators
/// are not available.
pub const fn fnv(text: &[u8], mut hash: u64) -> u64 {
    let mut rest = text;
    while let [byte, more @ ..] = rest {
        hash = (hash ^ *byte as u64).wrapping_mul(0x100_0000_01b3);
        rest = more;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_its_authors_give() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv(text.as_bytes(), FNV), hash, "{text}");
        }
        assert_eq!(fnv(b"bar", fnv(b"foo", FNV)), fnv(b"foobar", FNV));
    }
}
