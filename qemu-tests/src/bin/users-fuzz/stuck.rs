// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Where everybody is while root waits.

use std::fs;

/// Frames of a stack that are told.
const FRAMES: usize = 8;
/// The programs that matter.
const PROGRAMS: [&str; 5] = ["users-fuzz", "ioctls", "modprobe", "rmmod", "kmod"];

/// A line for each process that is in the kernel, or runs: its number, name, state, user and stack, innermost first.
pub fn stacks() -> Vec<String> {
    let mut lines = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let read = |name: &str| fs::read_to_string(process.path().join(name)).unwrap_or_default();
        let program = read("comm");
        let name = process.file_name().to_string_lossy().into_owned();
        let is_number = name.bytes().all(|c| c.is_ascii_digit());
        if !is_number || !PROGRAMS.contains(&program.trim()) {
            continue;
        }
        let status = read("status");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next())
                .unwrap_or_default()
        };
        let stack = read("stack");
        let frames = stack.lines().take(FRAMES).map(|line| {
            let function = line.split_whitespace().nth(1).unwrap_or_default();
            function.split('+').next().unwrap_or_default()
        });
        let frames: Vec<&str> = frames.collect();
        if !matches!(
            frames.as_slice(),
            ["hrtimer_nanosleep" | "do_nanosleep", ..]
        ) {
            lines.push(format!(
                "{name} {} {} user {}: {}",
                program.trim(),
                field("State:"),
                field("Uid:"),
                frames.join(" < ")
            ));
        }
    }
    lines
}
