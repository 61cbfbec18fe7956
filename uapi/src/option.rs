// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! Options that a consumer sets in `OPTDESC` sections of DOF.
//!
//! The numbers up to `zone` are those of illumos; 200 and above are specific to Linux. Who reads an
//! option and what holds without it is in one row for each, which both sides ask.

use crate::limits;
use crate::numbered::numbered;
use zerocopy_derive::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// Value of an option that is not set.
pub const UNSET: u64 = -2i64 as u64;
/// Number of options that all systems share.
pub const MAX: usize = 32;
/// The first number that is specific to Linux.
pub const LINUX_MIN: usize = 200;
/// Number of all options.
pub const COUNT: usize = MAX + 3;

/// Value of [`Opt::Bufpolicy`]: keep the newest records.
pub const BUFPOLICY_RING: u64 = 0;
/// Value of [`Opt::Bufpolicy`]: stop at the first full buffer.
pub const BUFPOLICY_FILL: u64 = 1;
/// Value of [`Opt::Bufpolicy`]: two buffers, which each snapshot switches.
pub const BUFPOLICY_SWITCH: u64 = 2;
/// Value of [`Opt::Bufresize`]: halve the size until the allocation succeeds.
pub const BUFRESIZE_AUTO: u64 = 0;
/// Value of [`Opt::Bufresize`]: fail if there is not enough memory.
pub const BUFRESIZE_MANUAL: u64 = 1;

/// Value of [`Opt::Ustackmode`]: walk by unwind tables, and by frame pointers where a file has no
/// table.
pub const USTACKMODE_AUTO: u64 = 0;
/// Value of [`Opt::Ustackmode`]: walk by frame pointers only.
pub const USTACKMODE_FP: u64 = 1;
/// Value of [`Opt::Ustackmode`]: walk by unwind tables only; a stack ends where a file has no
/// table.
pub const USTACKMODE_TABLE: u64 = 2;
/// Value of [`Opt::Ustackmode`]: as [`USTACKMODE_AUTO`], but addresses that were not found by a
/// table are marked with [`STACK_GUESSED`](crate::types::STACK_GUESSED) in records and keys.
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
    /// What happens when a principal buffer is full: `BUFPOLICY_*`.
    Bufpolicy = 1,
    /// Size of the space for dynamic variables, bytes.
    Dynvarsize = 2,
    /// Size of a CPU's aggregation buffer, bytes.
    Aggsize = 3,
    /// Size of a speculation's buffer, bytes.
    Specsize = 4,
    /// Number of speculations.
    Nspec = 5,
    /// Size of a string including its NUL, bytes.
    Strsize = 6,
    /// Time between two cleanings of dynamic variables, ns.
    Cleanrate = 7,
    /// The only CPU to trace.
    Cpu = 8,
    /// What happens if there is not enough memory for buffers: `BUFRESIZE_*`.
    Bufresize = 9,
    /// Claim the anonymous enabling.
    Grabanon = 10,
    /// Indent output by function entry and return.
    Flowindent = 11,
    /// Print only what the program prints explicitly.
    Quiet = 12,
    /// Frames of `stack()`.
    Stackframes = 13,
    /// Frames of `ustack()`.
    Ustackframes = 14,
    /// Time between two reads of the aggregations, ns.
    Aggrate = 15,
    /// Time between two reads of the principal buffers, ns.
    Switchrate = 16,
    /// Time between two reads of the status, ns.
    Statusrate = 17,
    /// Permit destructive actions.
    Destructive = 18,
    /// Spaces before a frame of a printed stack.
    Stackindent = 19,
    /// Always print bytes in hexadecimal.
    Rawbytes = 20,
    /// Frames of `jstack()`.
    Jstackframes = 21,
    /// Bytes for frames of interpreted code in a `jstack()`.
    Jstackstrsize = 22,
    /// Sort aggregations by key.
    Aggsortkey = 23,
    /// Reverse the sort order.
    Aggsortrev = 24,
    /// Index of the aggregation to sort by, if several are printed together.
    Aggsortpos = 25,
    /// Index of the key to sort by.
    Aggsortkeypos = 26,
    /// Print the records of all CPUs in the order of time.
    Temporal = 27,
    /// Print aggregations as histograms.
    Agghist = 28,
    /// Print quantizations in packed form.
    Aggpack = 29,
    /// Scale the largest bar to the full width.
    Aggzoom = 30,
    /// Trace one zone only. An option of illumos, refused here.
    Zone = 31,
    /// Memory that `alloca()`, `copyin()` and `copyinstr()` of a clause may take together, bytes.
    Scratchsize = 200,
    /// How user stacks are walked: `USTACKMODE_*`.
    Ustackmode = 201,
    /// Refuse programs that contain a loop.
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

