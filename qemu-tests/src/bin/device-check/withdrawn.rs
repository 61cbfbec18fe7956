// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Checks that a consumer that has ended leaves nothing at the probes while its file is still open.

use crate::programs::{clause, constant, image, records, tracing};
use crate::{done, open};
use dtrace::device::{DevDtrace, Device};
use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

/// A probe that nothing else in the machine fires.
pub const PROBE: &str = "syscall:vmlinux:getppid:entry";
/// The end of its function's name, after the architecture's prefix.
const FUNCTION: &str = "_sys_getppid ";

/// Whether ftrace has a callback at the function.
pub fn is_traced() -> Result<bool, String> {
    let traced = std::fs::read_to_string("/sys/kernel/tracing/enabled_functions");
    let traced = traced.map_err(|e| format!("enabled_functions: {e}"))?;
    Ok(traced.lines().any(|line| line.contains(FUNCTION)))
}

/// Opens a consumer with `clauses` clauses at the probe, and starts it.
fn begun(clauses: usize) -> Result<DevDtrace, String> {
    let device = open()?;
    let empty = || clause(PROBE, Vec::new());
    let image = image((0..clauses).map(|_| empty()).collect());
    let matched = done(&device, "ENABLE", device.enable(&image))?;
    ensure!(matched as usize == clauses, "{matched} of {clauses}");
    done(&device, "GO", device.go())?;
    Ok(device)
}

/// Checks that clauses of stopped consumers are not counted against the limit of one firing:
/// together they have more than it allows.
pub fn stopped() -> Result<(), String> {
    let mut crowd = Vec::new();
    for _ in 0..9 {
        let device = begun(16_000)?;
        ensure!(is_traced()?, "not traced after GO");
        done(&device, "STOP", device.stop())?;
        crowd.push(device);
    }
    ensure!(!is_traced()?, "traced after STOP");
    let device = begun(64)?;
    let _ = parent_id();
    let status = done(&device, "STATUS", device.status())?;
    ensure!(status.killed == 0, "ended for the clauses of others");
    let found = records(&device)?.len();
    ensure!(found == 64, "{found} records of 64 clauses");
    done(&device, "STOP", device.stop())?;
    ensure!(!is_traced()?, "traced after the last STOP");
    // A stopped consumer can still be queried.
    for device in &crowd {
        done(device, "EPROBE", device.enabled_probe(16_000))?;
        done(device, "STATUS", device.status())?;
    }
    Ok(())
}

/// Checks that a consumer whose records nobody reads is killed by the deadman and its probes are
/// disarmed, and that its records can still be read. Needs a short deadman timeout.
pub fn forgotten() -> Result<(), String> {
    let device = open()?;
    let image = tracing(vec![(PROBE, vec![constant(42)])]);
    done(&device, "ENABLE", device.enable(&image))?;
    done(&device, "GO", device.go())?;
    let _ = parent_id();
    ensure!(is_traced()?, "not traced after GO");
    let begun = Instant::now();
    while is_traced()? {
        let waited = begun.elapsed();
        ensure!(waited < Duration::from_secs(20), "traced for {waited:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
    let _ = parent_id();
    let status = done(&device, "STATUS", device.status())?;
    ensure!(status.killed == 1, "not traced, and not ended");
    ensure!(device.stop().is_err(), "STOP of what has been ended");
    let found = records(&device)?;
    let values: Vec<_> = found.into_iter().map(|(_, values)| values).collect();
    ensure!(values == [[42]], "records: {values:?}");
    Ok(())
}
