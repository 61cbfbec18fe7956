// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A process of a user, with several files: it does what the user may do, as much of it as
//! possible, in any order.
//!
//! What a round does is determined by the seed and the round's number alone, whatever the results.
//! It prints lines with the results.

mod processes;

use super::images::{another, Maker};
use super::prey::Prey;
use super::tally::Tally;
use dtrace::device::{Buffer, DevDtrace, Device, PATH};
use dtrace::pattern::ProbePattern;
use dtrace_uapi::ioctl::ProbeDesc;
use qemu_tests::random::Random;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};
use zerocopy::FromZeros;

/// The number of files, and the number in a round in which it takes all memory that it can get.
const FILES: usize = 6;
const HOARD: usize = 30;
/// Steps of a round.
const STEPS: u32 = 120;
/// How often it prints its counts.
const TELL: Duration = Duration::from_millis(500);

/// The state of a file, if all calls succeeded.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Closed,
    Open,
    Enabled,
    Tracing,
    Stopped,
}

/// A consumer.
struct Consumer {
    device: Option<DevDtrace>,
    at: At,
    probe: ProbePattern,
}

/// The process.
struct Worker {
    random: Random,
    maker: Maker,
    consumers: Vec<Consumer>,
    /// Whether it takes all memory that it can get.
    hoards: bool,
    prey: Prey,
    tally: Tally,
    room: Vec<u8>,
}

/// Works until the time has passed. `first`: the number of the first round.
pub fn work(seed: u64, first: u64, time: Duration) -> Result<(), String> {
    let end = Instant::now() + time;
    let is_member = rustix::process::getuid().as_raw() != 0;
    let mut worker = Worker {
        random: Random::of(seed, first),
        maker: Maker::new(std::process::id(), is_member)?,
        consumers: Vec::new(),
        hoards: false,
        prey: Prey::begin()?,
        tally: Tally::default(),
        room: vec![0; 17 << 20],
    };
    let mut told = Instant::now();
    for round in first.. {
        worker.random = Random::of(seed, round);
        worker.hoards = is_member && worker.random.one_in(4);
        let files = if worker.hoards { HOARD } else { FILES };
        worker.consumers.clear();
        worker.consumers.resize_with(files, closed);
        for _ in 0..STEPS {
            if Instant::now() > end {
                worker.tally.tell(round);
                return Ok(());
            }
            worker.step();
            if told.elapsed() > TELL {
                worker.tally.tell(round);
                told = Instant::now();
            }
        }
    }
    Ok(())
}

fn closed() -> Consumer {
    Consumer {
        device: None,
        at: At::Closed,
        probe: ProbePattern::default(),
    }
}

impl Worker {
    fn step(&mut self) {
        let file = self.random.below(self.consumers.len());
        match (self.consumers[file].at, self.random.below(20)) {
            (At::Closed, _) => self.open(file),
            (At::Open, 0..=2) => self.make_probes(file),
            (At::Open, 3) => self.ask_about_processes(file),
            (At::Open, _) => self.enable(file),
            (At::Enabled, 0..=3) => self.enable(file),
            (At::Enabled, 4..=6) => self.replicate(file),
            (At::Enabled, 7) => self.make_probes(file),
            (At::Enabled, 8) => self.close(file),
            (At::Enabled, 9) => self.ask_about_processes(file),
            (At::Enabled, _) => self.go(file),
            (At::Tracing, 0..=3) => self.pass(),
            (At::Tracing, 4..=6) => self.ask_about_processes(file),
            (At::Tracing, 7..=12) => self.snapshot(file),
            (At::Tracing, 13 | 14) => self.status(file),
            (At::Tracing, 15) => self.look_up(file),
            (At::Tracing, 16) => self.make_probes(file),
            (At::Tracing, 17) => self.replicate(file),
            (At::Tracing, 18) => self.stop(file),
            (At::Tracing, _) => self.close(file),
            (At::Stopped, 0..=9) => self.close(file),
            (At::Stopped, 10..=13) => self.snapshot(file),
            (At::Stopped, 14) => self.go(file),
            (At::Stopped, 16) => self.ask_about_processes(file),
            (At::Stopped, 15) => self.prey.change(&mut self.tally),
            (At::Stopped, _) => self.pass(),
        }
    }

