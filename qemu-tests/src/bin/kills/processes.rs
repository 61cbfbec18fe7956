// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Kills consumers with probes in processes, and the traced processes.
//!
//! Each round starts some programs and a `dtrace` for each, and kills one of the two after a random
//! time: while symbols are read, probes are created, a library or a child is awaited, the program
//! is traced, or probes are removed. A `dtrace` whose program was killed ends by itself. A program
//! whose `dtrace` was killed computes the same results as without it, and nothing stays in its
//! text.

use super::Outcome;
use qemu_tests::memory::Memory;
use qemu_tests::random::Random;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A traced program and how it is traced.
struct Tracing {
    program: &'static str,
    words: &'static [&'static str],
    options: &'static [&'static str],
    script: &'static str,
    /// The signal, among those it has blocked, that makes it end.
    stops: &'static str,
    /// The end of its output.
    prints: &'static str,
}

const TRACINGS: [Tracing; 3] = [
    Tracing {
        program: "pid-hot",
        words: &[],
        options: &[],
        script: "pid$target:a.out:hot*: { @[probefunc] = count(); } pid$target:a.out:hot10:entry { @s[ustack()] = count(); }",
        stops: "-USR2",
        prints: "wrong 0, unanswered 0, text as before\n",
    },
    Tracing {
        program: "pid-loader",
        words: &["wait", "open", "fork", "call", "close", "open", "fork", "close", "done"],
        options: &["-Z", "-x", "follow=fork"],
        script: "pid$target:late.so::,late$target::: { @[probefunc] = count(); }",
        stops: "-USR1",
        prints: "done\n",
    },
    Tracing {
        program: "usdt-dof",
        words: &["wait", "register", "fork", "remove", "register", "fork", "fire"],
        options: &["-Z", "-x", "holdtime=1sec"],
        script: "work*::: { @[probefunc] = count(); } pid$target:a.out:dof_*: { @i = count(); }",
        stops: "-USR1",
        prints: "tail 9\n",
    },
];

/// The most time that one of them takes to end.
const LIMIT: Duration = Duration::from_secs(100);

fn text<T: ToString>(error: T) -> String {
    error.to_string()
}

fn wait(child: &mut Child, what: &str) -> Result<Option<i32>, String> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(text)? {
            return Ok(status.signal());
        }
        if begin.elapsed() > LIMIT {
            return Err(format!("{what} does not end"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a signal. A process that has ended gets none.
fn signal(child: &Child, name: &str) -> Outcome {
    let mut kill = Command::new("kill");
    let sent = kill
        .args([name, &child.id().to_string()])
        .stderr(Stdio::null())
        .status();
    sent.map(drop).map_err(text)
}

/// A program and the `dtrace` that traces it.
struct Pair {
    tracing: &'static Tracing,
    program: Child,
    dtrace: Child,
}

impl Pair {
    fn begin(tracing: &'static Tracing) -> Result<Self, String> {
        let mut program = Command::new(tracing.program);
        let mut program = program
            .args(tracing.words)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(text)?;
        let mut ready = [0; 6];
        let out = program.stdout.as_mut().ok_or("no output")?;
        out.read_exact(&mut ready).map_err(text)?;
        let mut dtrace = Command::new("dtrace");
        dtrace
            .args(tracing.options)
            .args(["-qn", tracing.script, "-p", &program.id().to_string()]);
        let dtrace = dtrace
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(text)?;
        Ok(Self {
            tracing,
            program,
            dtrace,
        })
    }

    fn go(&self) -> Outcome {
        signal(&self.program, "-USR1")
    }

    /// Kills one of the two, and waits for the other to end.
    fn end(&mut self, program_first: bool) -> Outcome {
        if program_first {
            self.program.kill().map_err(text)?;
            wait(&mut self.program, self.tracing.program)?;
            return match wait(&mut self.dtrace, "dtrace")? {
                None => Ok(()),
                Some(signal) => Err(format!("dtrace died of signal {signal}")),
            };
        }
        self.dtrace.kill().map_err(text)?;
        wait(&mut self.dtrace, "dtrace")?;
        let begin = Instant::now();
        while self.program.try_wait().map_err(text)?.is_none() && begin.elapsed() < LIMIT {
            signal(&self.program, self.tracing.stops)?;
            std::thread::sleep(Duration::from_millis(20));
        }
        let signal = wait(&mut self.program, self.tracing.program)?;
        let mut said = String::new();
        let out = self.program.stdout.as_mut().ok_or("no output")?;
        out.read_to_string(&mut said).map_err(text)?;
        match signal {
            None if said.ends_with(self.tracing.prints) => Ok(()),
            _ => Err(format!("{} {signal:?}: {said}", self.tracing.program)),
        }
    }
}

/// Runs one round: all programs are started when the first kill is due; the last ones are killed
/// long after they have been traced.
fn round(consumers: u64, life: usize, random: &mut Random) -> Outcome {
    let mut pairs = Vec::new();
    for n in 0..consumers as usize {
        pairs.push(Pair::begin(&TRACINGS[n % TRACINGS.len()])?);
    }
    let pause = |random: &mut Random| {
        std::thread::sleep(Duration::from_millis(
            random.below(life / consumers as usize) as u64,
        ));
    };
    pause(random);
    for pair in &pairs {
        pair.go()?;
    }
    while !pairs.is_empty() {
        pause(random);
        let mut pair = pairs.swap_remove(random.below(pairs.len()));
        pair.end(random.below(2) == 0)?;
    }
    Ok(())
}

/// Kills `consumers` pairs in each round.
pub fn kill(rounds: u64, consumers: u64) -> Outcome {
    let mut random = Random::new(1);
    // Measures how long tracing takes without a kill, and fills the kernel's own caches.
    let begin = Instant::now();
    for tracing in &TRACINGS {
        let mut pair = Pair::begin(tracing)?;
        std::thread::sleep(Duration::from_secs(3));
        pair.go()?;
        std::thread::sleep(Duration::from_secs(1));
        pair.end(false)?;
    }
    let life = begin.elapsed().as_millis() as usize / TRACINGS.len() / 2;
    round(consumers, life, &mut random)?;
    std::thread::sleep(Duration::from_secs(2));
    let before = Memory::now()?;
    for _ in 0..rounds {
        round(consumers, life, &mut random)?;
    }
    // The module looks for ended processes once a second.
    std::thread::sleep(Duration::from_secs(2));
    let after = Memory::now()?;
    let killed = rounds * consumers;
    eprintln!("kills: {before:?}, after {killed} pairs {after:?}");
    after.check(&before, killed)?;
    println!("kills: {killed} pairs, nothing is left");
    Ok(())
}
