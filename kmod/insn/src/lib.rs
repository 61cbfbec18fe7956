// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

#![no_std]
#![forbid(unsafe_code)]
// This runs in the kernel, in the exception handler of a breakpoint: nothing here may panic, whatever the bytes are.
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
//! What takes the place of an instruction of a program that a breakpoint has replaced.
//!
//! A probe in a process is a breakpoint over the first byte of an instruction, so somebody else has to execute that
//! instruction. This crate says what an instruction is, does it to a set of registers if it is of a common form, and
//! otherwise copies it to where the processor can execute it. The module does this when the breakpoint is hit; the library
//! asks the same questions of a program's text before it places anything.
//!
//! It is made of `core` alone: it allocates nothing, waits for nothing, and reaches memory through a trait. One module is
//! one processor.

pub mod x86_64;
