// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

#![no_std]
#![forbid(unsafe_code)]
// This runs in probe context on tables that anybody may have made: nothing here may panic, whatever the bytes are.
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
//! Stacks of programs that have no frame pointers.
//!
//! A compiler tells for each instruction of a function where its caller's frame is, in a language that is made to be small and not
//! to be read in a hurry (`.eh_frame`). The library compiles that once a file into a [`table`] of sorted offsets, and a probe
//! finds the rule of an instruction there by two look-ups. What is done by a rule is a [`walk`]'s step.
//!
//! Tables are not trusted. They are checked once as a whole, when they are taken over, so that a look-up cannot leave them; a rule that
//! is wrong gives a wrong stack and nothing else. This crate is made of `core` alone, and reaches memory through a trait.

pub mod cache;
pub mod evaluators;
pub mod rule;
pub mod table;
pub mod walk;

pub use cache::Cache;
pub use evaluators::Evaluators;
pub use rule::{Base, Cfa, FramePointer, Plain, Rule};
pub use table::{Bad, Table};
pub use walk::{Ended, Frame, Memory, Place, Walk, Word};
