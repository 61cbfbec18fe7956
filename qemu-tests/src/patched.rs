// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Functions that ftrace has patched. For programs that run in the VM.
//!
//! The module has some patched while nothing is enabled, for its breakpoints in processes (kmod/bindings/watch.c). Those that stay so are not
//! told; the others rest a while after the last breakpoint has gone, and are waited for ([`settled`]).

use crate::memory::read;
use std::time::{Duration, Instant};

/// What stays patched: the module's anchor from its load on, and two functions of uprobes from the first breakpoint on.
const STANDING: [&str; 3] = ["dtrace_anchor", "set_swbp", "set_orig_insn"];

/// What is patched until ten seconds after the last breakpoint has gone, which is looked for once a second.
const RESTING: [&str; 3] = ["uprobe_dup_mmap", "uprobe_mmap", "get_signal"];

/// How long those are waited for.
const RESTS: Duration = Duration::from_secs(30);

/// What ftrace says of each function that is patched and does not stay so, sorted. Tracefs is mounted. Else why not.
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

/// The same, once the breakpoints of earlier consumers have gone; what does not rest in time is told.
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

/// Whether those are patched that were before, and no others.
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
