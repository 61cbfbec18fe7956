// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `users-bench MODULE [ROW...]`: measures how long members of the tracing group can hold a
//! processor, in millions of instructions. `qemu-tests/runs/bench` calls it in a machine of one
//! processor whose clock counts instructions, without the module.
//!
//! Each row is the worst known case of one kind of work ([`programs`]), in as many tracings as it
//! takes: the work of a firing until it is ended. What is measured is the longest system call of
//! the member's own process, with all that it does besides; for timers, the longest time for which
//! a program does not run. A row above the goal fails the run. A row of its own measures, in
//! instructions, how much slower another user's calls become if they pass probes that a member
//! traces.

mod programs;

use programs::{Meets, Row, ROWS};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::time::{clock_gettime, ClockId};

/// The most that may be held, in instructions.
const GOAL: u64 = 30_000_000;
/// The user IDs of the member and of another user.
const MEMBER: &str = "65534";
const OTHER: &str = "65533";
/// The tracing group.
const GROUP: &str = "77";
/// How often to check whether a tracing has begun.
const LOOK: Duration = Duration::from_secs(4);
/// Longer than it takes until a tracing has begun.
const LIMIT: Duration = Duration::from_secs(600);
/// The number of measured calls.
const CALLS: u32 = 200;
/// The number of calls that fill a ring buffer before.
const FILL: u32 = 40_000;
/// How long a program watches for gaps in which it does not run.
const WATCH: Duration = Duration::from_secs(2);
/// The number of stack frames above the calls.
const DEPTH: u32 = 100;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["calls"] => {
            println!("{}", deep(DEPTH, &longest_call));
            Ok(true)
        }
        ["watch"] => {
            println!("{}", longest_gap());
            Ok(true)
        }
        ["usual"] => {
            println!("{}", usual_call());
            Ok(true)
        }
        [module, rows @ ..] => run(module, rows),
        [] => Err(io::Error::other("usage: users-bench MODULE [ROW...]")),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("users-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(module: &str, rows: &[&str]) -> io::Result<bool> {
    let calm = [Meets::Calls, Meets::Ticks, Meets::Others].map(measured);
    done(Command::new("insmod").args([module, &format!("group={GROUP}")]))?;
    fs::set_permissions("/dev/dtrace", Permissions::from_mode(0o666))?;
    let [call, gap, usual] = calm;
    let (call, gap, usual) = (call?, gap?, usual?);
    eprintln!("held by members, M instructions (goal {}):", millions(GOAL));
    eprintln!("    {:<44}{:>10}", "without: a system call", millions(call));
    eprintln!(
        "    {:<44}{:>10}",
        "without: a program is not run",
        millions(gap)
    );
    let mut good = true;
    let wanted = |row: &&Row| rows.is_empty() || rows.contains(&row.id);
    for row in ROWS.iter().filter(wanted) {
        let held = row.measure()?;
        let shown = match row.meets {
            Meets::Others => format!("{} instructions added", held.saturating_sub(usual)),
            _ => millions(held),
        };
        println!("{}\tdtrace\t{held}", row.id);
        eprintln!("    {:<6}{:<38}{shown:>10}", row.id, row.what);
        if held > GOAL {
            eprintln!("FAILED: {} holds a processor", row.id);
            good = false;
        }
    }
    done(Command::new("rmmod").arg("dtrace"))?;
    Ok(good)
}

fn millions(instructions: u64) -> String {
    format!("{:.1}", instructions as f64 / 1e6)
}

fn done(command: &mut Command) -> io::Result<()> {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{command:?} failed"))),
    }
}

impl Row {
    /// Starts the member's tracings, and measures.
    fn measure(&self) -> io::Result<u64> {
        let text = (self.program)();
        let mut tracings = Vec::new();
        // Start them one after the other: if many compile at once, those that trace do not run, and
        // the deadman takes them for stuck.
        for n in 0..self.tracings {
            let mut tracing = Tracing::start(n, &text)?;
            tracing.wait()?;
            tracings.push(tracing);
        }
        tracings.iter().try_for_each(Tracing::is_well)?;
        measured(self.meets)
    }
}

