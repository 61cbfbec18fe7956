// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Checks of many functions at once, and of some functions again and again.

use crate::programs::{count, counting};
use crate::{done, open};
use dtrace::device::{DevDtrace, Device};
use dtrace_uapi::ioctl::ProbeDesc;
use qemu_tests::patched;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use zerocopy::FromZeros;

/// How many probes a description matches.
pub fn matched(device: &DevDtrace, provider: &str, func: &str) -> Result<u32, String> {
    let mut pattern = ProbeDesc::new_zeroed();
    let mut n = 0;
    loop {
        pattern.provider = dtrace::device::fill(provider).ok_or("too long")?;
        pattern.func = dtrace::device::fill(func).ok_or("too long")?;
        (pattern.module, pattern.name) = ([0; 64], [0; 64]);
        match done(device, "PROBEMATCH", device.next_probe(&pattern))? {
            Some(found) => pattern = found,
            None => return Ok(n),
        }
        n += 1;
    }
}

/// Checks that all functions can be enabled in one call, fire, and are unpatched afterwards.
pub fn functions() -> Result<(), String> {
    let device = open()?;
    let all = matched(&device, "fbt", "")?;
    // Each function has two probes, except for the few that are excluded.
    let traceable = std::fs::read_to_string("/sys/kernel/tracing/available_filter_functions");
    let traceable = traceable.map_err(|e| format!("available_filter_functions: {e}"))?;
    let functions = traceable.lines().count();
    ensure!(
        all as usize > functions * 3 / 2,
        "only {all} probes of fbt for {functions} functions"
    );
    let enabled = done(&device, "ENABLE", device.enable(&counting("fbt:::")))?;
    let note = device.reason();
    ensure!(enabled > all * 9 / 10, "{enabled} of {all}: {note}");
    done(&device, "GO", device.go())?;
    std::thread::sleep(Duration::from_secs(1));
    done(&device, "STOP", device.stop())?;
    let counted = count(&device)?;
    ensure!(counted > 1000, "only {counted} firings");
    drop(device);
    let left = patched::settled()?;
    ensure!(left.is_empty(), "still traced: {left:?}");
    Ok(())
}

/// Prints the names of the patched functions, once those that the module patches for itself are
/// unpatched.
pub fn patched() -> Result<(), String> {
    for line in patched::settled()? {
        println!("{}", patched::name(&line));
    }
    Ok(())
}

/// Enables and disables some functions again and again while they are called.
pub fn churn() -> Result<(), String> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let _ = std::fs::read("/proc/self/stat");
                }
            });
        }
        let result = rounds();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

fn rounds() -> Result<(), String> {
    let rounds = std::env::var("ROUNDS").ok().and_then(|n| n.parse().ok());
    let mut counted = 0;
    for round in 0..rounds.unwrap_or(1000u32) {
        let device = open()?;
        done(&device, "ENABLE", device.enable(&counting("fbt::vfs_*:")))?;
        done(&device, "GO", device.go())?;
        if round % 10 == 0 {
            std::thread::sleep(Duration::from_millis(20));
            done(&device, "STOP", device.stop())?;
            counted += count(&device)?;
        }
    }
    ensure!(counted > 0, "nothing fired");
    Ok(())
}
