// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! Actions and aggregating functions, and the arithmetic of their buckets, which the engine and
//! consumers share.
//!
//! The high byte of an action's number is its class, which determines the rights that the action
//! needs and where it may be used. Numbers whose low byte is 200 or more are specific to Linux.

use crate::numbered::numbered;
use zerocopy_derive::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// Class of actions that stop, signal or start processes: destructive.
pub const CLASS_PROC_DESTRUCTIVE: u32 = 0x0200;
/// Class of actions that stop the kernel: destructive.
pub const CLASS_KERNEL_DESTRUCTIVE: u32 = 0x0500;
/// Class of speculative actions.
pub const CLASS_SPECULATIVE: u32 = 0x0600;
/// Class of aggregating functions.
pub const CLASS_AGGREGATION: u32 = 0x0700;

/// An action of a clause.
#[repr(u32)]
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    TryFromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
pub enum Action {
    /// Nothing: the empty clause.
    None = 0,
    /// Record the value of an expression.
    Difexpr = 1,
    /// End tracing with an exit status.
    Exit = 2,
    /// Print by a format; one record for each argument.
    Printf = 3,
    /// Print an aggregation.
    Printa = 4,
    /// An action that the consumer performs: see [`Libact`].
    Libact = 5,
    /// Record a block of memory.
    Tracemem = 6,
    /// Record a block of memory of computed size.
    TracememDynsize = 7,
    /// Record a user stack.
    Ustack = 0x101,
    /// Record a user stack with separate room for frames of interpreted code.
    Jstack = 0x102,
    /// Record a user address, to be printed as a symbol.
    Usym = 0x103,
    /// Record a user address, to be printed as a module.
    Umod = 0x104,
    /// Record a user address.
    Uaddr = 0x105,
    /// Stop the current process.
    Stop = 0x201,
    /// Send a signal to the current process.
    Raise = 0x202,
    /// Run a command in the consumer.
    System = 0x203,
    /// Redirect the consumer's output.
    Freopen = 0x204,
    /// Record a kernel stack.
    Stack = 0x401,
    /// Record a kernel address, to be printed as a symbol.
    Sym = 0x402,
    /// Record a kernel address, to be printed as a module.
    Mod = 0x403,
    /// Enter the kernel debugger.
    Breakpoint = 0x501,
    /// Panic.
    Panic = 0x502,
    /// Spin for a given time.
    Chill = 0x503,
    /// Record into a speculation from this action on.
    Speculate = 0x601,
    /// Commit the records of a speculation.
    Commit = 0x602,
    /// Discard a speculation.
    Discard = 0x603,
    /// Aggregate: number of firings.
    Count = 0x701,
    /// Aggregate: minimum.
    Min = 0x702,
    /// Aggregate: maximum.
    Max = 0x703,
    /// Aggregate: arithmetic mean.
    Avg = 0x704,
    /// Aggregate: sum.
    Sum = 0x705,
    /// Aggregate: standard deviation.
    Stddev = 0x706,
    /// Aggregate: distribution over powers of two.
    Quantize = 0x707,
    /// Aggregate: distribution over equal steps.
    Lquantize = 0x708,
    /// Aggregate: distribution over linear steps within orders of magnitude.
    Llquantize = 0x709,
    /// Aggregate: minimum of floating-point numbers. In this and the following actions the value
    /// and the aggregated data are binary64. The minimum and the maximum are NaN until the first
    /// value arrives.
    FloatMin = 0x7c8,
    /// Aggregate: maximum of floating-point numbers.
    FloatMax = 0x7c9,
    /// Aggregate: count and sum of floating-point numbers.
    FloatAvg = 0x7ca,
    /// Aggregate: sum of floating-point numbers.
    FloatSum = 0x7cb,
    /// Aggregate: count and mean of floating-point numbers, and the sum of the squares of their
    /// distances from the mean.
    FloatStddev = 0x7cc,
}

numbered!(Action: u32, "action");

impl Action {
    /// The action's class.
    pub const fn class(self) -> u32 {
        self as u32 & 0xff00
    }

    /// Whether only a consumer with destructive rights may use the action. `system()` and
    /// `freopen()` are destructive, too: they act in the consumer.
    pub const fn is_destructive(self) -> bool {
        matches!(
            self.class(),
            CLASS_PROC_DESTRUCTIVE | CLASS_KERNEL_DESTRUCTIVE
        )
    }

    /// Whether this is an aggregating function.
    pub const fn is_aggregation(self) -> bool {
        self.class() == CLASS_AGGREGATION
    }

    /// Whether this is `speculate()`, `commit()` or `discard()`.
    pub const fn is_speculative(self) -> bool {
        self.class() == CLASS_SPECULATIVE
    }

