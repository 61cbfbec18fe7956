// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! Unwind tables, by which the kernel walks user stacks.
//!
//! If a stack leads into a file that has no table, the kernel notes the file, provided that a
//! consumer serves such files ([`WANTED`](crate::ioctl::WANTED)). That consumer gets a descriptor
//! of the file, compiles its table, and passes it to the kernel ([`TABLE`](crate::ioctl::TABLE)),
//! which uses it for all consumers. The layout of the table is defined by `kmod/unwind`.

use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Maximum size of a [`Table`], bytes.
pub const TABLE_MAX: u32 = 64 << 20;

/// The unwind table of a file.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Table {
    /// A descriptor of the file.
    pub fd: i32,
    /// Size of the table, bytes. 0: no table can be made of the file; the kernel does not request
    /// it again.
    pub size: u32,
    /// Address of the table.
    pub bytes: u64,
    /// Time of the last change of the file (`st_ctim`), taken before the file was read, ns.
    pub changed: u64,
}

const _: () = assert!(size_of::<Table>() == 24);
