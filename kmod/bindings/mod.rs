// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! The kernel's bindings, and those that bindgen generates from `bindings.h`.

#![allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    non_camel_case_types,
    non_upper_case_globals,
    dead_code,
    // Structures of size zero that the kernel's headers embed.
    improper_ctypes
)]
#![allow(clippy::all, clippy::undocumented_unsafe_blocks)]

pub use generated::*;
pub use kernel::bindings::*;

mod generated {
    include!(env!("DTRACE_BINDINGS"));
}
