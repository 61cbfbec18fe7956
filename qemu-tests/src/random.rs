// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Pseudo-random numbers for fuzzers, reproducible from a seed.

/// SplitMix64.
pub struct Random(u64);

impl Random {
    /// Creates the generator for this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates the generator for the part `number` of a run with this seed.
    pub fn of(seed: u64, number: u64) -> Self {
        let mut this = Self(seed.wrapping_mul(0x1000_0000_01b3) ^ number.rotate_left(32));
        this.next();
        this
    }

    /// Returns any 64-bit number.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to `n` - 1.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// Returns true with a probability of 1 in `n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Returns one of the elements.
    pub fn choose<T: Copy>(&mut self, some: &[T]) -> T {
        some[self.below(some.len())]
    }

    /// Returns `n` random bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.next() as u8).collect()
    }

    /// Returns a number such as an attacker would choose.
    pub fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(8) as u64,
            1 => self.choose(&[
                0,
                1,
                4096,
                1 << 20,
                i32::MAX as u64,
                u64::from(u32::MAX),
                i64::MAX as u64,
                u64::MAX,
                0xffff_8880_0000_0000,
                0xffff_ffff_8100_0000,
            ]),
            2 => 1 << self.below(64),
            _ => self.next() >> self.below(64),
        }
    }
}