    /// Whether this aggregates floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Self::FloatMin | Self::FloatMax | Self::FloatAvg | Self::FloatSum | Self::FloatStddev
        )
    }

    /// Whether the action has a format and one record for each of its arguments.
    pub const fn is_printf_like(self) -> bool {
        matches!(
            self,
            Self::Printf | Self::Printa | Self::System | Self::Freopen
        )
    }
}

/// What the consumer must do for an [`Action::Libact`]: the action's `arg`.
#[repr(u32)]
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    TryFromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
pub enum Libact {
    /// Not an action.
    Bad = 0,
    /// `printa()` without a format.
    Printa = 1,
    /// `clear()`.
    Clear = 2,
    /// `normalize()`.
    Normalize = 3,
    /// `denormalize()`.
    Denormalize = 4,
    /// `trunc()`.
    Trunc = 5,
    /// `setopt()`.
    Setopt = 6,
    /// `ftruncate()`.
    Ftruncate = 7,
    /// `print()`.
    Print = 8,
}

numbered!(Libact: u32, "consumer's action");

/// Packs the `arg` of [`Action::Ustack`]: the number of frames, and the bytes for frames of
/// [interpreted code](crate::interp) in addition to the room that unused frames leave.
pub const fn ustack_arg(frames: u32, strsize: u32) -> u64 {
    (strsize as u64) << 32 | frames as u64
}

/// Unpacks the number of frames from a user stack's `arg`.
pub const fn ustack_frames(arg: u64) -> u32 {
    arg as u32
}

/// Unpacks the bytes for frames of interpreted code from a user stack's `arg`.
pub const fn ustack_strsize(arg: u64) -> u32 {
    (arg >> 32) as u32
}

/// Number of buckets of `quantize()`.
pub const QUANTIZE_NBUCKETS: usize = 127;
/// Index of the bucket of zero.
pub const QUANTIZE_ZEROBUCKET: usize = 63;

/// Index of the bucket of `quantize()` that `value` belongs to.
#[inline]
pub const fn quantize_bucket(value: i64) -> usize {
    match value {
        0 => QUANTIZE_ZEROBUCKET,
        1.. => QUANTIZE_ZEROBUCKET + 1 + value.ilog2() as usize,
        // i64::MIN shares the lowest bucket, whose value is -(1 << 62).
        _ => {
            let log = value.unsigned_abs().ilog2() as usize;
            QUANTIZE_ZEROBUCKET - 1 - if log > 62 { 62 } else { log }
        }
    }
}

/// The value that stands for `bucket` of `quantize()`: the value in the bucket that is nearest to
/// zero.
pub const fn quantize_value(bucket: usize) -> i64 {
    match bucket {
        QUANTIZE_ZEROBUCKET => 0,
        0..QUANTIZE_ZEROBUCKET => -(1 << (QUANTIZE_ZEROBUCKET - 1 - bucket)),
        QUANTIZE_NBUCKETS.. => i64::MAX,
        _ => 1 << (bucket - QUANTIZE_ZEROBUCKET - 1),
    }
}

/// The parameters of `lquantize(value, base, limit, step)`, packed in the action's `arg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lquantize {
    /// Lowest value of the first bucket.
    pub base: i32,
    /// Width of a bucket; not 0 in a valid action.
    pub step: u16,
    /// Number of buckets between the underflow and the overflow bucket.
    pub levels: u16,
}

impl Lquantize {
    /// Unpacks an action's `arg`.
    pub const fn unpack(arg: u64) -> Self {
        Self {
            base: arg as u32 as i32,
            step: (arg >> 48) as u16,
            levels: (arg >> 32) as u16,
        }
    }

    /// Packs an action's `arg`.
    pub const fn pack(self) -> u64 {
        (self.step as u64) << 48 | (self.levels as u64) << 32 | self.base as u32 as u64
    }

    /// Words of the aggregation's data: the packed `arg`, the underflow bucket, the levels, and the
    /// overflow bucket.
    pub const fn words(self) -> usize {
        self.levels as usize + 3
    }

    /// Index of the bucket of `value`: 0 for underflow, 1 to `levels`, `levels + 1` for overflow.
    pub const fn bucket(self, value: i64) -> usize {
        if value < self.base as i64 || self.step == 0 {
            return 0;
        }
        // The kernel has no 128-bit division. The difference can exceed 63 bits, but is correct as
        // an unsigned number.
        let level = (value.wrapping_sub(self.base as i64) as u64) / self.step as u64;
        if level >= self.levels as u64 {
            self.levels as usize + 1
        } else {
            level as usize + 1
        }
    }
}

