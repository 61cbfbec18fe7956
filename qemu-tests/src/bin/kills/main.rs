// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Kills consumers while they work. Runs in the VM: `kills ROUNDS CONSUMERS`, or, for consumers
//! with probes in processes, `kills processes ROUNDS CONSUMERS` ([`processes`]).
//!
//! Each round starts that many processes, each a consumer with buffers, aggregations, dynamic
//! variables and speculations at system calls, functions and timers, and kills each with SIGKILL
//! after a random time: while it enables, starts, traces or ends. When all have gone, the module
//! has no users, all its pages are freed, and the kernel's counters of slabs, vmalloc areas and
//! per-CPU memory are what they were before.
//!
//! The kernel itself allocates and frees a little meanwhile, so the check finds a leak of half a
//! kilobyte or more per consumer; the smallest consumer has hundreds of kilobytes.

mod processes;

use dtrace::device::{Buffer, DevDtrace, Device, PATH};
use qemu_tests::memory::Memory;
use qemu_tests::program::compile;
use qemu_tests::random::Random;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

/// The consumers' program: nothing in it fires often, because there are fifty of them.
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

/// How often a consumer reads its buffers before the next one begins.
const READINGS: u32 = 50;

/// Bytes of room for one buffer of a consumer.
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

/// The life of one consumer: it reads its buffers for some seconds.
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

/// Runs one consumer after another, until the process is killed.
fn live(image: &str) -> Outcome {
    let image = fs::read(image).map_err(|e| e.to_string())?;
    loop {
        consume(&image)?;
    }
}

/// Kills one of the running consumers with SIGKILL. If it has ended by itself before, that is an
/// error.
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

/// Runs one round: some are killed while others are still being started.
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
    // Check that a consumer works if it is not killed; otherwise the test proves nothing.
    consume(&image)?;
    let file = std::env::temp_dir().join("kills.dof");
    fs::write(&file, image).map_err(|e| e.to_string())?;
    let name = file.to_string_lossy().into_owned();
    let mut random = Random::new(1);
    // The first round fills the kernel's own caches.
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
