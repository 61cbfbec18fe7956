// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors of reading debug information.

use std::io;

/// Why no information is available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file has no debug information.
    #[error("there is no debugging information")]
    None,
    /// The process has not mapped code of a module of that name.
    #[error("the process has no such module")]
    Module,
    /// The file cannot be read.
    #[error("{}", crate::text::plain(.0))]
    Io(#[from] io::Error),
    /// The information has an unsupported form.
    #[error("the debugging information cannot be used: {0}")]
    Unsupported(&'static str),
    /// The information has an invalid reference.
    #[error("the debugging information is damaged")]
    Damaged,
    /// The information is malformed.
    #[error("the debugging information is damaged: {0}")]
    Dwarf(#[from] gimli::Error),
}
