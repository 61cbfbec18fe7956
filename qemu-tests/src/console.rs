// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What the kernel says on its console, and what of it is a failure.
//!
//! The guest's init brackets its work with lines of its own (`dtrace-vm: …`), so that a warning is blamed on what
//! ran at that time, and what the kernel says while it boots is nobody's fault.

/// The prefix of init's own lines.
const MARK: &str = "dtrace-vm: ";

/// Words by which the kernel says that something is wrong with it.
const TROUBLE: &[&str] = &[
    "WARNING:",
    "BUG:",
    "Oops:",
    "kernel BUG at",
    "Kernel panic",
    "general protection fault",
    "unable to handle",
    "detected stall",
    "self-detected stall",
    "blocked for more than",
    "soft lockup",
    "hard LOCKUP",
    "possible circular locking",
    "possible recursive locking",
    "inconsistent lock state",
    "suspicious RCU usage",
    "sleeping function called",
    "scheduling while atomic",
    "refcount_t:",
    "KASAN:",
    "UBSAN:",
    "ODEBUG:",
    "rust_kernel: panicked",
    "stack-protector:",
    "[ FTRACE BUG",
];

/// The first line of trouble after init began, if there is one.
pub fn trouble(log: &str) -> Option<&str> {
    begun(log)?.lines().find(|line| is_trouble(line))
}

/// The first line of trouble that was printed while the case `name` ran.
pub fn trouble_in_case<'a>(log: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!("{MARK}case {name} begin");
    let end = format!("{MARK}case {name} end");
    log.lines()
        .skip_while(|line| !line.contains(&begin))
        .take_while(|line| !line.contains(&end))
        .find(|line| is_trouble(line))
}

/// Whether the kernel is past saving.
pub fn dead(log: &str) -> bool {
    log.contains("Kernel panic")
}

/// The last `n` lines.
pub fn tail(log: &str, n: usize) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}

/// The lines around the first trouble, for the report.
pub fn excerpt(log: &str) -> String {
    let Some(rest) = begun(log) else {
        return tail(log, 40);
    };
    let lines: Vec<&str> = rest.lines().collect();
    match lines.iter().position(|line| is_trouble(line)) {
        Some(at) => lines[at.saturating_sub(5)..lines.len().min(at + 60)].join("\n"),
        None => tail(rest, 40),
    }
}

fn begun(log: &str) -> Option<&str> {
    log.find("dtrace-vm: begin").map(|at| &log[at..])
}

fn is_trouble(line: &str) -> bool {
    !line.contains(MARK) && TROUBLE.iter().any(|word| line.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "[ 1.0] WARNING: at boot\n[ 2.0] dtrace-vm: begin\n[ 3.0] dtrace-vm: case a begin\n\
        [ 3.1] fine\n[ 3.2] dtrace-vm: case a end\n[ 4.0] dtrace-vm: case b begin\n[ 4.1] WARNING: CPU: 0 PID: 1\n\
        [ 4.2] dtrace-vm: case b end\n";

    #[test]
    fn trouble_of_the_boot_does_not_count() {
        assert_eq!(trouble("[ 1.0] WARNING: at boot\n"), None);
        assert_eq!(trouble(LOG), Some("[ 4.1] WARNING: CPU: 0 PID: 1"));
    }

    #[test]
    fn trouble_is_blamed_on_its_case() {
        assert_eq!(trouble_in_case(LOG, "a"), None);
        assert_eq!(
            trouble_in_case(LOG, "b"),
            Some("[ 4.1] WARNING: CPU: 0 PID: 1")
        );
    }

    #[test]
    fn marks_are_not_trouble() {
        assert_eq!(
            trouble("dtrace-vm: begin\ndtrace-vm: case BUG: begin\n"),
            None
        );
    }

    #[test]
    fn tail_of_a_short_log_is_the_log() {
        assert_eq!(tail("a\nb", 5), "a\nb");
        assert_eq!(tail("a\nb\nc", 2), "b\nc");
    }
}
