// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `bench [-p PEERS] MODULE [SCENARIO...]`: measures what probes cost, in instructions, of this
//! project and of the peers in one run, for all scenarios or some. `qemu-tests/runs/bench` calls it
//! in a machine of one processor whose clock counts instructions, without the module.
//!
//! The module is loaded only during its own part, so that the tracers do not disturb each other.
//! The run fails if the module costs anything while nothing is enabled, or on a system call that is
//! not traced. Everything else is a table, on standard output for programs and on standard error
//! for people.
//!
//! A figure counts only if the tracer printed that it saw the events, and reported no drops.

mod calls;
mod loops;
mod peers;
mod scenarios;
mod tracer;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::Duration;

use loops::{measure, Cost, Operation};
use scenarios::{Figure, Scenario, SCENARIOS};
use tracer::{placing, Tracer, Tracing, PLACING};

/// The relative difference of a loop's cost that is normal between runs: one in a thousand.
const SAME: f64 = 0.001;
/// The events of a burst, each of which must be printed or reported as dropped.
const BURST: u32 = 200_000;
/// Turns before a measurement.
const WARM: u32 = 16;
/// Some tracers report that they are ready before the last of their probes is.
const SETTLE: Duration = Duration::from_secs(2);
/// Characters of a tracer's output that an error shows.
const SHOWN: usize = 300;
/// The operations that are measured while the module is idle.
const IDLE: [Operation; 3] = [Operation::Getppid, Operation::Read, Operation::Stat];

/// The result of a tracer in a scenario.
struct Row {
    id: String,
    tracer: Tracer,
    value: Result<f64, String>,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    let peers = args.next_if(|arg| arg == "-p").and_then(|_| args.next());
    let Some(module) = args.next() else {
        eprintln!("usage: bench [-p PEERS] MODULE [SCENARIO...]");
        return ExitCode::from(2);
    };
    let wanted: Vec<String> = args.collect();
    let scenarios: Vec<&Scenario> = SCENARIOS
        .iter()
        .filter(|scenario| wanted.is_empty() || wanted.iter().any(|id| id == scenario.id))
        .collect();
    match run(
        Path::new(&module),
        peers.as_deref().map(Path::new),
        &scenarios,
    ) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(module: &Path, peers: Option<&Path>, scenarios: &[&Scenario]) -> io::Result<bool> {
    // Scenario S9 traces functions of a module that must be loaded.
    command(Command::new("modprobe").arg("ext4"))?;
    // Start a thread first: once there has been one, the C library needs a few more instructions
    // for each system call, for good.
    drop(Operation::Switch.prepare()?);
    let mut base = BTreeMap::new();
    for scenario in scenarios {
        let operation = scenario.operation;
        if !base.contains_key(operation.name()) {
            base.insert(operation.name(), measure(operation)?);
        }
    }
    let without = idle()?;
    command(Command::new("insmod").arg(module))?;
    let with = idle()?;
    let mut rows = trace(Tracer::Ours, scenarios, &base, Path::new("/"));
    command(Command::new("rmmod").arg("dtrace"))?;
    let after = idle()?;
    if let Some(peers) = peers {
        peers::enter(peers)?;
        rows.extend(trace(Tracer::Bpftrace, scenarios, &base, peers));
        let _daemon = peers::Daemon::start(peers)?;
        rows.extend(trace(Tracer::Oracle, scenarios, &base, peers));
    }
    print!("{}", tsv(&rows));
    let quiet = print_idle(&without, &with, &after);
    Ok(print_table(&rows, scenarios, &base) && quiet)
}

fn command(command: &mut Command) -> io::Result<()> {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{command:?} failed"))),
    }
}

fn idle() -> io::Result<Vec<f64>> {
    IDLE.iter()
        .map(|operation| measure(*operation).map(|cost| cost.usual))
        .collect()
}

