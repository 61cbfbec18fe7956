// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Functions that ftrace has patched. For programs that run in the VM.
//!
//! The module may have some patched while nothing is enabled; those are not told.

use crate::memory::read;

/// The module's anchor, and what it watches for its breakpoints in processes (kmod/bindings/watch.c): two functions of uprobes from the
/// first breakpoint on, three others for ten seconds after the last one.
const STANDING: [&str; 6] = [
    "dtrace_anchor",
    "set_swbp",
    "set_orig_insn",
    "uprobe_dup_mmap",
    "uprobe_mmap",
    "get_signal",
];

/// What ftrace says of each function that is patched but for those of the module, sorted. Tracefs is mounted. Else why not.
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

/// The function that a line is about.
pub fn name(line: &str) -> &str {
    line.split(' ').next().unwrap_or(line)
}
