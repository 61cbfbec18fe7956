// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! One consumer of DTrace, from the text of its programs to the text of their output.
//!
//! ```text
//! open → set_option → read → compile → enable → go → (wait → work)… → stop → work → print_aggregations
//! ```
//!
//! The handle owns what must agree: the options, the compiler (whose variables and aggregations all programs
//! share), the statements that give records their meaning, the watched processes and the state of consuming. The
//! kernel is behind [`Device`], everything else about the machine behind [`KernelWorld`], so that all of it runs in
//! tests.
//!
//! Invariant: `statements` holds the statements of every program that may be enabled, in the order of their
//! numbers.

mod absent;
mod affinity;
mod anonymous;
mod awaiting;
mod clock;
mod dev_dtrace;
mod device;
mod error;
mod follow;
mod libraries;
mod names;
mod own;
mod placed;
mod preprocess;
mod stacks;
mod world;

#[cfg(test)]
mod tests;

pub use absent::Absent;
pub use dev_dtrace::{DevDtrace, PATH};
pub use device::{fill, text, Buffer, Device};
pub use error::{open_error, plain, Error};
pub use libraries::{libraries, Library, LibraryError, Need};
pub use names::Names;
pub use preprocess::{preprocess, PreprocessError};
pub use world::{probe_desc, probes, KernelWorld};

use crate::compile::{Compiler, ProbeSpec, Settings};
use crate::consume::{until_readable, Consumer, Context, Event, Places, Sink};
use crate::options::{OptionError, Options, Setter};
use crate::proc::Target;
use crate::program::Program;
use crate::render::Zone;
use crate::source::Source;
use crate::statement::Statement;
use crate::symbols::VMLINUX;
use crate::types::{Container, DataModel};
use crate::world::TypeSource;
use affinity::Stay;
use clock::Clock;
use dtrace_uapi::limits;
use dtrace_uapi::option::{self, Opt};
use follow::{Follow, News};
use nix::unistd;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use stacks::Stacks;
use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

/// How long a program that begins waits for its own probes, unless it is set.
const HOLD_TIME: Duration = Duration::from_millis(200);

/// The library's own clause for faults: it makes a record that becomes a message, not output.
const ERROR_CLAUSE: &str =
    "dtrace:::ERROR { trace(arg1); trace(arg2); trace(arg3); trace(arg4); trace(arg5); }";

/// Whether there is more to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Tracing goes on.
    Okay,
    /// Tracing has ended and everything was consumed.
    Done,
}

/// Where a handle is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is traced yet.
    Setup,
    /// Tracing, with the CPU that fired `BEGIN`.
    Running(u32),
    /// Tracing has ended, with the CPU that fired `END`.
    Stopped(u32),
}

/// The macro variable that is the number of the first process that is watched.
const TARGET: &str = "target";

/// How a program is given.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// What its descriptions are.
    pub spec: ProbeSpec,
    /// A description that matches nothing is no error.
    pub allow_zero_matches: bool,
    /// `$0`, `$1`, …
    pub args: Vec<String>,
}

/// A program whose options have been taken over.
#[derive(Clone, Debug)]
pub struct Script {
    source: Source,
    given: Given,
}

/// What became of an enabling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enabled {
    /// How many probes it is at.
    pub probes: u32,
    /// Which others it should be at, and why it is not, in the kernel's words; empty where there is none.
    pub left_out: String,
}

/// One consumer.
pub struct Handle<'w> {
    world: &'w KernelWorld<'w>,
    /// The version of the module.
    module: u32,
    /// The options.
    pub options: Options,
    compiler: Compiler<'w>,
    statements: Vec<Statement>,
    places: Places,
    targets: Vec<Target>,
    follow: Follow,
    stacks: Stacks,
    consumer: Consumer,
    names: Names,
    zone: Zone,
    clock: Clock,
    phase: Phase,
    has_libraries: bool,
    /// A program was enabled that does what nobody had allowed by then.
    is_destructive: bool,
    libraries: Vec<String>,
    /// What the kernel has said of calls that succeeded, and is still to be told.
    remarks: Vec<Event>,
}

