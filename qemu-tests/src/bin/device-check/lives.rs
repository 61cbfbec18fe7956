// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! A CPU that a program keeps from all others. A consumer whose probes fire there is killed, though
//! the other CPUs run and its calls come; one whose probes fire elsewhere is not.

use crate::programs::{clause, image};
use crate::withdrawn::{is_traced, PROBE};
use crate::{done, open};
use dtrace::device::{DevDtrace, Device};
use std::os::unix::process::parent_id;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the consumer may be without a sign of life: the module's parameter `deadman_timeout`.
const TIMEOUT: Duration = Duration::from_secs(3);

/// A real-time program that computes on CPU 1 until it is dropped.
struct Hog(Child);

impl Hog {
    fn start() -> Result<Self, String> {
        // Each of the commands executes the next one, so the child is the program. None makes the
        // call that is traced: a shell would.
        let hog = Command::new("taskset")
            .args(["-c", "1", "chrt", "-f", "10", "yes"])
            .stdout(Stdio::null())
            .spawn();
        Ok(Self(hog.map_err(|error| format!("taskset: {error}"))?))
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes calls until the consumer has been killed, `limit` at most. Returns when that was.
fn killed(device: &DevDtrace, limit: Duration) -> Result<Option<Duration>, String> {
    let begun = Instant::now();
    while begun.elapsed() < limit {
        // Fires on a CPU that is free.
        let _ = parent_id();
        let status = done(device, "STATUS", device.status())?;
        if status.killed != 0 {
            return Ok(Some(begun.elapsed()));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(None)
}

/// Starts a consumer with empty clauses.
fn begun(probes: &[&str]) -> Result<DevDtrace, String> {
    let device = open()?;
    let clauses = probes.iter().map(|probe| clause(probe, Vec::new()));
    let image = image(clauses.collect());
    done(&device, "ENABLE", device.enable(&image))?;
    done(&device, "GO", device.go())?;
    Ok(device)
}

/// Must run on another CPU than 1, with `deadman_timeout` set to [`TIMEOUT`], and on a kernel that
/// reserves no time for other tasks where a real-time program runs.
pub fn starved() -> Result<(), String> {
    let elsewhere = begun(&[PROBE])?;
    let hog = Hog::start()?;
    let ended = killed(&elsewhere, 3 * TIMEOUT)?;
    ensure!(
        ended.is_none(),
        "killed after {ended:?} though nothing fires there"
    );
    drop(hog);
    drop(elsewhere);
    let there = begun(&[PROBE, "profile:::profile-97"])?;
    ensure!(is_traced()?, "not traced after GO");
    let hog = Hog::start()?;
    let ended = killed(&there, 4 * TIMEOUT)?;
    let ended = ended.ok_or("a consumer that starves a CPU was not killed")?;
    ensure!(ended > TIMEOUT / 2, "killed after {ended:?}");
    // It is detached, though its file is open and the CPU is still occupied.
    let begun = Instant::now();
    while is_traced()? {
        let waited = begun.elapsed();
        ensure!(waited < 2 * TIMEOUT, "traced {waited:?} after the kill");
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(hog);
    Ok(())
}
