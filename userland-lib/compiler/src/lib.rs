// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compiles D.
//!
//! ```text
//! source → syntax → sema → hir (the typed program) → codegen → program → dof
//! ```
//!
//! The compiler opens no device and reads no process. It accesses them through the traits of
//! [`world`].

#![forbid(unsafe_code)]

pub mod codegen;
pub mod compile;
#[cfg(test)]
mod corpus;
pub mod diag;
pub mod disassemble;
pub mod dof;
#[cfg(test)]
mod engine;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod format;
pub mod hir;
pub mod libraries;
#[cfg(test)]
mod manual;
pub mod object;
pub mod options;
mod outline;
pub mod program;
pub mod sema;
pub mod shape;
pub mod source;
pub mod stability;
pub mod statement;
pub mod syntax;
pub mod world;