impl<'w> Handle<'w> {
    /// A consumer of `world`'s device, which must speak our version of DIF.
    pub fn new(world: &'w KernelWorld<'w>) -> Result<Self, Error> {
        let conf = world.device().conf()?;
        if conf.difversion != u32::from(dtrace_uapi::dif::DIF_VERSION) {
            return Err(Error::Version(conf.difversion));
        }
        let module = conf.interface;
        Ok(Self {
            world,
            module,
            options: Options::default(),
            compiler: Compiler::new(world),
            statements: Vec::new(),
            places: Places::default(),
            targets: Vec::new(),
            follow: Follow::default(),
            stacks: Stacks::default(),
            consumer: Consumer::default(),
            names: Names::new(world.symbols()),
            zone: Zone::local(),
            clock: Clock::default(),
            phase: Phase::Setup,
            has_libraries: false,
            is_destructive: false,
            libraries: Vec::new(),
            remarks: Vec::new(),
        })
    }

    /// Sets an option.
    pub fn set_option(&mut self, name: &str, value: Option<&str>) -> Result<(), OptionError> {
        let setter = if self.phase == Phase::Setup {
            Setter::User
        } else {
            Setter::Running
        };
        self.options.set(name, value, setter)
    }

    /// Watches a process: the first one is `$target`, and tracing ends with the last of them.
    pub fn watch(&mut self, target: Target) {
        self.names.default_pid.get_or_insert(target.pid());
        self.know(target.pid());
        self.targets.push(target);
    }

    /// Learns what addresses of a process mean, whose number in records may be another one than that which we know.
    fn know(&mut self, pid: u32) {
        if let Ok(number) = self.device().number(pid) {
            self.names.alias(number, pid);
        }
        self.names.watch(pid);
    }

    /// The process that `$target` names.
    pub fn target(&self) -> Option<u32> {
        self.targets.first().map(Target::pid)
    }

    /// Takes over the options that a program sets. Those of all programs count, so read every one before the first is compiled
    /// and before a process is created.
    pub fn read(&mut self, source: &Source, given: Given) -> Result<Script, Error> {
        let macros = Settings {
            macros: macros(None),
            args: given.args.clone(),
            ..Settings::default()
        };
        let mut macros = macros.macros();
        // The process may not be there yet: better none than the wrong one.
        macros.named.retain(|(name, _)| name != TARGET);
        let read = self.options.read(source, &macros);
        read.map_err(Error::Compile)?;
        Ok(Script {
            source: source.clone(),
            given,
        })
    }

    /// Compiles a program. The D libraries are compiled before the first.
    pub fn compile(&mut self, script: &Script) -> Result<Program, Error> {
        self.load_libraries()?;
        self.world.limit_own(self.options.compile.nusdtprobes);
        let Script { source, given } = script;
        let mut settings = self.settings();
        settings.spec = given.spec;
        settings.allow_zero_matches |= given.allow_zero_matches;
        settings.args.clone_from(&given.args);
        let program = self
            .compiler
            .compile(source, &settings)
            .map_err(Error::Compile)?;
        self.statements.extend(program.statements.iter().cloned());
        self.places.add(source, &program);
        for (var, func, arg) in anonymous::aggregations(&program) {
            self.consumer.declare(var, func, arg);
        }
        Ok(program)
    }

    /// The programs that were compiled, anew, where later ones have shown that variables which nobody declared have other types
    /// than was thought. To be asked for before the first is enabled. An error is that of the program of this number.
    pub fn settle(&mut self) -> Result<Option<Vec<Program>>, (usize, Error)> {
        let settled = self.compiler.settle();
        let settled = settled.map_err(|(number, error)| (number, Error::Compile(error)))?;
        if let Some(programs) = &settled {
            self.statements.clear();
            self.places = Places::default();
            for (program, (source, _)) in programs.iter().zip(self.compiler.given()) {
                self.statements.extend(program.statements.iter().cloned());
                self.places.add(source, program);
            }
        }
        Ok(settled)
    }

