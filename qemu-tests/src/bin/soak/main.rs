// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The long run: `soak SECONDS [--seed N] [--leak KB] [--short]`. Runs in the VM.
//!
//! In each round, consumers of all kinds trace at once, some are killed, processes fork, execute,
//! map and exit, a CPU goes offline and online, modules are loaded and unloaded, and sometimes all
//! tasks are frozen. Consumers whose loads are known must have seen all of their events, or
//! reported the drops ([`counted`]). When all have gone, nothing of them may be left, and
//! everything in the machine is counted ([`sample`]). After some rounds the module itself is
//! unloaded and loaded.
//!
//! At the end, no number may have risen with time ([`slope`] has the rule): neither those taken
//! between two loads of the module, nor those of the whole run. The first rounds, and the first one
//! after each load, create what is created once, and are left out. A run that is too short to judge
//! fails. The kernel's log is read after each round, and must be silent.
//!
//! `--leak KB` leaks that much kernel memory each round, to show that it is noticed. `--short`
//! leaves out everything in a round that takes long, for the same purpose.

mod counted;
mod machine;
mod mixed;
mod program;
mod sample;
mod slope;

use counted::{Job, Tally};
use program::Outcome;
use qemu_tests::random::Random;
use sample::Sample;
use slope::{judge, Point, Trend, Verdict};
use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Rounds at the beginning that are not judged.
const WARM: usize = 3;

/// Rounds between two loads of the module. This and the next two numbers have no common divisor, so
/// that what happens only in some rounds falls on each place in a life equally often; otherwise
/// what it leaves for a moment would look like a slope.
const LIFE: usize = 7;

/// Tasks are frozen in one round of this many.
const SUSPEND: usize = 3;

/// All functions of the kernel are traced in one round of this many, because that takes as long as
/// everything else.
const EVERYTHING: usize = 2;

/// Seconds that the load of [`counted::lanes`] works while everything is traced.
const LOAD: u64 = 3;

/// How many consumers without a known load trace in a round.
const MIXED: usize = 3;

/// How many times longer the debug kernel takes.
const SLOWER: u32 = 6;

/// How many flat series are printed, those nearest to rising.
const NEAR: usize = 5;

/// The number of failures that ends the run.
const FAILURES: usize = 20;

/// One round's numbers.
struct Round {
    number: usize,
    /// The number of the module's load.
    life: usize,
    /// Whether it is the first round after a load.
    first: bool,
    sample: Sample,
}

/// The command line.
struct Arguments {
    seconds: u64,
    seed: u64,
    leak: usize,
    short: bool,
}

fn arguments() -> Option<Arguments> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (seconds, options) = words.split_first()?;
    let mut arguments = Arguments {
        seconds: seconds.parse().ok()?,
        seed: 1,
        leak: 0,
        short: false,
    };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match option.as_str() {
            "--seed" => arguments.seed = options.next()?.parse().ok()?,
            "--leak" => arguments.leak = options.next()?.parse().ok()?,
            "--short" => arguments.short = true,
            _ => return None,
        }
    }
    Some(arguments)
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("usage: soak SECONDS [--seed N] [--leak KB] [--short]");
        return ExitCode::from(2);
    };
    match Soak::new(&arguments).and_then(|soak| soak.run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("soak: {why}");
            ExitCode::FAILURE
        }
    }
}

struct Soak {
    slower: u32,
    log: machine::Log,
    rounds: Vec<Round>,
    /// The memory used while the module was not loaded.
    without: Vec<Point>,
    failures: Vec<String>,
    tally: Tally,
    /// Pipes that are kept full.
    leaked: Vec<File>,
}

impl Soak {
    fn new(arguments: &Arguments) -> Result<Self, String> {
        let release = qemu_tests::memory::read("/proc/sys/kernel/osrelease")?;
        let slower = match release.trim().ends_with("-debug") {
            true => SLOWER,
            false => 1,
        };
        println!(
            "soak: {} s, seed {}, kernel {}",
            arguments.seconds,
            arguments.seed,
            release.trim()
        );
        machine::prepare(slower)?;
        machine::unload(slower)?;
        machine::load(slower)?;
        Ok(Self {
            slower,
            log: machine::Log::open()?,
            rounds: Vec::new(),
            without: Vec::new(),
            failures: Vec::new(),
            tally: Tally::default(),
            leaked: Vec::new(),
        })
    }

