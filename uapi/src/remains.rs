// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! The former mappings of processes that have ended.
//!
//! A process may have ended before its recorded addresses are resolved to symbols. From a
//! consumer's first call of [`REMAINS`](crate::ioctl::REMAINS) on, the kernel notes the mappings of
//! processes with recorded addresses when they end or execute another program, and keeps the files
//! that they executed open.

use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Value of [`Remains::kind`]: anonymous memory, or a file that the consumer may not read.
pub const NONE: u32 = 0;
/// Value of [`Remains::kind`]: a file.
pub const FILE: u32 = 1;
/// Value of [`Remains::kind`]: the vDSO, the kernel's code for processes.
pub const VDSO: u32 = 2;

/// A mapping of a process that has ended.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Remains {
    /// In: number of the previous mapping, 0 at first; out: number of this mapping.
    pub after: u64,
    /// The process ID in records.
    pub pid: u32,
    /// For [`FILE`]: a descriptor of the file, which the kernel has opened for the caller.
    pub fd: i32,
    /// First address of the mapping.
    pub start: u64,
    /// Address behind the mapping.
    pub end: u64,
    /// Offset of the mapping in the file, bytes.
    pub offset: u64,
    /// [`NONE`], [`FILE`] or [`VDSO`].
    pub kind: u32,
    /// 1 if the mapping was executable.
    pub is_code: u32,
}

const _: () = assert!(size_of::<Remains>() == 48);
