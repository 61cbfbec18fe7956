// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `-xdebug` and `DTRACE_DEBUG`: reports each step of the command, with its time, on standard
//! error.
//!
//! A line is `dtrace DEBUG SECONDS: what`. The seconds count from 1970, so that the lines of
//! several programs can be merged in order.

use crate::tell::say;
use dtrace::options::Options;
use std::time::{SystemTime, UNIX_EPOCH};

/// Reports a step if debugging is on.
pub fn step(options: &Options, what: impl FnOnce() -> String) {
    if options.compile.debug || std::env::var_os("DTRACE_DEBUG").is_some() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.map_or(0, |time| time.as_secs());
        say(format_args!("dtrace DEBUG {seconds}: {}\n", what()));
    }
}
