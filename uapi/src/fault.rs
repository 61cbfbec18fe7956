// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! Faults of the DIF machine, as the `ERROR` probe reports them.

use crate::numbered::numbered;
use zerocopy_derive::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// Why a clause failed in probe context.
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
    /// Unknown.
    Unknown = 0,
    /// An address that cannot be accessed.
    BadAddr = 1,
    /// An address without the alignment that its access needs.
    BadAlign = 2,
    /// An illegal operation.
    IllOp = 3,
    /// Division by zero.
    DivZero = 4,
    /// Scratch memory is exhausted.
    NoScratch = 5,
    /// The consumer has no right to read kernel memory or state.
    Kpriv = 6,
    /// The consumer has no right to read the memory or state of this process.
    Upriv = 7,
    /// More than [`crate::dif::DIF_NTREGS`] entries on the tuple stack.
    TupOflow = 8,
    /// A stack that cannot be walked.
    BadStack = 9,
    /// A size out of range.
    BadSize = 10,
    /// An index out of range.
    BadIndex = 11,
    /// Specific to Linux: one firing would run too long with interrupts off.
    Overrun = 200,
    /// A fault of the library, not of the kernel.
    Library = 1000,
}

numbered!(Fault: u32, "fault");
