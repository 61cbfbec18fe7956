// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Names before a backquote: the modules that define types and symbols, and D's own.

/// The module that is the kernel itself.
pub const VMLINUX: &str = "vmlinux";

/// The names of D's own scope and of the C declarations of D programs, before a backquote.
pub const OWN_SCOPES: [&str; 2] = ["D", "C"];

/// Whether the name before a backquote, or its absence, refers to the declarations of D and its
/// programs.
pub fn is_own_scope(module: Option<&str>) -> bool {
    module.is_none_or(|module| OWN_SCOPES.contains(&module))
}
