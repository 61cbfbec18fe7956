// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A stopped process of a machine whose registers are not known.

use nix::errno::Errno;
use nix::unistd::Pid;

/// Whether the registers of processes of this machine are known. The functions below fail.
pub const IS_KNOWN: bool = false;

/// Returns these 8 bytes of text, without a breakpoint.
pub fn stopping(text: i64) -> i64 {
    text
}

/// Fails.
pub fn pc(_: Pid) -> nix::Result<u64> {
    Err(Errno::ENOSYS)
}

/// Fails.
pub fn set_pc(_: Pid, _: u64) -> nix::Result<()> {
    Err(Errno::ENOSYS)
}

/// Fails.
pub fn first_argument(_: Pid) -> nix::Result<u64> {
    Err(Errno::ENOSYS)
}
