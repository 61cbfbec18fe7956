// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where processes are while root waits.

use std::fs;

/// The number of reported stack frames.
const FRAMES: usize = 8;
/// The programs that are reported.
const PROGRAMS: [&str; 5] = ["users-fuzz", "ioctls", "modprobe", "rmmod", "kmod"];

/// Returns a line for each of these processes that is not sleeping in its loop: its ID, name,
/// state, user and stack, innermost frame first.
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
            plain(function.split('+').next().unwrap_or_default())
        });
        let frames: Vec<String> = frames.collect();
        let first = frames.first().map_or("", String::as_str);
        if !matches!(first, "hrtimer_nanosleep" | "do_nanosleep") {
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

/// Shortens a mangled Rust name (RFC 2603) to its last two words; returns any other name unchanged.
fn plain(name: &str) -> String {
    let Some(mut rest) = name.strip_prefix("_R") else {
        return name.to_owned();
    };
    let mut words = Vec::new();
    while let Some(c) = rest.chars().next() {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = rest.len() - after.len();
        let length: Option<usize> = rest.get(..digits).and_then(|number| number.parse().ok());
        rest = match (c, length) {
            // A back reference, or a disambiguator.
            ('B' | 's', _) => rest.split_once('_').map_or("", |(_, rest)| rest),
            (_, Some(length)) => {
                let after = after.strip_prefix('_').unwrap_or(after);
                words.push(after.get(..length).unwrap_or(after));
                after.get(length..).unwrap_or_default()
            }
            _ => rest.get(1..).unwrap_or_default(),
        };
    }
    let last = words.len().saturating_sub(2);
    words[last..].join("::")
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_are_short() {
        let names = [
            ("schedule", "schedule"),
            (
                "_RNvMNtNtNtCs8dRAouvkN1S_6dtrace9framework8consumer5ownedNtB2_13OwnedConsumer6enable",
                "OwnedConsumer::enable",
            ),
            (
                "_RNvMNtCs8dRAouvkN1S_6dtrace9frameworkNtB2_9Framework8withdraw",
                "Framework::withdraw",
            ),
        ];
        for (name, short) in names {
            assert_eq!(plain(name), short);
        }
    }
}
