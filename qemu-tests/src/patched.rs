// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Functions that ftrace has patched. For programs that run in the VM.
//!
//! The module has some functions patched while nothing is enabled, for its breakpoints in processes
//! (kmod/helpers/watch.c). Those that stay patched are not listed here; the others are unpatched a
//! while after the last breakpoint has gone, and [`settled`] waits for that.

use crate::memory::read;
use std::time::{Duration, Instant};

/// Functions that stay patched: the module's anchor from its load on, and two functions of uprobes
/// from the first breakpoint on.
const STANDING: [&str; 3] = ["dtrace_anchor", "set_swbp", "set_orig_insn"];

/// Functions that stay patched until ten seconds after the last breakpoint has gone; the module
/// checks once a second.
const RESTING: [&str; 3] = ["uprobe_dup_mmap", "uprobe_mmap", "get_signal"];

/// How long [`settled`] waits for those.
const RESTS: Duration = Duration::from_secs(30);

/// Returns ftrace's line for each patched function that does not stay patched, sorted. Tracefs must
/// be mounted.
pub fn functions() -> Result<Vec<String>, String> {
    let text = read("/sys/kernel/tracing/enabled_functions")?;
    let mut all: Vec<String> = text
        .lines()
        .filter(|line| !STANDING.contains(&name(line)))
        .map(String::from)
        .collect();
    all.sort();
    Ok(all)
}

/// Returns the same once the breakpoints of earlier consumers have gone. Functions that are still
/// patched when the wait ends are in the result.
pub fn settled() -> Result<Vec<String>, String> {
    let begin = Instant::now();
    loop {
        let all = functions()?;
        let is_busy = all.iter().any(|line| RESTING.contains(&name(line)));
        if !is_busy || begin.elapsed() > RESTS {
            return Ok(all);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Checks that the same functions are patched as in `before`, and no others.
pub fn check(before: &[String]) -> Result<(), String> {
    let now = settled()?;
    match now == before {
        true => Ok(()),
        false => Err(format!(
            "functions that are patched: {before:?}, then {now:?}"
        )),
    }
}

/// The function that a line is about.
pub fn name(line: &str) -> &str {
    line.split(' ').next().unwrap_or(line)
}
