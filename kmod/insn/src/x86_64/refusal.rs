// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

//! Instructions that can have no probe: those that expose their own address, those that trap by
//! design, and those that no program may execute.
//!
//! System calls expose their address. A copy of `syscall` in a slot would leave the address after
//! that copy in rcx, and would show it to every observer of a thread in the kernel (ptrace,
//! seccomp, syscall user dispatch, a core dump). The slot would be in use while the call sleeps,
//! and an interrupted call would restart there. The program must not see any of that. A probe at
//! the instruction before or after the call reports the same event.

use super::insn::{Encoding, Insn, Map};
use core::fmt;

/// Why an instruction can have no probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is a breakpoint itself.
    Breakpoint,
    /// It raises an exception by design.
    Exception,
    /// No program may execute it: I/O ports, interrupts, system registers.
    Privileged,
    /// It enters the kernel, a hypervisor or an enclave, which keep its address.
    Gate,
    /// It changes the code segment.
    Far,
    /// It loads the stack segment, which delays a breakpoint at the next instruction.
    StackSegment,
    /// It begins a transaction, which a probe would end.
    Transaction,
    /// It is a branch with an operand-size prefix, about which processors disagree, or with a
    /// 16-bit address.
    Branch,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the instruction ")?;
        f.write_str(match self {
            Self::Breakpoint => "is a breakpoint",
            Self::Exception => "raises an exception",
            Self::Privileged => "is privileged",
            Self::Gate => "is a system call",
            Self::Far => "changes the code segment",
            Self::StackSegment => "loads the stack segment",
            Self::Transaction => "begins a transaction",
            Self::Branch => "is a branch of 16 bits",
        })
    }
}

/// Why an instruction can have no probe, regardless of whether it could be emulated or relocated.
pub(super) fn refusal(insn: &Insn) -> Option<Refusal> {
    if insn.encoding != Encoding::Legacy {
        return None;
    }
    match insn.map {
        Map::Primary => primary(insn),
        Map::Secondary => secondary(insn),
        _ => None,
    }
}

fn primary(insn: &Insn) -> Option<Refusal> {
    match (insn.opcode, insn.middle()) {
        (0xcc, _) => Some(Refusal::Breakpoint),
        (0xce | 0xf1, _) => Some(Refusal::Exception),
        (0xcd, _) => Some(Refusal::Gate),
        (0xf4 | 0xfa | 0xfb | 0x6c..=0x6f, _) => Some(Refusal::Privileged),
        (0xe4..=0xe7 | 0xec..=0xef, _) => Some(Refusal::Privileged),
        (0x9a | 0xca | 0xcb | 0xcf | 0xea, _) | (0xff, 3 | 5) => Some(Refusal::Far),
        (0x17, _) | (0x8e, 2) => Some(Refusal::StackSegment),
        (0xc7, 7) => Some(Refusal::Transaction),
        _ => None,
    }
}

fn secondary(insn: &Insn) -> Option<Refusal> {
    match (insn.opcode, insn.modrm.unwrap_or(0)) {
        (0x05 | 0x34, _) => Some(Refusal::Gate),
        // Calls of hypervisors (`vmcall`, `vmmcall`), enclaves (`enclu`), and `uiret`.
        (0x01, 0xc1 | 0xd7 | 0xd9 | 0xec) => Some(Refusal::Gate),
        (0x0b | 0xb9, _) => Some(Refusal::Exception),
        (0x01, 0xc0..=0xcf | 0xd1 | 0xd8 | 0xda..=0xdf | 0xf8) => Some(Refusal::Privileged),
        (0x06..=0x09 | 0x20..=0x23 | 0x30 | 0x32 | 0x35 | 0x37 | 0xaa, _) => {
            Some(Refusal::Privileged)
        }
        _ => None,
    }
}
