// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Measures how long a processor is held, and how long a system call of root takes, in a process
//! that no other keeps from running (SCHED_FIFO). It sleeps for two milliseconds at a time, and
//! wakes up late if the processor is in probe context, whoever traces. Then it passes probes
//! itself, at which others have clauses.

use qemu_tests::processors::stamp;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How long it sleeps.
const PERIOD: Duration = Duration::from_millis(2);
/// How many calls it makes then.
const CALLS: u32 = 5;
/// The shortest duration that is reported.
const LONG: Duration = Duration::from_millis(30);

/// Reports, in microseconds, each long duration with its end, and once a second that it is alive,
/// until its reader has gone.
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
