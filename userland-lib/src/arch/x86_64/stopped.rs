// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A process that is stopped, and the thread that this one traces.

use nix::sys::ptrace;
use nix::unistd::Pid;

/// The instruction that stops a process; one byte.
const BREAKPOINT: u64 = 0xcc;

/// The text that stops a process in place of these 8 bytes of it.
pub fn stopping(text: i64) -> i64 {
    ((text as u64 & !0xff) | BREAKPOINT) as i64
}

/// The next instruction.
pub fn pc(pid: Pid) -> nix::Result<u64> {
    Ok(ptrace::getregs(pid)?.rip)
}

/// Makes it go on at `address`. A breakpoint has stopped it one byte behind.
pub fn set_pc(pid: Pid, address: u64) -> nix::Result<()> {
    let mut registers = ptrace::getregs(pid)?;
    registers.rip = address;
    ptrace::setregs(pid, registers)
}

/// The first argument of a function that it is at the first instruction of.
pub fn first_argument(pid: Pid) -> nix::Result<u64> {
    Ok(ptrace::getregs(pid)?.rdi)
}
