// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tracing: compiles and enables the programs, starts tracing, and consumes records until tracing
//! ends.

use crate::args::{self, Args, Mode, ProcessArg, ProgramArg};
use crate::debug::step;
use crate::report;
use crate::signals::Interrupts;
use crate::tell::{say, tell};
use crate::Failure;
use dtrace::compile::ProbeSpec;
use dtrace::consume::{ConsumeError, Event, Traced};
use dtrace::diag::Diagnostic;
use dtrace::handle::{preprocess, Enabled, Error, Given, Handle, KernelWorld, Progress, Script};
use dtrace::list;
use dtrace::options::{CompileOptions, Oformat, Opt, OptionError, Options, Setter};
use dtrace::proc::Target;
use dtrace::program::Program;
use dtrace::render::{json, Form, Output, Zone};
use dtrace::source::Source;
use dtrace::text::{decoded, plain};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Read, Write};

/// The tag of the warning that instructions cannot be probed. Nearly every program has such
/// instructions, so the quiet mode does not show this warning.
const LEFT_OUT: &str = "D_PROC_LEFTOUT";

/// An environment variable for tools that compare outputs. If it is set, lines are printed without
/// the numbers of CPU and probe.
const TESTING: &str = "_DTRACE_TESTING";

/// A compiled program and what messages call it.
pub struct Compiled {
    /// `description` or `script`.
    pub what: &'static str,
    /// Its text or file, as shown in messages.
    pub name: String,
    /// The program.
    pub program: Program,
    /// The source that it was compiled from.
    source: Source,
}

/// A program that was read but not compiled.
pub struct Unit {
    what: &'static str,
    name: String,
    source: Source,
    script: Script,
}

/// Compiles and runs the programs of the command line. Returns the exit status.
pub fn run(args: &Args, world: &KernelWorld<'_>) -> Result<u8, Failure> {
    let (mut handle, read) = prepare(args, world)?;
    let programs = compile(args, &mut handle, read)?;
    let mut out = output(args)?;
    if args.disassemble || handle.options.compile.disasm {
        // The listing goes to standard error, so that it does not mix with the output of the
        // programs.
        let mut listing = Vec::new();
        for compiled in &programs {
            dtrace::disassemble::program(&compiled.program, &mut listing)?;
        }
        say(String::from_utf8_lossy(&listing));
    }
    // A claimed enabling already runs. With it, `-e` ends the tracing instead of preventing it.
    let claims = handle.options.is_on(Opt::Grabanon);
    let compile_only = args.compile_only && !claims;
    let is_text = handle.options.consumer.oformat == Oformat::Text;
    let mut enabled = Vec::new();
    for compiled in &programs {
        if !compile_only {
            enabled.push(enable(&mut handle, compiled)?);
        }
        if args.verbose {
            let Compiled {
                what,
                name,
                program,
                ..
            } = compiled;
            if is_text {
                list::report(&mut out, what, name, &program.attributes)?;
            } else {
                let mut text = Vec::new();
                list::report(&mut text, what, name, &program.attributes)?;
                say(String::from_utf8_lossy(&text));
            }
        }
    }
    if compile_only {
        out.flush()?;
        return Ok(0);
    }
    let is_matched = enabled.iter().any(|traced| traced.matched > 0);
    if !is_matched && !claims && !handle.options.compile.zdefs {
        return Err("no probes matched".to_owned().into());
    }
    if handle.options.is_on(Opt::Destructive) {
        announce(&handle, "allowing destructive actions");
    }
    trace(args, &mut handle, &enabled, &mut *out)
}

/// Checks the options before anything else is done, so that an invalid option is the first error to
/// be reported.
pub fn check_options(args: &Args) -> Result<Options, Failure> {
    let mut options = Options::default();
    set_options(args, |name, value| options.set(name, value, Setter::User))?;
    Ok(options)
}

/// Sets the command's own options and those of the command line, in order.
fn set_options(
    args: &Args,
    mut set: impl FnMut(&str, Option<&str>) -> Result<(), OptionError>,
) -> Result<(), Failure> {
    // Printing records in the order of time is the command's default, not the library's.
    let defaults = [('x', "temporal".to_owned(), None)];
    for (letter, name, value) in defaults.iter().chain(&args.options) {
        set(name, value.as_deref()).map_err(|error| {
            let headline = match (letter, value) {
                ('x', _) => format!("failed to set -x {name}: {error}"),
                (_, Some(value)) => format!("failed to set -{letter} {value}: {error}"),
                (_, None) => format!("failed to set -{letter}: {error}"),
            };
            match error.reason() {
                Some(reason) => explained(headline, reason),
                None => headline,
            }
        })?;
    }
    Ok(())
}

