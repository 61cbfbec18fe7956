// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The kernel's messages on the console, and which of them are failures.
//!
//! The guest's init brackets its work with lines of its own (`dtrace-vm: …`), so that a warning is
//! attributed to the case that ran at that time. What the kernel prints while it boots is ignored.

/// The prefix of init's own lines.
const MARK: &str = "dtrace-vm: ";

/// Words with which the kernel reports that something is wrong with it.
const TROUBLE: &[&str] = &[
    "WARNING:",
    "BUG:",
    "Oops:",
    "kernel BUG at",
    "Kernel panic",
    "general protection fault",
    "unable to handle",
    "double fault:",
    "detected stall",
    "self-detected stall",
    "blocked for more than",
    "soft lockup",
    "hard LOCKUP",
    // lockdep
    "possible circular locking",
    "possible recursive locking",
    "possible irq lock inversion",
    "inconsistent lock state",
    "unsafe lock order detected",
    "bad unlock balance",
    "held lock freed",
    "lock held when returning to user space",
    "Invalid wait context",
    "trying to register non-static key",
    "lockdep is turned off",
    "lockdep was turned off",
    // RCU, the scheduler
    "suspicious RCU usage",
    "sleeping function called",
    "scheduling while atomic",
    // memory
    "refcount_t:",
    "KASAN:",
    "UBSAN:",
    "ODEBUG:",
    "new suspected memory leak",
    "list_add corruption",
    "list_del corruption",
    "stack-protector:",
    // the slab allocator's: `BUG kmalloc-64 (Not tainted): Poison overwritten`
    "Poison overwritten",
    "Redzone overwritten",
    "Padding overwritten",
    "Objects remaining",
    "rust_kernel: panicked",
    "[ FTRACE BUG",
];

/// The first line of trouble after init began, if any.
pub fn trouble(log: &str) -> Option<&str> {
    begun(log)?.lines().find(|line| is_trouble(line))
}

/// The first line of trouble that was printed while the case `name` ran, or between the end of the
/// case before it and its begin: deferred work of the module's loading or of a case is blamed on
/// the next case.
pub fn trouble_in_case<'a>(log: &'a str, name: &str) -> Option<&'a str> {
    first_in_case(log, name, is_trouble)
}

/// The line with which the kernel reports that a program died of a breakpoint, if one did in the
/// case. Such a breakpoint may be [stale](stale_breakpoint): for a program, the kernel does not
/// print what memory contains at that address.
pub fn trapped_in_case<'a>(log: &'a str, name: &str) -> Option<&'a str> {
    first_in_case(log, name, |line| line.contains("] trap int3 ip:"))
}

fn first_in_case<'a>(log: &'a str, name: &str, is_it: impl Fn(&str) -> bool) -> Option<&'a str> {
    let end = format!("{MARK}case {name} end");
    let mut first = None;
    for line in begun(log)?.lines() {
        if line.contains(&end) {
            return first;
        }
        if line.contains(MARK) && line.trim_end().ends_with(" end") {
            first = None;
        } else if is_it(line) {
            first = first.or(Some(line));
        }
    }
    first
}

/// Whether the kernel has panicked.
pub fn dead(log: &str) -> bool {
    log.contains("Kernel panic")
}

/// Whether the kernel died of a stale breakpoint: one whose byte memory does not contain.
///
/// The kernel changes its code under breakpoints, and removes them only after every processor has
/// been interrupted. A processor that traps later has executed old code. QEMU's emulation does
/// that, rarely and under load; the likely cause is a translation that one of its threads makes
/// between another's lookup of where to write and its write.
pub fn stale_breakpoint(log: &str) -> bool {
    let Some(at) = log.find("Oops: int3") else {
        return false;
    };
    let code = log[at..].lines().find_map(|line| line.split_once("Code: "));
    let trapped = code.and_then(|(_, bytes)| bytes.split_once(" <"));
    trapped.is_some_and(|(before, _)| !before.ends_with("cc"))
}

/// The last `n` lines of the log.
pub fn tail(log: &str, n: usize) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}

/// The lines around the first line of trouble, for the report; the last lines if there is none.
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

