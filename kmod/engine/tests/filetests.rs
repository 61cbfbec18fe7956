// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Programs in DIF that say what must become of them: `filetests/refused` and `filetests/computed`.
//!
//! A line that begins with `;!` is what a program says of itself:
//!
//! ```text
//! ;! refused: DIF instruction 1: no such register     what the verifier answers
//! ;! result: 33                                       what it computes
//! ;! fault: BadAddr 0x10 at 3                         the fault, its value if given, where
//! ;! rights: user                                     who runs it: user, harmless
//! ```
//!
//! Both back ends, prepared and by reference, run each on the machine of [`differ`]; they must do
//! the same, to memory too. And each is written as text and read again.

mod common;

use common::differ::{self, Rights};
use common::{asm, differ::Outcome};
use dtrace_engine::dif::exec::Stopped;
use dtrace_uapi::asm::assemble;
use std::path::{Path, PathBuf};

/// What a program says of itself.
#[derive(Default)]
struct Expected {
    rights: Rights,
    outcome: Option<(String, String)>,
}

/// Reads it.
fn expected(text: &str) -> Result<Expected, String> {
    let mut expected = Expected::default();
    for line in text
        .lines()
        .filter_map(|line| line.trim().strip_prefix(";!"))
    {
        match line.trim().split_once(": ") {
            Some(("rights", "user")) => expected.rights = Rights::User,
            Some(("rights", "harmless")) => expected.rights = Rights::Harmless,
            Some((what @ ("refused" | "result" | "fault"), how)) if expected.outcome.is_none() => {
                expected.outcome = Some((what.to_owned(), how.to_owned()));
            }
            _ => return Err(format!("not understood: {line}")),
        }
    }
    match expected.outcome {
        Some(_) => Ok(expected),
        None => Err("it does not say what it does".to_owned()),
    }
}

/// Says what became of a program, in the words of the files. `like` says how exactly.
fn said(outcome: &Outcome, like: &str) -> (String, String) {
    match outcome.result {
        Ok(value) if like.starts_with("0x") => ("result".into(), format!("{value:#x}")),
        Ok(value) => ("result".into(), value.to_string()),
        Err(Stopped { trap, pc }) => {
            let value = match like.contains(" 0x") {
                true => format!(" {:#x}", trap.value),
                false => String::new(),
            };
            ("fault".into(), format!("{:?}{value} at {pc}", trap.fault))
        }
    }
}

/// Runs a program of a file in the folder of those that are refused, or of those that are not. The
/// error is what is not as it says.
fn run(path: &Path, is_refused: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let object = assemble(&text).map_err(|error| error.to_string())?;
    let written = object.to_string();
    if assemble(&written).as_ref() != Ok(&object) {
        return Err(format!("it is written as another program:\n{written}"));
    }
    let Expected { rights, outcome } = expected(&text)?;
    let expected = outcome.unwrap_or_default();
    if (expected.0 == "refused") != is_refused {
        return Err("it is in the wrong folder".to_owned());
    }
    let said = match differ::verified(&asm::difo(&object), rights) {
        Err(reason) => ("refused".into(), reason),
        Ok((prepared, reference)) if prepared != reference => {
            return Err(format!(
                "the back ends differ:\n{prepared:?}\n{reference:?}"
            ));
        }
        Ok((prepared, _)) => said(&prepared, &expected.1),
    };
    match said == expected {
        true => Ok(()),
        false => Err(format!("{said:?} instead of {expected:?}")),
    }
}

/// Runs the programs of a folder. Returns what is not as they say.
fn check(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("filetests")
        .join(folder);
    let entries = folder.read_dir().expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_program = |path: &PathBuf| path.extension().is_some_and(|ext| ext == "dif");
    let mut paths: Vec<PathBuf> = paths.filter(is_program).collect();
    paths.sort();
    assert!(paths.len() > 10);
    let wrong = paths.iter().filter_map(|path| {
        let why = run(path, folder.ends_with("refused")).err()?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Some(format!("{name}: {why}"))
    });
    wrong.collect()
}

#[test]
fn what_is_wrong_is_refused() {
    assert_eq!(check("refused"), [""; 0]);
}

#[test]
fn what_is_right_is_computed() {
    assert_eq!(check("computed"), [""; 0]);
}
