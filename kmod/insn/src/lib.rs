// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

#![no_std]
#![forbid(unsafe_code)]
// This code runs in the kernel, in the exception handler of a breakpoint, so it must not panic,
// whatever the bytes are.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable
    )
)]
//! Instructions of programs that a breakpoint has replaced: decoding, emulation, relocation.
//!
//! A probe in a process is a breakpoint over the first byte of an instruction, so the processor
//! cannot execute the instruction in place. This crate decodes it. If it has a common form, the
//! crate emulates it on a set of registers; otherwise it copies the instruction to where the
//! processor can execute it. The module does this when the breakpoint is hit. The library asks the
//! same questions about a program's text before it requests any probe.
//!
//! The crate uses `core` only: it allocates nothing, waits for nothing, and accesses memory through
//! a trait. Each processor architecture is a module.

pub mod x86_64;
