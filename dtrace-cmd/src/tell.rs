// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What the command says to its user, beside what it prints: on standard error.
//!
//! Nobody may be there to hear it, as when the reader of a pipe has gone or a disk is full. That ends no tracing: what is said
//! goes nowhere then.

use std::fmt::Display;
use std::io::{self, Write};

/// Says a line, with the command's name before it.
pub fn tell(what: impl Display) {
    say(format_args!("dtrace: {what}\n"));
}

/// Says text as it is.
pub fn say(text: impl Display) {
    let _ = io::stderr().write_all(text.to_string().as_bytes());
}
