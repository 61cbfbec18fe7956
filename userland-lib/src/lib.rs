// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! libdtrace: compiles D and consumes the records of `dtrace.ko`. See ARCHITECTURE.md.

pub mod anon;
mod arch;
pub mod codegen;
pub mod compile;
pub mod consume;
#[cfg(test)]
mod corpus;
pub mod ctf;
pub mod device;
pub mod diag;
pub mod disassemble;
pub mod dof;
pub mod dwarf;
mod elf;
pub mod file;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod fnv;
pub mod format;
pub mod handle;
pub mod hir;
pub mod interp;
pub mod libraries;
pub mod list;
#[cfg(test)]
mod manual;
mod names;
mod nearest;
pub mod object;
pub mod options;
mod outline;
mod outside;
pub mod pattern;
pub mod pid;
pub mod proc;
pub mod processes;
pub mod program;
pub mod render;
pub mod sema;
pub mod shape;
pub mod source;
pub mod stability;
pub mod statement;
pub mod symbols;
pub mod syntax;
#[cfg(test)]
mod testing;
pub mod text;
pub mod types;
pub mod unwind;
pub mod usdt;
pub mod world;
