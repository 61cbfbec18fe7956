// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The C preprocessor, for scripts that request it (`-C`).
//!
//! It is a program of the system. It reads the script from its standard input, so its messages name
//! `/dev/stdin`, and it writes them to our standard error itself. Line markers stay in its output.
//! [`Source::position`](dtrace_compiler::source::Source::position) follows them, so that later
//! errors name the script's own lines.

use std::{
    ffi::OsStr,
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use thiserror::Error;

use dtrace_compiler::options::CompileOptions;
use dtrace_files::arch::HOST;
use dtrace_files::text::decoded;

/// The preprocessor, unless `cpppath` names another.
const DEFAULT: &str = "cpp";

/// Macros by which scripts recognise the compiler. `__GNUC__` is undefined, because D is not GNU C.
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

/// Options that make messages look like D's own: they name a line, and show neither column nor
/// source.
const MESSAGES: [&str; 2] = ["-fno-show-column", "-fno-diagnostics-show-caret"];

/// Why a script could not be preprocessed, in DTrace's words.
#[derive(Debug, Error)]
pub enum PreprocessError {
    /// The preprocessor does not exist.
    #[error("Preprocessor not found")]
    NotFound,
    /// The preprocessor cannot be started.
    #[error("Failed to exec preprocessor")]
    Exec(#[source] io::Error),
    /// The preprocessor found errors and has reported them itself.
    #[error("Preprocessor failed to process input program")]
    Failed,
}

/// Returns a script's `text` as the preprocessor expands it.
pub fn preprocess(text: &str, options: &CompileOptions) -> Result<String, PreprocessError> {
    let program = options
        .cpppath
        .as_deref()
        .map_or(OsStr::new(DEFAULT), |path| path.as_os_str());
    let mut command = Command::new(program);
    // Its messages begin with its name alone, wherever it was found.
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
    // Writing may block until we read the output, so it has its own thread. Its errors are ignored:
    // a preprocessor that stops reading says by its exit status whether it failed.
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

/// Removes a `#!` line, which is not a directive. Its newline stays, so that lines keep their
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
        // A preprocessor that prints its arguments and its input.
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
