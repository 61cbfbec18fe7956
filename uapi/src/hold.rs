// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note

//! Processes that wait for a consumer: before they go on it makes probes in them.
//!
//! A consumer names an event ([`HOLD`](crate::ioctl::HOLD)). Where that happens the process stops on its way to user mode, and the
//! consumer's file becomes readable. The consumer asks who waits ([`HELD`](crate::ioctl::HELD)), does what it has to, and lets the
//! process go ([`RESUME`](crate::ioctl::RESUME)). A process goes on by itself when [`WAIT_MS`] have passed, when it is killed, and when the
//! consumer's file is closed.

use zerocopy_derive::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// [`Hold::kind`]: the process executes the instruction at an address; that where the dynamic linker tells of changes, say.
pub const INSTRUCTION: u32 = 0;
/// [`Hold::kind`]: the process has made another one with a memory of its own, which is held.
pub const FORK: u32 = 1;
/// [`Hold::kind`]: some process has executed a program and is called by a name now. One that is traced by `ptrace()` is not held. A
/// consumer has [`NAMES_MAX`] such names at most.
pub const EXEC: u32 = 2;

/// [`Hold::kind`]: a process has mapped a file to execute it that the consumer does not [know](crate::ioctl::KNOWN). It waits for
/// [`Hold::wait`].
pub const MAP: u32 = 3;

/// What a process is [held](Held::id) by that does not wait, and need not be let go.
pub const TOLD: u64 = u64::MAX;

/// Longest time for which a process waits, ms.
pub const WAIT_MS: u32 = 1000;
/// Most [`Hold`]s of a consumer.
pub const HOLDS_MAX: usize = 16384;
/// Most names of a consumer, for [`EXEC`].
pub const NAMES_MAX: usize = 64;
/// Bytes of a process' name, with its NUL: a longer one is cut.
pub const NAME_SIZE: usize = 16;

/// An event at which a process is to wait.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Hold {
    /// [`INSTRUCTION`], [`FORK`], [`EXEC`].
    pub kind: u32,
    /// The process, as the caller numbers it; 0 for [`EXEC`], and for [`MAP`] where any process is meant.
    pub pid: i32,
    /// The address, for [`INSTRUCTION`].
    pub address: u64,
    /// The name, which ends with NUL, for [`EXEC`].
    pub name: [u8; NAME_SIZE],
    /// For [`MAP`], the longest time for which processes wait, ms, up to [`WAIT_MS`]. 0: they do not wait, and are told of.
    pub wait: u32,
    /// 0.
    pub reserved: u32,
}

/// A file, by a process that executes it.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Known {
    /// An address in its text.
    pub address: u64,
    /// The process, as the caller numbers it.
    pub pid: i32,
    /// 0.
    pub reserved: u32,
}

/// A process that waits.
#[repr(C)]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
pub struct Held {
    /// What this wait is called by; [`TOLD`]: it does not wait; 0: none waits that the consumer has not been told of.
    pub id: u64,
    /// Why: the [`Hold::kind`].
    pub kind: u32,
    /// The process, as the caller numbers it.
    pub pid: i32,
    /// For [`FORK`], the process that has made it.
    pub parent: i32,
    /// How many went on before the consumer let them, so far, or could not be held.
    pub late: u32,
}

const _: () = assert!(size_of::<Hold>() == 40);
const _: () = assert!(size_of::<Known>() == 16);
const _: () = assert!(size_of::<Held>() == 24);