/// Runs the measurement in a process of its own; returns instructions.
fn measured(meets: Meets) -> io::Result<u64> {
    let (who, what) = match meets {
        Meets::Calls => (MEMBER, "calls"),
        Meets::Ticks => (MEMBER, "watch"),
        Meets::Others => (OTHER, "usual"),
    };
    let output = as_user(who, &own_program()?).arg(what).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.trim()
        .parse()
        .map_err(|_| io::Error::other(format!("{what}: {output:?}")))
}

/// A copy of this program that everybody may read and execute.
fn own_program() -> io::Result<PathBuf> {
    let copy = PathBuf::from("/dev/shm/users-bench");
    if !copy.exists() {
        fs::copy(std::env::current_exe()?, &copy)?;
        fs::set_permissions(&copy, Permissions::from_mode(0o755))?;
    }
    Ok(copy)
}

fn as_user(user: &str, program: &std::path::Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", user, "--regid", GROUP, "--clear-groups"])
        .arg(program);
    command
}

/// A tracing of the member, which ends when this is dropped.
struct Tracing {
    child: Child,
    output: PathBuf,
}

impl Tracing {
    fn start(n: u32, text: &str) -> io::Result<Self> {
        let output = PathBuf::from(format!("/dev/shm/users-bench-{n}"));
        let script = PathBuf::from("/dev/shm/users-bench.d");
        fs::write(&script, text)?;
        fs::set_permissions(&script, Permissions::from_mode(0o644))?;
        let file = File::create(&output)?;
        let mut command = as_user(MEMBER, std::path::Path::new("dtrace"));
        command.arg("-qs").arg(&script).stdin(Stdio::null());
        let child = command.stdout(file.try_clone()?).stderr(file).spawn()?;
        Ok(Self { child, output })
    }

    /// Waits until it traces, which is when it does nothing but read its buffers. With a ring
    /// buffer it prints nothing before its end.
    fn wait(&mut self) -> io::Result<()> {
        let begin = Instant::now();
        let mut worked = Duration::ZERO;
        loop {
            sleep(LOOK);
            self.is_well()?;
            if self.child.try_wait()?.is_some() || begin.elapsed() > LIMIT {
                return Err(io::Error::other("a tracing does not begin"));
            }
            let now = self.work()?;
            if !worked.is_zero() && now - worked < LOOK / 20 {
                return Ok(());
            }
            worked = now;
        }
    }

    /// Fails if it has printed a complaint.
    fn is_well(&self) -> io::Result<()> {
        let text = fs::read(&self.output)?;
        let text = String::from_utf8_lossy(&text);
        match text.contains("dtrace:") {
            true => Err(io::Error::other(text.trim().to_owned())),
            false => Ok(()),
        }
    }

    /// How long it has run.
    fn work(&self) -> io::Result<Duration> {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.child.id()))?;
        let first = text.split_whitespace().next().map(str::parse);
        match first {
            Some(Ok(time)) => Ok(Duration::from_nanos(time)),
            _ => Err(io::Error::other("no schedstat")),
        }
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // Errors are ignored: the rest ends with the machine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls `f` with `depth` frames above it.
#[inline(never)]
fn deep(depth: u32, f: &dyn Fn() -> u64) -> u64 {
    let result = match depth {
        0 => f(),
        _ => deep(depth - 1, f),
    };
    std::hint::black_box(result)
}

/// The longest of some system calls, in instructions, after many others that fill the buffers.
fn longest_call() -> u64 {
    for _ in 0..FILL {
        std::hint::black_box(rustix::process::getpid());
    }
    (0..CALLS).map(|_| call()).max().unwrap_or(0)
}

/// The shortest of some system calls, in instructions.
fn usual_call() -> u64 {
    (0..CALLS).map(|_| call()).min().unwrap_or(0)
}

/// The processor time of a system call, in instructions; what other tasks run meanwhile does not
/// count.
fn call() -> u64 {
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    let begin = now();
    std::hint::black_box(rustix::process::getppid());
    (now() - begin).as_nanos() as u64
}

/// The longest time for which this program did not run, in instructions.
fn longest_gap() -> u64 {
    let begin = Instant::now();
    let (mut last, mut longest) = (begin, Duration::ZERO);
    while last - begin < WATCH {
        let now = Instant::now();
        longest = longest.max(now - last);
        last = now;
    }
    longest.as_nanos() as u64
}
