// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! One consumer of DTrace, from the text of its programs to the values that they record.
//!
//! ```text
//! open → set_option → read → compile → enable → go → (wait → work)… → stop → work → yield_aggregations
//! ```
//!
//! The handle owns the state that must stay consistent: the options, the compiler (whose variables
//! and aggregations all programs share), the statements that give records their meaning, the
//! watched processes and the state of consuming. It reaches the kernel through [`Device`] and the
//! rest of the machine through [`KernelWorld`], so that tests can run all of it without a kernel.
//!
//! Invariant: `statements` holds the statements of every program that may be enabled, in the order
//! of their numbers.

mod affinity;
mod anonymous;
mod awaiting;
mod clock;
mod error;
mod follow;
mod names;
mod own;
mod placed;
mod preprocess;
mod stacks;
mod work;
mod world;

#[cfg(test)]
mod tests;

pub use error::Error;
pub use names::Names;
pub use preprocess::{preprocess, PreprocessError};
pub use world::{probe_desc, probes, KernelWorld};

use affinity::Stay;
use clock::Clock;
use dtrace_compiler::compile::{Compiler, ProbeSpec, Settings};
use dtrace_compiler::libraries::{libraries, Need};
use dtrace_compiler::options::{OptionError, Options, Setter, HOLDTIME_DEFAULT};
use dtrace_compiler::program::Program;
use dtrace_compiler::source::Source;
use dtrace_compiler::statement::Statement;
use dtrace_consumer::consume::{
    until_readable, ConsumeError, Consumer, Context, End, Event, Places, Receiver, Start, System,
    Traced,
};
use dtrace_consumer::device::{older, Device};
use dtrace_machine::proc::Target;
use dtrace_types::{Container, DataModel, TypeSource, VMLINUX};
use dtrace_uapi::option::Opt;
use follow::Follow;
use nix::unistd;
use stacks::Stacks;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::{fs, io};

/// The library's own clause for faults. Its record becomes a message, not output.
const ERROR_CLAUSE: &str =
    "dtrace:::ERROR { trace(arg1); trace(arg2); trace(arg3); trace(arg4); trace(arg5); }";

/// Whether tracing has more to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Tracing goes on.
    Okay,
    /// Tracing has ended and everything was consumed.
    Done,
}

/// The state of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is traced yet.
    Setup,
    /// Tracing runs; the CPU that fired `BEGIN`.
    Running(u32),
    /// Tracing has ended; the CPU that fired `END`.
    Stopped(u32),
}

/// The macro variable that holds the process ID of the first watched process.
const TARGET: &str = "target";

/// The settings that belong to one program.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Which part of a probe's name a description without colons stands for.
    pub spec: ProbeSpec,
    /// Accept descriptions that match no probe.
    pub allow_zero_matches: bool,
    /// `$0`, `$1`, …
    pub args: Vec<String>,
}

/// A program whose options have been applied to the handle.
#[derive(Clone, Debug)]
pub struct Script {
    source: Source,
    given: Given,
}

/// The result of an enabling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enabled {
    /// The number of probes that were enabled.
    pub probes: u32,
    /// The matching probes that could not be enabled, and why, in the kernel's words. Empty if
    /// there are none.
    pub left_out: String,
}

/// One consumer: see the [module](self).
pub struct Handle<'w> {
    world: &'w KernelWorld<'w>,
    /// The version of the kernel module's interface (`Conf::interface`).
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
    clock: Clock,
    phase: Phase,
    has_libraries: bool,
    /// A program with destructive actions was enabled while `destructive` was off.
    is_destructive: bool,
    libraries: Vec<String>,
    /// Events to report at the next [`work`](Self::work).
    remarks: Vec<Event>,
}

