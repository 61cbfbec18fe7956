// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! What the formats of the output have in common.

use dtrace_consumer::consume::Receiver;
use std::io;

/// Writes what a consumer yields to an output.
pub trait Sink {
    /// Returns the receiver of the records.
    fn receiver(&mut self) -> &mut dyn Receiver;

    /// Writes an empty line if the format is for people.
    fn gap(&mut self) -> io::Result<()>;

    /// Writes out what is buffered.
    fn flush(&mut self) -> io::Result<()>;
}
