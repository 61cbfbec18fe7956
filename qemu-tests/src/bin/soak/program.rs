// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Programs with a time limit, whose output is read while they run.

use qemu_tests::random::Random;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The result of something that may fail.
pub type Outcome = Result<(), String>;

/// The most time that one takes on the stock kernel.
const LIMIT: Duration = Duration::from_secs(180);

/// Collects a program's output as it comes.
struct Pipe {
    text: Arc<Mutex<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Pipe {
    fn new(from: Option<impl Read + Send + 'static>) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let kept = text.clone();
        let read = move |mut from: Box<dyn Read + Send>| {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut chunk) {
                let mut text = kept.lock().unwrap_or_else(PoisonError::into_inner);
                text.push_str(&String::from_utf8_lossy(chunk.get(..n).unwrap_or_default()));
            }
        };
        let thread = from.map(|from| std::thread::spawn(move || read(Box::new(from))));
        Self { text, thread }
    }

    /// The output so far.
    fn text(&self) -> String {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.clone()
    }

    /// The whole output.
    fn all(&mut self) -> String {
        if let Some(thread) = self.thread.take() {
            // Ignores a panic: what was read before it counts.
            let _ = thread.join();
        }
        self.text()
    }
}

/// A running program.
pub struct Program {
    name: String,
    child: Child,
    out: Pipe,
    err: Pipe,
    until: Instant,
}

/// How a program ended.
pub struct Ended {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Program {
    /// Starts it. `slower`: how many times longer it may take than on the stock kernel.
    pub fn start(words: &[&str], slower: u32) -> Result<Self, String> {
        let (name, arguments) = words.split_first().ok_or("no program")?;
        let mut command = Command::new(name);
        // A process group of its own, so that a program that does not end is killed together with
        // all that it has started.
        command
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("{name}: {e}"))?;
        Ok(Self {
            name: words.join(" "),
            out: Pipe::new(child.stdout.take()),
            err: Pipe::new(child.stderr.take()),
            child,
            until: Instant::now() + LIMIT * slower,
        })
    }

    /// Its process ID.
    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Whether it is still running and within its limit.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None)) && Instant::now() < self.until
    }

    /// Waits until it has printed this, or has ended.
    pub fn await_word(&mut self, word: &str) {
        while self.runs() && !self.out.text().contains(word) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends it a signal, by name. A process that has ended gets none.
    pub fn signal(&self, name: &str) -> Outcome {
        let mut kill = Command::new("kill");
        kill.args([name, &self.pid()]).stderr(Stdio::null());
        kill.status().map(drop).map_err(|e| e.to_string())
    }

    /// Kills it.
    pub fn kill(&mut self) -> Outcome {
        self.child.kill().map_err(|e| e.to_string())
    }

    /// Waits until it ends.
    pub fn end(mut self) -> Result<Ended, String> {
        loop {
            if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
                return Ok(Ended {
                    status,
                    out: self.out.all(),
                    err: self.err.all(),
                });
            }
            if Instant::now() > self.until {
                let group = format!("-{}", self.pid());
                let mut kill = Command::new("kill");
                let _ = kill.args(["-KILL", "--", &group]).status();
                let _ = self.child.wait();
                return Err(format!("does not end: {}\n{}", self.name, self.err.all()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until it ends, which must be with success.
    pub fn end_well(self) -> Result<Ended, String> {
        let name = self.name.clone();
        let ended = self.end()?;
        if ended.status.success() {
            return Ok(ended);
        }
        let how = match ended.status.signal() {
            Some(signal) => format!("died of signal {signal}"),
            None => format!("{}", ended.status),
        };
        Err(format!("{how}: {name}\n{}{}", ended.out, ended.err))
    }
}

/// Runs a program to its end, which must be with success.
pub fn run(words: &[&str], slower: u32) -> Result<Ended, String> {
    Program::start(words, slower)?.end_well()
}

/// Sleeps a random time of less than `ms` milliseconds.
pub fn sleep(random: &mut Random, ms: u32) {
    let ms = random.below(ms as usize);
    std::thread::sleep(Duration::from_millis(ms as u64));
}
