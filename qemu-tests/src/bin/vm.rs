// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! `vm run COMMAND`, `vm count COMMAND` and `vm shell`: the machine by hand. `scripts/vm` calls it in the build root.
//! `count` makes the guest's clock count instructions, and leaves loading the module to the command.
//!
//! The command's output is passed through as it is, and its exit status is this program's. 120 and above are the
//! machine's own: 120 the module did not load, 121 the machine died or reached its limit, 122 the kernel warned.

use std::fs;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use qemu_tests::accel::Accel;
use qemu_tests::console;
use qemu_tests::vm::{read_lossy, Order, Setup, Vm};

const NOT_LOADED: i32 = 120;
const DIED: u8 = 121;
const WARNED: u8 = 122;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["run", command] => Setup::from_env().and_then(|setup| run(setup, command)),
        ["count", command] => Setup::from_env().and_then(|setup| run(counting(setup), command)),
        ["shell"] => shell(),
        _ => {
            eprintln!("usage: vm run COMMAND | vm count COMMAND | vm shell");
            return ExitCode::from(2);
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("vm: {error}");
        ExitCode::from(DIED)
    })
}

/// The limit of one command, in seconds.
fn limit() -> Duration {
    let seconds = std::env::var("DTRACE_VM_LIMIT")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(600);
    Duration::from_secs(seconds)
}

/// The set-up of a measurement.
fn counting(setup: Setup) -> Setup {
    Setup {
        accel: Some(Accel::Tcg),
        icount: true,
        cpus: 1,
        module: None,
        ..setup
    }
}

fn run(mut setup: Setup, command: &str) -> io::Result<ExitCode> {
    if std::env::var_os("DTRACE_VM_BARE").is_some() {
        setup.module = None;
    }
    let dir = setup.run_dir("run")?;
    let mut vm = Vm::boot(&setup, &dir, &Order::Run(command.to_owned()))?;
    let status = vm.follow(limit(), &mut io::stdout(), &mut io::stderr())?;
    vm.stop();
    let log = vm.console();
    let saved = setup.build.join("console.log");
    fs::write(&saved, &log)?;
    let (code, message) = match status {
        None => (
            DIED,
            Some("the machine died or reached its time limit".to_owned()),
        ),
        Some(NOT_LOADED) => {
            let reason = read_lossy(&dir.join("insmod.err"));
            (
                NOT_LOADED as u8,
                Some(format!("the module did not load: {}", reason.trim())),
            )
        }
        Some(status) => match console::trouble(&log) {
            Some(line) => (WARNED, Some(format!("the kernel complained: {line}"))),
            None => (u8::try_from(status).unwrap_or(1), None),
        },
    };
    if let Some(message) = message {
        eprintln!("{}", console::excerpt(&log));
        eprintln!(
            "vm: {message}\nvm: the console's log is {}",
            saved.display()
        );
    }
    fs::remove_dir_all(&dir)?;
    Ok(ExitCode::from(code))
}

fn shell() -> io::Result<ExitCode> {
    let setup = Setup::from_env()?;
    let dir = setup.run_dir("shell")?;
    let mut vm = Vm::boot(&setup, &dir, &Order::Shell)?;
    vm.wait()?;
    fs::remove_dir_all(&dir)?;
    Ok(ExitCode::SUCCESS)
}