/// The parameters of `llquantize(value, factor, low, high, nsteps)`, packed in the action's `arg`.
///
/// Values are classified by their distance from zero. One bucket holds distances below
/// `factor^low`. For each magnitude `m` from `low` to `high`, the range from `factor^m` to
/// `factor^(m+1)` is divided into buckets that end at multiples of `factor^(m+1) / nsteps`, or of 1
/// if that is less than 1. One more bucket holds greater distances. Negative values have a mirror
/// image of all buckets but the first. The order of the buckets is: far below zero, the magnitudes
/// from `-high` to `-low`, around zero, the magnitudes from `low` to `high`, far above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Llquantize {
    /// Ratio of two adjacent magnitudes.
    pub factor: u16,
    /// Lowest magnitude.
    pub low: u16,
    /// Highest magnitude.
    pub high: u16,
    /// Number of steps within a magnitude.
    pub nsteps: u16,
}

impl Llquantize {
    /// Unpacks an action's `arg`.
    pub const fn unpack(arg: u64) -> Self {
        Self {
            factor: (arg >> 48) as u16,
            low: (arg >> 32) as u16,
            high: (arg >> 16) as u16,
            nsteps: arg as u16,
        }
    }

    /// Packs an action's `arg`.
    pub const fn pack(self) -> u64 {
        (self.factor as u64) << 48
            | (self.low as u64) << 32
            | (self.high as u64) << 16
            | self.nsteps as u64
    }

    /// Whether the parameters describe buckets of whole steps: the factor is at least 2, `low` does
    /// not exceed `high`, the number of steps divides the factor, or is a multiple of it and
    /// divides every magnitude that is wide enough, and no bound exceeds 63 bits.
    pub const fn is_valid(self) -> bool {
        let (factor, nsteps) = (self.factor as i64, self.nsteps as i64);
        if factor < 2 || self.low > self.high || nsteps == 0 {
            return false;
        }
        if factor.checked_pow(self.high as u32 + 1).is_none() {
            return false;
        }
        if nsteps <= factor {
            return factor % nsteps == 0;
        }
        // The first magnitude that is divided into all steps. Later magnitudes are its multiples.
        let mut power = factor.saturating_pow(self.low as u32 + 1);
        while power < nsteps {
            power = power.saturating_mul(factor);
        }
        nsteps % factor == 0 && power % nsteps == 0
    }

    /// Number of magnitudes on either side of zero. The parameters must be valid.
    pub const fn magnitudes(self) -> usize {
        self.high as usize - self.low as usize + 1
    }

    /// Width of the buckets of the magnitude that ends at `end`. The parameters must be valid.
    const fn step(self, end: i64) -> i64 {
        let nsteps = self.nsteps as i64;
        let step = if nsteps == 0 { 0 } else { end / nsteps };
        if step == 0 {
            1
        } else {
            step
        }
    }

    /// Lower bound of the lowest magnitude.
    const fn start(self) -> i64 {
        (self.factor as i64).saturating_pow(self.low as u32)
    }

    /// Returns the distance of a value's bucket from the bucket around zero, and the distance of
    /// the last bucket. `magnitude` is the value's distance from zero. Takes at most 64 rounds,
    /// because a valid factor is at least 2 and its powers are below 2^63.
    const fn distances(self, magnitude: u64) -> (usize, usize) {
        let mut start = self.start();
        let mut distance = if magnitude < start as u64 { 0 } else { -1 };
        let mut base = 1i64;
        let mut order = self.low;
        while order <= self.high {
            let end = start.saturating_mul(self.factor as i64);
            let step = self.step(end);
            // If the steps are wider than the start, the first bucket begins at the start.
            let first = start / step;
            if distance < 0 && magnitude < end as u64 {
                distance = base + magnitude as i64 / step - first;
            }
            // Round up without an addition that could exceed 63 bits.
            base += end / step + (end % step != 0) as i64 - first;
            start = end;
            order += 1;
        }
        let distance = if distance < 0 { base } else { distance };
        (distance as usize, base as usize)
    }

    /// Index of the bucket of `value`, 0 for values far below zero. The parameters must be valid.
    pub const fn bucket(self, value: i64) -> usize {
        let (distance, zero) = self.distances(value.unsigned_abs());
        if value < 0 {
            zero - distance
        } else {
            zero + distance
        }
    }

    /// Index of the bucket around zero.
    pub const fn zero_bucket(self) -> usize {
        self.distances(0).1
    }

    /// The lower bounds, as distances from zero, of the buckets from the first one of the lowest
    /// magnitude to the one beyond the highest magnitude. The parameters must be valid.
    pub fn bounds(self) -> impl Iterator<Item = i64> {
        let factor = i64::from(self.factor);
        let end = self.start().saturating_mul(factor);
        let mut next = Some((self.start(), self.low, end));
        core::iter::from_fn(move || {
            let (value, order, end) = next?;
            next = if order > self.high {
                None
            } else {
                let step = self.step(end);
                let following = (value / step).saturating_add(1).saturating_mul(step);
                if following < end {
                    Some((following, order, end))
                } else {
                    Some((end, order + 1, end.saturating_mul(factor)))
                }
            };
            Some(value)
        })
    }

