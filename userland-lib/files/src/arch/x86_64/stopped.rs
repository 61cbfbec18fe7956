// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A stopped process whose thread this process traces with ptrace.

use nix::sys::ptrace;
use nix::unistd::Pid;

/// Whether the registers of processes of this machine are known.
pub const IS_KNOWN: bool = true;

/// The breakpoint instruction `int3`; one byte.
const BREAKPOINT: u64 = 0xcc;

/// Returns these 8 bytes of text with a breakpoint in place of the first byte.
pub fn stopping(text: i64) -> i64 {
    ((text as u64 & !0xff) | BREAKPOINT) as i64
}

/// Returns the address of the next instruction.
pub fn pc(pid: Pid) -> nix::Result<u64> {
    Ok(ptrace::getregs(pid)?.rip)
}

/// Sets the address of the next instruction. A breakpoint stops a process one byte behind its
/// address.
pub fn set_pc(pid: Pid, address: u64) -> nix::Result<()> {
    let mut registers = ptrace::getregs(pid)?;
    registers.rip = address;
    ptrace::setregs(pid, registers)
}

/// Returns the first argument of a function. The process must be at its first instruction.
pub fn first_argument(pid: Pid) -> nix::Result<u64> {
    Ok(ptrace::getregs(pid)?.rdi)
}
