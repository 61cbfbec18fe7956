// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Uses `/dev/dtrace` directly, below the compiler and the consumer, and checks its behaviour. Runs
//! in the VM as root: `device-check CHECK...` prints a line for each check, and exits with 1 if one
//! failed.
//!
//! Programs are written in DIF here, so that a check fails for the kernel's reasons alone.

/// Returns an error with a message unless `condition` holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(format!($($message)*));
        }
    };
}

mod functions;
mod held;
mod lives;
mod place;
mod programs;
mod sight;
mod tables;
mod timers;
mod withdrawn;

use dtrace::device::{Buffer, DevDtrace, Device, PATH};
use dtrace::dof;
use dtrace::program::{ActionDesc, Program};
use dtrace_uapi::action::Action;
use dtrace_uapi::ioctl::ProbeDesc;
use dtrace_uapi::limits::buffer_room;
use dtrace_uapi::option::{Opt, BUFRESIZE_AUTO, BUFRESIZE_MANUAL};
use dtrace_uapi::var::Var;
use programs::{action, clause, constant, described, load, records, tracing, variable};
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};
use zerocopy::FromZeros;

type Check = fn() -> Result<(), String>;

const CHECKS: &[(&str, Check)] = &[
    ("probes", probes),
    ("lifecycle", lifecycle),
    ("error", error),
    ("states", states),
    ("refused", refused),
    ("hostile", hostile),
    ("together", together),
    ("killed", killed),
    ("greedy", greedy),
    ("tables", tables::tables),
    ("functions", functions::functions),
    ("churn", functions::churn),
    ("stopped", withdrawn::stopped),
    ("forgotten", withdrawn::forgotten),
    ("starved", lives::starved),
];

/// Run only if they are named, because they take minutes or need a prepared machine.
const ASKED: &[&str] = &["functions", "churn", "forgotten", "starved"];

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    if asked.first().is_some_and(|arg| arg == "hang") {
        return hang();
    }
    if asked.first().is_some_and(|arg| arg == "tracings") {
        return place::tracings(asked.get(1..).unwrap_or_default());
    }
    match asked
        .split_first()
        .map(|(what, rest)| (what.as_str(), rest))
    {
        Some(("place", rest)) => return finished(place::all(rest)),
        Some(("comings", rest)) => return finished(place::comings(rest)),
        Some(("names", rest)) => return finished(place::names(rest)),
        Some(("held", rest)) => return finished(held::all(rest)),
        Some(("charged", rest)) => return finished(held::charged(rest)),
        Some(("busy", _)) => return finished(busy()),
        Some(("matches", _)) => return finished(matches()),
        Some(("patched", _)) => return finished(functions::patched()),
        Some(("timers", rest)) => return finished(timers::all(rest)),
        Some(("sight", rest)) => return finished(sight::all(rest)),
        _ => {}
    }
    if asked.first().is_some_and(|arg| arg == "image") {
        let written = io::Write::write_all(&mut io::stdout(), &described());
        return ExitCode::from(u8::from(written.is_err()));
    }
    let mut failed = false;
    for (name, check) in CHECKS {
        let wanted = asked.iter().any(|a| a == name);
        if !wanted && (!asked.is_empty() || ASKED.contains(name)) {
            continue;
        }
        match check() {
            Ok(()) => println!("{name}: ok"),
            Err(why) => {
                failed = true;
                println!("{name}: {why}");
            }
        }
    }
    ExitCode::from(u8::from(failed))
}

fn open() -> Result<DevDtrace, String> {
    DevDtrace::open(Path::new(PATH)).map_err(|e| format!("{PATH}: {e}"))
}

