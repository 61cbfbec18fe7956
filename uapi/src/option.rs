// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

//! Options that a consumer sets in DOF's `OPTDESC` sections.
//!
//! Up to `zone` the numbers are illumos'; 200 and above are Linux' own.

use crate::numbered::numbered;
use zerocopy_derive::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// Value of an option that nobody has set.
pub const UNSET: u64 = -2i64 as u64;
/// How many options of the common numbering there are.
pub const MAX: usize = 32;
/// The first number of Linux' own.
pub const LINUX_MIN: usize = 200;
/// How many options there are.
pub const COUNT: usize = MAX + 3;

/// Value of [`Opt::Bufpolicy`]: keep the newest records.
pub const BUFPOLICY_RING: u64 = 0;
/// Value of [`Opt::Bufpolicy`]: stop at the first full buffer.
pub const BUFPOLICY_FILL: u64 = 1;
/// Value of [`Opt::Bufpolicy`]: two buffers, switched by the consumer.
pub const BUFPOLICY_SWITCH: u64 = 2;
/// Value of [`Opt::Bufresize`]: halve the size until the allocation succeeds.
pub const BUFRESIZE_AUTO: u64 = 0;
/// Value of [`Opt::Bufresize`]: fail where memory is short.
pub const BUFRESIZE_MANUAL: u64 = 1;

/// Value of [`Opt::Ustackmode`]: by tables, and by frame pointers where there are none.
pub const USTACKMODE_AUTO: u64 = 0;
/// Value of [`Opt::Ustackmode`]: by frame pointers alone.
pub const USTACKMODE_FP: u64 = 1;
/// Value of [`Opt::Ustackmode`]: by tables alone; a stack ends where there is none.
pub const USTACKMODE_TABLE: u64 = 2;
/// Value of [`Opt::Ustackmode`]: as [`USTACKMODE_AUTO`], and what no table led to has [`STACK_GUESSED`](crate::types::STACK_GUESSED) in records and
/// keys.
pub const USTACKMODE_TOLD: u64 = 3;

/// Options.
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
pub enum Opt {
    /// Size of a CPU's principal buffer, bytes.
    Bufsize = 0,
    /// What happens when it is full.
    Bufpolicy = 1,
    /// Size of the dynamic variables' space, bytes.
    Dynvarsize = 2,
    /// Size of a CPU's aggregation buffer, bytes.
    Aggsize = 3,
    /// Size of a speculation's buffer, bytes.
    Specsize = 4,
    /// Number of speculations.
    Nspec = 5,
    /// Size of a string, bytes, with its NUL.
    Strsize = 6,
    /// Time between two cleanings of dynamic variables, ns.
    Cleanrate = 7,
    /// The only CPU to trace.
    Cpu = 8,
    /// What happens when memory is short.
    Bufresize = 9,
    /// Claim the anonymous state.
    Grabanon = 10,
    /// Indent function entry and return.
    Flowindent = 11,
    /// Print only what is asked for.
    Quiet = 12,
    /// Frames of `stack()`.
    Stackframes = 13,
    /// Frames of `ustack()`.
    Ustackframes = 14,
    /// Time between two readings of aggregations, ns.
    Aggrate = 15,
    /// Time between two readings of principal buffers, ns.
    Switchrate = 16,
    /// Time between two readings of the status, ns.
    Statusrate = 17,
    /// Destructive actions are allowed.
    Destructive = 18,
    /// Blanks before a frame of a stack.
    Stackindent = 19,
    /// Print bytes as hexadecimal always.
    Rawbytes = 20,
    /// Frames of `jstack()`.
    Jstackframes = 21,
    /// Bytes for frames of interpreted code in `jstack()`.
    Jstackstrsize = 22,
    /// Sort aggregations by key.
    Aggsortkey = 23,
    /// Sort the other way round.
    Aggsortrev = 24,
    /// Which of several aggregations to sort by.
    Aggsortpos = 25,
    /// Which key to sort by.
    Aggsortkeypos = 26,
    /// Print records in the order of time over all CPUs.
    Temporal = 27,
    /// Print aggregations as histograms.
    Agghist = 28,
    /// Print quantizations packed.
    Aggpack = 29,
    /// Scale the largest bar to the full width.
    Aggzoom = 30,
    /// Trace one zone only: illumos'. It is refused here.
    Zone = 31,
    /// Memory that a clause's `alloca()`, `copyin()` and `copyinstr()` may take, bytes.
    Scratchsize = 200,
    /// How the stacks of programs are walked.
    Ustackmode = 201,
    /// Refuse programs that have a loop.
    Noloops = 202,
}

/// Every option with the name that `-x` gives it.
pub const NAMES: &[(Opt, &str)] = &[
    (Opt::Bufsize, "bufsize"),
    (Opt::Bufpolicy, "bufpolicy"),
    (Opt::Dynvarsize, "dynvarsize"),
    (Opt::Aggsize, "aggsize"),
    (Opt::Specsize, "specsize"),
    (Opt::Nspec, "nspec"),
    (Opt::Strsize, "strsize"),
    (Opt::Cleanrate, "cleanrate"),
    (Opt::Cpu, "cpu"),
    (Opt::Bufresize, "bufresize"),
    (Opt::Grabanon, "grabanon"),
    (Opt::Flowindent, "flowindent"),
    (Opt::Quiet, "quiet"),
    (Opt::Stackframes, "stackframes"),
    (Opt::Ustackframes, "ustackframes"),
    (Opt::Aggrate, "aggrate"),
    (Opt::Switchrate, "switchrate"),
    (Opt::Statusrate, "statusrate"),
    (Opt::Destructive, "destructive"),
    (Opt::Stackindent, "stackindent"),
    (Opt::Rawbytes, "rawbytes"),
    (Opt::Jstackframes, "jstackframes"),
    (Opt::Jstackstrsize, "jstackstrsize"),
    (Opt::Aggsortkey, "aggsortkey"),
    (Opt::Aggsortrev, "aggsortrev"),
    (Opt::Aggsortpos, "aggsortpos"),
    (Opt::Aggsortkeypos, "aggsortkeypos"),
    (Opt::Temporal, "temporal"),
    (Opt::Agghist, "agghist"),
    (Opt::Aggpack, "aggpack"),
    (Opt::Aggzoom, "aggzoom"),
    (Opt::Zone, "zone"),
    (Opt::Scratchsize, "scratchsize"),
    (Opt::Ustackmode, "ustackmode"),
    (Opt::Noloops, "noloops"),
];

numbered!(Opt: u32, "option", NAMES);

impl Opt {
    /// Its place among [`COUNT`] values.
    #[inline]
    pub fn place(self) -> usize {
        match self as usize {
            number @ 0..MAX => number,
            number => number.saturating_sub(LINUX_MIN).saturating_add(MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_a_place_of_its_own() {
        let mut taken = [false; COUNT];
        for (opt, name) in NAMES {
            assert!(!core::mem::replace(&mut taken[opt.place()], true), "{name}");
        }
        assert!(taken.iter().all(|taken| *taken));
    }
}
