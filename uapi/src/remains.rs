// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

//! What processes that have ended had mapped.
//!
//! A process whose addresses were recorded may be gone when somebody asks what they mean. From a consumer's first call of
//! [`REMAINS`](crate::ioctl::REMAINS) on the kernel notes the mappings of such processes as they end, or execute another program, and
//! keeps the files that they executed.

use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// [`Remains::kind`]: memory, or a file that the consumer cannot have.
pub const NONE: u32 = 0;
/// [`Remains::kind`]: a file.
pub const FILE: u32 = 1;
/// [`Remains::kind`]: the kernel's own code for processes.
pub const VDSO: u32 = 2;

/// A mapping of a process that has ended.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Remains {
    /// Which was asked for before, 0 at first; the kernel puts this one's number here.
    pub after: u64,
    /// The number of the process in records.
    pub pid: u32,
    /// A descriptor of the file, which the kernel has opened for the caller, if it is of a [`FILE`].
    pub fd: i32,
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// Where in the file it begins, in bytes.
    pub offset: u64,
    /// Of what it is.
    pub kind: u32,
    /// 1: it could be executed.
    pub is_code: u32,
}

const _: () = assert!(size_of::<Remains>() == 48);
