// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Consumers that are killed at work. Runs in the VM: `kills ROUNDS CONSUMERS`, or, for those with probes in processes,
//! `kills processes ROUNDS CONSUMERS` ([`processes`]).
//!
//! Each round starts that many processes, each a consumer with buffers, aggregations, dynamic variables and speculations at
//! system calls, functions and timers, and kills each with SIGKILL after a time of its own: while it enables, starts,
//! traces or ends. When all are gone the module has no users, its own pages are all given back, and what the kernel counts of
//! slabs, areas of vmalloc and memory of CPUs is what it was before.
//!
//! The kernel itself takes and gives a little meanwhile, so "what it was" is what a leak of half a kilobyte a consumer would
//! exceed: the smallest consumer has hundreds.

mod processes;

use dtrace::handle::{Buffer, DevDtrace, Device, PATH};
use qemu_tests::memory::Memory;
use qemu_tests::program::compile;
use qemu_tests::random::Random;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

/// What a consumer traces: with fifty of them, nothing that happens often.
const PROGRAM: &str = r#"
    syscall::getppid:entry { @[execname, probefunc] = count(); self->at[probefunc] = timestamp; }
    syscall::getppid:return /self->at[probefunc]/ { @t = quantize(timestamp - self->at[probefunc]); self->at[probefunc] = 0; }
    syscall::write:entry { self->spec = speculation(); }
    syscall::write:entry /self->spec/ { speculate(self->spec); trace(pid); }
    syscall::write:return /self->spec/ { commit(self->spec); self->spec = 0; }
    fbt::vfs_write: { trace(arg0); }
    profile-7 { @s[stack(5)] = count(); kept[tid, execname] = timestamp; }
    tick-50ms { trace(walltimestamp); }
"#;

/// How often a consumer reads its buffers before another takes its place.
const READINGS: u32 = 50;

/// Bytes of each buffer of a consumer.
const ROOM: usize = 128 << 10;

type Outcome = Result<(), String>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["live", image] => live(image),
        [rounds, consumers] => numbers(rounds, consumers, kill),
        ["processes", rounds, consumers] => numbers(rounds, consumers, processes::kill),
        _ => Err("usage: kills [processes] ROUNDS CONSUMERS".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("kills: {why}");
            ExitCode::FAILURE
        }
    }
}

fn numbers(rounds: &str, consumers: &str, kill: fn(u64, u64) -> Outcome) -> Outcome {
    match (rounds.parse(), consumers.parse()) {
        (Ok(rounds), Ok(consumers)) => kill(rounds, consumers),
        _ => Err("not a number".into()),
    }
}

fn open() -> Result<DevDtrace, String> {
    DevDtrace::open(Path::new(PATH)).map_err(|e| format!("{PATH}: {e}"))
}

/// One consumer's life: it reads its buffers for some seconds.
fn consume(image: &[u8]) -> Outcome {
    let device = open()?;
    device.enable(image).map_err(|e| e.to_string())?;
    device.go().map_err(|e| e.to_string())?;
    let mut room = vec![0; ROOM];
    for _ in 0..READINGS {
        for cpu in 0..device.cpus() {
            for which in [Buffer::Principal, Buffer::Aggregation] {
                let taken = device.snapshot(which, cpu, &mut room);
                taken.map_err(|e| e.to_string())?;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    device.stop().map(drop).map_err(|e| e.to_string())
}

/// One consumer after the other, until the process is killed.
fn live(image: &str) -> Outcome {
    let image = fs::read(image).map_err(|e| e.to_string())?;
    loop {
        consume(&image)?;
    }
}

/// Kills one of those that run, by SIGKILL. One that has failed by itself is an error: it was to live until then.
fn kill_one(running: &mut Vec<Child>, random: &mut Random) -> Outcome {
    let mut child = running.swap_remove(random.below(running.len()));
    let killed = child.kill();
    let status = child.wait().map_err(|e| e.to_string())?;
    killed.map_err(|e| e.to_string())?;
    match status.signal() {
        Some(9) => Ok(()),
        _ => Err(format!("a consumer ended before it was killed: {status}")),
    }
}

/// One round: some die while others are still started.
fn round(image: &str, consumers: u64, random: &mut Random) -> Outcome {
    let itself = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut running = Vec::new();
    for _ in 0..consumers {
        let mut command = Command::new(&itself);
        let child = command.args(["live", image]).spawn();
        running.push(child.map_err(|e| e.to_string())?);
        if random.below(4) == 0 {
            kill_one(&mut running, random)?;
        }
    }
    while !running.is_empty() {
        std::thread::sleep(Duration::from_millis(random.below(20) as u64));
        kill_one(&mut running, random)?;
    }
    Ok(())
}

fn kill(rounds: u64, consumers: u64) -> Outcome {
    let image = compile(PROGRAM, "64k")?;
    // One that is let alone works, or the rest shows nothing.
    consume(&image)?;
    let file = std::env::temp_dir().join("kills.dof");
    fs::write(&file, image).map_err(|e| e.to_string())?;
    let name = file.to_string_lossy().into_owned();
    let mut random = Random::new(1);
    // A first round fills the kernel's own caches.
    round(&name, consumers, &mut random)?;
    let before = Memory::now()?;
    for _ in 0..rounds {
        round(&name, consumers, &mut random)?;
    }
    let after = Memory::now()?;
    fs::remove_file(&file).map_err(|e| e.to_string())?;
    let killed = rounds * consumers;
    eprintln!("kills: {before:?}, after {killed} consumers {after:?}");
    after.check(&before, killed)?;
    println!("kills: {killed} consumers, nothing is left");
    Ok(())
}
