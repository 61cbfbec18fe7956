// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What a consumer that has ended leaves at the probes, while its file is open: nothing.

use crate::programs::{clause, constant, image, records, tracing};
use crate::{done, open};
use dtrace::handle::{DevDtrace, Device};
use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

/// A probe that nothing else in the machine fires.
const PROBE: &str = "syscall:vmlinux:getppid:entry";
/// What its function is called behind the name of an architecture.
const FUNCTION: &str = "_sys_getppid ";

/// Whether ftrace calls anybody at the function.
fn is_traced() -> Result<bool, String> {
    let traced = std::fs::read_to_string("/sys/kernel/tracing/enabled_functions");
    let traced = traced.map_err(|e| format!("enabled_functions: {e}"))?;
    Ok(traced.lines().any(|line| line.contains(FUNCTION)))
}

/// A consumer with `clauses` clauses at the probe, which traces.
fn begun(clauses: usize) -> Result<DevDtrace, String> {
    let device = open()?;
    let empty = || clause(PROBE, Vec::new());
    let image = image((0..clauses).map(|_| empty()).collect());
    let matched = done(&device, "ENABLE", device.enable(&image))?;
    ensure!(matched as usize == clauses, "{matched} of {clauses}");
    done(&device, "GO", device.go())?;
    Ok(device)
}

/// More clauses than one firing may pass belong to consumers that have stopped. They are not counted against one that traces.
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
    // What has been stopped still tells of itself.
    for device in &crowd {
        done(device, "EPROBE", device.enabled_probe(16_000))?;
        done(device, "STATUS", device.status())?;
    }
    Ok(())
}

/// A consumer that nobody asks for its records is ended, and its probes are disarmed; what it has recorded is still to be had. To be run
/// where the deadman is quick.
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
