// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! `-xdebug` and `DTRACE_DEBUG`: what the command does, told on standard error with the time of each step.
//!
//! A line is `dtrace DEBUG SECONDS: what`, the seconds being those since 1970, so that lines of several programs can be
//! put in order.

use crate::tell::say;
use dtrace::options::Options;
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells of a step, if that is wanted.
pub fn step(options: &Options, what: impl FnOnce() -> String) {
    if options.compile.debug || std::env::var_os("DTRACE_DEBUG").is_some() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.map_or(0, |time| time.as_secs());
        say(format_args!("dtrace DEBUG {seconds}: {}\n", what()));
    }
}
