// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Messages for the user, which go to standard error.
//!
//! A message that cannot be written, because the reader of a pipe has closed it or a disk is full,
//! is discarded. It must not end the tracing.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line that begins with the command's name.
pub fn tell(what: impl Display) {
    say(format_args!("dtrace: {what}\n"));
}

/// Writes text as it is.
pub fn say(text: impl Display) {
    let _ = io::stderr().write_all(text.to_string().as_bytes());
}
