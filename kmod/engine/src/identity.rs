// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Whose a process is. The engine keeps what a consumer's opener is, and asks the machine to compare it with who fires: by which
//! rules is the kernel's affair.

/// Who a task is, as far as that decides who may look into it; the numbers are the kernel's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// User namespace, by a number that no other is ever given.
    pub namespace: u64,
    /// The capabilities that it has or may take there, as bits.
    pub capabilities: u64,
}
