// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The program whose functions are traced: `bench-calls`, which measures the time of its calls
//! itself.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// The running program.
struct Calls {
    child: Child,
    answers: BufReader<ChildStdout>,
    /// How many other processes run the same program.
    others: u32,
}

static CALLS: Mutex<Option<Calls>> = Mutex::new(None);

/// Returns the ID of the process, while `others` other processes run the same program. If `others`
/// changes, a new process is started.
pub fn process(others: u32) -> io::Result<u32> {
    with(Some(others), |calls| Ok(calls.child.id()))
}

/// Returns how long `turns` calls of a function take.
pub fn run(function: &str, turns: u32) -> io::Result<Duration> {
    with(None, |calls| {
        let input = calls.child.stdin.as_mut();
        let input = input.ok_or_else(|| io::Error::other("calls has no input"))?;
        writeln!(input, "{function} {turns}")?;
        let mut line = String::new();
        calls.answers.read_line(&mut line)?;
        let nanoseconds = line.trim().parse().map_err(io::Error::other)?;
        Ok(Duration::from_nanos(nanoseconds))
    })
}

fn with<T>(others: Option<u32>, f: impl FnOnce(&mut Calls) -> io::Result<T>) -> io::Result<T> {
    let mut held = CALLS.lock().map_err(|_| io::Error::other("calls failed"))?;
    let fits = |calls: &Calls| others.is_none_or(|others| others == calls.others);
    if !held.as_ref().is_some_and(fits) {
        if let Some(mut old) = held.take() {
            old.child.kill()?;
            old.child.wait()?;
        }
        *held = Some(Calls::start(others.unwrap_or(0))?);
    }
    f(held.as_mut().ok_or_else(|| io::Error::other("no calls"))?)
}

impl Calls {
    fn start(others: u32) -> io::Result<Self> {
        let mut child = Command::new("bench-calls")
            .arg(others.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let answers = child.stdout.take();
        let answers = answers.ok_or_else(|| io::Error::other("calls has no output"))?;
        Ok(Self {
            child,
            answers: BufReader::new(answers),
            others,
        })
    }
}