    /// Counts the result of a call.
    fn note<T>(&mut self, file: usize, call: &str, result: io::Result<T>) {
        let device = self.consumers[file].device.as_ref();
        match result {
            Ok(_) => self.tally.done(call),
            Err(error) => {
                let reason = device.map(DevDtrace::reason).unwrap_or_default();
                self.tally.refused(call, &error, &reason);
            }
        }
    }

    /// Makes a call, if the file could be opened.
    fn call<T>(
        &mut self,
        file: usize,
        name: &str,
        call: impl FnOnce(&DevDtrace, &mut [u8]) -> io::Result<T>,
    ) {
        let Some(device) = &self.consumers[file].device else {
            return;
        };
        let result = call(device, &mut self.room);
        self.note(file, name, result);
    }

    fn open(&mut self, file: usize) {
        match DevDtrace::open(Path::new(PATH)) {
            Ok(device) => {
                self.consumers[file].device = Some(device);
                self.tally.done("open");
            }
            Err(error) => self.tally.refused("open", &error, ""),
        }
        self.consumers[file].at = At::Open;
    }

    fn close(&mut self, file: usize) {
        self.consumers[file] = closed();
    }

    fn enable(&mut self, file: usize) {
        let prey = self.prey.pid();
        let image = self.maker.image(&mut self.random, prey, self.hoards);
        self.call(file, "enable", |device, _| device.enable(&image.bytes));
        let consumer = &mut self.consumers[file];
        consumer.probe = image.probe;
        consumer.at = At::Enabled;
    }

    /// Copies the clauses to other probes, or once more to the same.
    fn replicate(&mut self, file: usize) {
        let from = described(&self.consumers[file].probe);
        for _ in 0..self.random.choose(&[1, 3, 20, 100]) {
            let to = match self.random.one_in(2) {
                true => from,
                false => described(&another(&mut self.random)),
            };
            self.call(file, "replicate", |device, _| device.replicate(&from, &to));
            if self.random.one_in(4) {
                self.call(file, "retract", |device, _| device.retract(&to));
            }
        }
    }

    fn make_probes(&mut self, file: usize) {
        let request = self.prey.request(&mut self.random);
        let pid = self.prey.pid();
        self.call(file, "makeprobes", |device, _| {
            device
                .make_probes(pid, &request)
                .map_err(|(_, error)| error)
        });
    }

    fn go(&mut self, file: usize) {
        self.call(file, "go", |device, _| device.go());
        self.consumers[file].at = At::Tracing;
        self.pass();
    }

    fn stop(&mut self, file: usize) {
        self.call(file, "stop", |device, _| device.stop());
        self.consumers[file].at = At::Stopped;
    }

    fn snapshot(&mut self, file: usize) {
        for cpu in 0..2 {
            for (name, which) in [
                ("bufsnap", Buffer::Principal),
                ("aggsnap", Buffer::Aggregation),
            ] {
                self.call(file, name, |device, room| device.snapshot(which, cpu, room));
            }
        }
    }

    /// Also counts whether the module ended the consumer.
    fn status(&mut self, file: usize) {
        let mut is_killed = false;
        self.call(file, "status", |device, _| {
            device
                .status()
                .inspect(|status| is_killed = status.killed != 0)
        });
        if is_killed {
            self.tally.done("killed");
            self.close(file);
        }
    }

    fn look_up(&mut self, file: usize) {
        let pattern = described(&another(&mut self.random));
        self.call(file, "probematch", |device, _| device.next_probe(&pattern));
    }

    /// Passes probes.
    fn pass(&mut self) {
        let mut some = [0; 64];
        for _ in 0..20 {
            let _ = rustix::process::getppid();
        }
        // A failing call fires probes as well.
        let _ = File::open("/dev/zero").and_then(|mut zero| zero.read(&mut some));
        std::thread::yield_now();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A description in the form that the device takes.
fn described(pattern: &ProbePattern) -> ProbeDesc {
    let mut desc = ProbeDesc::new_zeroed();
    let put = |to: &mut [u8], text: &str| {
        let n = text.len().min(to.len() - 1);
        to[..n].copy_from_slice(&text.as_bytes()[..n]);
    };
    put(&mut desc.provider, &pattern.provider);
    put(&mut desc.module, &pattern.module);
    put(&mut desc.func, &pattern.func);
    put(&mut desc.name, &pattern.name);
    desc
}