    fn run(mut self, arguments: &Arguments) -> Outcome {
        let begin = Instant::now();
        let all = Duration::from_secs(arguments.seconds);
        let mut random = Random::new(arguments.seed);
        let mut last = Duration::ZERO;
        // Half a round more at most, so that the last one does not end far beyond the time.
        while begin.elapsed() + last / 2 < all {
            let start = Instant::now();
            self.round(random.next(), arguments)?;
            last = start.elapsed();
            if self.failures.len() >= FAILURES {
                break;
            }
        }
        self.judge();
        println!(
            "soak: {} rounds in {} s, {} events seen, {} drops told; of {} events it was known that there are",
            self.rounds.len(),
            begin.elapsed().as_secs(),
            self.tally.seen,
            self.tally.drops,
            self.tally.known
        );
        match self.failures.len() {
            0 => {
                println!("soak: passed: nothing in the log, all events accounted for, memory and objects flat");
                Ok(())
            }
            n => {
                for failure in &self.failures {
                    println!("soak: FAILED: {failure}");
                }
                Err(format!("{n} failures"))
            }
        }
    }

    /// Runs one round, and prints its line.
    fn round(&mut self, seed: u64, arguments: &Arguments) -> Outcome {
        let start = Instant::now();
        let number = self.rounds.len();
        let suspends = number % SUSPEND == SUSPEND - 1 && !arguments.short;
        let (tally, failed) = self.trace(number, seed, suspends, arguments.short);
        for why in failed {
            println!("soak: round {}: {why}", number + 1);
            self.failures.push(format!("round {}: {why}", number + 1));
        }
        sample::quiet(self.slower)?;
        self.leak(arguments.leak)?;
        let sample = sample::take(true)?;
        // lockdep is silent after its first report, so continuing would be pointless.
        self.log.trouble()?;
        self.tally.add(tally);
        let of = |name: &str| sample.get(name).copied().unwrap_or_default();
        print!(
            "round {} {} s: {} events, {} of known number, {} drops told, available {:.1} MB, used {:.2}, slabs {:.2}, vmalloc {:.2}, percpu {:.2}, threads {}, files {}, probes {}{}",
            number + 1,
            start.elapsed().as_secs(),
            tally.seen,
            tally.known,
            tally.drops,
            of("available") / MB,
            of("used memory") / MB,
            of("slabs") / MB,
            of("vmalloc") / MB,
            of("percpu") / MB,
            of("threads"),
            of("files"),
            of("probes"),
            if suspends { ", suspended" } else { "" },
        );
        self.rounds.push(Round {
            number,
            life: number / LIFE,
            first: number % LIFE == 0,
            sample,
        });
        if number % LIFE == LIFE - 1 {
            self.reload(number)?;
        }
        println!();
        // Flushed, so that the line is on its way to the host before anything else begins.
        std::io::stdout().flush().map_err(|e| e.to_string())
    }

    /// Runs everything that happens at once in a round, to its end.
    fn trace(&self, number: usize, seed: u64, suspends: bool, short: bool) -> (Tally, Vec<String>) {
        let slower = self.slower;
        let [calls, processes, everything] = counted::lanes(LOAD);
        let mut lanes = vec![calls, processes];
        if !short {
            let events = move |slower| machine::events(seed, suspends, slower);
            if number % EVERYTHING == 0 {
                lanes.push(everything);
            }
            lanes.extend([
                mixed::lane(number * MIXED, MIXED),
                mixed::killed(seed),
                vec![Box::new(work) as Job],
                vec![Box::new(move |slower| events(slower).map(|()| Tally::default())) as Job],
            ]);
        }
        let lane = |jobs: Vec<Job>| jobs.iter().map(|job| job(slower)).collect::<Vec<_>>();
        let outcomes = std::thread::scope(|scope| {
            let start = |jobs| scope.spawn(move || lane(jobs));
            let threads: Vec<_> = lanes.into_iter().map(start).collect();
            let end = threads.into_iter().map(|t| t.join());
            end.map(|done| done.unwrap_or_else(|_| vec![Err("a panic".into())]))
                .collect::<Vec<_>>()
        });
        let mut tally = Tally::default();
        let mut failed = Vec::new();
        for outcome in outcomes.into_iter().flatten() {
            match outcome {
                Ok(one) => tally.add(one),
                Err(why) => failed.push(why),
            }
        }
        (tally, failed)
    }

