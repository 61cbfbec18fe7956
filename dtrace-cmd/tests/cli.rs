// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The command line without a kernel: usage, messages and exit statuses.

use dtrace_render::json::testing::held;
use std::fs::OpenOptions;
use std::process::{Command, Output, Stdio};

fn dtrace(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dtrace"));
    command
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("the command runs")
}

/// Exit status, standard output, standard error.
fn run(words: &[&str]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = dtrace(words);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn a_wrong_command_line_shows_the_usage_with_status_2() {
    for (words, message) in [
        (&[][..], "Usage: dtrace "),
        (&["-y"], "dtrace: invalid option -- 'y'\nUsage: dtrace "),
        (
            &["--list"],
            "dtrace: invalid option -- 'list'\nUsage: dtrace ",
        ),
        (
            &["-n"],
            "dtrace: option requires an argument -- 'n'\nUsage: dtrace ",
        ),
    ] {
        let (status, out, err) = run(words);
        assert_eq!((status, &*out), (Some(2), ""), "{words:?}");
        assert!(err.starts_with(message), "{words:?}: {err}");
    }
}

#[test]
fn headers_and_objects_are_of_programs() {
    for letter in ["-G", "-h"] {
        let (status, out, err) = run(&[letter]);
        assert_eq!((status, &*out), (Some(2), ""));
        let message =
            format!("dtrace: {letter} requires one or more scripts or enabling options\n");
        assert_eq!(err, message);
    }
}

#[test]
fn the_version_needs_no_device() {
    let (status, out, err) = run(&["-V"]);
    assert_eq!((status, &*err), (Some(0), ""));
    assert_eq!(out, "dtrace: D 2.0\n");
    for words in [&["-VV"][..], &["-vV"]] {
        let (status, out, _) = run(words);
        assert_eq!(status, Some(0));
        assert!(out.starts_with("dtrace: D 2.0\nDTrace for Linux "), "{out}");
        assert!(out.ends_with("\nThis is DTrace 2.0.0\n"), "{out}");
    }
}

#[test]
fn what_cannot_be_done_is_one_message_with_status_1() {
    for (words, message) in [
        (&["-q"][..], "dtrace: no probes specified\n"),
        (
            &["-x", "nosuch"],
            "dtrace: failed to set -x nosuch: Invalid option name\n",
        ),
        (
            &["-b", "4x", "-n", "BEGIN"],
            "dtrace: failed to set -b 4x: Invalid value for specified option\n",
        ),
        (
            &["-A", "-n", "BEGIN", "-c", "true"],
            "dtrace: -A is not for processes of today (-c, -p, -W)\n",
        ),
        (
            &["-A", "-o", "/proc/self/status/anon.dof"],
            "dtrace: failed to remove /proc/self/status/anon.dof: Not a directory\n",
        ),
        (
            &["-x", "version=99.1", "-n", "BEGIN"],
            "dtrace: failed to set -x version: Operation not supported\n",
        ),
        (
            &["-O", "xml", "-n", "BEGIN"],
            "dtrace: failed to set -O xml: Invalid value for specified option: the formats are text, json, json,quote64 and csv\n",
        ),
    ] {
        let (status, out, err) = run(words);
        assert_eq!((status, &*out, &*err), (Some(1), "", message), "{words:?}");
    }
}

#[test]
fn what_cannot_be_done_is_a_line_of_json_as_well() {
    for (words, message) in [
        (&["-O", "json"][..], "no probes specified"),
        (
            &["-xoformat=json,quote64", "-x", "nosuch"],
            "failed to set -x nosuch: Invalid option name",
        ),
        (
            &["-O", "json", "-A", "-n", "BEGIN", "-c", "tr\"ue"],
            "-A is not for processes of today (-c, -p, -W)",
        ),
    ] {
        let (status, out, err) = run(words);
        assert_eq!((status, err), (Some(1), format!("dtrace: {message}\n")));
        let lines = held(out.as_bytes());
        let [line] = &lines[..] else {
            panic!("one line expected: {out}");
        };
        assert_eq!(line["type"], "error");
        assert_eq!(line["message"], message);
    }
    // The last format counts, and CSV has no place for errors.
    for format in ["text", "csv"] {
        let (_, out, _) = run(&["-O", "json", "-O", format]);
        assert_eq!(out, "");
    }
}

#[test]
fn the_error_goes_where_the_output_would_have_gone() {
    let path = std::env::temp_dir().join(format!("json-{}", std::process::id()));
    let name = path.display().to_string();
    let (status, out, _) = run(&["-O", "json", "-o", &name]);
    assert_eq!((status, &*out), (Some(1), ""));
    assert_eq!(held(&std::fs::read(&path).expect("a file")).len(), 1);
    std::fs::remove_file(&path).expect("a file");
}

#[test]
fn the_version_is_an_object() {
    let (status, out, err) = run(&["-VO", "json"]);
    assert_eq!((status, &*err), (Some(0), ""));
    let lines = held(out.as_bytes());
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["d"], "2.0");
    assert_eq!(lines[0]["dtrace"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_full_disk_is_an_error() {
    for words in [&["-V"][..], &["-VO", "json"]] {
        let full = OpenOptions::new().write(true).open("/dev/full");
        let mut command = Command::new(env!("CARGO_BIN_EXE_dtrace"));
        let command = command.args(words).stdout(full.expect("/dev/full"));
        let output = command.output().expect("the command runs");
        let err = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1));
        let message = "dtrace: failed to write output: No space left on device";
        assert!(
            err.starts_with(message) && err.lines().count() == 1,
            "{err}"
        );
    }
}

#[test]
fn an_anonymous_enabling_is_cleared_without_a_device() {
    let path = std::env::temp_dir().join(format!("cleared-{}.dof", std::process::id()));
    let name = path.display();
    let words = format!("-A -o {name}");
    let words: Vec<_> = words.split(' ').collect();
    let nothing = (Some(0), String::new(), String::new());
    assert_eq!(run(&words), nothing);
    std::fs::write(&path, "x").expect("a file");
    let cleared = format!(
        "dtrace: cleaned up old anonymous enabling in {name}\n\
         dtrace: rebuild the initial RAM disk and reboot to enable changes\n"
    );
    assert_eq!(run(&words), (Some(0), String::new(), cleared));
    assert!(!path.exists());
}

#[test]
fn a_missing_device_is_told() {
    if std::path::Path::new("/dev/dtrace").exists() {
        return;
    }
    for words in [
        &["-l"][..],
        &["-n", "BEGIN { exit(0); }"],
        &["-s", "/nonexistent.d"],
        &["-a"],
        &["-ae"],
        &["-x", "grabanon"],
        &["-A", "-n", "BEGIN"],
    ] {
        let (status, out, err) = run(words);
        assert_eq!((status, &*out), (Some(1), ""), "{words:?}");
        let message = "dtrace: failed to initialize dtrace: DTrace device not available on system";
        assert!(
            err.starts_with(message) && err.lines().count() == 1,
            "{err}"
        );
    }
}

#[test]
fn output_that_nobody_reads_is_no_error() {
    for words in [&["-V"][..], &["-VO", "json"]] {
        // A pipe whose reader has ended.
        let mut reader = Command::new("true")
            .stdin(Stdio::piped())
            .spawn()
            .expect("true runs");
        let pipe = reader.stdin.take().expect("a pipe");
        reader.wait().expect("true ends");
        let mut command = Command::new(env!("CARGO_BIN_EXE_dtrace"));
        let child = command
            .args(words)
            .stdout(pipe)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        let output = child.wait_with_output().expect("the command ends");
        let ending = (output.status.code(), output.stderr.len());
        assert_eq!(ending, (Some(0), 0), "{words:?}");
    }
}