/// Makes a handle with all options set, including those that the programs set, and grabs the
/// watched processes. Returns the handle and the programs in order.
pub fn prepare<'w>(
    args: &Args,
    world: &'w KernelWorld<'w>,
) -> Result<(Handle<'w>, Vec<Unit>), Failure> {
    let initialize = |error: Error| format!("failed to initialize dtrace: {error}");
    let mut handle = Handle::new(world).map_err(initialize)?;
    set_options(args, |name, value| handle.set_option(name, value))?;
    handle.options.compile.model = args.model;
    handle.options.consumer.unnumbered = std::env::var_os(TESTING).is_some();
    let mut programs = Vec::new();
    for given in &args.programs {
        programs.push(read_one(args, &mut handle, given)?);
    }
    for target in watched(&args.processes, &handle)? {
        handle.watch(target);
    }
    Ok((handle, programs))
}

/// The processes of the command line, in its order. Waits for the processes of `-W` last, when the
/// others have been created or grabbed. These may start in any order.
fn watched(processes: &[ProcessArg], handle: &Handle<'_>) -> Result<Vec<Target>, Failure> {
    let there = processes.iter().map(|process| target(process, handle));
    let there: Vec<Option<Target>> = there.collect::<Result<_, _>>()?;
    let names = processes.iter().filter_map(|process| match process {
        ProcessArg::Name(name) => Some(name.as_str()),
        _ => None,
    });
    let names: Vec<&str> = names.collect();
    let awaited = handle.await_processes(&names).map_err(|error| {
        let names = names.join(", ");
        format!("failed to wait for a process {names}: {error}")
    });
    let mut awaited = awaited?.into_iter();
    let all = there
        .into_iter()
        .map(|target| target.or_else(|| awaited.next()));
    Ok(all.flatten().collect())
}

/// Creates or grabs one process of the command line. Returns `None` for a process that is yet to
/// start.
fn target(process: &ProcessArg, handle: &Handle<'_>) -> Result<Option<Target>, Failure> {
    let options = &handle.options.compile;
    let target = match process {
        ProcessArg::Command(command) => {
            let target = Target::create(command, &options.environment, options.evaltime);
            target.map_err(|error| format!("failed to execute {command}: {}", plain(&error)))
        }
        ProcessArg::Pid(pid) => {
            let number = pid.parse().map_err(|_| format!("invalid pid: {pid}"))?;
            Target::grab(number).map_err(|error| {
                let reason = format!("failed to grab pid {pid}");
                explained(plain(&error), &reason)
            })
        }
        ProcessArg::Name(_) => return Ok(None),
    };
    Ok(Some(target?))
}

/// Compiles the programs in order. If there are none, compiles only the libraries.
pub fn compile(
    args: &Args,
    handle: &mut Handle<'_>,
    read: Vec<Unit>,
) -> Result<Vec<Compiled>, Failure> {
    let mut programs = Vec::new();
    if args.programs.is_empty() && !handle.options.is_on(Opt::Grabanon) {
        let loaded = handle.load_libraries();
        loaded.map_err(|error| format!("failed to initialize dtrace: {error}"))?;
    }
    for program in read {
        programs.push(compile_one(handle, program)?);
    }
    settle(args, handle, &mut programs)?;
    handle.write_types().map_err(|(file, error)| {
        let (file, error) = (file.display(), plain(&error));
        format!("failed to write types to {file}: {error}")
    })?;
    // The wording and the order are DTrace's, because scripts depend on them: a library comes
    // before the libraries that it depends on.
    let libraries = handle.libraries();
    for (index, path) in libraries.iter().enumerate().rev() {
        let (place, count) = (index + 1, libraries.len());
        step(&handle.options, || {
            format!("library {path} sorted ({place}/{count})")
        });
    }
    for Compiled {
        what,
        name,
        program,
        ..
    } in &programs
    {
        step(&handle.options, || {
            format!("compiled {what} {name}: {} clauses", program.clauses.len())
        });
    }
    Ok(programs)
}

/// Reads a program and applies the options that it sets.
fn read_one(args: &Args, handle: &mut Handle<'_>, given: &ProgramArg) -> Result<Unit, Failure> {
    let name = &given.text;
    let (what, source) = match given.given {
        args::Given::Script => ("script", script(name, &handle.options.compile)?),
        _ => ("description", Source::argument(name.clone())),
    };
    let zero = if what == "script" {
        name.clone()
    } else {
        "dtrace".to_owned()
    };
    // With -G, the arguments are an application's objects, not arguments of the program.
    let arguments: &[String] = match args.mode {
        Mode::Object => &[],
        _ => &args.arguments,
    };
    let spec = match given.given {
        args::Given::Provider => ProbeSpec::Provider,
        args::Given::Module => ProbeSpec::Module,
        args::Given::Function => ProbeSpec::Func,
        args::Given::Name | args::Given::Id | args::Given::Script => ProbeSpec::Name,
    };
    let given = Given {
        spec,
        allow_zero_matches: args.mode != Mode::Exec,
        args: std::iter::once(zero)
            .chain(arguments.iter().cloned())
            .collect(),
    };
    let tags = handle.options.compile.errtags;
    match handle.read(&source, given) {
        Ok(script) => Ok(Unit {
            what,
            name: name.clone(),
            source,
            script,
        }),
        Err(error) => Err(refused(what, name, &error, &source, tags)),
    }
}