/// Who reads an option.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// The kernel, and perhaps the consumer too.
    Kernel,
    /// The consumer alone, but it tells the kernel, which keeps the value.
    Told,
    /// The consumer alone.
    Consumer,
    /// Nobody: it is refused.
    Nobody,
}

impl Opt {
    /// Its row: who reads it, and what holds if it is not set.
    const fn row(self) -> (Reader, u64) {
        use Reader::{Consumer, Kernel, Nobody, Told};
        match self {
            Self::Bufsize | Self::Aggsize => (Kernel, limits::BUFSIZE_DEFAULT),
            Self::Bufpolicy => (Kernel, BUFPOLICY_SWITCH),
            Self::Bufresize => (Kernel, BUFRESIZE_AUTO),
            Self::Dynvarsize => (Kernel, limits::DYNVARSIZE_DEFAULT),
            Self::Specsize => (Kernel, limits::SPECSIZE_DEFAULT),
            Self::Nspec => (Kernel, limits::NSPEC_DEFAULT),
            Self::Strsize => (Kernel, limits::STRSIZE_DEFAULT),
            Self::Cleanrate => (Kernel, limits::CLEANRATE_DEFAULT),
            Self::Stackframes => (Kernel, limits::STACKFRAMES_DEFAULT),
            Self::Ustackframes => (Kernel, limits::USTACKFRAMES_DEFAULT),
            Self::Jstackframes => (Kernel, limits::JSTACKFRAMES_DEFAULT),
            Self::Jstackstrsize => (Kernel, limits::JSTACKSTRSIZE_DEFAULT),
            Self::Ustackmode => (Kernel, USTACKMODE_AUTO),
            Self::Cpu | Self::Grabanon | Self::Destructive | Self::Scratchsize | Self::Noloops => {
                (Kernel, UNSET)
            }
            Self::Aggrate | Self::Statusrate => (Told, limits::RATE_DEFAULT),
            Self::Switchrate => (Told, limits::SWITCHRATE_DEFAULT),
            Self::Temporal => (Told, UNSET),
            Self::Stackindent => (Consumer, limits::STACKINDENT_DEFAULT),
            Self::Flowindent
            | Self::Quiet
            | Self::Rawbytes
            | Self::Aggsortkey
            | Self::Aggsortrev
            | Self::Aggsortpos
            | Self::Aggsortkeypos
            | Self::Agghist
            | Self::Aggpack
            | Self::Aggzoom => (Consumer, UNSET),
            Self::Zone => (Nobody, UNSET),
        }
    }

    /// The value that holds if none is set; [`UNSET`] if there is none, as for a switch.
    pub const fn usual(self) -> u64 {
        self.row().1
    }

    /// Whether the kernel reads it.
    pub const fn is_kernels(self) -> bool {
        matches!(self.row().0, Reader::Kernel)
    }

    /// Whether a consumer tells the kernel of it.
    pub const fn is_told(self) -> bool {
        matches!(self.row().0, Reader::Kernel | Reader::Told)
    }

    /// Whether anybody reads it. The others are refused.
    pub const fn is_read(self) -> bool {
        !matches!(self.row().0, Reader::Nobody)
    }

    /// The index of the option in an array of [`COUNT`] values.
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