    /// Compiles the D libraries, unless that was done.
    pub fn load_libraries(&mut self) -> Result<(), Error> {
        if std::mem::replace(&mut self.has_libraries, true) {
            return Ok(());
        }
        let world = self.world;
        let present = |need: Need<'_>| match need {
            Need::Provider(name) => matches!(world.device().provider(name), Ok(Some(_))),
            Need::Module(name) => {
                name == VMLINUX || world.modules().iter().any(|module| module == name)
            }
            Need::Library(_) => true,
        };
        for library in libraries(&self.options.compile, present)? {
            let path = library.path;
            let source = Source::library(path.clone(), library.text);
            let settings = Settings {
                empty: true,
                model: DataModel::Lp64,
                argref: true,
                allow_zero_matches: true,
                ..self.settings()
            };
            let compiled = self.compiler.compile(&source, &settings);
            compiled.map_err(|diagnostic| {
                let place = diagnostic.headline(&source, self.options.compile.errtags);
                Error::Library(format!("\"{path}\", {place}"))
            })?;
            self.libraries.push(path);
        }
        Ok(())
    }

    /// Where the D libraries that were compiled lie, in order.
    pub fn libraries(&self) -> &[String] {
        &self.libraries
    }

    /// Writes the types to the files that `ctypes` and `dtypes` name; the error names the file.
    pub fn write_types(&self) -> Result<(), (&Path, io::Error)> {
        let options = &self.options.compile;
        let files = [
            (&options.ctypes, Container::C),
            (&options.dtypes, Container::D),
        ];
        for (file, container) in files {
            if let Some(file) = file {
                let types = self.compiler.types_as_ctf(container);
                fs::write(file, types).map_err(|error| (file.as_path(), error))?;
            }
        }
        Ok(())
    }

    /// What the compiler is told beside how a program is given: macros, and what the options say.
    fn settings(&self) -> Settings {
        let settings = Settings {
            macros: macros(self.target()),
            processes: self.targets.iter().map(Target::pid).collect(),
            ..Settings::default()
        };
        settings.under(&self.options)
    }

    /// Enables a compiled program.
    pub fn enable(&mut self, program: &Program) -> Result<Enabled, Error> {
        let mut options = self.options.for_kernel();
        if program.is_destructive() && !self.options.is_on(Opt::Destructive) {
            // A later program may still allow it: `go` is where it must be.
            options.push((Opt::Destructive, 1));
            self.is_destructive = true;
        }
        let furnished = self.stacks.furnish(program, &self.options);
        let dof = crate::dof::emit(furnished.as_ref().unwrap_or(program), &options);
        let _stay = Stay::on(self.options.get(Opt::Cpu));
        let device = self.device();
        let probes = device.enable(&dof).map_err(|error| self.refused(error))?;
        self.follow.add(program);
        self.stacks.add(program, furnished.as_ref(), &self.options);
        Ok(Enabled {
            probes,
            left_out: device.reason(),
        })
    }

    /// Starts tracing, and then the processes that were created for it. With the option `grabanon` it has begun long ago.
    pub fn go(&mut self) -> Result<(), Error> {
        if self.is_destructive && !self.options.is_on(Opt::Destructive) {
            return Err(Error::Destructive);
        }
        let cpu = if self.options.is_on(Opt::Grabanon) {
            self.names.keep(self.device().remains());
            self.claim()?
        } else {
            let faults = self.error_clause()?;
            self.enable(&faults)?;
            self.stacks.keep(self.world.device(), &self.names);
            self.device().go().map_err(|error| self.refused(error))?
        };
        self.phase = Phase::Running(cpu);
        let lowered = self.options.take_sizes(&self.device().options()?);
        if !self.options.consumer.quietresize {
            self.remarks.extend(lowered.into_iter().map(Event::Lowered));
        }
        if self.options.is_on(Opt::Quiet) {
            self.follow.be_quiet();
        }
        let forks = self.options.compile.follow_forks;
        let time = self.options.compile.holdtime;
        self.follow
            .begin(self.world, &self.names, forks, time.unwrap_or(HOLD_TIME))?;
        for target in &mut self.targets {
            self.stacks.prepare(self.world.device(), target.pid());
            target.release()?;
        }
        Ok(())
    }

    /// Sleeps until there is work: a buffer is due, a process has ended, or `wake` is readable.
    pub fn wait(&self, wake: Option<BorrowedFd<'_>>) -> Result<(), Error> {
        let due = self
            .clock
            .due(&self.options)
            .saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(due).map_err(std::io::Error::other)?;
        let mut ready: Vec<PollFd<'_>> = self
            .targets
            .iter()
            .map(AsFd::as_fd)
            .chain(
                self.device()
                    .descriptor()
                    .filter(|_| !self.follow.is_idle()),
            )
            .chain(wake)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        match poll(&mut ready, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(Error::Device(errno.into())),
        }
    }

    /// Does what is due: looks at the status, takes in aggregations, consumes records. Ends tracing when `exit()` was
    /// called, a fill buffer is full, or the watched processes have ended.
    pub fn work(&mut self, sink: &mut Sink<'_>) -> Result<Progress, Error> {
        let now = Instant::now();
        self.serve()?;
        if self.is_running() {
            self.stacks.serve(self.device());
        }
        if self.is_running() && self.is_over(now, sink)? {
            self.stop()?;
        }
        self.consume(now, sink)?;
        if self.is_running() && self.consumer.exit_status().is_some() && ends_at_once(&self.options)
        {
            self.stop()?;
            self.consume(now, sink)?;
        }
        if self.is_running() {
            return Ok(Progress::Okay);
        }
        let status = self.device().status()?;
        self.consumer.note_status(status, &self.options, sink);
        Ok(Progress::Done)
    }

    /// Serves the processes that wait for us, and watches the children that are traced.
    fn serve(&mut self) -> Result<(), Error> {
        if !self.is_running() || self.follow.is_idle() {
            return Ok(());
        }
        let news = self.follow.work(self.world, &self.names)?;
        self.take(news);
        Ok(())
    }

    /// Takes in what has become of those who are followed.
    fn take(&mut self, news: Vec<News>) {
        for news in news {
            match news {
                News::Failed(text) => self.remarks.push(Event::Drop(text)),
                // One that has ended by now has nothing to be waited for.
                News::Child(pid) => {
                    self.know(pid);
                    self.targets.extend(Target::grab(pid));
                }
            }
        }
    }

    fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running(_))
    }

    /// Tells what the kernel has said, and takes in aggregations and records: those that are due, or, when tracing has ended, all.
    fn consume(&mut self, now: Instant, sink: &mut Sink<'_>) -> Result<(), Error> {
        self.remarks.drain(..).for_each(&mut *sink.event);
        let (begin, end) = match self.phase {
            Phase::Setup => (None, None),
            Phase::Running(begin) => (Some(begin), None),
            Phase::Stopped(end) => (None, Some(end)),
        };
        // Commands that are run may have processes that wait for us.
        let is_followed = self.is_running() && !self.follow.is_idle();
        let (world, names) = (self.world, &self.names);
        let follow = RefCell::new(&mut self.follow);
        let news = RefCell::new(Vec::new());
        let failed = Cell::new(None);
        let wait = |ended: BorrowedFd<'_>| match is_followed {
            true => {
                let served = follow.borrow_mut().work_until(world, names, ended);
                match served {
                    Ok(more) => news.borrow_mut().extend(more),
                    Err(error) => failed.set(Some(error)),
                }
            }
            false => until_readable(ended),
        };
        let context = context(
            world,
            &self.statements,
            &self.places,
            names,
            &self.zone,
            &wait,
        );
        let rate = self.options.get(Opt::Aggrate);
        if self.clock.aggregations.take(now, rate) || end.is_some() {
            self.consumer
                .read_aggregations(context, &self.options, sink)?;
        }
        if self.clock.take_records(now, &self.options) || end.is_some() {
            let options = &mut self.options;
            let percent = self
                .consumer
                .read_records(context, options, begin, end, sink)?;
            self.clock.pace.note(percent);
        }
        let (news, failed) = (news.into_inner(), failed.take());
        self.take(news);
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Ends tracing; the next [`work`](Self::work) consumes what is left.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.serve()?;
        if self.is_running() {
            let stopped = self.device().stop();
            // What the kernel has ended cannot be stopped; that it has matters more.
            if stopped.is_err() && self.device().status()?.killed != 0 {
                return Err(Error::Killed);
            }
            self.phase = Phase::Stopped(stopped?);
            let left_out = self.device().reason();
            if !left_out.is_empty() {
                self.remarks.push(Event::Drop(left_out));
            }
        }
        Ok(())
    }

    /// Writes `text` to where output goes: the given one, or what `freopen()` has named since.
    pub fn write(&mut self, sink: &mut Sink<'_>, text: &[u8]) -> Result<(), Error> {
        Ok(self.consumer.write(sink, text)?)
    }

    /// Writes out what is kept back of the output: of the given one, and of the file that `freopen()` has named.
    pub fn flush(&mut self, sink: &mut Sink<'_>) -> io::Result<()> {
        self.consumer.flush(sink)
    }

    /// Prints the aggregations that no `printa()` has printed.
    pub fn print_aggregations(&mut self, sink: &mut Sink<'_>) -> Result<(), Error> {
        let context = context(
            self.world,
            &self.statements,
            &self.places,
            &self.names,
            &self.zone,
            &until_readable,
        );
        Ok(self
            .consumer
            .print_aggregations(context, &self.options, sink)?)
    }

    /// The status that `exit()` was given, or 0.
    pub fn exit_status(&self) -> i32 {
        self.consumer.exit_status().unwrap_or(0)
    }

    fn device(&self) -> &'w dyn Device {
        self.world.device()
    }

    /// An error of the device with the reason that it gives.
    fn refused(&self, error: std::io::Error) -> Error {
        match self.device().reason() {
            reason if reason.is_empty() => Error::Device(error),
            reason => Error::Refused {
                reason: reason + &error::older(self.module, &error),
                error,
            },
        }
    }

    fn error_clause(&mut self) -> Result<Program, Error> {
        let source = Source::argument(ERROR_CLAUSE);
        // What the user asks of programs is not asked of our own.
        let settings = Settings {
            amin: None,
            tree: false,
            ..self.settings()
        };
        let mut program = self
            .compiler
            .compile(&source, &settings)
            .map_err(Error::Compile)?;
        program.statements.fill(Statement::Error);
        self.statements.extend(program.statements.iter().cloned());
        Ok(program)
    }

    /// Whether tracing is to end.
    fn is_over(&mut self, now: Instant, sink: &mut Sink<'_>) -> Result<bool, Error> {
        let mut over = self.targets_ended(sink)?;
        if self
            .clock
            .status
            .take(now, self.options.get(Opt::Statusrate))
        {
            let status = self.device().status()?;
            self.consumer.note_status(status, &self.options, sink);
            if status.killed != 0 {
                return Err(Error::Killed);
            }
            let fills = self.options.get(Opt::Bufpolicy) == Some(option::BUFPOLICY_FILL);
            over |= status.exiting != 0 || (fills && status.filled != 0);
        }
        Ok(over)
    }

    /// Reports the watched processes that have ended; whether that leaves none.
    fn targets_ended(&mut self, sink: &mut Sink<'_>) -> Result<bool, Error> {
        let watched = !self.targets.is_empty();
        let mut alive = Vec::new();
        for mut target in std::mem::take(&mut self.targets) {
            match target.ended()? {
                Some(ended) => (sink.event)(Event::Ended(ended)),
                None => {
                    // By the next look it may have mapped more, and ended.
                    self.names.watch(target.pid());
                    alive.push(target);
                }
            }
        }
        self.targets = alive;
        Ok(watched && self.targets.is_empty())
    }
}

