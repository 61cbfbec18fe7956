// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `conformance [WORD...]`: runs the suite's unit tests, or those whose class or part of whose path
//! is one of the words, and prints the scoreboard. `qemu-tests/runs/conformance` calls it in the
//! build root. Cases of class `impl` are run only if named, by a part of their path or by `impl`,
//! but not by a folder, which is a word that ends in `/`.
//!
//! Fails if a case differs from `qemu-tests/suite/expected-failures`.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use qemu_tests::blocks;
use qemu_tests::session::Work;
use qemu_tests::suite::board::Board;
use qemu_tests::suite::judge::{Judge, Verdict};
use qemu_tests::suite::lists::{Class, Classes, Expected};
use qemu_tests::suite::plan::{self, Demands, Places};
use qemu_tests::vm::Setup;

/// How many cases one machine runs before another replaces it.
const BLOCK: usize = 250;

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(why) => {
            eprintln!("conformance: {why}");
            ExitCode::from(1)
        }
    }
}

fn run(words: &[String]) -> Result<bool, String> {
    let setup = Setup::from_env().map_err(|e| e.to_string())?;
    let places = Places {
        suite: directory("DTRACE_SUITE")?,
        installed: directory("DTRACE_INSTALLED")?,
        top: setup.top.clone(),
    };
    let lists = setup.top.join("qemu-tests/suite");
    let list = |name: &str| {
        let path = lists.join(name);
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let classes = Classes::parse(&list("classes")?)?;
    let expected = Expected::parse(&list("expected-failures")?)?;
    let judge = Judge::new().map_err(|e| e.to_string())?;
    let all = plan::cases(&places, "test/unittest").map_err(|e| e.to_string())?;
    if let Some(gone) = expected.unknown(&all).next() {
        return Err(format!("the suite has no case {gone}"));
    }

    let mut board = Board::new(&classes, &expected);
    let mut works: Vec<Work> = Vec::new();
    let mut demands: Vec<Demands> = Vec::new();
    for case in all.iter().filter(|case| wanted(case, words, &classes)) {
        match plan::plan(&places, case) {
            Ok(plan) => {
                works.push(plan.work);
                demands.push(plan.demands);
            }
            Err(why) => board.add(case, Verdict::Skip(why)),
        }
    }
    let file = setup.build.join("conformance.txt");
    let written = |e: io::Error| format!("{}: {e}", file.display());
    let mut report = fs::File::create(&file).map_err(written)?;
    let runner = places.runner();
    let mut round: Vec<usize> = (0..works.len()).collect();
    // Some cases measure what varies, and specify how often they may be repeated.
    for tries in 0.. {
        let these: Vec<Work> = round.iter().map(|&at| works[at].clone()).collect();
        let mut failed = Vec::new();
        blocks::run(&setup, Some(&runner), &these, BLOCK, &mut |at, ending| {
            let at = round[at];
            let verdict = match ending {
                Ok(outcome) => judge.judge(&demands[at], &outcome),
                Err(report) => Verdict::Fail("the machine".to_owned(), report),
            };
            if matches!(verdict, Verdict::Fail(..)) && tries < demands[at].again {
                failed.push(at);
            }
            let case = &works[at].name;
            // An error shows again when the table is written at the end.
            let _ = report.write_all(board.details(case, &verdict).as_bytes());
            tell(&format!("{}/{}", at + 1, works.len()), case, &verdict);
            board.add(case, verdict);
        })
        .map_err(|e| e.to_string())?;
        if failed.is_empty() {
            break;
        }
        round = failed;
    }
    let table = board.table();
    report.write_all(table.as_bytes()).map_err(written)?;
    println!("\n{}\n{table}", board.failures());
    println!("details: {}", file.display());
    let surprises = board.surprises(words.is_empty());
    println!(
        "{} cases are not as the list of failures has them",
        surprises.len()
    );
    // A failure has already been printed above.
    for line in surprises.iter().filter(|line| line.contains(" passed: ")) {
        println!("{line}");
    }
    Ok(surprises.is_empty())
}

/// Prints the verdict on one case.
fn tell(number: &str, case: &str, verdict: &Verdict) {
    let word = match verdict {
        Verdict::Pass => "ok".to_owned(),
        Verdict::Fail(why, _) => format!("FAILED: {why}"),
        Verdict::Skip(why) => format!("left out: {why}"),
    };
    println!("[{number}] {case} ... {word}");
    // Errors are ignored: a reader that has gone needs no progress.
    let _ = io::stdout().flush();
}

/// Whether the case is to be run. A folder selects the cases below it except those of class `impl`;
/// a part of a path selects all cases that contain it.
fn wanted(case: &str, words: &[String], classes: &Classes) -> bool {
    if words.is_empty() {
        return classes.of(case) != Class::Impl;
    }
    words.iter().any(|word| match word.as_str() {
        "language" => classes.of(case) == Class::Language,
        "linux" => classes.of(case) == Class::Linux,
        "impl" => classes.of(case) == Class::Impl,
        folder if folder.ends_with('/') => case.contains(folder) && classes.of(case) != Class::Impl,
        part => case.contains(part),
    })
}

fn directory(variable: &str) -> Result<PathBuf, String> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .ok_or_else(|| format!("{variable} is not set: call this by qemu-tests/runs/conformance"))
}