fn compile_one(handle: &mut Handle<'_>, read: Unit) -> Result<Compiled, Failure> {
    let Unit {
        what,
        name,
        source,
        script,
    } = read;
    let tags = handle.options.compile.errtags;
    match handle.compile(&script) {
        Ok(program) => {
            say(&program.tree);
            Ok(Compiled {
                what,
                name: reported(what, name),
                program,
                source,
            })
        }
        Err(error) => Err(refused(what, &name, &error, &source, tags)),
    }
}

/// The name by which messages refer to a compiled program. For a program given as text this is the
/// probe description without the predicate and the actions.
fn reported(what: &str, name: String) -> String {
    match name.find(['{', '/', ';']) {
        Some(end) if what != "script" => name.split_at(end).0.to_owned(),
        _ => name,
    }
}

/// Replaces the programs that had to be compiled again once all of them were known, and reports the
/// warnings of all programs.
fn settle(args: &Args, handle: &mut Handle<'_>, programs: &mut [Compiled]) -> Result<(), Failure> {
    let tags = handle.options.compile.errtags;
    let settled = handle
        .settle()
        .map_err(|(number, error)| match programs.get(number) {
            Some(Compiled {
                what, name, source, ..
            }) => refused(what, name, &error, source, tags),
            None => error.to_string().into(),
        })?;
    for (compiled, program) in programs.iter_mut().zip(settled.into_iter().flatten()) {
        compiled.program = program;
    }
    for Compiled {
        program, source, ..
    } in programs
    {
        let quiet = handle.options.is_on(Opt::Quiet);
        let is_told = |warning: &&Diagnostic| !quiet || warning.tag != LEFT_OUT;
        for warning in program.warnings.iter().filter(is_told) {
            if handle.options.consumer.oformat.is_json() {
                report::write(args, &json::doubt(warning, source));
                continue;
            }
            let text = said(warning, source, tags);
            tell(format_args!("warning: {}", text.trim_end_matches('\n')));
        }
    }
    Ok(())
}

/// The message for a program that could not be compiled.
fn refused(what: &str, name: &str, error: &Error, source: &Source, tags: bool) -> Failure {
    let kind = match what {
        "script" => "failed to compile script",
        _ => "invalid probe specifier",
    };
    let message = format!("{kind} {name}: {}", explain(error, source, tags));
    match error {
        Error::Compile(diagnostic) => {
            let headline = diagnostic.headline(source, tags);
            let headline = format!("{kind} {name}: {headline}");
            let line = json::refusal(diagnostic, source, &headline);
            Failure::Refused(message, line)
        }
        _ => message.into(),
    }
}

/// A message for the user. On a terminal the reason follows on a line of its own; elsewhere it is
/// left out, because scripts compare the message.
fn explained(headline: String, reason: &str) -> String {
    if io::stderr().is_terminal() {
        format!("{headline}\n  = {reason}")
    } else {
        headline
    }
}

/// The text of an error. On a terminal the faulty source line follows.
fn explain(error: &Error, source: &Source, tags: bool) -> String {
    let Error::Compile(diagnostic) = error else {
        return error.to_string();
    };
    said(diagnostic, source, tags)
}

fn said(diagnostic: &Diagnostic, source: &Source, tags: bool) -> String {
    let headline = diagnostic.headline(source, tags);
    if io::stderr().is_terminal() {
        format!("{headline}\n{}", diagnostic.snippet(source))
    } else {
        headline
    }
}

/// Reads a script from a file, or from standard input for `-`. Runs the preprocessor if the options
/// say so.
fn script(name: &str, options: &CompileOptions) -> Result<Source, Failure> {
    let text = match name {
        "-" => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes).map(|_| bytes)
        }
        name => std::fs::read(name),
    };
    let text = text.map_err(|error| format!("failed to open {name}: {}", plain(&error)))?;
    let mut text = decoded(text);
    if options.cpp {
        text = preprocess(&text, options)
            .map_err(|error| format!("failed to compile script {name}: {error}"))?;
    }
    Ok(Source::file(name, text))
}

