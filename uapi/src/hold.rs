// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT

//! Processes that wait until a consumer has made probes in them.
//!
//! A consumer names an event ([`HOLD`](crate::ioctl::HOLD)). When the event happens, the process
//! stops on its way to user mode, and the consumer's file becomes readable. The consumer asks which
//! process waits ([`HELD`](crate::ioctl::HELD)), does its work, and resumes the process
//! ([`RESUME`](crate::ioctl::RESUME)). A process resumes by itself when [`WAIT_MS`] have passed,
//! when it is killed, or when the consumer's file is closed.

use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Value of [`Hold::kind`]: the process executes the instruction at an address, for example where
/// the dynamic linker reports changes.
pub const INSTRUCTION: u32 = 0;
/// Value of [`Hold::kind`]: the process has created a process with a memory of its own. The new
/// process is held.
pub const FORK: u32 = 1;
/// Value of [`Hold::kind`]: a process has executed a program and has a given name since then. A
/// process under `ptrace()` is not held. A consumer has at most [`NAMES_MAX`] such names.
pub const EXEC: u32 = 2;

/// Value of [`Hold::kind`]: a process has mapped a file for execution that the consumer has not
/// declared as [`KNOWN`](crate::ioctl::KNOWN), or has registered probes. It waits for
/// [`Hold::wait`].
pub const MAP: u32 = 3;

/// Value of [`Held::id`] for a process that does not wait and need not be resumed.
pub const TOLD: u64 = u64::MAX;

/// Maximum time for which a process waits, ms.
pub const WAIT_MS: u32 = 1000;
/// Maximum number of [`Hold`]s of a consumer.
pub const HOLDS_MAX: usize = 16384;
/// Maximum number of names of a consumer, for [`EXEC`].
pub const NAMES_MAX: usize = 64;
/// Size of a process's name including its NUL, bytes. Longer names are truncated.
pub const NAME_SIZE: usize = 16;

/// An event at which a process has to wait.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Hold {
    /// [`INSTRUCTION`], [`FORK`], [`EXEC`] or [`MAP`].
    pub kind: u32,
    /// The process ID in the caller's pid namespace; 0 for [`EXEC`], and for [`MAP`] to hold any
    /// process.
    pub pid: i32,
    /// For [`INSTRUCTION`]: the address.
    pub address: u64,
    /// For [`EXEC`]: the name, which ends with NUL.
    pub name: [u8; NAME_SIZE],
    /// For [`MAP`]: the maximum time for which processes wait, ms, up to [`WAIT_MS`]. 0: processes
    /// do not wait, but the consumer is notified.
    pub wait: u32,
    /// Zero.
    pub reserved: u32,
}

/// A file, named by a process that executes it.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Known {
    /// An address in the text of the file.
    pub address: u64,
    /// The process ID in the caller's pid namespace.
    pub pid: i32,
    /// Zero.
    pub reserved: u32,
}

/// A process that waits.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Held {
    /// ID of this wait; [`TOLD`]: the process does not wait; 0: the consumer has been notified of
    /// all processes.
    pub id: u64,
    /// Why the process waits: the [`Hold::kind`].
    pub kind: u32,
    /// The process ID in the caller's pid namespace.
    pub pid: i32,
    /// For [`FORK`]: ID of the process that has created it.
    pub parent: i32,
    /// Number of processes so far that resumed before the consumer let them, or that could not be
    /// held.
    pub late: u32,
}

const _: () = assert!(size_of::<Hold>() == 40);
const _: () = assert!(size_of::<Known>() == 16);
const _: () = assert!(size_of::<Held>() == 24);