    /// Words of the aggregation's data: the packed `arg` and all buckets.
    pub const fn words(self) -> usize {
        2 * self.zero_bucket() + 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantize_buckets_agree_with_their_values() {
        for bucket in 0..QUANTIZE_NBUCKETS {
            assert_eq!(quantize_bucket(quantize_value(bucket)), bucket);
        }
        assert_eq!(quantize_bucket(-1), QUANTIZE_ZEROBUCKET - 1);
        assert_eq!(quantize_bucket(3), QUANTIZE_ZEROBUCKET + 2);
        assert_eq!(quantize_bucket(i64::MIN), 0);
        assert_eq!(quantize_bucket(i64::MAX), QUANTIZE_NBUCKETS - 1);
    }

    #[test]
    fn lquantize_packs_and_sorts() {
        let lq = Lquantize {
            base: -10,
            step: 5,
            levels: 4,
        };
        assert_eq!(Lquantize::unpack(lq.pack()), lq);
        assert_eq!(
            [-11, -10, -6, -5, 0, 9, 10, i64::MAX].map(|v| lq.bucket(v)),
            [0, 1, 1, 2, 3, 4, 5, 5]
        );
        assert_eq!(lq.bucket(i64::MIN), 0);
        assert_eq!(lq.words(), 7);
    }

    fn llquantize(factor: u16, low: u16, high: u16, nsteps: u16) -> Llquantize {
        Llquantize {
            factor,
            low,
            high,
            nsteps,
        }
    }

    #[test]
    fn llquantize_of_the_greatest_magnitudes_does_not_overflow() {
        for factor in 2..=100 {
            let high =
                (1..64).take_while(|&high| i64::from(factor).checked_pow(high + 1).is_some());
            for high in high {
                let llq = Llquantize {
                    factor: factor as u16,
                    low: 0,
                    high: high as u16,
                    nsteps: 1,
                };
                assert!(llq.words() > 0 && llq.bucket(i64::MIN) <= llq.bucket(i64::MAX));
            }
        }
    }

    #[test]
    fn llquantize_packs_and_sorts() {
        let llq = llquantize(10, 0, 2, 10);
        assert_eq!(Llquantize::unpack(llq.pack()), llq);
        // 0 | 1..9 | 10, 20, … 90 | 100, 200, … 900 | 1000 and more
        assert_eq!((llq.zero_bucket(), llq.words()), (28, 58));
        let distance = |v| llq.bucket(v) - 28;
        assert_eq!(
            [0, 1, 9, 10, 19, 20, 99, 100, 999].map(distance),
            [0, 1, 9, 10, 10, 11, 18, 19, 27]
        );
        assert_eq!([1000, i64::MAX].map(distance), [28, 28]);
        assert_eq!(
            [-1, -19, -20, -999, -1000, i64::MIN].map(|v| llq.bucket(v)),
            [27, 18, 17, 1, 0, 0]
        );
    }

    #[test]
    fn llquantize_bounds_begin_its_buckets() {
        for llq in [
            llquantize(10, 0, 6, 20),
            llquantize(4, 0, 1, 2),
            llquantize(4, 4, 6, 32),
            llquantize(10, 0, 3, 1),
            llquantize(4, 0, 0, 8),
            llquantize(2, 3, 61, 8),
            llquantize(10, 2, 17, 10),
            llquantize(3, 3, 5, 27),
        ] {
            assert!(llq.is_valid(), "{llq:?}");
            let zero = llq.zero_bucket();
            assert_eq!(llq.bounds().count(), zero, "{llq:?}");
            for (i, bound) in llq.bounds().enumerate() {
                assert_eq!(llq.bucket(bound), zero + i + 1, "{llq:?} {bound}");
                assert_eq!(llq.bucket(bound - 1), zero + i, "{llq:?} {bound}");
                assert_eq!(llq.bucket(-bound), zero - i - 1, "{llq:?} {bound}");
                assert_eq!(llq.bucket(1 - bound), zero - i, "{llq:?} {bound}");
            }
        }
    }

    #[test]
    fn llquantize_refuses_what_has_no_whole_steps() {
        for (factor, low, high, nsteps) in [
            (1, 0, 6, 20),
            (0, 0, 0, 0),
            (10, 4, 3, 20),
            (10, 0, 30, 20),
            (10, 0, u16::MAX, 10),
            (10, 0, 6, 0),
            (10, 0, 6, 3),
            (10, 0, 6, 6),
            (10, 0, 6, 15),
            (10, 0, 6, 25),
            (10, 0, 6, 30),
            (10, 2, 6, 80),
        ] {
            let llq = llquantize(factor, low, high, nsteps);
            assert!(!llq.is_valid(), "{llq:?}");
        }
    }
}
