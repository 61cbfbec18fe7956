// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A process that contains probes: it calls functions whose addresses it prints.

use super::tally::Tally;
use dtrace::pid::Request;
use qemu_tests::program::places;
use qemu_tests::random::Random;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A separate function for each number.
#[inline(never)]
extern "C" fn step<const N: u64>(n: u64) -> u64 {
    black_box(n).wrapping_mul(N + 3)
}

macro_rules! steps {
    ($($n:literal)*) => { [$(step::<$n>),*] };
}

/// An instruction has room for few probes of each kind, so there are as many functions as a request
/// has probes.
const STEPS: [extern "C" fn(u64) -> u64; 64] = steps![
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62
    63
];

/// The number of idle threads: more than the module examines at a time when it checks, for each
/// consumer, whether the process may be traced.
const CROWD: usize = 40;
/// Rounds between two child processes.
const CHILD_EVERY: u32 = 32;

/// Bytes of the stack of an idle thread.
const STACK: usize = 16 << 10;

/// Prints the addresses and calls the functions, for as long as the parent process lives.
pub fn live() {
    for _ in 0..CROWD {
        let thread = std::thread::Builder::new().stack_size(STACK);
        // With too little memory there are fewer threads.
        let _ = thread.spawn(|| loop {
            std::thread::park();
        });
    }
    let addresses = STEPS.map(|step| format!("{:x}", step as usize));
    // Errors are ignored: the reader may have been killed.
    let _ = writeln!(std::io::stdout(), "{}", addresses.join(" "));
    let parent = rustix::process::getppid();
    // The parent was killed before.
    if parent == Some(rustix::process::Pid::INIT) {
        return;
    }
    for round in 1u32.. {
        if rustix::process::getppid() != parent {
            break;
        }
        if round % CHILD_EVERY == 0 {
            // With too little memory there is no child.
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

/// The process, from its owner's view.
pub struct Prey {
    child: Child,
    addresses: Vec<u64>,
}

impl Prey {
    /// Starts one.
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

    /// Its process ID.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Replaces it by another one.
    pub fn change(&mut self, tally: &mut Tally) {
        match Self::begin() {
            Ok(new) => {
                *self = new;
                tally.done("prey");
            }
            Err(_) => tally.done("no prey"),
        }
    }

    /// The address of one of its functions.
    pub fn address(&self, random: &mut Random) -> u64 {
        self.addresses[random.below(self.addresses.len())]
    }

    /// A request for some or many probes in it, each with a name of its own.
    pub fn request(&self, random: &mut Random) -> Request {
        // The last is more than a member may have.
        let count = random.choose(&[1, 4, 40, 64, 1001]);
        let module = format!("m{}", random.below(4));
        let begin = random.below(self.addresses.len());
        let addresses = self.addresses.iter().cycle().skip(begin).copied();
        places(&module, addresses.take(count))
    }
}

impl Drop for Prey {
    fn drop(&mut self) {
        // Errors are ignored: it may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