/// Runs the scenarios with one tracer.
fn trace(
    tracer: Tracer,
    scenarios: &[&Scenario],
    base: &BTreeMap<&str, Cost>,
    peers: &Path,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for scenario in scenarios {
        // Measured before anything has traced this process.
        if (tracer, scenario.id) == (Tracer::Ours, "S13m") {
            let placed = scenario.program(tracer).and_then(|(d, _)| placing(&d));
            rows.extend(placed_rows(scenario.id, placed));
        }
        let started = scenario
            .program(tracer)
            .and_then(|(program, process)| Tracing::start(tracer, &program, process, peers));
        if let (Ok(tracing), "S3" | "S9" | "S13" | "S13n" | "S13m") = (&started, scenario.id) {
            let costs = [("start, M", tracing.start), ("memory, MB", tracing.memory)];
            rows.extend(costs.map(|(name, value)| Row {
                id: format!("{} {name}", scenario.id),
                tracer,
                value: Ok(value as f64 / 1e6),
            }));
        }
        let value =
            started.and_then(|tracing| figure(scenario, &base[scenario.operation.name()], tracing));
        let value = value.map_err(|error| error.to_string());
        let shown = value.as_ref().map(|value| format!("{value:.1}"));
        eprintln!(
            "bench: {} {} {}: {}",
            tracer.name(),
            scenario.id,
            scenario.what,
            shown.unwrap_or_else(|error| format!("failed: {error}"))
        );
        rows.push(Row {
            id: scenario.id.to_owned(),
            tracer,
            value,
        });
    }
    rows
}

/// The rows of what placing a scenario's probes costs.
fn placed_rows(id: &str, placed: io::Result<Vec<(&str, u64)>>) -> Vec<Row> {
    let row = |name: &str, value| Row {
        id: format!("{id} {name}"),
        tracer: Tracer::Ours,
        value,
    };
    match placed {
        Ok(costs) => {
            let costs = costs.into_iter();
            costs
                .map(|(name, value)| row(name, Ok(value as f64 / 1e6)))
                .collect()
        }
        Err(error) => {
            eprintln!("bench: {id}: placing: {error}");
            vec![row(PLACING[0], Err(error.to_string()))]
        }
    }
}

/// A scenario's number, measured while the tracer runs.
fn figure(scenario: &Scenario, base: &Cost, tracing: Tracing) -> io::Result<f64> {
    let turns = f64::from(scenario.operation.all());
    let events = f64::from(scenario.events);
    let warm = f64::from(WARM) * events;
    sleep(SETTLE);
    if scenario.figure == Figure::Lost {
        return lost(scenario.operation, tracing);
    }
    // Run a few turns first, so that what is created on demand, such as unwind tables, exists
    // during the measurement.
    scenario.operation.prepare()?.run(WARM)?;
    sleep(SETTLE);
    let before = tracing.work()?;
    let cost = measure(scenario.operation)?;
    // The tracer reads its buffers once a second.
    sleep(Duration::from_secs(2));
    let work = (tracing.work()? - before) as f64;
    let output = tracing.finish()?;
    let added = (cost.usual - base.usual) / events;
    let (value, expected) = match scenario.figure {
        Figure::Probe | Figure::Printed | Figure::Lost => (added, turns * events + warm),
        Figure::Unseen => (added, 0.0),
        Figure::WithConsumer => (added + work / (turns * events), turns * events + warm),
        Figure::Sample(rate) => {
            let samples = cost.total / 1e9 * f64::from(rate);
            ((cost.total - base.total) / samples, samples)
        }
    };
    let lost: f64 = output.lines().filter_map(reported).sum();
    if lost > 0.0 {
        return Err(io::Error::other(format!("it lost {lost} events")));
    }
    let printed = output.lines().count() as f64;
    let (seen, least) = match scenario.figure {
        Figure::Printed | Figure::WithConsumer => (printed, expected),
        // A distribution prints the events divided over several numbers.
        _ => (largest(&output), expected / 4.0),
    };
    if seen < least {
        let shown: String = output.trim().chars().take(SHOWN).collect();
        return Err(io::Error::other(format!(
            "it saw {seen} of {least} events: {shown}"
        )));
    }
    Ok(value)
}

/// The largest number in an output.
fn largest(output: &str) -> f64 {
    let numbers = output.split(|c: char| !c.is_ascii_digit());
    let largest = numbers.filter_map(|word| word.parse::<u64>().ok()).max();
    largest.unwrap_or(0) as f64
}

