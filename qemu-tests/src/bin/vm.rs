// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `vm run COMMAND`, `vm count COMMAND` and `vm shell`: uses a machine by hand. `scripts/vm` calls
//! it in the build root. `count` makes the guest's clock count instructions, and leaves loading the
//! module to the command.
//!
//! The command's output is passed through as it comes, Ctrl-C interrupts the command as if it ran
//! here, and its exit status is this program's. From 120 on the status is the machine's own: 120
//! the module did not load, 121 the machine died, 122 the kernel warned, 124 the command reached
//! its limit, 130 Ctrl-C ended the machine.
//!
//! If the emulation has executed stale code ([`console::stale_breakpoint`]), this is reported, and
//! the command starts again in a machine whose processors take turns.

use std::fs;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use qemu_tests::accel::Accel;
use qemu_tests::console;
use qemu_tests::processors::Writer;
use qemu_tests::vm::{read_lossy, End, Order, Setup, Vm};
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;

const NOT_LOADED: i32 = 120;
const DIED: u8 = 121;
const WARNED: u8 = 122;
const LATE: u8 = 124;
const INTERRUPTED: u8 = 130;

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

/// The limit of one command; `DTRACE_VM_LIMIT` has it in seconds, 600 by default.
fn limit() -> Duration {
    let seconds = std::env::var("DTRACE_VM_LIMIT")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(600);
    Duration::from_secs(seconds)
}

/// The setup of a measurement.
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
    if let Some(code) = run_in(&setup, command)? {
        return Ok(code);
    }
    eprintln!("vm: the emulation ran stale code, and the command begins anew in a machine whose processors take turns");
    setup.accel = Some(Accel::TcgTurns);
    Ok(run_in(&setup, command)?.unwrap_or(ExitCode::from(DIED)))
}

/// Runs the command in one machine; `None` if the emulation failed.
fn run_in(setup: &Setup, command: &str) -> io::Result<Option<ExitCode>> {
    let mut signals = Signals::new([SIGINT])?;
    let limit = limit();
    let dir = setup.run_dir("run")?;
    let mut vm = Vm::boot(setup, &dir, &Order::Run(command.to_owned()))?;
    let mut processors = Writer::new(&dir);
    let end = vm.follow(limit, &mut io::stdout(), &mut io::stderr(), &mut || {
        processors.note(&dir);
        signals.pending().count()
    })?;
    vm.stop();
    let log = vm.console();
    let saved = setup.build.join("console.log");
    fs::write(&saved, &log)?;
    let asked = matches!(end, End::Interrupted);
    if !asked && vm.may_run_stale_code() && console::stale_breakpoint(&log) {
        eprintln!("{}", console::excerpt(&log));
        fs::remove_dir_all(&dir)?;
        return Ok(None);
    }
    let complaint = console::trouble(&log);
    let (code, message) = match (end, complaint) {
        (End::Status(NOT_LOADED), _) => {
            let reason = read_lossy(&dir.join("insmod.err"));
            let reason = format!("the module did not load: {}", reason.trim());
            (NOT_LOADED as u8, Some(reason))
        }
        (End::Died, _) => (DIED, Some("the machine died".to_owned())),
        (_, Some(line)) => (WARNED, Some(format!("the kernel complained: {line}"))),
        (End::Status(status), None) => (u8::try_from(status).unwrap_or(1), None),
        (End::Late, None) => {
            eprintln!(
                "vm: the command was still running after {} s and was ended with its machine; DTRACE_VM_LIMIT sets another \
                 limit, in seconds",
                limit.as_secs()
            );
            (LATE, None)
        }
        (End::Interrupted, None) => (INTERRUPTED, None),
    };
    if let Some(message) = message {
        eprintln!("{}", console::excerpt(&log));
        eprintln!(
            "vm: {message}\nvm: the console's log is {}",
            saved.display()
        );
    }
    fs::remove_dir_all(&dir)?;
    Ok(Some(ExitCode::from(code)))
}

fn shell() -> io::Result<ExitCode> {
    let setup = Setup::from_env()?;
    let dir = setup.run_dir("shell")?;
    let mut vm = Vm::boot(&setup, &dir, &Order::Shell)?;
    vm.wait()?;
    fs::remove_dir_all(&dir)?;
    Ok(ExitCode::SUCCESS)
}
