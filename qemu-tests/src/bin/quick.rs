// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! What every `make test` runs on the debug kernel: the module's unit tests, and the cases with
//! `@debug: quick`. Takes the arguments of a cargo test and ends like one; with the filter `kunit/`
//! no case is run. `scripts/vm quick` and `scripts/vm kunit` call it.
//!
//! All of it runs in one machine, because its boot takes as long as some of the cases. KUnit runs
//! the unit tests when the module has been loaded, which is before the first work; that work
//! fetches their output. One more trial, `kunit/kernel`, stands for all that they did to the
//! kernel: it fails if the kernel complains while they run.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use qemu_tests::case::{wanted, Case, OnDebug};
use qemu_tests::ktap;
use qemu_tests::session::{self, Ending, Work};
use qemu_tests::vm::Setup;

/// The prefix of the names of the module's unit tests.
const UNITS: &str = "kunit/";

/// Prints the tests' output; unloads the module, and loads it without its tests.
const FETCH: &str = "dmesg
rmmod dtrace || exit 1
echo none >/sys/module/kunit/parameters/filter_glob
insmod \"$(cat /run/vm/module)\"
";

fn main() -> ExitCode {
    match run() {
        Ok((args, trials)) => libtest_mimic::run(&args, trials).exit_code(),
        Err(why) => {
            eprintln!("quick: {why}");
            ExitCode::from(1)
        }
    }
}

fn trial(name: String, result: Result<(), String>) -> Trial {
    Trial::test(name, move || result.map_err(Failed::from))
}

fn run() -> Result<(Arguments, Vec<Trial>), String> {
    let args = Arguments::from_args();
    let setup = Setup {
        parameters: "kunit.enable=1 kunit.autorun=1".to_owned(),
        ..Setup::from_env().map_err(|e| e.to_string())?
    };
    let cases: Vec<Case> = Case::all(&setup.top.join("qemu-tests/cases"))?
        .into_iter()
        .filter(|case| case.on_debug == OnDebug::Quick && wanted(&args, case))
        .collect();
    let endings = endings(&setup, &cases).map_err(|e| e.to_string())?;
    let mut endings = endings.into_iter();
    let mut trials = units(endings.next());
    let mut times = setup.times().map_err(|e| e.to_string())?;
    for (case, ending) in cases.iter().zip(endings) {
        let verdict = case.judge(ending, &mut times);
        trials.push(trial(case.name.clone(), verdict));
    }
    Ok((args, trials))
}

/// The endings of the first work, which fetches the unit tests' output, and of each case.
fn endings(setup: &Setup, cases: &[Case]) -> io::Result<Vec<Ending>> {
    let fetch = Work {
        name: "kunit".to_owned(),
        command: FETCH.to_owned(),
        limit: Duration::from_secs(30),
        last: false,
    };
    let works: Vec<Work> = std::iter::once(fetch)
        .chain(cases.iter().map(Case::work))
        .collect();
    let mut endings: Vec<Ending> = works
        .iter()
        .map(|_| Err("it was not run".to_owned()))
        .collect();
    session::run(setup, None, &works, &mut |at, ending| {
        if let Some(known) = endings.get_mut(at) {
            *known = ending;
        }
    })?;
    Ok(endings)
}

/// The trials of the unit tests.
fn units(ending: Option<Ending>) -> Vec<Trial> {
    let (tests, kernel) = match ending {
        Some(Ok(outcome)) => {
            let tests = ktap::tests(&outcome.stdout);
            let kernel = match outcome.status {
                0 if tests.is_empty() => Err("it ran no test".to_owned()),
                0 => Ok(()),
                status => Err(format!("status {status}\n{}", outcome.stderr)),
            };
            (tests, kernel)
        }
        Some(Err(why)) => (Vec::new(), Err(why)),
        None => (Vec::new(), Err("it was not run".to_owned())),
    };
    tests
        .into_iter()
        .map(|test| trial(format!("{UNITS}{}", test.name), test.result))
        .chain([trial(format!("{UNITS}kernel"), kernel)])
        .collect()
}
