// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! libdtrace: compiles D and consumes the records of `dtrace.ko`. See ARCHITECTURE.md.
//!
//! A [`handle::Handle`] is one consumer, from the text of its programs to the values that they
//! record; [`render::Text`] prints these. The floors below are crates of their own. The modules of
//! them that programs need have their names here too.

#![forbid(unsafe_code)]

pub mod anon;
pub mod handle;
pub mod list;

#[cfg(feature = "fixture")]
pub use dtrace_compiler::fixture;
pub use dtrace_compiler::{
    codegen, compile, diag, disassemble, dof, format, hir, libraries, object, options, program,
    sema, shape, source, stability, statement, syntax, world,
};
pub use dtrace_consumer::{aggregate, consume, device, symbolizer, value};
pub use dtrace_files::{ctf, dwarf, file, text};
pub use dtrace_machine::{interp, proc, symbols, unwind};
pub use dtrace_objects::{pattern, pid, processes, usdt};
pub use dtrace_render as render;
pub use dtrace_types as types;
