// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only OR MIT

#![no_std]
#![forbid(unsafe_code)]
// This code runs in probe context, on tables that may come from anyone, so it must not panic,
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
//! Stack walks of programs that have no frame pointers.
//!
//! For each instruction of a function, compilers describe where the caller's frame is
//! (`.eh_frame`), in a compact language that is slow to interpret. The library compiles the
//! description once per file into a [`table`] of sorted offsets. In this table a probe finds the
//! rule of an instruction by two look-ups. A step of a [`walk`] applies the rule.
//!
//! Tables are not trusted (INV-12). Each table is checked as a whole when it is taken over, so that
//! look-ups stay within it. A wrong rule makes a wrong stack and nothing else. This crate uses
//! `core` only, and accesses memory through a trait.

pub mod cache;
pub mod evaluators;
pub mod rule;
pub mod table;
pub mod walk;
mod x86_64;

use x86_64 as arch;

pub use cache::Cache;
pub use evaluators::Evaluators;
pub use rule::{Base, Cfa, FramePointer, Plain, Rule};
pub use table::{Bad, Table};
pub use walk::{Ended, Frame, Memory, Place, Walk, Word};
