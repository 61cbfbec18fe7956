// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! A process whose memory somebody keeps for himself: `device-check held PID ADDRESS...` traces at the first address before that, and begins to at the
//! others meanwhile. After `traces` a line is awaited, when the memory is kept; after `left` another one, when it is not any more.

use super::programs::{constant, count as fired, counting, records, tracing};
use super::{done, open};
use dtrace::handle::{DevDtrace, Device};
use qemu_tests::program::places;
use rustix::mm::{mlockall, MlockAllFlags};
use std::io::{self, BufRead};
use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// How long it may take at most until what was left behind is gone.
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
    // To ask for a probe takes the lock too, and is nobody's trouble but his who asks.
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

/// `device-check charged PID ADDRESS COUNT`: enables a probe on each of so many pages from an address on, when a line has come after `asked`; after
/// another line says how many of them have fired.
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
    // What it has itself it keeps, however short its group is of memory.
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).map_err(|e| e.to_string())?;
    said("asked")?;
    let enabled = done(&device, "ENABLE", device.enable(&image))?;
    println!("{enabled} enabled {}", device.reason());
    // This takes as long as its buffers do, and is nobody else's trouble.
    done(&device, "GO", device.go())?;
    said("traces")?;
    done(&device, "STOP", device.stop())?;
    println!("{} of {count}", fired(&device)?);
    Ok(())
}

/// Says so, and waits for a line.
fn said(what: &str) -> Result<(), String> {
    println!("{what}");
    let read = io::stdin().lock().read_line(&mut String::new());
    read.map(drop).map_err(|e| e.to_string())
}

/// A consumer that has asked for a probe in the process.
fn asking(pid: u32, address: u64) -> Result<DevDtrace, String> {
    let device = open()?;
    let made = device.make_probes(pid, &places(&format!("{address:x}"), [address]));
    made.map_err(|(_, error)| format!("PROBES: {error} ({})", device.reason()))?;
    Ok(device)
}

/// Enables what was asked for; how many probes.
fn enabled(device: &DevDtrace, pid: u32, address: u64) -> io::Result<u32> {
    device.enable(&counting(&format!("pid{pid}:{address:x}::")))
}

/// Somebody else traces meanwhile.
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

/// A probe is enabled where one was left behind, as soon as that has gone.
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
