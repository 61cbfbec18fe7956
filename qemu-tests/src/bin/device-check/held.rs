// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes in a process whose mmap lock is held by something else: `device-check held PID
//! ADDRESS...` enables a probe at the first address before the lock is held, and probes at the
//! others meanwhile. After printing `traces` it waits for a line, which comes once the lock is
//! held; after `left` for another, which comes once it is released.

use super::programs::{constant, count as fired, counting, records, tracing};
use super::{done, open};
use dtrace::device::{DevDtrace, Device};
use qemu_tests::program::places;
use rustix::mm::{mlockall, MlockAllFlags};
use std::io::{self, BufRead};
use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// The most time that it may take until what was left behind has been removed.
const LIMIT: Duration = Duration::from_secs(60);

pub fn all(args: &[String]) -> Result<(), String> {
    let [pid, addresses @ ..] = args else {
        return Err("usage: device-check held PID ADDRESS...".to_owned());
    };
    let pid: u32 = pid.parse().map_err(|e| format!("{pid}: {e}"))?;
    let addresses = addresses.iter().map(|text| u64::from_str_radix(text, 16));
    let addresses: Vec<u64> = addresses
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())?;
    // Creating a probe takes the lock too, which delays nobody but the caller, so create all of
    // them first.
    let devices = addresses.iter().map(|address| asking(pid, *address));
    let devices: Vec<DevDtrace> = devices.collect::<Result<_, _>>()?;
    for (n, (device, address)) in devices.iter().zip(&addresses).enumerate() {
        let count = done(device, "ENABLE", enabled(device, pid, *address))?;
        println!("{count} enabled {}", device.reason());
        if n == 0 {
            done(device, "GO", device.go())?;
            said("traces")?;
        }
    }
    for device in &devices {
        done(device, "REVIEW", device.review(pid))?;
    }
    drop(devices);
    somebody_else()?;
    said("left")?;
    for address in addresses {
        again(pid, address)?;
    }
    println!("as before");
    Ok(())
}

/// `device-check charged PID ADDRESS COUNT`: enables a probe on each of COUNT pages from an address
/// on, after printing `asked` and reading a line. After another line it prints how many of them
/// have fired.
pub fn charged(args: &[String]) -> Result<(), String> {
    let [pid, address, count] = args else {
        return Err("usage: device-check charged PID ADDRESS COUNT".to_owned());
    };
    let pid: u32 = pid.parse().map_err(|e| format!("{pid}: {e}"))?;
    let address = u64::from_str_radix(address, 16).map_err(|e| format!("{address}: {e}"))?;
    let count: u64 = count.parse().map_err(|e| format!("{count}: {e}"))?;
    let device = open()?;
    let addresses = (0..count).map(|n| address + n * PAGE);
    let made = device.make_probes(pid, &places("pages", addresses));
    made.map_err(|(_, error)| format!("PROBES: {error} ({})", device.reason()))?;
    let image = counting(&format!("pid{pid}:pages::"));
    // Keep this program's own memory resident, however short its cgroup is of memory.
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|e| e.to_string())?;
    said("asked")?;
    let enabled = done(&device, "ENABLE", device.enable(&image))?;
    println!("{enabled} enabled {}", device.reason());
    // This takes as long as its buffers do, and delays nobody else.
    done(&device, "GO", device.go())?;
    said("traces")?;
    done(&device, "STOP", device.stop())?;
    println!("{} of {count}", fired(&device)?);
    Ok(())
}

/// Prints `what` and waits for a line.
fn said(what: &str) -> Result<(), String> {
    println!("{what}");
    let read = io::stdin().lock().read_line(&mut String::new());
    read.map(drop).map_err(|e| e.to_string())
}

/// Opens a consumer that has created a probe in the process.
fn asking(pid: u32, address: u64) -> Result<DevDtrace, String> {
    let device = open()?;
    let made = device.make_probes(pid, &places(&format!("{address:x}"), [address]));
    made.map_err(|(_, error)| format!("PROBES: {error} ({})", device.reason()))?;
    Ok(device)
}

/// Enables the created probe; returns how many probes matched.
fn enabled(device: &DevDtrace, pid: u32, address: u64) -> io::Result<u32> {
    device.enable(&counting(&format!("pid{pid}:{address:x}::")))
}

/// Checks that another consumer can trace meanwhile.
fn somebody_else() -> Result<(), String> {
    let device = open()?;
    let image = tracing(vec![("syscall::getppid:entry", vec![constant(7)])]);
    done(&device, "ENABLE", device.enable(&image))?;
    done(&device, "GO", device.go())?;
    let _ = parent_id();
    done(&device, "STOP", device.stop())?;
    println!("somebody else: {} records", records(&device)?.len());
    Ok(())
}

/// Waits until a probe can be enabled where one was left behind.
fn again(pid: u32, address: u64) -> Result<(), String> {
    let begin = Instant::now();
    loop {
        let device = asking(pid, address)?;
        match enabled(&device, pid, address) {
            Ok(1) => return Ok(()),
            answer if begin.elapsed() > LIMIT => return Err(format!("ENABLE: {answer:?}")),
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
