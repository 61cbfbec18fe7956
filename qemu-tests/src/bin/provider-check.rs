// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Counts firings, below the compiler, so that a provider's case fails for the kernel's reasons
//! alone. Runs in the VM:
//!
//! - `provider-check list`: prints how many probes each provider has;
//! - `provider-check count MS DESC...`: enables each description with `@ = count()` in one
//!   consumer, and after MS milliseconds prints how often each fired; the durations of enabling and
//!   ending go to standard error;
//! - `provider-check run DESC... -- COMMAND...`: the same while a command runs;
//! - `provider-check values DESC VAR... -- COMMAND...`: traces built-in variables (`arg0` …
//!   `errno`) at the probes while a command runs, one line per firing;
//! - `provider-check rounds N DESC`: enables, starts and closes N times;
//! - `provider-check sleepers N DESC`: has N threads sleep at the same time; checks that each call
//!   of the functions either returned or its return was counted as lost, and that some were lost;
//! - `provider-check types DESC`: prints the argument types of the first probe that matches.

use dtrace::device::{fill, text, Buffer, DevDtrace, Device, PATH};
use dtrace::dof;
use dtrace::program::{ActionDesc, Clause, Difo, Program};
use dtrace::source::Span;
use dtrace_uapi::action::Action;
use dtrace_uapi::dif::{Instr, Op};
use dtrace_uapi::ioctl::{ProbeDesc, RecHdr};
use dtrace_uapi::limits::buffer_room;
use dtrace_uapi::option::Opt;
use dtrace_uapi::types::DifType;
use dtrace_uapi::var::Var;
use qemu_tests::program::pattern;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, FromZeros};

type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["list"] => list(),
        ["count", ms, probes @ ..] => match ms.parse() {
            Ok(ms) => count(probes, || {
                std::thread::sleep(Duration::from_millis(ms));
                Ok(())
            }),
            Err(_) => Err("count: not a number".into()),
        },
        ["run", rest @ ..] => split(rest).and_then(|(probes, cmd)| count(probes, || run(cmd))),
        ["values", desc, rest @ ..] => {
            split(rest).and_then(|(variables, cmd)| values(desc, variables, cmd))
        }
        ["rounds", n, desc] => rounds(n, desc),
        ["sleepers", n, desc] => sleepers(n, desc),
        ["types", desc] => types(desc),
        _ => Err("usage: see the source".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("provider-check: {why}");
            ExitCode::FAILURE
        }
    }
}

fn split<'a>(args: &'a [&'a str]) -> Result<(&'a [&'a str], &'a [&'a str]), String> {
    let at = args.iter().position(|a| *a == "--").ok_or("no --")?;
    Ok((&args[..at], &args[at + 1..]))
}

fn run(cmd: &[&str]) -> Outcome {
    let (program, args) = cmd.split_first().ok_or("no command")?;
    let status = Command::new(program).args(args).status();
    status.map(|_| ()).map_err(|e| format!("{program}: {e}"))
}

/// Calls `work` while another thread makes control calls as a consumer does; otherwise the deadman
/// would kill the tracing.
fn watching(device: &DevDtrace, work: impl FnOnce() -> Outcome) -> Outcome {
    let (done, end) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while end.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                // Errors are ignored: they show again when the tracing is stopped.
                let _ = device.status();
            }
        });
        let outcome = work();
        drop(done);
        outcome
    })
}

fn open() -> Result<DevDtrace, String> {
    DevDtrace::open(Path::new(PATH)).map_err(|e| format!("{PATH}: {e}"))
}

fn action(kind: Action, difo: Option<Difo>) -> ActionDesc {
    ActionDesc {
        kind,
        difo,
        format: None,
        ntuple: 0,
        arg: 0,
        uarg: 1,
    }
}

fn variable(id: Var) -> Difo {
    let code = vec![
        Instr::indexed(Op::Ldgs, id as u16, 1),
        Instr::fmt(Op::Ret, 0, 0, 1),
    ];
    Difo {
        spans: vec![Span::default(); code.len()],
        text: code,
        strings: vec![0],
        rtype: DifType {
            size: 8,
            ..DifType::default()
        },
        ..Difo::default()
    }
}

/// Enables `actions` at each description.
fn enable(device: &DevDtrace, probes: &[&str], actions: &[ActionDesc]) -> Result<u32, String> {
    let clause = |desc: &&str| Clause {
        probes: pattern(desc),
        predicate: None,
        actions: actions.to_vec(),
        number: 0,
        span: Span::default(),
    };
    let program = Program {
        clauses: probes.iter().map(clause).collect(),
        first_uarg: 1,
        ..Program::default()
    };
    let options = [(Opt::Bufsize, 256 << 10), (Opt::Aggsize, 256 << 10)];
    let image = dof::emit(&program, &options);
    let enabled = device.enable(&image);
    enabled.map_err(|e| format!("ENABLE: {e} ({})", device.reason()))
}