    /// Unloads and loads the module. Meanwhile memory use is recorded, which must be what it was in
    /// earlier lives.
    fn reload(&mut self, number: usize) -> Outcome {
        machine::unload(self.slower)?;
        let sample = sample::take(false)?;
        let used = sample.get("used memory").copied().unwrap_or_default();
        self.without.push(Point {
            round: number as f64,
            value: used,
        });
        print!("; without the module used {:.2}", used / MB);
        machine::load(self.slower)?;
        self.log.trouble()
    }

    /// Leaks `kib` KiB of the kernel's memory.
    fn leak(&mut self, kib: usize) -> Outcome {
        // A pipe holds 64 KiB.
        for left in (0..kib).step_by(64) {
            let (read, write) = rustix::pipe::pipe().map_err(|e| e.to_string())?;
            let mut write = File::from(write);
            let bytes = vec![1; (kib - left).min(64) << 10];
            write.write_all(&bytes).map_err(|e| e.to_string())?;
            self.leaked.extend([File::from(read), write]);
        }
        Ok(())
    }

    /// Judges all series; a series that rises is a failure.
    fn judge(&mut self) {
        let mut names: Vec<&String> = self.rounds.iter().flat_map(|r| r.sample.keys()).collect();
        names.sort();
        names.dedup();
        // Available memory falls if anything else rises.
        names.retain(|name| *name != "available");
        let mut risen = Vec::new();
        let mut flat = Vec::new();
        let mut few = 0;
        for name in &names {
            for (what, groups) in [
                ("in the whole run", self.whole(name)),
                ("while the module stays loaded", self.lives(name)),
            ] {
                match judge(&groups) {
                    Verdict::Few => few += 1,
                    Verdict::Flat(trend) => flat.push((trend.sure, told(name, what, trend))),
                    Verdict::Rises(trend) => risen.push(told(name, what, trend)),
                }
            }
        }
        // There are few of these, and the whole run's series contains them between its rounds.
        if let Verdict::Rises(trend) = judge(std::slice::from_ref(&self.without)) {
            risen.push(format!(
                "used memory: {:.2} more each round without the module",
                trend.slope
            ));
        }
        println!(
            "soak: {} series, each in the whole run and while the module stays loaded: {} rise",
            names.len(),
            risen.len()
        );
        flat.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, near) in flat.iter().take(NEAR) {
            println!("soak: flat, and nearest to rising: {near}");
        }
        if few > 0 {
            risen.push(format!(
                "too few rounds to tell a slope, for {few} series: let it run longer"
            ));
        }
        self.failures.extend(risen);
    }

    fn point(round: &Round, name: &str) -> Point {
        Point {
            round: round.number as f64,
            // A slab cache that does not exist in this round has no objects.
            value: round.sample.get(name).copied().unwrap_or_default(),
        }
    }

    fn judged(&self) -> impl Iterator<Item = &Round> {
        self.rounds.iter().filter(|r| r.number >= WARM && !r.first)
    }

    fn whole(&self, name: &str) -> Vec<Vec<Point>> {
        vec![self.judged().map(|r| Self::point(r, name)).collect()]
    }

    fn lives(&self, name: &str) -> Vec<Vec<Point>> {
        let lives = self.rounds.last().map_or(0, |r| r.life + 1);
        let life = |life| self.judged().filter(move |r| r.life == life);
        (0..lives)
            .map(|n| life(n).map(|r| Self::point(r, name)).collect())
            .collect()
    }
}

/// Describes a series' trend.
fn told(name: &str, what: &str, trend: Trend) -> String {
    format!(
        "{name}: {:.2} more each round {what}, {:.1} standard deviations from none",
        trend.slope, trend.sure
    )
}

/// Bytes.
const MB: f64 = 1e6;

/// Other work of the machine during a round.
fn work(slower: u32) -> Result<Tally, String> {
    let load = format!("{}/soak-other", counted::FOLDER);
    let disk = format!("{}/disk/other", counted::FOLDER);
    let seconds = (5 * slower).to_string();
    program::run(&[&load, &seconds, &disk], slower).map(|_| Tally::default())
}