/// The percentage of a burst's events that were not printed.
fn lost(operation: Operation, tracing: Tracing) -> io::Result<f64> {
    let mut turn = operation.prepare()?;
    turn.run(BURST)?;
    sleep(Duration::from_secs(3));
    let output = tracing.finish()?;
    let me = format!("{0} {0} ", std::process::id());
    let printed = output.lines().filter(|line| line.starts_with(&me)).count() as f64;
    let reported: f64 = output.lines().filter_map(reported).sum();
    let burst = f64::from(BURST);
    if printed + reported < burst {
        let silently = burst - printed - reported;
        return Err(io::Error::other(format!(
            "{silently} of {burst} events lost without a word"
        )));
    }
    Ok((100.0 - printed / burst * 100.0).max(0.0))
}

/// The number of events that the tracer reports as dropped in this line.
fn reported(line: &str) -> Option<f64> {
    let lower = line.to_lowercase();
    if !lower.contains("drop") && !lower.contains("lost") {
        return None;
    }
    let numbers = line.split(|c: char| !c.is_ascii_digit());
    numbers.filter_map(|word| word.parse().ok()).next()
}

fn tsv(rows: &[Row]) -> String {
    let mut text = String::from("scenario\ttracer\tvalue\n");
    for row in rows {
        let value = match &row.value {
            Ok(value) => format!("{value:.1}"),
            Err(_) => String::new(),
        };
        let _infallible = writeln!(text, "{}\t{}\t{value}", row.id, row.tracer.name());
    }
    text
}

/// Prints the cost of the idle module; returns false if there is any.
fn print_idle(without: &[f64], with: &[f64], after: &[f64]) -> bool {
    let mut quiet = true;
    eprintln!("S0: instructions per call, nothing enabled");
    eprintln!(
        "{:<36}{:>12}{:>12}{:>12}",
        "", "not loaded", "loaded", "unloaded"
    );
    for (n, operation) in IDLE.iter().enumerate() {
        eprintln!(
            "    {:<32}{:>12.1}{:>12.1}{:>12.1}",
            operation.name(),
            without[n],
            with[n],
            after[n]
        );
        quiet &= (with[n] - without[n]).abs() <= without[n] * SAME;
    }
    quiet
}

/// Prints the table; returns false if this project's tracer failed, or if an untraced system call
/// became slower.
fn print_table(rows: &[Row], scenarios: &[&Scenario], base: &BTreeMap<&str, Cost>) -> bool {
    let mut good = true;
    let mut notes = Vec::new();
    eprintln!("\ninstructions added per event");
    eprint!("{:<40}", "");
    for tracer in Tracer::ALL {
        eprint!("{:>12}", tracer.name());
    }
    eprintln!("{:>12}", "goal");
    let find = |id: &str, tracer| rows.iter().find(|row| row.id == id && row.tracer == tracer);
    for scenario in scenarios {
        eprint!("{:<5}{:<35}", scenario.id, scenario.what);
        for tracer in Tracer::ALL {
            match find(scenario.id, tracer).map(|row| &row.value) {
                Some(Ok(value)) => eprint!("{value:>12.0}"),
                Some(Err(error)) => {
                    eprint!("{:>12}", "failed");
                    notes.push(format!("{} {}: {error}", scenario.id, tracer.name()));
                    good &= tracer != Tracer::Ours;
                }
                None => eprint!("{:>12}", ""),
            }
        }
        eprintln!("{:>12.0}", scenario.target);
    }
    let starts = [
        "S3 start, M",
        "S3 memory, MB",
        "S9 start, M",
        "S9 memory, MB",
        "S13 start, M",
        "S13n start, M",
        "S13m start, M",
    ];
    let placing = PLACING.map(|name| format!("S13m {name}"));
    for id in starts.map(str::to_owned).iter().chain(&placing) {
        eprint!("{id:<40}");
        for tracer in Tracer::ALL {
            match find(id, tracer).map(|row| &row.value) {
                Some(Ok(value)) => eprint!("{value:>12.0}"),
                _ => eprint!("{:>12}", ""),
            }
        }
        eprintln!();
    }
    for note in notes {
        eprintln!("{note}");
    }
    if let Some(Ok(others)) = find("S2o", Tracer::Ours).map(|row| &row.value) {
        if others.abs() > base[Operation::Read.name()].usual * SAME {
            eprintln!("FAILED: a system call that is not traced pays for one that is");
            good = false;
        }
    }
    good
}
