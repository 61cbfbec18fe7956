// SPDX-License-Identifier: MIT OR Apache-2.0
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes in processes, without the library's checks. `device-check place PID ADDRESS COUNT...`
//! creates COUNT probes, one at each byte from the address on, prints the result, and keeps them until its standard
//! input ends; before each further triple it waits for a line. `device-check names PID ADDRESS`
//! creates probes with valid and invalid names. `device-check tracings COUNT [stay]` opens COUNT
//! tracing consumers, and prints how many succeeded and why the next did not; with `stay` they
//! trace until its standard input ends. `device-check comings COUNT` opens COUNT consumers one
//! after another, each of which traces and watches processes.

use super::programs::described;
use super::{await_end, open, refusal};
use dtrace::device::{DevDtrace, Device};
use dtrace::pid::Request;
use dtrace_uapi::hold::{self, Hold};
use dtrace_uapi::process::{Probe, ADDRESS};
use qemu_tests::program::places;
use std::io::{self, BufRead};
use std::process::ExitCode;

/// Creates the probes that the arguments describe.
pub fn all(args: &[String]) -> Result<(), String> {
    let device = open()?;
    let mut input = io::stdin().lock();
    for (n, one) in args.chunks(3).enumerate() {
        if n > 0 {
            let read = input.read_line(&mut String::new());
            read.map_err(|e| e.to_string())?;
        }
        println!("{}", asked(&device, one)?);
    }
    await_end(&mut input)
}

fn asked(device: &DevDtrace, args: &[String]) -> Result<String, String> {
    let [pid, address, count] = args else {
        return Err("usage: device-check place PID ADDRESS COUNT...".to_owned());
    };
    let pid: u32 = pid.parse().map_err(|e| format!("{pid}: {e}"))?;
    let address = u64::from_str_radix(address, 16).map_err(|e| format!("{address}: {e}"))?;
    let count: u32 = count.parse().map_err(|e| format!("{count}: {e}"))?;
    let made = device.make_probes(pid, &request(address, count));
    Ok(match made {
        Ok(()) => "made".to_owned(),
        Err((_, error)) => refusal(device, &error),
    })
}

/// Creates a probe at an instruction with each of these names in turn, as its module, its function
/// and its own name.
pub fn names(args: &[String]) -> Result<(), String> {
    let [pid, address] = args else {
        return Err("usage: device-check names PID ADDRESS".to_owned());
    };
    let pid: u32 = pid.parse().map_err(|e| format!("{pid}: {e}"))?;
    let address = u64::from_str_radix(address, 16).map_err(|e| format!("{address}: {e}"))?;
    let device = open()?;
    let texts: [&[u8]; 8] = [
        "gr\u{f6}\u{df}e \u{95a2}".as_bytes(),
        b"operator/",
        b"a:b",
        b"\x1b[2J",
        b"a\nb",
        b"\x9b2J",
        "\u{9b}2J".as_bytes(),
        "\u{202e}a".as_bytes(),
    ];
    // An instruction has room for few probes of a kind.
    let mut addresses = address..;
    for text in texts {
        let answers = (0..3).zip(&mut addresses).map(|(part, address)| {
            let made = device.make_probes(pid, &named(address, part, text));
            made.map_or_else(
                |(_, error)| refusal(&device, &error),
                |()| "made".to_owned(),
            )
        });
        let answers: Vec<String> = answers.collect();
        println!("{}: {}", text.escape_ascii(), answers.join(", "));
    }
    Ok(())
}

/// A request for a probe with `text` as one part of its name: module (0), function (1) or name (2).
fn named(address: u64, part: usize, text: &[u8]) -> Request {
    let mut request = Request::default();
    let mut starts = [0; 3];
    for (at, start) in starts.iter_mut().enumerate() {
        *start = request.text.len() as u32;
        request.text.extend(if at == part { text } else { b"x" });
        request.text.push(0);
    }
    let [module, func, name] = starts;
    request.probes.push(Probe {
        kind: ADDRESS,
        module,
        func,
        name,
        nsites: 1,
        ..Probe::default()
    });
    request.sites.push(address);
    request
}

/// A request for `count` probes, with a module name that no other process uses.
pub fn request(address: u64, count: u32) -> Request {
    let addresses = (0..u64::from(count)).map(|n| address + n);
    places(&std::process::id().to_string(), addresses)
}

/// Opens as many tracing consumers as the arguments say.
pub fn tracings(args: &[String]) -> ExitCode {
    let Some(count) = args.first().and_then(|count| count.parse().ok()) else {
        println!("usage: device-check tracings COUNT [stay]");
        return ExitCode::FAILURE;
    };
    let mut all: Vec<DevDtrace> = Vec::new();
    while all.len() < count {
        let Ok(device) = open() else {
            println!("{} opened", all.len());
            return ExitCode::FAILURE;
        };
        if device.enable(&described()).is_err() {
            println!("{} {}", all.len(), device.reason());
            return ExitCode::SUCCESS;
        }
        all.push(device);
    }
    println!("{count}");
    if args.len() > 1 && await_end(&mut io::stdin().lock()).is_err() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Opens as many consumers as the arguments say, one after another, each of which traces and
/// watches processes that fork, execute programs and map files.
pub fn comings(args: &[String]) -> Result<(), String> {
    let count = args.first().and_then(|count| count.parse().ok());
    let count: u32 = count.ok_or("usage: device-check comings COUNT")?;
    let itself = i32::try_from(std::process::id()).map_err(|e| e.to_string())?;
    for _ in 0..count {
        let device = open()?;
        let enabled = device.enable(&described());
        enabled.map_err(|e| format!("{e}: {}", device.reason()))?;
        for kind in [hold::FORK, hold::MAP] {
            let hold = Hold {
                kind,
                pid: itself,
                ..Hold::default()
            };
            let asked = device.hold(&hold);
            asked.map_err(|e| format!("{e}: {}", device.reason()))?;
        }
    }
    println!("{count}");
    Ok(())
}
