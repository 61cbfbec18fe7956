// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! dtrace(8): options and exit status. Everything else is in the library.
//!
//! Exit status: 0, or the argument of `exit()`; 1 for an error, which is one message on standard
//! error that begins with `dtrace: `, and a line of the output if that is JSON; 2 for an invalid command line. If the reader of the output
//! has closed it, the command ends without a message and with status 0.

#![forbid(unsafe_code)]

mod anon;
mod application;
mod args;
mod debug;
mod list;
mod report;
mod signals;
mod tell;
mod trace;

use args::{ArgError, Args, Mode};
use dtrace::device::{open_error, Absent, DevDtrace, PATH};
use dtrace::handle::KernelWorld;
use dtrace::options::{self, Opt};
use dtrace::render::json;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use tell::{say, tell};

/// Exit status of an error.
const ERROR: u8 = 1;
/// Exit status of an invalid command line.
const USAGE: u8 = 2;

/// Why the command ends early.
enum Failure {
    /// A message for the user.
    Message(String),
    /// A program cannot be compiled: a message, and the line of the output if that is JSON.
    Refused(String, Vec<u8>),
    /// The output cannot be written: a message.
    Unwritten(String),
    /// The reader of the output has closed it.
    Closed,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

impl From<io::Error> for Failure {
    /// Converts an error in writing the output.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Unwritten(format!("failed to write output: {error}")),
        }
    }
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if words.is_empty() {
        say(args::USAGE);
        return ExitCode::from(USAGE);
    }
    let args = match args::parse(words) {
        Ok(args) => args,
        Err(ArgError(message)) => {
            tell(message);
            say(args::USAGE);
            return ExitCode::from(USAGE);
        }
    };
    match run(&args) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => ended(&args, failure),
    }
}

/// Reports why the command ends early. Returns the exit status.
fn ended(args: &Args, failure: Failure) -> ExitCode {
    let (message, line) = match failure {
        Failure::Closed => return ExitCode::SUCCESS,
        Failure::Unwritten(message) => (message, None),
        Failure::Refused(message, line) => (message, Some(line)),
        Failure::Message(message) => {
            let line = json::error(&message);
            (message, Some(line))
        }
    };
    if let Some(line) = line.filter(|_| report::is_json(args)) {
        report::write(args, &line);
    }
    // Trim newlines only: some of DTrace's messages end in a blank, which must stay.
    tell(message.trim_end_matches('\n'));
    ExitCode::from(ERROR)
}

/// Prints the version of D, and if the command line asks for more, that of the command.
fn version(args: &Args) -> Result<u8, Failure> {
    let mut out = io::stdout();
    let (d, command) = (options::version::CURRENT, env!("CARGO_PKG_VERSION"));
    if report::is_json(args) {
        let mut line = Vec::new();
        json::list::version(&mut line, &d.to_string(), command);
        out.write_all(&line)?;
        return Ok(0);
    }
    writeln!(out, "dtrace: D {d}")?;
    if args.versions > 1 || args.verbose {
        writeln!(out, "DTrace for Linux {command}\nThis is DTrace {d:#}")?;
    }
    Ok(0)
}

fn run(args: &Args) -> Result<u8, Failure> {
    if args.mode == Mode::Version {
        return version(args);
    }
    if let (Mode::Header | Mode::Object, true) = (args.mode, args.programs.is_empty()) {
        let letter = if args.mode == Mode::Header { 'h' } else { 'G' };
        tell(format_args!(
            "-{letter} requires one or more scripts or enabling options"
        ));
        return Ok(USAGE);
    }
    let options = trace::check_options(args)?;
    let nothing = args.programs.is_empty();
    let claims = options.is_on(Opt::Grabanon);
    if args.mode == Mode::Exec && nothing && !args.compile_only && !claims {
        return Err("no probes specified".to_owned().into());
    }
    if args.mode == Mode::Anonymous {
        if !args.processes.is_empty() {
            return Err("-A is not for processes of today (-c, -p, -W)"
                .to_owned()
                .into());
        }
        if nothing {
            return anon::clear(args, options.is_on(Opt::Quiet));
        }
    }
    let initialize = |reason: String| format!("failed to initialize dtrace: {reason}");
    let device = DevDtrace::open(Path::new(PATH));
    let is_for_others = matches!(args.mode, Mode::Header | Mode::Object);
    if device.is_err() && is_for_others {
        // Without the device no kernel probes exist, but an application's probes can be compiled.
        return application::run(args, &KernelWorld::new(&Absent));
    }
    let device = device.map_err(|error| initialize(open_error(&error)))?;
    let world = KernelWorld::new(&device);
    match args.mode {
        Mode::List => list::run(args, &world),
        Mode::Header | Mode::Object => application::run(args, &world),
        Mode::Anonymous => anon::save(args, &world),
        _ => trace::run(args, &world),
    }
}
