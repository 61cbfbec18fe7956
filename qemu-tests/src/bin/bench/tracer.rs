// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The compared tracers: how each is called, when it is ready, and what it costs itself.
//!
//! A program prints `ready` in its BEGIN probe, which every tracer fires once everything is
//! enabled. The peers are run in their own root ([`crate::peers`]).

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dtrace_uapi::ioctl;
use rustix::process::{kill_process, Pid, Signal};

/// What a program prints once it traces.
const READY: &str = "ready";
/// The names of the rows of [`placing`].
pub const PLACING: [&str; 4] = ["made, M", "enabled, M", "made again, M", "enabled again, M"];
/// Longer than any tracer takes, in the guest's time.
const LIMIT: Duration = Duration::from_secs(300);
const OUTPUT: &str = "/dev/shm/trace";

/// The tracers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracer {
    /// This project's dtrace(8).
    Ours,
    /// bpftrace(8).
    Bpftrace,
    /// The other dtrace(8) for Linux.
    Oracle,
}

impl Tracer {
    /// All, in the order of the table's columns.
    pub const ALL: [Self; 3] = [Self::Ours, Self::Bpftrace, Self::Oracle];

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "dtrace",
            Self::Bpftrace => "bpftrace",
            Self::Oracle => "dtrace 2.0",
        }
    }

    fn command(self, program: &str, process: Option<u32>, peers: &Path) -> Command {
        let mut command = match self {
            Self::Ours => Command::new("dtrace"),
            Self::Bpftrace | Self::Oracle => {
                let mut command = Command::new("chroot");
                command.arg(peers);
                command.arg(if self == Self::Oracle {
                    "dtrace"
                } else {
                    "bpftrace"
                });
                command
            }
        };
        if let (Self::Oracle, Some(process)) = (self, process) {
            // The peer ignores a root process without a terminal as a daemon, unless it is given
            // the process ID.
            command.args(["-p", &process.to_string()]);
        }
        match self {
            Self::Bpftrace => command
                .args(["-B", "none", "-e"])
                .arg(format!("BEGIN {{ printf(\"{READY}\\n\"); }} {program}")),
            _ => command
                .args(["-q", "-n"])
                .arg(format!("BEGIN {{ printf(\"{READY}\\n\"); }} {program}")),
        };
        command
    }
}

/// A running tracer.
pub struct Tracing {
    child: Child,
    /// Instructions that it executed until it was ready.
    pub start: u64,
    /// The most bytes of memory that it had until then.
    pub memory: u64,
}

impl Tracing {
    /// Starts a tracer, for a process if one is given, and waits until it traces.
    pub fn start(
        tracer: Tracer,
        program: &str,
        process: Option<u32>,
        peers: &Path,
    ) -> io::Result<Self> {
        let out = File::create(OUTPUT)?;
        let mut child = tracer
            .command(program, process, peers)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()?;
        let begin = Instant::now();
        while !output()?.contains(READY) {
            if child.try_wait()?.is_some() || begin.elapsed() > LIMIT {
                child.kill()?;
                child.wait()?;
                return Err(io::Error::other(output()?.trim().to_owned()));
            }
            sleep(Duration::from_millis(20));
        }
        let mut tracing = Self {
            child,
            start: 0,
            memory: 0,
        };
        tracing.start = tracing.work()?;
        tracing.memory = tracing.high_water()?;
        Ok(tracing)
    }

    /// Instructions that the tracer itself has executed so far, in user space and in the kernel.
    pub fn work(&self) -> io::Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.child.id()))?;
        let first = text.split_whitespace().next();
        first
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| io::Error::other("no schedstat in this kernel"))
    }

    fn high_water(&self) -> io::Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes
            .map(|n| n * 1024)
            .ok_or_else(|| io::Error::other("no VmHWM in this kernel"))
    }

    /// Interrupts the tracer and returns its output.
    pub fn finish(mut self) -> io::Result<String> {
        kill_process(Pid::from_child(&self.child), Signal::INT)?;
        let begin = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begin.elapsed() > LIMIT {
                self.child.kill()?;
                self.child.wait()?;
                return Err(io::Error::other("it does not end"));
            }
            sleep(Duration::from_millis(20));
        }
        output()
    }
}

/// Measures the instructions of the calls that create and that enable the probes of a program of
/// this project's tracer: when a process is traced for the first time, and when it has been traced
/// before. Nothing else may trace meanwhile.
pub fn placing(program: &str) -> io::Result<Vec<(&'static str, u64)>> {
    let calls = [("made", ioctl::MAKEPROBES), ("enabled", ioctl::ENABLE)];
    let mut observer = String::new();
    for (call, number) in calls {
        observer += &format!(
            "syscall::ioctl:entry /execname == \"dtrace\" && pid != $pid && arg1 == {number}/ \
             {{ self->{call} = timestamp; }} \
             syscall::ioctl:return /self->{call}/ \
             {{ {call} += timestamp - self->{call}; self->{call} = 0; }} "
        );
    }
    observer += "proc:::exit /execname == \"dtrace\"/ \
                 { printf(\"made %d enabled %d\\n\", made, enabled); made = 0; enabled = 0; }";
    let tracing = Tracing::start(Tracer::Ours, &observer, None, Path::new("/"))?;
    for _ in 0..2 {
        let enabling = Command::new("dtrace")
            .args(["-q", "-n", program, "-n", "BEGIN { exit(0); }"])
            .output()?;
        if !enabling.status.success() {
            let error = String::from_utf8_lossy(&enabling.stderr).into_owned();
            return Err(io::Error::other(error));
        }
    }
    // The observer reads its buffers once a second.
    sleep(Duration::from_secs(2));
    let output = tracing.finish()?;
    let words = output.split_whitespace();
    let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [a, b, c, d] => Ok(PLACING.into_iter().zip([a, b, c, d]).collect()),
        _ => Err(io::Error::other(output)),
    }
}

/// What the tracer has printed so far.
fn output() -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(OUTPUT)?).into_owned())
}
