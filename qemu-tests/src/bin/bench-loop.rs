// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Loops of system calls, and what one turn of each costs, for `scripts/bench`.
//!
//! In a machine whose clock counts instructions a nanosecond is an instruction. The timer's interrupts fall into some
//! rounds and not into others, so the cheapest of many short rounds is taken.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read};
use std::os::unix::process::parent_id;
use std::path::Path;
use std::time::Instant;

const ROUNDS: usize = 200;
const TURNS: u32 = 100;

fn main() -> io::Result<()> {
    println!(
        "getppid\t{:.2}",
        cheapest(|| {
            black_box(parent_id());
        })
    );
    let mut zero = File::open("/dev/zero")?;
    let mut byte = [0u8; 1];
    let mut failed = None;
    let read = cheapest(|| failed = zero.read(black_box(&mut byte)).err());
    if let Some(error) = failed {
        return Err(error);
    }
    println!("read\t{read:.2}");
    // On a file system in memory: what a disk or a host does is not repeatable.
    let missing = Path::new("/dev/shm/no-such-file");
    println!(
        "stat\t{:.2}",
        cheapest(|| drop(black_box(missing.metadata())))
    );
    Ok(())
}

/// Nanoseconds of one turn in the cheapest round.
fn cheapest(mut turn: impl FnMut()) -> f64 {
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..TURNS {
                turn();
            }
            start.elapsed().as_nanos() as f64 / f64::from(TURNS)
        })
        .fold(f64::INFINITY, f64::min)
}
