// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Options that only the library reads: options of the compiler, and options of other DTraces that
//! have no effect here.
//!
//! One table has for each name the syntax of its value, where the value is stored, and whether a
//! program may set it. A program may not set options of the preprocessor, which has already run by
//! then. An option of another DTrace whose subject does not exist here (such as the log of a BPF
//! verifier, or a CTF archive) is [`Rule::Idle`]: its value is checked as there and then ignored,
//! so that scripts that set it work, and scripts that set it to an invalid value get an error.
//! Whether a program may set it is as there, too.

use super::version::{self, Version};
use super::{parse_flag, parse_rate, parse_size, OptionError, Setter};
use dtrace_files::text::parse_number;
use dtrace_types::DataModel;
use dtrace_uapi::dif::DIF_NREGS;
use dtrace_uapi::hold::WAIT_MS;
use dtrace_uapi::types::Attribute;
use std::path::PathBuf;
use std::time::Duration;

/// Longest time that a starting program is held until its USDT probes are made, unless `holdtime`
/// is set.
pub const HOLDTIME_DEFAULT: Duration = Duration::from_millis(200);

/// How far a process that was created or seized for tracing runs before tracing begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvalTime {
    /// To the first instruction after its exec.
    Exec,
    /// To the program's entry point, before its initializers run.
    Preinit,
    /// Until its initializers have run; the same point as `Main`.
    Postinit,
    /// To its `main()`.
    #[default]
    Main,
}

/// What `-G` writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkType {
    /// An object to link with an application.
    #[default]
    Elf,
    /// DOF alone.
    Dof,
}

/// Options of the compiler, the preprocessor, and the processes that are created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// Print the tag of an error before its message.
    pub errtags: bool,
    /// Print the tag of a drop before its message.
    pub droptags: bool,
    /// Accept a program without clauses.
    pub empty: bool,
    /// Missing macro arguments are 0 or empty.
    pub defaultargs: bool,
    /// Accept unused macro arguments.
    pub argref: bool,
    /// Accept a probe description that matches nothing.
    pub zdefs: bool,
    /// A bare word as a probe description names a provider, not a probe.
    pub pspec: bool,
    /// Run the C preprocessor first.
    pub cpp: bool,
    /// Path of the preprocessor.
    pub cpppath: Option<PathBuf>,
    /// Further arguments of the preprocessor, in order.
    pub cppargs: Vec<String>,
    /// Print the compiled program.
    pub disasm: bool,
    /// Print the program as the compiler understood it: bit 0 selects the syntax tree, any other
    /// bit the typed program.
    pub tree: u64,
    /// Report each step.
    pub debug: bool,
    /// End with a core dump.
    pub core: bool,
    /// Directories of D libraries, searched before the system's own.
    pub libdirs: Vec<PathBuf>,
    /// Directory of D libraries in place of the installed and the built-in ones.
    pub syslibdir: Option<PathBuf>,
    /// File to which the C types that programs use are written.
    pub ctypes: Option<PathBuf>,
    /// File to which the types that programs declare in D are written.
    pub dtypes: Option<PathBuf>,
    /// Load no D libraries.
    pub nolibs: bool,
    /// Neither use nor store unwind tables on disk.
    pub nounwindcache: bool,
    /// Least stability that a program may rely on.
    pub amin: Option<Attribute>,
    /// Version of D for which the program is written.
    pub version: Option<Version>,
    /// How far a process that was created or seized for tracing runs before tracing begins.
    pub evaltime: EvalTime,
    /// Longest time that a starting program is held until its USDT probes are made.
    pub holdtime: Option<Duration>,
    /// Most places of USDT probes at a time.
    pub nusdtprobes: Option<u64>,
    /// Trace the children of watched processes like the processes themselves.
    pub follow_forks: bool,
    /// What `-G` writes.
    pub linktype: LinkType,
    /// `-G` leaves out what no loader needs, such as the name of the tool.
    pub strip: bool,
    /// Accept objects of `-G` with probes that are not defined.
    pub unodefs: bool,
    /// Leave kernel symbols to be resolved later. Nothing does that, so a kernel symbol is an error
    /// unless `knodefs` is set.
    pub dynamic_link: bool,
    /// With `dynamic_link`, kernel symbols are no error; they are resolved at once.
    pub knodefs: bool,
    /// Scratch space of a clause, in bytes.
    pub scratchsize: Option<u64>,
    /// Most frames of any stack.
    pub maxframes: Option<u32>,
    /// Do not look for frames of interpreted code.
    pub no_interp: bool,
    /// Sizes of the types that programs name.
    pub model: DataModel,
    /// Changes to the environment of created processes; a variable without a value is removed.
    pub environment: Vec<(String, Option<String>)>,
}