fn go(device: &DevDtrace) -> Outcome {
    let started = device.go();
    started
        .map(|_| ())
        .map_err(|e| format!("GO: {e} ({})", device.reason()))
}

fn count(probes: &[&str], work: impl FnOnce() -> Outcome) -> Outcome {
    let device = open()?;
    let before = Instant::now();
    let matched = enable(&device, probes, &[action(Action::Count, None)])?;
    let enabled = before.elapsed();
    let note = device.reason();
    go(&device)?;
    watching(&device, work)?;
    let before = Instant::now();
    device.stop().map_err(|e| format!("STOP: {e}"))?;
    let totals = totals(&device)?;
    let status = device.status().map_err(|e| format!("STATUS: {e}"))?;
    drop(device);
    eprintln!(
        "{matched} probes, enabled in {} ms, ended in {} ms, {} errors {note}",
        enabled.as_millis(),
        before.elapsed().as_millis(),
        status.errors
    );
    // Aggregations are numbered in the order of the clauses.
    for (n, desc) in probes.iter().enumerate() {
        let total = totals.get(&(n as u32 + 1)).unwrap_or(&0);
        println!("{desc} {total}");
    }
    Ok(())
}

/// Each aggregation's count, summed over all CPUs.
fn totals(device: &DevDtrace) -> Result<BTreeMap<u32, u64>, String> {
    let mut totals = BTreeMap::new();
    let mut room = vec![0; 256 << 10];
    for cpu in 0..device.cpus() {
        let taken = device.snapshot(Buffer::Aggregation, cpu, &mut room);
        let Some(desc) = taken.map_err(|e| format!("AGGSNAP: {e}"))? else {
            continue;
        };
        if desc.drops > 0 {
            return Err(format!("CPU {cpu} dropped {}", desc.drops));
        }
        let mut rest = &room[..desc.size as usize];
        while let Ok((id, after)) = u32::read_from_prefix(rest) {
            if id == 0 {
                rest = after;
                continue;
            }
            let layout = device.aggregation(id);
            let (head, fields) = layout.map_err(|e| format!("AGGDESC: {e}"))?;
            let at = fields.last().map_or(0, |field| field.offset as usize);
            let value = rest.get(at..at + 8).ok_or("a record is cut off")?;
            let value = u64::from_ne_bytes(value.try_into().map_err(|_| "a record is cut off")?);
            *totals.entry(id).or_default() += value;
            rest = rest
                .get(head.size as usize..)
                .ok_or("a record is cut off")?;
        }
    }
    Ok(totals)
}

fn values(desc: &str, variables: &[&str], cmd: &[&str]) -> Outcome {
    let id = |name: &&str| match *name {
        "arg0" => Ok(Var::Arg0),
        "arg1" => Ok(Var::Arg1),
        "arg2" => Ok(Var::Arg2),
        "arg3" => Ok(Var::Arg3),
        "arg7" => Ok(Var::Arg7),
        "errno" => Ok(Var::Errno),
        "caller" => Ok(Var::Caller),
        "pid" => Ok(Var::Pid),
        _ => Err(format!("no variable {name}")),
    };
    let variables = variables.iter().map(id).collect::<Result<Vec<_>, _>>()?;
    let trace = |var: &Var| action(Action::Difexpr, Some(variable(*var)));
    let actions: Vec<_> = variables.iter().map(trace).collect();
    let device = open()?;
    enable(&device, &[desc], &actions)?;
    go(&device)?;
    watching(&device, || run(cmd))?;
    device.stop().map_err(|e| format!("STOP: {e}"))?;
    let mut room = vec![0; buffer_room(256 << 10) as usize];
    for cpu in 0..device.cpus() {
        let taken = device.snapshot(Buffer::Principal, cpu, &mut room);
        let Some(head) = taken.map_err(|e| format!("BUFSNAP: {e}"))? else {
            continue;
        };
        let mut rest = &room[..head.size as usize];
        while let Ok((record, _)) = RecHdr::read_from_prefix(rest) {
            if record.epid == 0 {
                rest = &rest[4..];
                continue;
            }
            let enabled = device.enabled_probe(record.epid);
            let (probe, fields) = enabled.map_err(|e| format!("EPROBE: {e}"))?;
            let value = |offset: u32| {
                let bytes = rest.get(offset as usize..offset as usize + 8)?;
                Some(i64::from_ne_bytes(bytes.try_into().ok()?))
            };
            let words: Vec<_> = fields
                .iter()
                .filter_map(|field| value(field.offset))
                .map(|value| value.to_string())
                .collect();
            println!("{}", words.join(" "));
            rest = rest
                .get(probe.size as usize..)
                .ok_or("a record is cut off")?;
        }
    }
    Ok(())
}

