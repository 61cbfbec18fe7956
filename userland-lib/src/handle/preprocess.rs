// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! The C preprocessor, for scripts that ask for it (`-C`).
//!
//! It is a program of the system: it reads the script from its standard input, so its messages name
//! `/dev/stdin`, and writes them to our standard error itself. Line markers stay in its output, and
//! [`Source::position`](crate::source::Source::position) follows them, so later errors name the script's own lines.

use std::{
    ffi::OsStr,
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use thiserror::Error;

use crate::arch::HOST;
use crate::options::CompileOptions;
use crate::source::decoded;

/// The preprocessor, unless `cpppath` names another.
const DEFAULT: &str = "cpp";

/// What scripts may ask about the compiler. Our D is not GNU C, whatever the preprocessor believes.
const DEFINITIONS: [&str; 8] = [
    "-D__linux",
    "-D__unix",
    "-D__SVR4",
    "-D__SUNW_D=1",
    "-D__SUNW_D_64",
    "-D__SUNW_D_VERSION=0x02000000",
    "-D__Linux",
    "-U__GNUC__",
];

/// Messages name a line, as D's own do, and show no text.
const MESSAGES: [&str; 2] = ["-fno-show-column", "-fno-diagnostics-show-caret"];

/// Why a script could not be preprocessed, in DTrace's words.
#[derive(Debug, Error)]
pub enum PreprocessError {
    /// There is no such program.
    #[error("Preprocessor not found")]
    NotFound,
    /// It cannot be started.
    #[error("Failed to exec preprocessor")]
    Exec(#[source] io::Error),
    /// It found errors, and has told them itself.
    #[error("Preprocessor failed to process input program")]
    Failed,
}

/// Runs the preprocessor over a script's `text`.
pub fn preprocess(text: &str, options: &CompileOptions) -> Result<String, PreprocessError> {
    let program = options
        .cpppath
        .as_deref()
        .map_or(OsStr::new(DEFAULT), |path| path.as_os_str());
    let mut command = Command::new(program);
    // It is to call itself by its name in its messages, wherever it was found.
    if let Some(name) = Path::new(program).file_name() {
        command.arg0(name);
    }
    command
        .args(DEFINITIONS)
        .args(MESSAGES)
        .args(HOST.definitions)
        .args(&options.cppargs)
        .arg("/dev/stdin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => PreprocessError::NotFound,
        _ => PreprocessError::Exec(error),
    })?;
    let input = without_interpreter(text).to_owned();
    // Writing may block until our end of the output is read, so it has a thread of its own. A preprocessor that
    // stops reading says by its status whether that was a failure.
    let writer = child
        .stdin
        .take()
        .map(|mut stdin| thread::spawn(move || stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().map_err(PreprocessError::Exec)?;
    if let Some(writer) = writer {
        let _ = writer.join();
    }
    if !output.status.success() {
        return Err(PreprocessError::Failed);
    }
    Ok(decoded(output.stdout))
}

/// The text behind an interpreter's line, which is no directive; its newline stays, so that lines keep their
/// numbers.
fn without_interpreter(text: &str) -> &str {
    match text.strip_prefix("#!") {
        Some(rest) => &rest[rest.find('\n').unwrap_or(rest.len())..],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_path(path: &str) -> CompileOptions {
        CompileOptions {
            cpppath: Some(path.into()),
            ..CompileOptions::default()
        }
    }

    #[test]
    fn the_interpreter_line_goes_and_its_newline_stays() {
        for (text, expected) in [
            ("#!/usr/sbin/dtrace -s\nBEGIN", "\nBEGIN"),
            ("#!x", ""),
            ("#define A\n", "#define A\n"),
            ("", ""),
        ] {
            assert_eq!(without_interpreter(text), expected);
        }
    }

    #[test]
    fn failures_are_told_apart() {
        let error = |path| preprocess("BEGIN", &with_path(path)).unwrap_err();
        assert!(matches!(error("/no/such/cpp"), PreprocessError::NotFound));
        assert!(matches!(error("/dev/null"), PreprocessError::Exec(_)));
        assert!(matches!(error("false"), PreprocessError::Failed));
        assert_eq!(error("/no/such/cpp").to_string(), "Preprocessor not found");
    }

    #[test]
    fn a_program_that_reads_nothing_is_no_error_of_ours() {
        let large = "x".repeat(1 << 20);
        assert_eq!(preprocess(&large, &with_path("true")).unwrap(), "");
    }

    #[test]
    fn arguments_and_input_arrive() {
        // A preprocessor that shows what it was given.
        let dir = std::env::temp_dir().join(format!("dtrace-cpp-{}", std::process::id()));
        std::fs::write(&dir, "#!/bin/sh\necho \"$@\"\ncat\n").unwrap();
        let mut permissions = std::fs::metadata(&dir).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o700);
        std::fs::set_permissions(&dir, permissions).unwrap();
        let mut options = with_path(dir.to_str().unwrap());
        options.cppargs = vec!["-DFOO=1".into(), "-I.".into()];
        let text = preprocess("#!dtrace\nBEGIN\n", &options).unwrap();
        std::fs::remove_file(&dir).unwrap();
        let (arguments, input) = text.split_once('\n').unwrap();
        assert!(arguments.contains("-D__SUNW_D=1"));
        assert!(arguments.ends_with("-DFOO=1 -I. /dev/stdin"));
        assert_eq!(input, "\nBEGIN\n");
    }
}
