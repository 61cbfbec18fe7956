// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Hashes of keys.
//!
//! A key is what a clause makes it, or a program that is traced: whoever could tell which keys have the same hash could make tables of them
//! in which each look compares hundreds of long keys, with interrupts off. So the hashes of a consumer begin with its
//! [secret](crate::Config::secret), and a word is mixed in by a multiplication of which both halves are kept: what two keys differ in then makes a
//! difference that depends on the secret. (Of the lower half alone the topmost bit, for one, makes always the same.)
//!
//! Where keys have the same hash all the same, variables and aggregations compare no more than [`SAME`] of them.

/// How many keys are compared that have the hash of the one that is looked for, and are others. By chance one pair in 2^64 has the same.
pub const SAME: u32 = 4;

/// An odd number whose bits look random: 2^64 by the golden ratio.
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

    /// Keys that meet under one secret do not under others, whatever simple difference makes them.
    #[test]
    fn which_keys_meet_depends_on_the_secret() {
        let hash = |secret, key: [u64; 2]| mix(mix(secret, key[0]), key[1]);
        let secrets: Vec<u64> = (1..=64u64).map(|n| mix(mix(7, n), 11)).collect();
        for bit in 0..64 {
            // What the second word would have to differ by.
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
