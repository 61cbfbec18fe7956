// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

//! Sizes and limits.

/// Length of a provider's name, with its NUL.
pub const PROVNAMELEN: usize = 64;
/// Length of a module's name, with its NUL.
pub const MODNAMELEN: usize = 64;
/// Length of a function's name, with its NUL.
pub const FUNCNAMELEN: usize = 192;
/// Length of a probe's name, with its NUL.
pub const NAMELEN: usize = 64;
/// Length of `provider:module:function:name`, with its NUL.
pub const FULLNAMELEN: usize = PROVNAMELEN + MODNAMELEN + FUNCNAMELEN + NAMELEN + 4;
/// Length of the name of an argument's type, with its NUL.
pub const ARGTYPELEN: usize = 128;
/// Length of the reason of the last failed call, with its NUL.
pub const REASONLEN: usize = 256;

/// `strsize` unless set, bytes.
pub const STRSIZE_DEFAULT: u64 = 256;
/// `dynvarsize` unless set, bytes.
pub const DYNVARSIZE_DEFAULT: u64 = 1 << 20;
/// `bufsize` and `aggsize` of dtrace(8) unless set, bytes.
pub const BUFSIZE_DEFAULT: u64 = 4 << 20;
/// Most bytes that a principal buffer has beyond its `bufsize`, for the times of its records.
pub const BUFFER_TIMES_MAX: u64 = 8 << 10;

/// Room that a principal buffer of `bufsize` bytes takes, and a snapshot of it needs at most. The size is charged for the
/// records' EPIDs and data, 4 bytes a record at least; their times, 8 bytes each, come in addition as far as
/// [`BUFFER_TIMES_MAX`] goes.
pub const fn buffer_room(bufsize: u64) -> u64 {
    let times = bufsize.saturating_mul(2);
    let times = if times < BUFFER_TIMES_MAX {
        times
    } else {
        BUFFER_TIMES_MAX
    };
    bufsize.saturating_add(times)
}

/// `nspec` unless set.
pub const NSPEC_DEFAULT: u64 = 1;
/// `specsize` unless set, bytes.
pub const SPECSIZE_DEFAULT: u64 = 32 << 10;
/// Most frames of a stack.
pub const FRAMES_MAX: u32 = 1024;
/// `stackframes` unless set.
pub const STACKFRAMES_DEFAULT: u64 = 20;
/// `ustackframes` unless set.
pub const USTACKFRAMES_DEFAULT: u64 = 100;
/// `jstackframes` unless set.
pub const JSTACKFRAMES_DEFAULT: u64 = 50;
/// `jstackstrsize` unless set, bytes.
pub const JSTACKSTRSIZE_DEFAULT: u64 = 512;
/// `cleanrate` unless set, ns.
pub const CLEANRATE_DEFAULT: u64 = 9_900_990;
/// Least `cleanrate`, ns.
pub const CLEANRATE_MIN: u64 = 200_000;
/// Greatest `cleanrate`, ns.
pub const CLEANRATE_MAX: u64 = 60_000_000_000;
/// `aggrate`, `statusrate` and `switchrate` unless set, ns.
pub const RATE_DEFAULT: u64 = 1_000_000_000;
/// Greatest `statusrate`, ns.
pub const STATUSRATE_MAX: u64 = 10_000_000_000;

/// Greatest size of a DIFO's text, bytes.
pub const DIFO_MAX: usize = 256 << 10;
/// Greatest size of a DOF image, bytes.
pub const DOF_MAX: usize = 8 << 20;
/// Greatest size of the file of an anonymous enabling, bytes.
pub const ANON_MAX: usize = 16 << 20;
/// Greatest size of a by-reference global or clause-local variable, bytes.
pub const STATVAR_MAX: u32 = 16 << 10;
/// Most actions of one enabling.
pub const ACTIONS_MAX: usize = 16_384;
/// Most retained enablings.
pub const RETAIN_MAX: usize = 1024;
/// Most `chill()` on one CPU in [`CHILL_INTERVAL`], ns.
pub const CHILL_MAX: u64 = 500_000_000;
/// The interval that [`CHILL_MAX`] speaks of, ns.
pub const CHILL_INTERVAL: u64 = 1_000_000_000;
/// A consumer that the kernel could not serve for this long is killed, ns.
pub const DEADMAN_TIMEOUT: u64 = 10_000_000_000;
/// A consumer for which nobody has made a control call for this long is no longer served, ns.
pub const DEADMAN_USER: u64 = 30_000_000_000;
/// How often the deadman looks, ns.
pub const DEADMAN_INTERVAL: u64 = 1_000_000_000;
