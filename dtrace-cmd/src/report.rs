// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors and warnings as lines of the output, if that is JSON.
//!
//! What ends the command is also told on standard error, as ever: a line that cannot be written is
//! lost to the reader of the output alone.

use crate::args::{Args, Mode};
use crate::trace::output;
use dtrace::options::{Options, Setter};
use std::io::{self, Write};

/// Whether the command line wants JSON. A program may want it as well (`#pragma D option`), which
/// is known once it was read.
pub fn is_json(args: &Args) -> bool {
    let mut options = Options::default();
    for (_, name, value) in &args.options {
        if name == "oformat" {
            // The first wrong value ends the command.
            let _ = options.set(name, value.as_deref(), Setter::User);
        }
    }
    options.consumer.oformat.is_json()
}

/// Writes a line to the output. What is not tracing writes its results to the file of `-o`, so its
/// lines go to standard output.
pub fn write(args: &Args, line: &[u8]) {
    let _ = match args.mode {
        Mode::Exec => output(args).map(|mut out| out.write_all(line).and_then(|()| out.flush())),
        _ => Ok(io::stdout().write_all(line)),
    };
}
