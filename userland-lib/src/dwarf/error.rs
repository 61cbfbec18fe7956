// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Why nothing is known of a program.

use std::io;

/// Why nothing is known.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody has told anything.
    #[error("there is no debugging information")]
    None,
    /// The process runs no code of a file of that name.
    #[error("the process has no such module")]
    Module,
    /// The file cannot be read.
    #[error("{}", crate::handle::plain(.0))]
    Io(#[from] io::Error),
    /// It is told in a way that is not understood.
    #[error("the debugging information cannot be used: {0}")]
    Unsupported(&'static str),
    /// It refers to what is not there.
    #[error("the debugging information is damaged")]
    Damaged,
    /// It is not what it should be.
    #[error("the debugging information is damaged: {0}")]
    Dwarf(#[from] gimli::Error),
}
