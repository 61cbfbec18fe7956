// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! DIF: verified once, prepared once, executed at every firing.
//!
//! [`verify`] decides whether a DIF object may run at all, and gives the reason if it may not.
//! [`prepare`] turns a verified object into a [`Program`](program::Program): operands decoded,
//! constants and variables resolved, common shapes fused. [`exec`] runs programs. `reference` (host
//! only) runs the raw instructions by plain decoding, and must agree with [`exec`] on everything.
//! Both use [`Env`](env::Env), which implements every effect: memory, variables, subroutines.

mod arguments;
pub(crate) mod builtins;
pub mod env;
pub mod exec;
pub mod float;
pub mod locals;
pub mod prepare;
pub mod program;
#[cfg(feature = "std")]
pub mod reference;
mod shape;
pub mod tokens;
mod variables;
pub mod verify;
mod view;