/// Enables a program. Returns what it has matched.
fn enable(handle: &mut Handle<'_>, compiled: &Compiled) -> Result<Traced, Failure> {
    let Compiled {
        what,
        name,
        program,
        ..
    } = compiled;
    let Enabled { probes, left_out } = handle
        .enable(program)
        .map_err(|error| format!("failed to enable '{name}': {error}"))?;
    let plural = if probes == 1 { "" } else { "s" };
    announce(
        handle,
        &format!("{what} '{name}' matched {probes} probe{plural}"),
    );
    // Report this even in quiet mode: the user must know that the output is incomplete.
    if !left_out.is_empty() && !handle.options.consumer.oformat.is_json() {
        tell(&left_out);
    }
    Ok(Traced {
        name: name.clone(),
        matched: probes,
        left_out,
    })
}

/// Traces until tracing ends. Returns the exit status.
fn trace(
    args: &Args,
    handle: &mut Handle<'_>,
    enabled: &[Traced],
    out: &mut dyn Output,
) -> Result<u8, Failure> {
    let interrupts =
        Interrupts::catch().map_err(|error| format!("failed to catch signals: {error}"))?;
    // The zone is read before tracing begins, because that may open a file.
    let format = handle.options.consumer.oformat;
    let mut form = Form::new(format, Zone::local());
    handle
        .go()
        .map_err(|error| format!("could not enable tracing: {error}"))?;
    if args.compile_only {
        handle
            .stop()
            .map_err(|error| format!("couldn't stop tracing: {error}"))?;
    }
    step(&handle.options, || "tracing".to_owned());
    let quiet = handle.options.is_on(Opt::Quiet);
    let people = args.verbose || io::stderr().is_terminal();
    let mut event = |event: Event| match event {
        Event::Place(_) if !people => {}
        Event::Lowered(_) if quiet => {}
        Event::Ended(ended)
            if quiet && !matches!(ended.ending, dtrace::proc::Ending::Signal(_)) => {}
        event => tell(event),
    };
    let mut sink = form.to(out, &mut event);
    handle
        .tell_start(enabled, sink.receiver())
        .map_err(|error| failure(&error, "processing aborted"))?;
    drop(sink);
    loop {
        if interrupts.arrived() {
            if format == Oformat::Text {
                // The terminal echoes ^C, so begin a new line.
                writeln!(out)?;
            }
            handle
                .stop()
                .map_err(|error| format!("couldn't stop tracing: {error}"))?;
        }
        let mut sink = form.to(out, &mut event);
        let progress = handle.work(sink.receiver());
        let progress = progress.map_err(|error| failure(&error, "processing aborted"))?;
        sink.flush()?;
        drop(sink);
        if progress == Progress::Done {
            break;
        }
        handle
            .wait(Some(interrupts.descriptor()))
            .map_err(|error| failure(&error, "failed to wait"))?;
    }
    let mut sink = form.to(out, &mut event);
    sink.gap()?;
    handle
        .yield_aggregations(sink.receiver())
        .and_then(|()| handle.tell_end(sink.receiver()))
        .map_err(|error| failure(&error, "failed to print aggregations"))?;
    sink.flush()?;
    drop(sink);
    step(&handle.options, || "tracing has ended".to_owned());
    if handle.options.compile.core {
        std::process::abort();
    }
    // As with any command, the parent sees only the low byte.
    Ok(handle.exit_status() as u8)
}

fn failure(error: &Error, what: &str) -> Failure {
    let message = format!("{what}: {error}");
    match error {
        _ if error.is_broken_pipe() => Failure::Closed,
        Error::Consume(ConsumeError::Output(_)) => Failure::Unwritten(message),
        _ => Failure::Message(message),
    }
}

/// Reports something about the trace, which JSON has in its first line.
fn announce(handle: &Handle<'_>, text: &str) {
    if !handle.options.consumer.oformat.is_json() {
        notice(handle, text);
    }
}

/// Reports something that quiet mode suppresses.
pub fn notice(handle: &Handle<'_>, text: &str) {
    if !handle.options.is_on(Opt::Quiet) {
        tell(text);
    }
}

/// The destination of the output: standard output, or the end of the file that `-o` names.
pub fn output(args: &Args) -> Result<Box<dyn Output>, Failure> {
    let Some(name) = &args.output else {
        return Ok(Box::new(BufWriter::new(io::stdout())));
    };
    let file = OpenOptions::new().append(true).create(true).open(name);
    let file: File =
        file.map_err(|error| format!("failed to open output file '{name}': {}", plain(&error)))?;
    Ok(Box::new(BufWriter::new(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_may_be_latin_1() {
        let name = format!("latin-{}.d", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, b"/* caf\xe9 */ BEGIN").unwrap();
        let read = script(&path.to_string_lossy(), &CompileOptions::default());
        std::fs::remove_file(&path).unwrap();
        let source = read.unwrap_or_else(|_| panic!("it is not read"));
        assert_eq!(source.text, "/* caf\u{fffd} */ BEGIN");
    }
}
