// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

//! Faults of the DIF machine, as the `ERROR` probe reports them.

use crate::numbered::numbered;
use zerocopy_derive::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// What went wrong in probe context.
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
pub enum Fault {
    /// Not known.
    Unknown = 0,
    /// An address that cannot be accessed.
    BadAddr = 1,
    /// An address that is not aligned as its access needs.
    BadAlign = 2,
    /// An illegal operation.
    IllOp = 3,
    /// Division by zero.
    DivZero = 4,
    /// Scratch memory is used up.
    NoScratch = 5,
    /// The consumer may not read kernel memory or state.
    Kpriv = 6,
    /// The consumer may not read this process' memory or state.
    Upriv = 7,
    /// More than [`crate::dif::DIF_NTREGS`] entries on the tuple stack.
    TupOflow = 8,
    /// A stack that cannot be walked.
    BadStack = 9,
    /// A size out of range.
    BadSize = 10,
    /// An index out of range.
    BadIndex = 11,
    /// One firing would take too long with interrupts off: Linux' own.
    Overrun = 200,
    /// A fault of the library, not of the kernel.
    Library = 1000,
}

numbered!(Fault: u32, "fault");