/// The macro variables that are numbers: who is tracing, and whom.
fn macros(target: Option<u32>) -> Vec<(String, i64)> {
    let own = [
        ("pid", i64::from(std::process::id())),
        ("ppid", unistd::getppid().as_raw().into()),
        ("pgid", unistd::getpgrp().as_raw().into()),
        (
            "sid",
            unistd::getsid(None).map_or(0, unistd::Pid::as_raw).into(),
        ),
        ("uid", unistd::getuid().as_raw().into()),
        ("euid", unistd::geteuid().as_raw().into()),
        ("gid", unistd::getgid().as_raw().into()),
        ("egid", unistd::getegid().as_raw().into()),
        // Projects and tasks are not known here: everything is of the first.
        ("projid", 0),
        ("taskid", 0),
    ];
    // Without a process there is none of this number.
    let target = (TARGET, target.map_or(0, i64::from));
    let named = own.into_iter().chain([target]);
    named
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// What records are read with. Not a method, because the consumer is changed while these parts are borrowed.
/// Whether tracing ends as soon as the record of `exit()` is read, which may be before the status says so: but whoever asks for a
/// longer `statusrate` asks for the end to wait for it.
fn ends_at_once(options: &Options) -> bool {
    let rate = options.get(Opt::Statusrate);
    rate.is_none_or(|rate| rate <= limits::RATE_DEFAULT)
}

fn context<'a>(
    world: &'a KernelWorld<'_>,
    statements: &'a [Statement],
    places: &'a Places,
    names: &'a Names,
    zone: &'a Zone,
    wait: &'a dyn Fn(BorrowedFd<'_>),
) -> Context<'a> {
    Context {
        device: world.device(),
        statements,
        places,
        symbols: names,
        zone,
        wait,
    }
}