fn rounds(n: &str, desc: &str) -> Outcome {
    let n: u32 = n.parse().map_err(|_| "rounds: not a number")?;
    let mut took = [Duration::ZERO; 3];
    for _ in 0..n {
        let device = open()?;
        let start = Instant::now();
        enable(&device, &[desc], &[action(Action::Count, None)])?;
        let enabled = Instant::now();
        go(&device)?;
        let gone = Instant::now();
        drop(device);
        took[0] += enabled - start;
        took[1] += gone - enabled;
        took[2] += gone.elapsed();
    }
    let [enable, go, close] = took.map(|t| t.as_millis());
    eprintln!("{n} rounds: {enable} ms enabling, {go} ms starting, {close} ms closing");
    Ok(())
}

/// Returns how many function returns could not be hooked since the module was loaded, from the open
/// device's fdinfo.
fn lost_returns() -> Result<u64, String> {
    let files = std::fs::read_dir("/proc/self/fdinfo").map_err(|e| format!("fdinfo: {e}"))?;
    for file in files.flatten() {
        let info = std::fs::read_to_string(file.path()).unwrap_or_default();
        let line = info.lines().find(|line| line.starts_with("dtrace-lost:"));
        if let Some((_, count)) = line.and_then(|line| line.split_once("returns ")) {
            return count.parse().map_err(|_| format!("returns {count}"));
        }
    }
    Err("no open file counts lost returns".into())
}

fn sleepers(n: &str, desc: &str) -> Outcome {
    let n: usize = n.parse().map_err(|_| "sleepers: not a number")?;
    let device = open()?;
    let probes = [format!("{desc}:entry"), format!("{desc}:return")];
    let probes = probes.each_ref().map(String::as_str);
    enable(&device, &probes, &[action(Action::Count, None)])?;
    let before = lost_returns()?;
    go(&device)?;
    watching(&device, || park(n, before))?;
    device.stop().map_err(|e| format!("STOP: {e}"))?;
    let lost = lost_returns()? - before;
    let totals = totals(&device)?;
    let fired = |id| totals.get(&id).copied().unwrap_or(0);
    let (entries, returns) = (fired(1), fired(2));
    eprintln!("{entries} entries, {returns} returns, {lost} returns lost");
    if lost == 0 || entries != returns + lost {
        return Err("they do not add up".into());
    }
    println!("every call is accounted for");
    Ok(())
}

/// Has `n` threads sleep at the same time until more returns were lost than `before`.
fn park(n: usize, before: u64) -> Outcome {
    // Threads park in futexes. With `sleep`, a call of another program that is still under way at
    // the end would make the sum wrong.
    let enough = Arc::new(AtomicBool::new(false));
    let sleep = |enough: Arc<AtomicBool>| {
        move || {
            while !enough.load(Ordering::Acquire) {
                std::thread::park();
            }
        }
    };
    let spawn = |_| {
        std::thread::Builder::new()
            .stack_size(32 << 10)
            .spawn(sleep(enough.clone()))
    };
    let threads: Result<Vec<_>, _> = (0..n).map(spawn).collect();
    let threads = threads.map_err(|e| format!("a thread: {e}"))?;
    // Once no hooks are left, returns are lost; if that does not happen, give up after a minute.
    let late = Instant::now() + Duration::from_secs(60);
    while lost_returns()? == before && Instant::now() < late {
        std::thread::sleep(Duration::from_millis(50));
    }
    enough.store(true, Ordering::Release);
    for thread in threads {
        thread.thread().unpark();
        thread.join().map_err(|_| "a thread panicked")?;
    }
    Ok(())
}

/// The descriptions of matching probes.
fn matching(device: &DevDtrace, desc: &str) -> Result<Vec<ProbeDesc>, String> {
    let wanted = pattern(desc);
    let mut at = ProbeDesc::new_zeroed();
    let fit = "a part is too long";
    at.provider = fill(&wanted.provider).ok_or(fit)?;
    at.module = fill(&wanted.module).ok_or(fit)?;
    at.func = fill(&wanted.func).ok_or(fit)?;
    at.name = fill(&wanted.name).ok_or(fit)?;
    let mut found = Vec::new();
    while let Some(probe) = device
        .next_probe(&at)
        .map_err(|e| format!("PROBEMATCH: {e}"))?
    {
        at.id = probe.id;
        found.push(probe);
    }
    Ok(found)
}

fn list() -> Outcome {
    let device = open()?;
    let mut counts = BTreeMap::new();
    for probe in matching(&device, "")? {
        *counts.entry(text(&probe.provider)).or_insert(0u32) += 1;
    }
    for (provider, count) in counts {
        println!("{provider} {count}");
    }
    Ok(())
}

fn types(desc: &str) -> Outcome {
    let device = open()?;
    let probes = matching(&device, desc)?;
    let probe = probes.first().ok_or("no such probe")?;
    for n in 0.. {
        let argument = device.argument(probe.id, n);
        match argument.map_err(|e| format!("PROBEARG: {e}"))? {
            Some(argument) => println!("args[{n}]: {}", text(&argument.native)),
            None => break,
        }
    }
    Ok(())
}
