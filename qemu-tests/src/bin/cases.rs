// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Runs the cases. Takes the arguments of a cargo test and ends like one. `scripts/vm cases` calls
//! it, also with `--include-ignored`: slow cases are ignored tests.

use std::collections::HashMap;
use std::io;
use std::process::ExitCode;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};
use qemu_tests::blocks;
use qemu_tests::case::{wanted, Case};
use qemu_tests::session::Work;
use qemu_tests::vm::Setup;

/// How many cases one machine runs before another replaces it: few enough that no processor is idle
/// for long at the end, many enough that the boots cost little.
const BLOCK: usize = 16;

fn main() -> ExitCode {
    match prepare() {
        Ok((args, trials)) => libtest_mimic::run(&args, trials).exit_code(),
        Err(why) => {
            eprintln!("cases: {why}");
            ExitCode::from(1)
        }
    }
}

fn prepare() -> Result<(Arguments, Vec<Trial>), String> {
    let mut args = Arguments::from_args();
    // Trials run in one thread, which waits for the verdicts in order; the machines run
    // independently of it.
    args.test_threads = Some(1);
    let setup = Setup::from_env().map_err(|e| e.to_string())?;
    let cases = Case::all(&setup.top.join("qemu-tests/cases"))?;
    let chosen: Vec<Case> = cases
        .into_iter()
        .filter(|case| case.can_run(&setup))
        .filter(|case| wanted(&args, case))
        .collect();
    let names: Vec<(String, bool)> = chosen
        .iter()
        .map(|case| (case.name.clone(), case.slow))
        .collect();
    let verdicts = Arc::new(Mutex::new(Verdicts::new(setup, chosen)));
    let trials = names
        .into_iter()
        .enumerate()
        .map(|(at, (name, slow))| {
            let verdicts = Arc::clone(&verdicts);
            Trial::test(name, move || {
                let mut verdicts = verdicts.lock().unwrap_or_else(PoisonError::into_inner);
                verdicts.of(at).map_err(Failed::from)
            })
            .with_ignored_flag(slow)
        })
        .collect();
    Ok((args, trials))
}

/// The verdict on one case: nothing, or a report.
type Verdict = Result<(), String>;

/// The verdicts, from a thread that is started when the first one is requested, so that `--list`
/// boots nothing.
struct Verdicts {
    work: Option<(Setup, Vec<Case>)>,
    source: Option<Receiver<(usize, Verdict)>>,
    known: HashMap<usize, Verdict>,
}

impl Verdicts {
    fn new(setup: Setup, cases: Vec<Case>) -> Self {
        Self {
            work: Some((setup, cases)),
            source: None,
            known: HashMap::new(),
        }
    }

    fn of(&mut self, at: usize) -> Verdict {
        if let Some((setup, cases)) = self.work.take() {
            self.source = Some(start(setup, cases));
        }
        loop {
            if let Some(verdict) = self.known.remove(&at) {
                return verdict;
            }
            let Some(Ok((of, verdict))) = self.source.as_ref().map(Receiver::recv) else {
                return Err("the machine could not be run".to_owned());
            };
            self.known.insert(of, verdict);
        }
    }
}

fn start(setup: Setup, cases: Vec<Case>) -> Receiver<(usize, Verdict)> {
    let (to, from) = channel();
    std::thread::spawn(move || {
        if let Err(error) = follow(&setup, &cases, &to) {
            eprintln!("cases: {error}");
        }
    });
    from
}

/// Runs the cases and sends the verdicts.
fn follow(setup: &Setup, cases: &[Case], to: &Sender<(usize, Verdict)>) -> io::Result<()> {
    let mut times = setup.times()?;
    let works: Vec<Work> = cases.iter().map(Case::work).collect();
    blocks::run(setup, None, &works, BLOCK, &mut |at, ending| {
        let verdict = cases[at].judge(ending, &mut times);
        // Cannot fail while trials wait: the receiver lives as long as they do.
        let _ = to.send((at, verdict));
    })
}
