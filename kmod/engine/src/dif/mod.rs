// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! DIF: verified once, prepared once, executed at every firing.
//!
//! [`verify`] decides whether a DIF object may run at all and says why not. [`prepare`] turns a verified object into a
//! [`Program`](prepare::Program): operands decoded, constants and variables resolved, common shapes fused.
//! [`exec`] runs programs; `reference` (host only) runs the raw instructions by plain decoding, and must agree with it
//! on everything. Both stand on [`Env`](exec::Env), which owns every effect: memory, variables, subroutines.

pub mod env;
pub mod exec;
pub mod prepare;
#[cfg(feature = "std")]
pub mod reference;
pub mod verify;
