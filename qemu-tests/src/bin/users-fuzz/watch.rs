// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! How long a processor is held, and how long a system call of root's takes, seen from a process that no other one keeps from running
//! (SCHED_FIFO): it wants to be woken every other millisecond, and is late where the processor is in probe context, whoever's firing that
//! is. Then it comes by probes itself, at which clauses of others are.

use qemu_tests::processors::stamp;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How often it wants to be woken.
const PERIOD: Duration = Duration::from_millis(2);
/// How many calls it makes then.
const CALLS: u32 = 5;
/// What is worth a line of its own.
const LONG: Duration = Duration::from_millis(30);

/// Tells what takes long, with its end, and every second, that there was nothing else; in microseconds, until nobody listens.
pub fn watch(cpu: &str) {
    let mut told = Instant::now();
    loop {
        let wanted = Instant::now() + PERIOD;
        std::thread::sleep(PERIOD);
        let mut before = Instant::now();
        let mut lines = String::new();
        let mut note = |what: &str, time: Duration| {
            if time >= LONG {
                lines += &format!("{what}\t{cpu}\t{}\t{}\n", time.as_micros(), stamp());
            }
        };
        note("late", before - wanted.min(before));
        for _ in 0..CALLS {
            let _ = rustix::process::getppid();
            let after = Instant::now();
            note("call", after - before);
            before = after;
        }
        if told.elapsed() >= Duration::from_secs(1) {
            told = Instant::now();
            lines += "watch\n";
        }
        if io::stdout().write_all(lines.as_bytes()).is_err() {
            return;
        }
    }
}
