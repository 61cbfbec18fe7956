// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The harness's own cases: if a case takes the machine down, or makes its kernel complain, that
//! case is blamed, the console's log is kept, and the other cases continue. `scripts/vm selftest`
//! calls it.
//!
//! Each trial checks one ending of a single run of all cases; the order of the works is part of the
//! test. Two more trials drive `vm run` and `vm shell` as a user does, through their input and
//! output.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use qemu_tests::session::{self, Ending, Work};
use qemu_tests::vm::{read_lossy, Setup};

/// A case of the harness: its name, its commands, its limit in seconds, and its expected ending.
type Case = (&'static str, &'static str, u64, Expected);

/// The expected ending of a case.
#[derive(Clone, Copy)]
enum Expected {
    /// It prints this and ends by itself.
    Output(&'static str),
    /// Its limit ends it, and the machine continues.
    Late,
    /// The report contains the first text, and the saved log of the console the second.
    Blame(&'static str, &'static str),
}

const CASES: [Case; 7] = [
    ("before", "echo before", 10, Expected::Output("before\n")),
    (
        "panic",
        "insmod \"$MODULE\"; dtrace -wn 'BEGIN { panic(); }'; sleep 30",
        20,
        Expected::Blame(
            "the kernel died during harness/panic",
            "dtrace: panic action",
        ),
    ),
    (
        "between",
        "echo between; exit 3",
        10,
        Expected::Output("between\n"),
    ),
    (
        "warning",
        "insmod \"$COMPLAIN\"; echo loaded",
        20,
        Expected::Blame("the kernel complained:", "complained on purpose"),
    ),
    ("slow", "echo slow; sleep 60", 2, Expected::Late),
    (
        // With its first process frozen, the machine does nothing more by itself.
        "hang",
        "d=/sys/fs/cgroup/frozen; mkdir $d; echo 1 >$d/cgroup.procs; echo 1 >$d/cgroup.freeze",
        10,
        Expected::Blame("the machine hung or ended during harness/hang", "case 0005"),
    ),
    ("after", "echo after", 10, Expected::Output("after\n")),
];

fn main() -> ExitCode {
    let mut args = Arguments::from_args();
    // One machine at a time.
    args.test_threads = Some(1);
    match endings() {
        Ok((setup, endings)) => {
            let setup = Arc::new(setup);
            let mut trials: Vec<Trial> = CASES
                .into_iter()
                .enumerate()
                .zip(endings)
                .map(|((at, case), ending)| {
                    let setup = Arc::clone(&setup);
                    Trial::test(format!("harness/{}", case.0), move || {
                        check(&setup, at, &case, &ending).map_err(Failed::from)
                    })
                })
                .collect();
            trials.push(Trial::test("harness/interrupt", || {
                interrupt().map_err(Failed::from)
            }));
            trials.push(Trial::test("harness/shell", || {
                shell().map_err(Failed::from)
            }));
            libtest_mimic::run(&args, trials).exit_code()
        }
        Err(why) => {
            eprintln!("selftest: {why}");
            ExitCode::from(1)
        }
    }
}

/// Runs the cases. A case without an ending is one that the harness has forgotten.
fn endings() -> io::Result<(Setup, Vec<Option<Ending>>)> {
    let setup = Setup {
        module: None,
        ..Setup::from_env()?
    };
    for at in 0..CASES.len() {
        let log = kept(&setup, at);
        if log.exists() {
            fs::remove_file(log)?;
        }
    }
    let built = |path: &str| setup.kernel_build.join(path).display().to_string();
    let modules = format!(
        "COMPLAIN={} MODULE={}",
        built("complain/complain.ko"),
        built("modules/dtrace.ko")
    );
    let works: Vec<Work> = CASES
        .iter()
        .map(|&(name, command, limit, _)| Work {
            name: format!("harness/{name}"),
            command: format!("{modules}\n{command}\n"),
            limit: Duration::from_secs(limit),
            last: false,
        })
        .collect();
    let mut endings: Vec<Option<Ending>> = works.iter().map(|_| None).collect();
    session::run(&setup, None, &works, &mut |at, ending| {
        endings[at] = Some(ending)
    })?;
    Ok((setup, endings))
}

/// The file in which the console's log of a failed case is kept.
fn kept(setup: &Setup, at: usize) -> std::path::PathBuf {
    setup.build.join(format!(
        "console-failed/{at:04}-harness-{}.log",
        CASES[at].0
    ))
}

fn check(setup: &Setup, at: usize, case: &Case, ending: &Option<Ending>) -> Result<(), String> {
    let log = read_lossy(&kept(setup, at));
    let right = match (case.3, ending) {
        (Expected::Output(text), Some(Ok(outcome))) => {
            outcome.stdout == text && !outcome.timed_out() && log.is_empty()
        }
        (Expected::Late, Some(Ok(outcome))) => outcome.timed_out() && log.is_empty(),
        (Expected::Blame(words, said), Some(Err(report))) => {
            report.contains(words) && log.contains(said)
        }
        _ => false,
    };
    if right {
        return Ok(());
    }
    Err(format!(
        "ended with {ending:?}\n--- the log that was kept\n{log}---"
    ))
}

/// Checks that output arrives while the command runs, that Ctrl-C reaches it, and that its status
/// comes back.
fn interrupt() -> Result<(), String> {
    let command = "trap 'echo interrupted; exit 7' INT; echo ready; sleep 60 & wait";
    let mut child = Command::new(vm()?)
        .args(["run", command])
        .env("DTRACE_VM_BARE", "1")
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let mut line = || lines.next().transpose().ok().flatten();
    let ready = line();
    let still = child.try_wait().map_err(|e| e.to_string())?.is_none();
    interrupt_process(&child)?;
    let interrupted = line();
    let status = child.wait().map_err(|e| e.to_string())?.code();
    let found = (ready.as_deref(), still, interrupted.as_deref(), status);
    if found == (Some("ready"), true, Some("interrupted"), Some(7)) {
        Ok(())
    } else {
        Err(format!(
            "first line, still running, second line, status: {found:?}"
        ))
    }
}

/// Checks that the shell is interactive: it has a prompt and a terminal, executes commands, and its
/// end ends the machine.
fn shell() -> Result<(), String> {
    let mut child = Command::new("script")
        .args(["--quiet", "--return", "--command"])
        .arg(format!("{} shell", vm()?))
        .arg("/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| e.to_string())?;
    let mut keys = child.stdin.take().ok_or("no input")?;
    let mut screen = child.stdout.take().ok_or("no output")?;
    let mut seen = String::new();
    read_until(&mut screen, &mut seen, "# ")?;
    keys.write_all(b"tty; lsmod | grep -c ^dtrace; echo $((6 * 7))-\n")
        .map_err(|e| e.to_string())?;
    read_until(&mut screen, &mut seen, "42-")?;
    keys.write_all(b"exit\n").map_err(|e| e.to_string())?;
    drop(keys);
    let _ = screen.read_to_string(&mut seen);
    let status = child.wait().map_err(|e| e.to_string())?;
    let told = ["/dev/ttyS0", "\n1\r"]
        .iter()
        .all(|text| seen.contains(text));
    if status.success() && told {
        Ok(())
    } else {
        Err(format!("{status}\n{seen}"))
    }
}

/// The program that boots machines by hand, in the same folder as this one.
fn vm() -> Result<String, String> {
    let path = std::env::current_exe().map_err(|e| e.to_string())?;
    Ok(path.with_file_name("vm").display().to_string())
}

/// Interrupts a process as Ctrl-C does.
fn interrupt_process(child: &Child) -> Result<(), String> {
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    status.map_err(|e| e.to_string()).map(drop)
}

/// Reads until `text` has been read; if the output ends before, that is an error.
fn read_until(from: &mut impl Read, seen: &mut String, text: &str) -> Result<(), String> {
    let mut byte = [0];
    while !seen.ends_with(text) {
        match from.read(&mut byte) {
            Ok(1) => seen.push(char::from(byte[0])),
            _ => return Err(format!("ended before `{text}`:\n{seen}")),
        }
    }
    Ok(())
}
