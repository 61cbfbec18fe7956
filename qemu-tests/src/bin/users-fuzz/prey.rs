// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! A process that has probes in it: it calls functions whose addresses it tells.

use super::tally::Tally;
use dtrace::pid::Request;
use qemu_tests::program::places;
use qemu_tests::random::Random;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A function of its own for each number.
#[inline(never)]
extern "C" fn step<const N: u64>(n: u64) -> u64 {
    black_box(n).wrapping_mul(N + 3)
}

const STEPS: [extern "C" fn(u64) -> u64; 4] = [step::<0>, step::<1>, step::<2>, step::<3>];

/// Threads that do nothing: more than the module looks at together, of which each consumer asks whether it may be traced.
const CROWD: usize = 40;
/// Rounds between two of its children.
const CHILD_EVERY: u32 = 32;

/// Bytes of the stack of such a thread.
const STACK: usize = 16 << 10;

/// Tells the addresses and calls the functions, as long as whoever began it lives.
pub fn live() {
    for _ in 0..CROWD {
        let thread = std::thread::Builder::new().stack_size(STACK);
        // Where there is no memory for it there are fewer.
        let _ = thread.spawn(|| loop {
            std::thread::park();
        });
    }
    let addresses = STEPS.map(|step| format!("{:x}", step as usize));
    // Whoever is to read it may have been killed.
    let _ = writeln!(std::io::stdout(), "{}", addresses.join(" "));
    let parent = rustix::process::getppid();
    // Who has begun it was killed before that.
    if parent == Some(rustix::process::Pid::INIT) {
        return;
    }
    for round in 1u32.. {
        if rustix::process::getppid() != parent {
            break;
        }
        if round % CHILD_EVERY == 0 {
            // Where there is no memory for one there is none.
            let _ = Command::new("true").status();
        }
        for n in 0..100 {
            for step in STEPS {
                black_box(step)(n);
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The process, as its owner sees it.
pub struct Prey {
    child: Child,
    addresses: Vec<u64>,
}

impl Prey {
    /// Begins one.
    pub fn begin() -> Result<Self, String> {
        let text = |e: &dyn std::fmt::Display| format!("prey: {e}");
        let itself = std::env::current_exe().map_err(|e| text(&e))?;
        let mut command = Command::new(itself);
        let command = command.arg("prey").stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| text(&e))?;
        let mut line = String::new();
        if let Some(told) = child.stdout.take() {
            let read = BufReader::new(told).read_line(&mut line);
            read.map_err(|e| text(&e))?;
        }
        let numbers = line.split_whitespace();
        let addresses = numbers.map(|word| u64::from_str_radix(word, 16));
        let addresses: Result<Vec<_>, _> = addresses.collect();
        let addresses = addresses.map_err(|e| text(&e))?;
        match addresses.is_empty() {
            true => Err("prey: no addresses".to_owned()),
            false => Ok(Self { child, addresses }),
        }
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Another one takes its place.
    pub fn change(&mut self, tally: &mut Tally) {
        match Self::begin() {
            Ok(new) => {
                *self = new;
                tally.done("prey");
            }
            Err(_) => tally.done("no prey"),
        }
    }

    /// One of its functions.
    pub fn address(&self, random: &mut Random) -> u64 {
        self.addresses[random.below(self.addresses.len())]
    }

    /// Some probes in it, or many, each with a name of its own.
    pub fn request(&self, random: &mut Random) -> Request {
        let count = random.choose(&[1, 4, 40, 300, 1001]);
        let module = format!("m{}", random.below(4));
        let address = || self.address(random);
        places(&module, std::iter::repeat_with(address).take(count))
    }
}

impl Drop for Prey {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
