// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! Sizes and limits.

/// Size of a provider's name including its NUL, bytes.
pub const PROVNAMELEN: usize = 64;
/// Size of a module's name including its NUL, bytes.
pub const MODNAMELEN: usize = 64;
/// Size of a function's name including its NUL, bytes.
pub const FUNCNAMELEN: usize = 192;
/// Size of a probe's name including its NUL, bytes.
pub const NAMELEN: usize = 64;
/// Size of `provider:module:function:name` including its NUL, bytes.
pub const FULLNAMELEN: usize = PROVNAMELEN + MODNAMELEN + FUNCNAMELEN + NAMELEN + 4;
/// Size of the name of an argument's type including its NUL, bytes.
pub const ARGTYPELEN: usize = 128;
/// Size of the reason of the last failed ioctl including its NUL, bytes.
pub const REASONLEN: usize = 256;

/// Default of `strsize`, bytes.
pub const STRSIZE_DEFAULT: u64 = 256;
/// Default of `dynvarsize`, bytes.
pub const DYNVARSIZE_DEFAULT: u64 = 1 << 20;
/// Default of `bufsize` and `aggsize` in dtrace(8), bytes.
pub const BUFSIZE_DEFAULT: u64 = 4 << 20;
/// Maximum room that a principal buffer has in addition to its `bufsize` for the times of its
/// records, bytes.
pub const BUFFER_TIMES_MAX: u64 = 8 << 10;

/// Size of a principal buffer of `bufsize` bytes, and maximum size of its snapshots. `bufsize`
/// counts the EPIDs and data of records, at least 4 bytes each. Their times, 8 bytes each, come in
/// addition, up to [`BUFFER_TIMES_MAX`].
pub const fn buffer_room(bufsize: u64) -> u64 {
    let times = bufsize.saturating_mul(2);
    let times = if times < BUFFER_TIMES_MAX {
        times
    } else {
        BUFFER_TIMES_MAX
    };
    bufsize.saturating_add(times)
}

/// Default of `nspec`.
pub const NSPEC_DEFAULT: u64 = 1;
/// Default of `specsize`, bytes.
pub const SPECSIZE_DEFAULT: u64 = 32 << 10;
/// Maximum number of frames of a stack.
pub const FRAMES_MAX: u32 = 1024;
/// Default of `stackframes`.
pub const STACKFRAMES_DEFAULT: u64 = 20;
/// Default of `ustackframes`.
pub const USTACKFRAMES_DEFAULT: u64 = 100;
/// Default of `jstackframes`.
pub const JSTACKFRAMES_DEFAULT: u64 = 50;
/// Default of `jstackstrsize`, bytes.
pub const JSTACKSTRSIZE_DEFAULT: u64 = 512;
/// Default of `stackindent`.
pub const STACKINDENT_DEFAULT: u64 = 14;
/// Default of `cleanrate`, ns.
pub const CLEANRATE_DEFAULT: u64 = 9_900_990;
/// Minimum of `cleanrate`, ns.
pub const CLEANRATE_MIN: u64 = 200_000;
/// Maximum of `cleanrate`, ns.
pub const CLEANRATE_MAX: u64 = 60_000_000_000;
/// Default of `aggrate` and `statusrate`, ns.
pub const RATE_DEFAULT: u64 = 1_000_000_000;
/// Default of `switchrate`, ns. While buffers fill, dtrace(8) reads records more often.
pub const SWITCHRATE_DEFAULT: u64 = 40_000_000;
/// Maximum of `statusrate`, ns.
pub const STATUSRATE_MAX: u64 = 10_000_000_000;

/// Maximum size of a DIFO's instructions, bytes.
pub const DIFO_MAX: usize = 256 << 10;
/// Maximum size of a DOF image, bytes.
pub const DOF_MAX: usize = 8 << 20;
/// Maximum size of the file of an anonymous enabling, bytes.
pub const ANON_MAX: usize = 16 << 20;
/// Maximum size of a by-reference global or clause-local variable, bytes.
pub const STATVAR_MAX: u32 = 16 << 10;
/// Maximum number of actions of one enabling.
pub const ACTIONS_MAX: usize = 16_384;
/// Maximum number of retained enablings.
pub const RETAIN_MAX: usize = 1024;
/// Maximum time that `chill()` may spend on one CPU in [`CHILL_INTERVAL`], ns.
pub const CHILL_MAX: u64 = 500_000_000;
/// The interval to which [`CHILL_MAX`] applies, ns.
pub const CHILL_INTERVAL: u64 = 1_000_000_000;
/// Time after which a consumer is killed that keeps a CPU or the machine from running processes,
/// ns.
pub const DEADMAN_TIMEOUT: u64 = 10_000_000_000;
/// Time without an ioctl after which a consumer counts as abandoned, ns. It is then killed after
/// [`DEADMAN_TIMEOUT`].
pub const DEADMAN_USER: u64 = 30_000_000_000;
/// Interval of the deadman's checks, ns.
pub const DEADMAN_INTERVAL: u64 = 1_000_000_000;