impl<'w> Handle<'w> {
    /// Creates a consumer on `world`'s device.
    ///
    /// Fails with [`Error::Version`] if the module speaks another version of DIF.
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
            clock: Clock::default(),
            phase: Phase::Setup,
            has_libraries: false,
            is_destructive: false,
            libraries: Vec::new(),
            remarks: Vec::new(),
        })
    }

    /// Sets an option. After [`go`](Self::go) only those that may change while tracing are
    /// accepted.
    pub fn set_option(&mut self, name: &str, value: Option<&str>) -> Result<(), OptionError> {
        let setter = if self.phase == Phase::Setup {
            Setter::User
        } else {
            Setter::Running
        };
        self.options.set(name, value, setter)
    }

    /// Watches a process. The first one is `$target`; tracing ends when the last one has ended.
    pub fn watch(&mut self, target: Target) {
        self.names.default_pid.get_or_insert(target.pid());
        self.know(target.pid());
        self.targets.push(target);
    }

    /// Reads what addresses of a process mean. Records may number the process differently than we
    /// do (in another pid namespace), so that number is noted too.
    fn know(&mut self, pid: u32) {
        if let Ok(number) = self.device().number(pid) {
            self.names.alias(number, pid);
        }
        self.names.watch(pid);
    }

    /// The process ID of `$target`.
    pub fn target(&self) -> Option<u32> {
        self.targets.first().map(Target::pid)
    }

    /// Applies the options that a program sets.
    ///
    /// The options of all programs count for each of them, so every program must be read before the
    /// first one is compiled and before a process is created.
    pub fn read(&mut self, source: &Source, given: Given) -> Result<Script, Error> {
        let macros = Settings {
            macros: macros(None),
            args: given.args.clone(),
            ..Settings::default()
        };
        let mut macros = macros.macros();
        // The target may not exist yet. An undefined `$target` is better than a wrong one.
        macros.named.retain(|(name, _)| name != TARGET);
        let read = self.options.read(source, &macros);
        read.map_err(Error::Compile)?;
        Ok(Script {
            source: source.clone(),
            given,
        })
    }

    /// Compiles a program. The first call also compiles the D libraries.
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
                // A process that has ended may be why the description is unmatched.
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
        for known in &program.aggs {
            self.consumer.describe(known.id, &known.name, &known.keys);
        }
        Ok(program)
    }

    /// Returns a note for each watched process that has ended already.
    fn told_ends(&mut self) -> Vec<String> {
        let targets = self.targets.iter_mut();
        let ended = targets.filter_map(|target| target.ended().ok().flatten());
        ended
            .map(|ended| format!("process {} has ended", ended.pid))
            .collect()
    }

    /// Compiles all programs again if later programs have shown that undeclared variables have
    /// other types than earlier programs assumed. Returns `None` if nothing has changed.
    ///
    /// Must be called before the first program is enabled. An error carries the number of its
    /// program.
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

    /// Compiles the D libraries, unless that is done already.
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

    /// The paths of the compiled D libraries, in the order of compilation.
    pub fn libraries(&self) -> &[String] {
        &self.libraries
    }

    /// Writes the types to the files that `ctypes` and `dtypes` name. An error carries the file's
    /// path.
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

    /// The compiler settings that do not belong to one program: macros, processes and the options.
    fn settings(&self) -> Settings {
        let settings = Settings {
            macros: macros(self.target()),
            processes: self.targets.iter().map(Target::pid).collect(),
            interpreted: stacks::in_values(&self.options, self.module),
            ..Settings::default()
        };
        settings.under(&self.options)
    }

    /// Enables a compiled program. Destructive actions are checked later, by [`go`](Self::go).
    pub fn enable(&mut self, program: &Program) -> Result<Enabled, Error> {
        let mut options = self.options.for_kernel();
        if program.is_destructive && !self.options.is_on(Opt::Destructive) {
            // A later program may still set `destructive`, so only `go` refuses. The kernel must
            // accept the program until then.
            options.push((Opt::Destructive, 1));
            self.is_destructive = true;
        }
        let furnished = self.stacks.furnish(program, &self.options, self.module);
        let dof = dtrace_compiler::dof::emit(furnished.as_ref().unwrap_or(program), &options);
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

    /// Starts tracing, then releases the processes that were created for it. With the option
    /// `grabanon`, tracing has run since boot, and its state is claimed instead.
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
        let time = self.options.compile.holdtime.unwrap_or(HOLDTIME_DEFAULT);
        self.follow.begin(self.world, &self.names, forks, time)?;
        for target in &mut self.targets {
            self.stacks.prepare(self.world.device(), target.pid());
            target.release()?;
        }
        Ok(())
    }

    /// Tells a receiver that tracing has begun, by [`go`](Self::go), and with which programs.
    pub fn tell_start(&self, programs: &[Traced], to: &mut dyn Receiver) -> Result<(), Error> {
        let told = to.start(&Start {
            system: System::now,
            programs,
            aggregations: self.consumer.aggregations(),
        });
        Ok(told.map_err(ConsumeError::Output)?)
    }

    /// Tells a receiver that tracing has ended and that it has got everything.
    pub fn tell_end(&self, to: &mut dyn Receiver) -> Result<(), Error> {
        let status = self.exit_status();
        Ok(to.finish(&End { status }).map_err(ConsumeError::Output)?)
    }

    /// Passes the aggregations on, at the end of tracing.
    pub fn yield_aggregations(&mut self, to: &mut dyn Receiver) -> Result<(), Error> {
        let context = context(
            self.world,
            &self.statements,
            &self.places,
            &self.names,
            &until_readable,
        );
        Ok(self
            .consumer
            .yield_aggregations(context, &self.options, to)?)
    }

    /// The status that was passed to `exit()`, or 0.
    pub fn exit_status(&self) -> i32 {
        self.consumer.exit_status().unwrap_or(0)
    }

    fn device(&self) -> &'w dyn Device {
        self.world.device()
    }

    /// Turns an error of the device into one with the kernel's reason, if the kernel gives one.
    fn refused(&self, error: std::io::Error) -> Error {
        match self.device().reason() {
            reason if reason.is_empty() => Error::Device(error),
            reason => Error::Refused {
                reason: reason + &older(self.module, &error),
                error,
            },
        }
    }

    fn error_clause(&mut self) -> Result<Program, Error> {
        let source = Source::argument(ERROR_CLAUSE);
        // The user's demands on programs do not apply to this clause of our own.
        let settings = Settings {
            amin: None,
            tree: 0,
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

/// The numeric macro variables: the IDs of this process, and `$target`.
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
        // Linux has no projects and tasks: everything belongs to number 0.
        ("projid", 0),
        ("taskid", 0),
    ];
    // No process has the number 0, so it stands for "no target".
    let target = (TARGET, target.map_or(0, i64::from));
    let named = own.into_iter().chain([target]);
    named
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// The context in which records are read. Not a method, because the caller borrows the consumer
/// mutably at the same time.
fn context<'a>(
    world: &'a KernelWorld<'_>,
    statements: &'a [Statement],
    places: &'a Places,
    names: &'a Names,
    wait: &'a dyn Fn(BorrowedFd<'_>),
) -> Context<'a> {
    Context {
        device: world.device(),
        statements,
        places,
        symbols: names,
        wait,
    }
}