/// Whether this line of the log reports that something is wrong with the kernel.
pub fn is_trouble(line: &str) -> bool {
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
    fn trouble_between_cases_is_blamed_on_the_next() {
        let log = "dtrace-vm: begin\n[ 1.0] BUG: KASAN: a\ndtrace-vm: module loaded\ndtrace-vm: case a begin\n\
            dtrace-vm: case a end\n[ 2.0] ODEBUG: b\ndtrace-vm: case b begin\ndtrace-vm: case b end\n\
            dtrace-vm: case c begin\ndtrace-vm: case c end\n";
        assert_eq!(trouble_in_case(log, "a"), Some("[ 1.0] BUG: KASAN: a"));
        assert_eq!(trouble_in_case(log, "b"), Some("[ 2.0] ODEBUG: b"));
        assert_eq!(trouble_in_case(log, "c"), None);
    }

    /// The first line of each kind of report of the debug kernel's checkers, in the kernel's words.
    const REPORTS: [&str; 18] = [
        "BUG: KASAN: slab-use-after-free in dtrace_engine_free+0x10/0x20 [dtrace]",
        "WARNING: possible circular locking dependency detected",
        "WARNING: possible recursive locking detected",
        "WARNING: possible irq lock inversion dependency detected",
        "WARNING: SOFTIRQ-safe -> SOFTIRQ-unsafe lock order detected",
        "WARNING: inconsistent lock state",
        "WARNING: bad unlock balance detected!",
        "WARNING: held lock freed!",
        "[ BUG: Invalid wait context ]",
        "INFO: trying to register non-static key.",
        "WARNING: suspicious RCU usage",
        "BUG: sleeping function called from invalid context at kernel/locking/mutex.c:580",
        "BUG: using smp_processor_id() in preemptible [00000000] code: dtrace/77",
        "ODEBUG: free active (active state 0) object: 00000000 object type: hrtimer hint: expired+0x0/0x40",
        "list_del corruption. prev->next should be 0000, but was 1111",
        "BUG kmalloc-64 (Not tainted): Poison overwritten",
        "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
        "rust_kernel: panicked at kmod/framework/table.rs:10:5:",
    ];

    #[test]
    fn every_checker_is_heard() {
        for report in REPORTS {
            let log = format!("[ 1.0] dtrace-vm: begin\n[ 2.0] {report}\n");
            assert!(
                trouble(&log).is_some_and(|line| line.ends_with(report)),
                "{report}"
            );
        }
    }

    #[test]
    fn what_the_kernel_says_in_passing_is_not_trouble() {
        for line in [
            "kunit: disabled",
            "dtrace: loading out-of-tree module taints kernel.",
            "loop0: detected capacity change from 0 to 8192",
            "kmemleak: Automatic memory scanning thread started",
        ] {
            assert_eq!(
                trouble(&format!("dtrace-vm: begin\n{line}\n")),
                None,
                "{line}"
            );
        }
    }

    #[test]
    fn marks_are_not_trouble() {
        assert_eq!(
            trouble("dtrace-vm: begin\ndtrace-vm: case BUG: begin\n"),
            None
        );
    }

    #[test]
    fn a_breakpoint_that_is_there_is_not_stale() {
        let oops = |code: &str| {
            format!("[ 1.0] Oops: int3: 0000 [#1] SMP\n[ 1.1] CPU: 1\n[ 1.2] Code: {code}\n")
        };
        assert!(stale_breakpoint(&oops("90 90 e8 <0b> c1 ff 04")));
        assert!(!stale_breakpoint(&oops("90 90 cc <0b> c1 ff 04")));
        assert!(!stale_breakpoint("[ 1.0] Oops: int3: 0000 [#1] SMP\n"));
        assert!(!stale_breakpoint(
            "[ 1.0] Oops: 0002\n[ 1.2] Code: 90 e8 <0b> c1\n"
        ));
    }

    #[test]
    fn a_program_that_trapped_is_found_in_its_case() {
        let line = "[ 3.0] traps: pid-own[91] trap int3 ip:401001 sp:7ffc0 error:0 in pid-own[1001,401000+1000]";
        let log = format!(
            "dtrace-vm: begin\ndtrace-vm: case a end\n{line}\ndtrace-vm: case b end\ndtrace-vm: case c end\n"
        );
        assert_eq!(trapped_in_case(&log, "b"), Some(line));
        assert_eq!(trapped_in_case(&log, "a"), None);
        assert_eq!(trapped_in_case(&log, "c"), None);
    }

    #[test]
    fn tail_of_a_short_log_is_the_log() {
        assert_eq!(tail("a\nb", 5), "a\nb");
        assert_eq!(tail("a\nb\nc", 2), "b\nc");
    }
}
