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
mod work;
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
use dtrace_uapi::option::Opt;
use follow::Follow;
use nix::unistd;
use stacks::Stacks;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;
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
        let program = match self.compiler.compile(source, &settings) {
            Ok(program) => program,
            Err(error) => {
                // What is missed may have been theirs.
                let is_missed = error.tag == "D_PDESC_ZERO" || error.tag.starts_with("D_PROC_");
                let ended = is_missed.then(|| self.told_ends());
                return Err(Error::Compile(error.notes(ended.into_iter().flatten())));
            }
        };
        self.statements.extend(program.statements.iter().cloned());
        self.places.add(source, &program);
        for (var, func, arg) in anonymous::aggregations(&program) {
            self.consumer.declare(var, func, arg);
        }
        Ok(program)
    }

    /// Which of the watched processes have ended already.
    fn told_ends(&mut self) -> Vec<String> {
        let targets = self.targets.iter_mut();
        let ended = targets.filter_map(|target| target.ended().ok().flatten());
        ended
            .map(|ended| format!("process {} has ended", ended.pid))
            .collect()
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
            let remains = self.device().remains();
            self.names
                .keep(remains.map_err(|error| self.refused(error))?);
            self.claim()?
        } else {
            let faults = self.error_clause()?;
            self.enable(&faults)?;
            let kept = self.stacks.keep(self.world.device(), &self.names);
            kept.map_err(|error| self.refused(error))?;
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
