// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Hashes of keys.
//!
//! A traced program or a clause chooses the keys. A user able to predict which keys have equal
//! hashes could fill tables with them, so that each look-up compares hundreds of long keys with
//! interrupts off. So the hashes of a consumer start from its [secret](crate::Config::secret)
//! (INV-30). A word is mixed in by a multiplication of which both halves are kept, so the effect of
//! a difference between two keys depends on the secret. (With the lower half alone, a difference in
//! the topmost bit, for example, would always have the same effect.)
//!
//! If keys have equal hashes nevertheless, variables and aggregations compare at most [`SAME`] of
//! them.

/// The maximum number of unequal keys with the same hash that a look-up compares. By chance one
/// pair of keys in 2^64 has equal hashes.
pub const SAME: u32 = 4;

/// An odd number whose bits look random: 2^64 divided by the golden ratio.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a word into a hash.
#[inline(always)]
pub fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word).wrapping_mul(u128::from(ODD));
    product as u64 ^ (product >> 64) as u64
}

/// Mixes bytes into a hash.
#[inline(always)]
pub fn mix_bytes(mut hash: u64, mut bytes: &[u8]) -> u64 {
    while let Some((first, rest)) = bytes.split_first_chunk::<8>() {
        hash = mix(hash, u64::from_ne_bytes(*first));
        bytes = rest;
    }
    if let Some((first, rest)) = bytes.split_first_chunk::<4>() {
        hash = mix(hash, u64::from(u32::from_ne_bytes(*first)));
        bytes = rest;
    }
    for byte in bytes {
        hash = mix(hash, u64::from(*byte));
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Keys that collide under one secret do not collide under others, for every difference in a
    /// single bit.
    #[test]
    fn which_keys_meet_depends_on_the_secret() {
        let hash = |secret, key: [u64; 2]| mix(mix(secret, key[0]), key[1]);
        let secrets: Vec<u64> = (1..=64u64).map(|n| mix(mix(7, n), 11)).collect();
        for bit in 0..64 {
            // The difference that the second word needs for a collision.
            let by = |secret| mix(secret, 5) ^ mix(secret, 5 ^ 1 << bit);
            let all: BTreeSet<u64> = secrets.iter().map(|secret| by(*secret)).collect();
            assert!(all.len() > secrets.len() / 2, "bit {bit}: {}", all.len());
            let meets = by(secrets[0]);
            let key = |n: u64| [5 ^ n << bit, n * meets];
            assert_eq!(hash(secrets[0], key(0)), hash(secrets[0], key(1)));
            let still = |secret: &&u64| hash(**secret, key(0)) == hash(**secret, key(1));
            assert!(secrets.iter().filter(still).count() < 4, "bit {bit}");
        }
    }

    #[test]
    fn all_bytes_count() {
        let bytes: Vec<u8> = (1..=23).collect();
        let whole = mix_bytes(9, &bytes);
        for n in 0..bytes.len() {
            let mut other = bytes.clone();
            other[n] ^= 0x80;
            assert_ne!(mix_bytes(9, &other), whole, "{n}");
            assert_ne!(mix_bytes(9, &bytes[..n]), whole, "{n}");
        }
    }
}
