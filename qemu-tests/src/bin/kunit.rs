// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Runs the module's unit tests in the debug kernel, which does so when the module has been loaded. Takes the arguments of a
//! cargo test and closes as one does. `scripts/vm kunit` calls it.
//!
//! One more trial stands for all that they did to the kernel: what it complains of while they run fails it.

use std::fs;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use qemu_tests::console;
use qemu_tests::ktap::{self, Test};
use qemu_tests::vm::{Order, Setup, Vm};

/// How long all tests may take together with the boot, were it the stock kernel.
const LIMIT: Duration = Duration::from_secs(100);

fn main() -> ExitCode {
    let args = Arguments::from_args();
    match run() {
        Ok((tests, kernel)) => {
            let mut trials: Vec<Trial> = tests
                .into_iter()
                .map(|test| trial(format!("kunit/{}", test.name), test.result))
                .collect();
            trials.push(trial("kunit/kernel".to_owned(), kernel));
            libtest_mimic::run(&args, trials).exit_code()
        }
        Err(why) => {
            eprintln!("kunit: {why}");
            ExitCode::from(1)
        }
    }
}

fn trial(name: String, result: Result<(), String>) -> Trial {
    Trial::test(name, move || result.map_err(Failed::from))
}

/// The tests, and what the kernel has to say.
fn run() -> io::Result<(Vec<Test>, Result<(), String>)> {
    let setup = Setup {
        parameters: "kunit.enable=1 kunit.autorun=1".to_owned(),
        ..Setup::from_env()?
    };
    let dir = setup.run_dir("kunit")?;
    let mut vm = Vm::boot(&setup, &dir, &Order::Run("rmmod dtrace".to_owned()))?;
    let status = vm.wait_status(setup.limit(LIMIT))?;
    vm.stop();
    let log = vm.console();
    fs::write(setup.build.join("console.log"), &log)?;
    fs::remove_dir_all(&dir)?;
    let tests = ktap::tests(&log);
    let kernel = match (console::trouble(&log), status) {
        (Some(line), _) => Err(format!("{line}\n{}", console::excerpt(&log))),
        (None, Some(0)) if tests.is_empty() => Err("it ran no test".to_owned()),
        (None, Some(0)) => Ok(()),
        (None, status) => Err(format!("status {status:?}\n{}", console::tail(&log, 60))),
    };
    Ok((tests, kernel))
}
