// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

//! Tables by which user stacks are walked.
//!
//! Of a file that a stack leads into and that has no table the kernel keeps note, as long as some consumer asks for such files
//! ([`WANTED`](crate::ioctl::WANTED)). That gets a descriptor to read it by, makes the table, and gives it to the kernel
//! ([`TABLE`](crate::ioctl::TABLE)), where it serves everybody. The table's own layout is `kmod/unwind`'s.

use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Most bytes of a [`Table`].
pub const TABLE_MAX: u32 = 64 << 20;

/// The table of a file.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Table {
    /// A descriptor of the file.
    pub fd: i32,
    /// How many bytes; 0: nothing is told of the file, which is not asked for again.
    pub size: u32,
    /// Their address.
    pub bytes: u64,
    /// When the file had been changed last before it was read (`st_ctim`), in nanoseconds.
    pub changed: u64,
}

const _: () = assert!(size_of::<Table>() == 24);