/// Syntax of an option's value, and where the value is stored.
pub(super) enum Rule {
    /// A switch.
    Switch(fn(&mut CompileOptions) -> &mut bool),
    /// A switch that is stored inverted.
    Inverse(fn(&mut CompileOptions) -> &mut bool),
    /// A path.
    Path(fn(&mut CompileOptions) -> &mut Option<PathBuf>),
    /// An argument of the preprocessor; this is the prefix of the value.
    Preprocessor(&'static str),
    /// A value with a syntax of its own.
    Own(fn(&mut CompileOptions, Option<&str>) -> Result<(), OptionError>),
    /// No effect: the value is only checked.
    Idle(fn(Option<&str>) -> bool),
}

/// An option's name, its rule, and the error if a program sets it.
type Row = (&'static str, Rule, Option<OptionError>);

const ANYONE: Option<OptionError> = None;
const USER: Option<OptionError> = Some(OptionError::Context);
const CPP: Option<OptionError> = Some(OptionError::Preprocessor);

pub(super) const OPTIONS: &[Row] = &[
    ("amin", Rule::Own(set_amin), ANYONE),
    ("argref", Rule::Switch(|o| &mut o.argref), ANYONE),
    ("bpflog", Rule::Idle(is_flag), ANYONE),
    ("bpflogsize", Rule::Idle(is_size), ANYONE),
    ("core", Rule::Switch(|o| &mut o.core), ANYONE),
    ("cpp", Rule::Switch(|o| &mut o.cpp), CPP),
    ("cppargs", Rule::Own(set_cppargs), CPP),
    ("cpphdrs", Rule::Own(set_cpphdrs), CPP),
    ("cpppath", Rule::Path(|o| &mut o.cpppath), CPP),
    ("ctfpath", Rule::Idle(is_text), USER),
    ("ctypes", Rule::Path(|o| &mut o.ctypes), ANYONE),
    ("debug", Rule::Switch(|o| &mut o.debug), ANYONE),
    ("debugassert", Rule::Idle(|v| v == Some("mutexes")), ANYONE),
    ("defaultargs", Rule::Switch(|o| &mut o.defaultargs), ANYONE),
    ("define", Rule::Preprocessor("-D"), CPP),
    ("disasm", Rule::Own(set_disasm), ANYONE),
    ("dofstashpath", Rule::Idle(is_text), USER),
    ("droptags", Rule::Switch(|o| &mut o.droptags), ANYONE),
    ("dtypes", Rule::Path(|o| &mut o.dtypes), ANYONE),
    ("empty", Rule::Switch(|o| &mut o.empty), ANYONE),
    ("errtags", Rule::Switch(|o| &mut o.errtags), ANYONE),
    ("evaltime", Rule::Own(set_evaltime), ANYONE),
    ("follow", Rule::Own(set_follow), ANYONE),
    ("holdtime", Rule::Own(set_holdtime), ANYONE),
    ("incdir", Rule::Preprocessor("-I"), CPP),
    ("iregs", Rule::Own(check_iregs), ANYONE),
    ("kdefs", Rule::Inverse(|o| &mut o.knodefs), ANYONE),
    ("knodefs", Rule::Switch(|o| &mut o.knodefs), ANYONE),
    ("late", Rule::Own(check_late), ANYONE),
    ("lazyload", Rule::Own(check_lazyload), ANYONE),
    ("ldpath", Rule::Idle(is_text), USER),
    ("libdir", Rule::Own(add_libdir), ANYONE),
    ("linkmode", Rule::Own(set_linkmode), ANYONE),
    ("linknommap", Rule::Idle(is_flag), ANYONE),
    ("linktype", Rule::Own(set_linktype), ANYONE),
    (
        "lockmem",
        Rule::Idle(|v| v == Some("unlimited") || is_size(v)),
        USER,
    ),
    ("maxframes", Rule::Own(set_maxframes), ANYONE),
    ("modpath", Rule::Idle(is_text), USER),
    ("nolibs", Rule::Switch(|o| &mut o.nolibs), ANYONE),
    (
        "nounwindcache",
        Rule::Switch(|o| &mut o.nounwindcache),
        ANYONE,
    ),
    ("nusdtprobes", Rule::Own(set_nusdtprobes), ANYONE),
    ("objcopypath", Rule::Idle(is_text), USER),
    ("pcapsize", Rule::Idle(is_size), ANYONE),
    ("pgmax", Rule::Idle(is_number), ANYONE),
    ("preallocate", Rule::Idle(is_size), ANYONE),
    ("procfspath", Rule::Idle(is_text), USER),
    ("pspec", Rule::Switch(|o| &mut o.pspec), ANYONE),
    ("scratchsize", Rule::Own(set_scratchsize), ANYONE),
    ("setenv", Rule::Own(set_environment), ANYONE),
    ("stdc", Rule::Own(set_stdc), CPP),
    ("strip", Rule::Switch(|o| &mut o.strip), ANYONE),
    ("syslibdir", Rule::Path(|o| &mut o.syslibdir), ANYONE),
    ("sysslice", Rule::Idle(is_flag), ANYONE),
    ("tree", Rule::Own(set_tree), ANYONE),
    ("tregs", Rule::Idle(is_positive), ANYONE),
    ("udefs", Rule::Inverse(|o| &mut o.unodefs), ANYONE),
    ("undef", Rule::Preprocessor("-U"), CPP),
    ("unodefs", Rule::Switch(|o| &mut o.unodefs), ANYONE),
    ("unsetenv", Rule::Own(unset_environment), ANYONE),
    ("useruid", Rule::Idle(is_number), ANYONE),
    ("ustackinterp", Rule::Inverse(|o| &mut o.no_interp), ANYONE),
    ("verbose", Rule::Switch(|o| &mut o.disasm), ANYONE),
    ("version", Rule::Own(set_version), ANYONE),
    ("zdefs", Rule::Switch(|o| &mut o.zdefs), ANYONE),
];

fn is_flag(value: Option<&str>) -> bool {
    parse_flag(value).is_some()
}

fn is_text(value: Option<&str>) -> bool {
    text(value).is_ok()
}

fn is_size(value: Option<&str>) -> bool {
    value.and_then(parse_size).is_some()
}

fn is_number(value: Option<&str>) -> bool {
    value.and_then(parse_number).is_some()
}

fn is_positive(value: Option<&str>) -> bool {
    value.and_then(parse_number).is_some_and(|n| n > 0)
}

fn text(value: Option<&str>) -> Result<&str, OptionError> {
    value
        .filter(|value| !value.is_empty())
        .ok_or(OptionError::Value)
}

fn set_amin(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    let attribute = crate::stability::parse(text(value)?).ok_or(OptionError::Value)?;
    options.amin = Some(attribute);
    Ok(())
}

fn set_cppargs(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    let words = text(value)?.split_whitespace().map(str::to_owned);
    options.cppargs.extend(words);
    Ok(())
}

fn set_cpphdrs(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    if value.is_some() {
        return Err(OptionError::Value);
    }
    options.cppargs.push("-H".to_owned());
    Ok(())
}

/// Sets `disasm`. The value is a set of bits that elsewhere select listings. There is one listing
/// here, the compiled program, which any bit selects.
fn set_disasm(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    let bits = value.map_or(Some(1), parse_number);
    options.disasm = bits.ok_or(OptionError::Value)? != 0;
    Ok(())
}

fn set_evaltime(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    options.evaltime = match value {
        Some("exec") => EvalTime::Exec,
        Some("preinit") => EvalTime::Preinit,
        Some("postinit") => EvalTime::Postinit,
        Some("main") => EvalTime::Main,
        _ => return Err(OptionError::Value),
    };
    Ok(())
}

/// Checks `iregs`. The compiler always uses all registers. A smaller number is refused, because no
/// smaller number suffices for every program.
fn check_iregs(_: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    match value.and_then(parse_number) {
        Some(registers) if registers == u64::from(DIF_NREGS) => Ok(()),
        Some(registers) if (1..u64::from(DIF_NREGS)).contains(&registers) => {
            Err(OptionError::Registers)
        }
        _ => Err(OptionError::Value),
    }
}

fn add_libdir(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    options.libdirs.push(text(value)?.into());
    Ok(())
}

fn set_follow(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    options.follow_forks = match value {
        Some("fork") => true,
        Some("none") => false,
        _ => return Err(OptionError::Value),
    };
    Ok(())
}

fn set_nusdtprobes(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    let most = value.and_then(parse_number).ok_or(OptionError::Value)?;
    options.nusdtprobes = Some(most);
    Ok(())
}

/// Sets `holdtime`, a time in the syntax of a rate, or 0.
fn set_holdtime(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    let value = text(value)?;
    let time = match value {
        "0" => Duration::ZERO,
        _ => Duration::from_nanos(parse_rate(value).ok_or(OptionError::Value)?),
    };
    if time > Duration::from_millis(u64::from(WAIT_MS)) {
        return Err(OptionError::Value);
    }
    options.holdtime = Some(time);
    Ok(())
}

/// Checks `late`. Translators can only be bound when the program is compiled.
fn check_late(_: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    match value {
        Some("static") => Ok(()),
        Some("dynamic") => Err(OptionError::Late),
        _ => Err(OptionError::Value),
    }
}

/// Checks `lazyload`. What `-G` puts into a program is always read from its file when the program
/// is traced.
fn check_lazyload(_: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    match parse_flag(value) {
        Some(true) => Ok(()),
        Some(false) => Err(OptionError::Eager),
        None => Err(OptionError::Value),
    }
}

fn set_linktype(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    options.linktype = match value {
        Some(value) if value.eq_ignore_ascii_case("elf") => LinkType::Elf,
        Some(value) if value.eq_ignore_ascii_case("dof") => LinkType::Dof,
        _ => return Err(OptionError::Value),
    };
    Ok(())
}

fn set_linkmode(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    options.dynamic_link = match value {
        // Symbols of processes are never resolved at compile time, so these two modes are equal.
        Some("kernel" | "static") => false,
        Some("dynamic") => true,
        _ => return Err(OptionError::Value),
    };
    Ok(())
}

fn set_scratchsize(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    options.scratchsize = Some(value.and_then(parse_size).ok_or(OptionError::Value)?);
    Ok(())
}

fn set_maxframes(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    let frames = value.and_then(parse_number).ok_or(OptionError::Value)?;
    if frames == 0 {
        return Err(OptionError::Value);
    }
    options.maxframes = Some(u32::try_from(frames).unwrap_or(u32::MAX));
    Ok(())
}

fn set_environment(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    let (name, value) = text(value)?.split_once('=').ok_or(OptionError::Value)?;
    if name.is_empty() {
        return Err(OptionError::Value);
    }
    options
        .environment
        .push((name.to_owned(), Some(value.to_owned())));
    Ok(())
}

fn unset_environment(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    let name = text(value)?;
    if name.contains('=') {
        return Err(OptionError::Value);
    }
    options.environment.push((name.to_owned(), None));
    Ok(())
}

fn set_stdc(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    options.cppargs.push(match value {
        Some("a" | "c" | "t") => "-std=c99".to_owned(),
        Some("s") => "-traditional-cpp".to_owned(),
        _ => return Err(OptionError::Value),
    });
    Ok(())
}

/// Sets `tree`. The value is a set of bits that select passes of the compiler.
fn set_tree(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    if !is_positive(value) {
        return Err(OptionError::Value);
    }
    options.tree = value.and_then(parse_number).unwrap_or(0);
    Ok(())
}

fn set_version(options: &mut CompileOptions, value: Option<&str>) -> Result<(), OptionError> {
    let version: Version = text(value)?.parse()?;
    if !version::is_known(version) {
        return Err(OptionError::VersionUnknown);
    }
    // A later setting may only lower the version.
    if options.version.is_some_and(|earlier| version > earlier) {
        return Err(OptionError::VersionReduced);
    }
    options.version = Some(version);
    Ok(())
}

impl CompileOptions {
    /// Sets the option `name`.
    pub(super) fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        setter: Setter,
    ) -> Result<(), OptionError> {
        if setter == Setter::Running {
            // No option of the compiler may change while tracing, but an error in the name or value
            // is more useful, so check these first.
            return self
                .clone()
                .set(name, value, Setter::User)
                .and(Err(OptionError::Active));
        }
        let row = OPTIONS.iter().find(|(known, ..)| *known == name);
        let (_, rule, refused) = row.ok_or(OptionError::Name)?;
        if let (Some(error), Setter::Pragma) = (refused, setter) {
            return Err(*error);
        }
        match rule {
            Rule::Switch(field) => *field(self) = parse_flag(value).ok_or(OptionError::Value)?,
            Rule::Inverse(field) => *field(self) = !parse_flag(value).ok_or(OptionError::Value)?,
            Rule::Path(field) => *field(self) = Some(text(value)?.into()),
            Rule::Preprocessor(prefix) => self.cppargs.push(format!("{prefix}{}", text(value)?)),
            Rule::Own(set) => set(self, value)?,
            Rule::Idle(is_valid) if is_valid(value) => {}
            Rule::Idle(_) => return Err(OptionError::Value),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{tracing_options, Options};
    use super::*;
    use crate::manual;

    #[test]
    fn flags_lists_and_paths() {
        let mut options = CompileOptions::default();
        for (name, value) in [
            ("errtags", None),
            ("zdefs", Some("on")),
            ("define", Some("A=1")),
            ("undef", Some("B")),
            ("libdir", Some("/a")),
            ("libdir", Some("/b")),
            ("stdc", Some("s")),
        ] {
            options.set(name, value, Setter::User).unwrap();
        }
        assert!(options.errtags && options.zdefs && !options.empty);
        assert_eq!(options.cppargs, ["-DA=1", "-UB", "-traditional-cpp"]);
        assert_eq!(options.libdirs, [PathBuf::from("/a"), PathBuf::from("/b")]);
    }

    #[test]
    fn refusals() {
        let set = |name, value, setter| CompileOptions::default().set(name, value, setter);
        assert_eq!(
            set("cpppath", Some("/bin/sh"), Setter::Pragma),
            Err(OptionError::Preprocessor)
        );
        assert_eq!(set("libdir", None, Setter::User), Err(OptionError::Value));
        assert_eq!(
            set("libdir", Some(""), Setter::User),
            Err(OptionError::Value)
        );
        assert_eq!(
            set("errtags", Some("2"), Setter::User),
            Err(OptionError::Value)
        );
        assert_eq!(
            set("errtags", None, Setter::Running),
            Err(OptionError::Active)
        );
        assert_eq!(set("nonsense", None, Setter::User), Err(OptionError::Name));
    }

    #[test]
    fn values_are_checked_for_every_option() {
        let set = |name, value| CompileOptions::default().set(name, value, Setter::User);
        for (name, good, bad) in [
            ("amin", "Stable/Evolving/ISA", "Stable/Evolving"),
            ("bpflogsize", "1m", "-1"),
            ("debugassert", "mutexes", "all"),
            ("disasm", "15", "all"),
            ("evaltime", "postinit", "late"),
            ("holdtime", "50ms", "2sec"),
            ("follow", "fork", "exec"),
            ("iregs", "8", "9"),
            ("late", "static", "never"),
            ("linkmode", "kernel", "foo"),
            ("linktype", "ELF", "coff"),
            ("lockmem", "unlimited", "limited"),
            ("nusdtprobes", "40", "-1"),
            ("pgmax", "0", "-1"),
            ("setenv", "A=", "A"),
            ("stdc", "t", "X"),
            ("tree", "1", "0"),
            ("tregs", "5", "0"),
            ("unsetenv", "A", "A=1"),
            ("version", "1.6.1", "x"),
        ] {
            assert_eq!(set(name, Some(good)), Ok(()), "{name}");
            assert!(set(name, Some(bad)).is_err(), "{name}");
            assert!(set(name, Some("")).is_err(), "{name}");
        }
        assert_eq!(set("iregs", Some("7")), Err(OptionError::Registers));
        assert_eq!(set("late", Some("dynamic")), Err(OptionError::Late));
        assert_eq!(set("lazyload", Some("off")), Err(OptionError::Eager));
        assert_eq!(set("lazyload", None), Ok(()));
    }

    #[test]
    fn versions_only_go_down() {
        let mut options = CompileOptions::default();
        let mut set = |version| options.set("version", Some(version), Setter::User);
        assert_eq!(set("99.1"), Err(OptionError::VersionUnknown));
        assert_eq!(set("1..2"), Err(OptionError::VersionFormat));
        assert_eq!(set("1.6"), Ok(()));
        assert_eq!(set("1.2"), Ok(()));
        assert_eq!(set("1.6"), Err(OptionError::VersionReduced));
    }

    #[test]
    fn names_are_sorted_and_stand_once() {
        assert!(OPTIONS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn the_manual_tells_of_every_option() {
        let told = manual::names(manual::COMMAND, "TRACING OPTIONS");
        let steering = OPTIONS.iter().filter(|row| !matches!(row.1, Rule::Idle(_)));
        let known = steering.map(|row| row.0).chain(tracing_options());
        assert_eq!(told, known.map(str::to_owned).collect());
        for name in told {
            let set = Options::default().set(&name, Some("no such value"), Setter::User);
            assert_ne!(set, Err(OptionError::Name), "{name}");
        }
    }
}
