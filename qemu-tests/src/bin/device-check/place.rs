// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Probes in processes, below what the library looks at before: `device-check place PID ADDRESS COUNT...` asks for COUNT probes at one
//! instruction, says what came of it, and keeps them until its standard input ends. Where more is asked for a line of that is awaited
//! before. `device-check names PID ADDRESS` asks for probes of good and of bad names. `device-check tracings COUNT [stay]` has so many consumers trace, and says how many could, and why no more; with
//! `stay` they do so until its standard input ends. `device-check comings COUNT` has so many trace, and look out for processes, one after another.

use super::programs::described;
use super::{await_end, open, refusal};
use dtrace::handle::{DevDtrace, Device};
use dtrace::pid::Request;
use dtrace_uapi::hold::{self, Hold};
use dtrace_uapi::process::{Probe, ADDRESS};
use qemu_tests::program::places;
use std::io::{self, BufRead};
use std::process::ExitCode;

/// Asks for the probes that the arguments say.
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

/// Asks for a probe at an instruction, one after the other by each of these names, for its module, its function and itself.
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
    for text in texts {
        let answers = (0..3).map(|part| {
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

/// A probe of which one part, the module, the function or its own, is called so.
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

/// So many probes, each with a name that nobody else gives.
pub fn request(address: u64, count: u32) -> Request {
    let addresses = std::iter::repeat_n(address, count as usize);
    places(&std::process::id().to_string(), addresses)
}

/// Has so many consumers trace as the arguments say.
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

/// Has so many consumers trace one after another, each of which looks out for processes that fork, execute programs and map files.
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