/// Prints why something failed, if it did.
fn finished(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Waits for the end of `input`: until no process can write to it.
fn await_end(input: &mut impl io::Read) -> Result<(), String> {
    io::copy(input, &mut io::sink()).map_err(|e| e.to_string())?;
    Ok(())
}

/// How `device` refused a request: the error's number and the reason.
fn refusal(device: &DevDtrace, error: &io::Error) -> String {
    format!(
        "{} {}",
        error.raw_os_error().unwrap_or_default(),
        device.reason()
    )
}

/// The result of a call on `device`, with the kernel's reason added to an error.
fn done<T>(device: &DevDtrace, what: &str, result: io::Result<T>) -> Result<T, String> {
    result.map_err(|e| format!("{what}: {e} ({})", device.reason()))
}

fn name(device: &DevDtrace, id: u32) -> Result<String, String> {
    let mut pattern = ProbeDesc::new_zeroed();
    pattern.id = id - 1;
    let probe = done(device, "PROBEMATCH", device.next_probe(&pattern))?;
    let probe = probe.ok_or("no such probe")?;
    Ok(dtrace::device::text(&probe.name))
}

/// Checks that IDs are dense, that PROBEMATCH finds what a description matches, and that providers
/// are found by name.
fn probes() -> Result<(), String> {
    let device = open()?;
    let everything = ProbeDesc::new_zeroed();
    let (mut at, mut count) = (everything, 0);
    while let Some(mut found) = done(&device, "PROBEMATCH", device.next_probe(&at))? {
        ensure!(found.id > count, "id {} after {count}", found.id);
        count = found.id;
        found.provider.fill(0);
        (found.module, found.func, found.name) =
            (everything.module, everything.func, everything.name);
        at = found;
    }
    ensure!(count >= 3, "only {count} probes");
    for (id, expected) in [(1, "BEGIN"), (2, "END"), (3, "ERROR")] {
        let found = name(&device, id)?;
        ensure!(found == expected, "probe {id} is {found}");
    }
    let provider = done(&device, "PROVIDER", device.provider("dtrace"))?;
    ensure!(provider.is_some(), "no provider dtrace");
    let provider = done(&device, "PROVIDER", device.provider("nonesuch"))?;
    ensure!(provider.is_none(), "a provider nonesuch");
    Ok(())
}

/// Checks that BEGIN fires first and END last, each once.
fn lifecycle() -> Result<(), String> {
    let device = open()?;
    let image = tracing(vec![
        ("dtrace:::BEGIN", vec![constant(42), variable(Var::Id)]),
        ("dtrace:::END", vec![constant(43), variable(Var::Id)]),
    ]);
    let matched = done(&device, "ENABLE", device.enable(&image))?;
    ensure!(matched == 2, "{matched} probes matched");
    done(&device, "GO", device.go())?;
    let begun = records(&device)?;
    ensure!(begun == [(1, vec![42, 1])], "after GO: {begun:?}");
    done(&device, "STOP", device.stop())?;
    let ended = records(&device)?;
    ensure!(ended == [(2, vec![43, 2])], "after STOP: {ended:?}");
    let status = done(&device, "STATUS", device.status())?;
    ensure!(status.errors == 0, "{} errors", status.errors);
    Ok(())
}

/// Checks that a fault fires ERROR, with the address, for the consumer whose clause faulted, and
/// for no other.
fn error() -> Result<(), String> {
    let (device, other) = (open()?, open()?);
    let quiet = tracing(vec![("dtrace:::ERROR", vec![constant(1)])]);
    done(&other, "ENABLE", other.enable(&quiet))?;
    done(&other, "GO", other.go())?;
    let image = tracing(vec![
        ("dtrace:::BEGIN", vec![constant(7), load(0x10)]),
        (
            "dtrace:::ERROR",
            vec![variable(Var::Arg4), variable(Var::Arg5)],
        ),
        ("dtrace:::BEGIN", vec![constant(8)]),
    ]);
    done(&device, "ENABLE", device.enable(&image))?;
    done(&device, "GO", device.go())?;
    let found = records(&device)?;
    ensure!(
        found == [(3, vec![1, 0x10]), (1, vec![8])],
        "records: {found:?}"
    );
    let status = done(&device, "STATUS", device.status())?;
    ensure!(status.errors == 1, "{} errors", status.errors);
    let found = records(&other)?;
    ensure!(found.is_empty(), "the other consumer got {found:?}");
    Ok(())
}

/// Checks that calls in the wrong order are refused and change nothing.
fn states() -> Result<(), String> {
    let device = open()?;
    ensure!(device.stop().is_err(), "STOP before GO");
    ensure!(device.status().is_err(), "STATUS before GO");
    ensure!(device.enabled_probe(1).is_err(), "EPROBE of nothing");
    ensure!(device.aggregation(1).is_err(), "AGGDESC of nothing");
    let image = tracing(vec![("dtrace:::BEGIN", vec![constant(42)])]);
    done(&device, "ENABLE", device.enable(&image))?;
    done(&device, "GO", device.go())?;
    let again = device.enable(&image).map_err(|e| e.raw_os_error());
    ensure!(again == Err(Some(16)), "ENABLE after GO: {again:?}");
    ensure!(device.go().is_err(), "GO twice");
    let mut room = vec![0; buffer_room(64 << 10) as usize];
    let nowhere = device.snapshot(Buffer::Principal, 100_000, &mut room);
    ensure!(nowhere.is_err(), "a snapshot of CPU 100000");
    let small = device.snapshot(Buffer::Principal, 0, &mut [0; 16]);
    ensure!(small.is_err(), "a snapshot without room");
    done(&device, "STOP", device.stop())?;
    ensure!(device.stop().is_err(), "STOP twice");
    Ok(())
}

/// Checks that an enabling whose last clause is not allowed leaves nothing of its other clauses,
/// nor of its options.
fn refused() -> Result<(), String> {
    let device = open()?;
    let traced = action(Action::Difexpr, variable(Var::Execname));
    let formatted = ActionDesc {
        format: Some("%d".into()),
        ..action(Action::Printf, constant(1))
    };
    let stopping = ActionDesc {
        difo: None,
        ..action(Action::Stop, constant(0))
    };
    let program = Program {
        clauses: vec![
            clause("dtrace:::BEGIN", vec![traced, formatted]),
            clause(
                "profile:::tick-77s",
                vec![action(Action::Stop, constant(0))],
            ),
            clause("dtrace:::END", vec![stopping]),
        ],
        first_uarg: 1,
        ..Program::default()
    };
    let bad = dof::emit(&program, &[(Opt::Strsize, 77), (Opt::Bufsize, 64 << 10)]);
    for _ in 0..3 {
        let errno = device.enable(&bad).map_err(|e| e.raw_os_error());
        ensure!(errno == Err(Some(13)), "ENABLE: {errno:?}");
        let reason = device.reason();
        ensure!(reason.contains("destructive"), "reason: {reason}");
        ensure!(device.enabled_probe(1).is_err(), "an enabled probe is left");
    }
    let good = tracing(vec![
        ("dtrace:::BEGIN", vec![constant(42)]),
        ("dtrace:::END", vec![constant(43)]),
    ]);
    let matched = done(&device, "ENABLE", device.enable(&good))?;
    ensure!(matched == 2, "{matched} probes matched");
    let (desc, _) = done(&device, "EPROBE", device.enabled_probe(1))?;
    ensure!((desc.probeid, desc.size) == (1, 24), "EPID 1 is {desc:?}");
    ensure!(device.enabled_probe(3).is_err(), "an EPID too many");
    done(&device, "GO", device.go())?;
    done(&device, "STOP", device.stop())?;
    let found = records(&device)?;
    ensure!(
        found == [(1, vec![42]), (2, vec![43])],
        "records: {found:?}"
    );
    Ok(())
}

/// Checks that images with one word changed, and truncated images, are refused or harmless.
fn hostile() -> Result<(), String> {
    let good = tracing(vec![
        ("dtrace:::BEGIN", vec![constant(42), variable(Var::Id)]),
        ("dtrace:::END", vec![load(0x10)]),
    ]);
    let mut refused = 0u32;
    for at in (0..good.len()).step_by(4) {
        for word in [0u32, 1, 0x7fff_ffff, u32::MAX, 0x0001_0000] {
            let mut bad = good.clone();
            bad.splice(at..at + 4, word.to_ne_bytes());
            let device = open()?;
            match device.enable(&bad) {
                Ok(_) => {
                    let _ = device.go();
                }
                Err(e) => {
                    refused += 1;
                    let errno = e.raw_os_error();
                    let known = [Some(22), Some(7), Some(14), Some(12)];
                    ensure!(known.contains(&errno), "word {at}={word:#x}: {e}");
                    ensure!(
                        errno == Some(14) || !device.reason().is_empty(),
                        "word {at}={word:#x}: {e} without a reason"
                    );
                }
            }
        }
    }
    ensure!(refused > 200, "only {refused} images were refused");
    for size in [0u64, 1, 63, 64, 65, 100, good.len() as u64 - 1] {
        let mut bad = good.clone();
        bad[40..48].copy_from_slice(&size.to_ne_bytes());
        bad[48..56].copy_from_slice(&size.to_ne_bytes());
        ensure!(open()?.enable(&bad).is_err(), "an image of {size} bytes");
    }
    Ok(())
}

/// Checks that several consumers can trace at the same time, independently.
fn together() -> Result<(), String> {
    let mut devices = Vec::new();
    for n in 0..16u64 {
        let device = open()?;
        let image = tracing(vec![("dtrace:::", vec![constant(n)])]);
        let matched = done(&device, "ENABLE", device.enable(&image))?;
        ensure!(matched == 3, "{matched} probes matched");
        done(&device, "GO", device.go())?;
        devices.push(device);
    }
    for (n, device) in devices.iter().enumerate() {
        let found = records(device)?;
        ensure!(found == [(1, vec![n as u64])], "consumer {n}: {found:?}");
    }
    // Every other consumer is closed; the rest still works.
    let mut n = 0;
    devices.retain(|_| {
        n += 1;
        n % 2 == 0
    });
    for (n, device) in devices.iter().enumerate() {
        done(device, "STOP", device.stop())?;
        let found = records(device)?;
        ensure!(
            found == [(2, vec![2 * n as u64 + 1])],
            "consumer {n}: {found:?}"
        );
    }
    Ok(())
}

/// Checks that the module has no users after a consumer was killed while it traced everything.
fn killed() -> Result<(), String> {
    let itself = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut child = Command::new(&itself)
        .arg("hang")
        .spawn()
        .map_err(|e| e.to_string())?;
    // Kill it in the middle: enabling all functions takes seconds. `kills` kills many smaller
    // consumers at other moments.
    std::thread::sleep(std::time::Duration::from_millis(300));
    child.kill().map_err(|e| e.to_string())?;
    child.wait().map_err(|e| e.to_string())?;
    let modules = std::fs::read_to_string("/proc/modules").map_err(|e| e.to_string())?;
    let users = modules
        .lines()
        .find_map(|line| line.strip_prefix("dtrace "))
        .and_then(|rest| rest.split(' ').nth(1));
    ensure!(users == Some("0"), "users of the module: {users:?}");
    Ok(())
}

/// Checks that consumers that request all memory get some or none, and that the machine keeps what
/// it needs.
fn greedy() -> Result<(), String> {
    let asking = |resize| {
        let begin = clause("dtrace:::BEGIN", vec![action(Action::Difexpr, constant(1))]);
        let program = Program {
            clauses: vec![begin],
            first_uarg: 1,
            ..Program::default()
        };
        dof::emit(
            &program,
            &[(Opt::Bufsize, 2 << 30), (Opt::Bufresize, resize)],
        )
    };
    let device = open()?;
    done(&device, "ENABLE", device.enable(&asking(BUFRESIZE_MANUAL)))?;
    let errno = device.go().map_err(|e| e.raw_os_error());
    ensure!(
        errno == Err(Some(12)),
        "GO with 2 GiB for each CPU: {errno:?}"
    );
    let reason = device.reason();
    ensure!(reason.contains("bufsize"), "reason: {reason}");
    drop(device);
    let mut devices = Vec::new();
    for n in 0..6 {
        let device = open()?;
        let enabled = device.enable(&asking(BUFRESIZE_AUTO));
        done(&device, "ENABLE", enabled)?;
        // A later consumer may find nothing left.
        let gone = device.go().map_err(|e| e.raw_os_error());
        ensure!(
            gone.is_ok() || n > 0 && gone == Err(Some(12)),
            "GO: {gone:?}"
        );
        devices.push(device);
    }
    let memory = std::fs::read_to_string("/proc/meminfo").map_err(|e| e.to_string())?;
    let available = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = available.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    // 64 MiB are kept free, some of which other programs take meanwhile.
    ensure!(
        available > Some(32 << 10),
        "{available:?} KiB of memory are left"
    );
    Ok(())
}

/// Checks that a consumer that makes control calls, of any kind, counts as alive.
fn busy() -> Result<(), String> {
    let device = open()?;
    let image = tracing(vec![("profile:::tick-100ms", vec![constant(1)])]);
    done(&device, "ENABLE", device.enable(&image))?;
    done(&device, "GO", device.go())?;
    let begin = std::time::Instant::now();
    while begin.elapsed().as_secs() < 9 {
        done(&device, "CONF", device.conf())?;
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let status = done(&device, "STATUS", device.status())?;
    ensure!(status.killed == 0, "a consumer that is busy was ended");
    println!("busy");
    Ok(())
}

/// Enables descriptions that take longer to match than is allowed, and are therefore refused, again
/// and again until it is killed.
fn matches() -> Result<(), String> {
    let device = open()?;
    let names: Vec<String> = (1000..1030)
        .map(|n| format!("::*a*e*i*o*u*{n}*q:"))
        .collect();
    let clauses = names.iter().map(|name| (name.as_str(), vec![constant(1)]));
    let image = tracing(clauses.collect());
    println!("begun");
    loop {
        match device.enable(&image) {
            Err(error) if error.kind() == io::ErrorKind::ArgumentListTooLong => {}
            other => return Err(format!("{:?}", done(&device, "ENABLE", other))),
        }
    }
}

/// Traces all functions and system calls until it is killed.
fn hang() -> ExitCode {
    // Timers at all rates would leave a debug kernel no time for anything else if everything that
    // they interrupt is traced; an emulated machine needs a minute to patch all tracepoints.
    let clauses = ["fbt:::", "syscall:::"].map(|what| (what, vec![variable(Var::Id)]));
    let image = tracing(clauses.into());
    let Ok(device) = open() else {
        return ExitCode::FAILURE;
    };
    if device.enable(&image).and_then(|_| device.go()).is_err() {
        return ExitCode::FAILURE;
    }
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}
