// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Options: what `-x`, `#pragma D option` and `setopt()` may set, and the syntax of the values.
//!
//! There are three kinds. *Compile-time* options are for the compiler and are unknown to the
//! kernel. *Run-time* options are passed to the kernel in the DOF image and are fixed once tracing
//! begins. *Dynamic* options may change while tracing is active (`setopt("quiet")`); most of them
//! concern the consumer alone. A value's syntax depends on the option and not on where it is set,
//! so it is defined once per option: by `rules` for the options that are shared with the kernel, in
//! `compile` for those of the library, and in `consumer` for those of the consumer. Who reads a
//! shared option, and its default, are in `uapi`'s `option`.
//!
//! Invariant: [`Options::set`] stores only values with the option's syntax. [`Options::adopt`] and
//! [`Options::take_sizes`] store values of a saved tracing and of the kernel unchecked.

mod compile;
mod consumer;
mod pragma;
#[cfg(test)]
mod tables_tests;
mod value;
pub mod version;

pub use compile::{CompileOptions, EvalTime, LinkType, HOLDTIME_DEFAULT};
pub use consumer::{ConsumerOptions, Encoding, Frames, Oformat};
use dtrace_files::text::parse_number;
pub use dtrace_uapi::option::Opt;
pub use value::{parse_flag, parse_rate, parse_size, size_text};

use dtrace_uapi::option;
use std::collections::BTreeMap;
use std::fmt;

/// Where an option is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setter {
    /// The command line, or a program that uses the library.
    User,
    /// `#pragma D option` of a script.
    Pragma,
    /// `setopt()`, or any other setting while tracing is active.
    Running,
}

/// Why an option is refused, in DTrace's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// No option has this name.
    Name,
    /// The value does not follow the option's syntax.
    Value,
    /// A program may not set this option.
    Context,
    /// A program may not set this option, because it is one of the preprocessor.
    Preprocessor,
    /// The option is fixed while tracing is active.
    Active,
    /// Linux has no zones.
    Zone,
    /// The output has no such format.
    Format,
    /// Code cannot be generated with so few registers.
    Registers,
    /// Translators are bound when a program is compiled.
    Late,
    /// Programs do not register what `-G` puts into them.
    Eager,
    /// The value is not a version.
    VersionFormat,
    /// This version does not exist.
    VersionUnknown,
    /// An older version was requested before.
    VersionReduced,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "Invalid option name",
            Self::Value => "Invalid value for specified option",
            Self::Format => "Invalid value for specified option: the formats are text, json, json,quote64 and csv",
            Self::Context => "Option cannot be used from within a D program",
            Self::Preprocessor => "Option cannot be used from within a D program: the preprocessor has run before it is read",
            Self::Active => "Operation illegal when tracing is active",
            Self::Registers => "Insufficient registers to generate code",
            Self::Late => "Translators are bound when a program is compiled, and not later",
            Self::Eager => "DOF is read from a program's file when somebody traces it, and not registered when it begins",
            Self::VersionFormat => "Version string is not properly formatted or is too large",
            Self::VersionUnknown | Self::Zone => "Operation not supported",
            Self::VersionReduced => "Requested version conflicts with earlier setting",
        })
    }
}

impl OptionError {
    /// Returns a reason if the message does not give it.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::VersionUnknown => Some("there has been no such version of D"),
            Self::Zone => Some("there are no zones on Linux"),
            Self::Context => Some("other DTraces use it before they read any program"),
            _ => None,
        }
    }
}

impl std::error::Error for OptionError {}

/// Syntax of the value of a run-time or dynamic option.
#[derive(Clone, Copy)]
enum Syntax {
    /// A switch: nothing, or a word such as `on` or `off`.
    Flag,
    /// A number.
    Number,
    /// A number of bytes: `64k`.
    Size,
    /// A time between two events: `10hz`, `1sec`.
    Rate,
    /// One of these words.
    Word(&'static [(&'static str, u64)]),
}

const POLICIES: &[(&str, u64)] = &[
    ("ring", option::BUFPOLICY_RING),
    ("fill", option::BUFPOLICY_FILL),
    ("switch", option::BUFPOLICY_SWITCH),
];
const RESIZES: &[(&str, u64)] = &[
    ("auto", option::BUFRESIZE_AUTO),
    ("manual", option::BUFRESIZE_MANUAL),
];

const STACK_MODES: &[(&str, u64)] = &[
    ("auto", option::USTACKMODE_AUTO),
    ("fp", option::USTACKMODE_FP),
    ("table", option::USTACKMODE_TABLE),
    ("told", option::USTACKMODE_TOLD),
];

/// Returns the syntax of an option and whether it may change while tracing is active.
fn rules(opt: Opt) -> (Syntax, bool) {
    match opt {
        Opt::Bufsize | Opt::Aggsize | Opt::Specsize | Opt::Dynvarsize => (Syntax::Size, false),
        Opt::Strsize | Opt::Jstackstrsize | Opt::Scratchsize => (Syntax::Size, false),
        Opt::Cleanrate => (Syntax::Rate, false),
        Opt::Statusrate => (Syntax::Rate, false),
        Opt::Aggrate | Opt::Switchrate => (Syntax::Rate, true),
        Opt::Bufpolicy => (Syntax::Word(POLICIES), false),
        Opt::Bufresize => (Syntax::Word(RESIZES), false),
        Opt::Ustackmode => (Syntax::Word(STACK_MODES), false),
        Opt::Nspec | Opt::Cpu | Opt::Zone => (Syntax::Number, false),
        Opt::Stackframes | Opt::Ustackframes | Opt::Jstackframes => (Syntax::Number, false),
        Opt::Destructive | Opt::Grabanon | Opt::Noloops | Opt::Temporal => (Syntax::Flag, false),
        Opt::Stackindent | Opt::Aggsortpos | Opt::Aggsortkeypos => (Syntax::Number, true),
        Opt::Flowindent | Opt::Quiet | Opt::Rawbytes => (Syntax::Flag, true),
        Opt::Aggsortkey | Opt::Aggsortrev => (Syntax::Flag, true),
        Opt::Agghist | Opt::Aggpack | Opt::Aggzoom => (Syntax::Flag, true),
    }
}

/// The options of one consumer.
#[derive(Clone, Debug)]
pub struct Options {
    values: [u64; option::COUNT],
    /// Options of the compiler.
    pub compile: CompileOptions,
    /// How records are printed.
    pub consumer: ConsumerOptions,
}

impl Default for Options {
    fn default() -> Self {
        let mut options = Self {
            values: [option::UNSET; option::COUNT],
            compile: CompileOptions::default(),
            consumer: ConsumerOptions::default(),
        };
        for opt in SET {
            options.values[opt.place()] = opt.usual();
        }
        options
    }
}

/// Least `strsize`: one character and the terminating NUL.
const STRSIZE_LEAST: u64 = 2;

/// Options that are set to their default from the beginning. The kernel has the same defaults.
const SET: [Opt; 9] = [
    Opt::Statusrate,
    Opt::Strsize,
    Opt::Stackframes,
    Opt::Ustackframes,
    Opt::Jstackframes,
    Opt::Jstackstrsize,
    Opt::Bufsize,
    Opt::Aggsize,
    Opt::Stackindent,
];

/// The only option of the compiler that concerns how drops are printed.
const DROPTAGS: &str = "droptags";

/// Sizes that the kernel may lower if memory is short, with their names in messages.
const SIZES: &[(Opt, &str)] = &[
    (Opt::Bufsize, "buffer"),
    (Opt::Aggsize, "aggregation"),
    (Opt::Dynvarsize, "dynamic variable"),
    (Opt::Specsize, "speculation"),
];

impl Options {
    /// Sets the option `name` to `value`. Without a value a switch is turned on.
    pub fn set(
        &mut self,
        name: &str,
        value: Option<&str>,
        setter: Setter,
    ) -> Result<(), OptionError> {
        if let Some(opt) = Opt::named(name) {
            if opt == Opt::Scratchsize {
                // The compiler also needs it, to refuse a clause that is known to exceed it.
                self.compile.set(name, value, setter)?;
            }
            return self.set_opt(opt, value, setter);
        }
        if let Some(set) = self.consumer.set(name, value, setter) {
            return set;
        }
        self.compile.set(name, value, setter)
    }

    fn set_opt(
        &mut self,
        opt: Opt,
        value: Option<&str>,
        setter: Setter,
    ) -> Result<(), OptionError> {
        if !opt.is_read() {
            // `zone`: a restriction to one zone could not be kept, so everything would be traced.
            return Err(OptionError::Zone);
        }
        let (syntax, dynamic) = rules(opt);
        let value = match syntax {
            Syntax::Flag => parse_flag(value).map(|on| if on { 1 } else { option::UNSET }),
            Syntax::Number => value.and_then(parse_number),
            Syntax::Size => value.and_then(parse_size),
            Syntax::Rate => value.and_then(parse_rate),
            Syntax::Word(words) => words
                .iter()
                .find(|(word, _)| Some(*word) == value)
                .map(|(_, number)| *number),
        };
        // A string needs room for at least one character and the terminating NUL.
        let value = value.filter(|value| opt != Opt::Strsize || *value >= STRSIZE_LEAST);
        let value = value.ok_or(OptionError::Value)?;
        if setter == Setter::Running && !dynamic {
            return Err(OptionError::Active);
        }
        self.values[opt.place()] = value;
        Ok(())
    }

    /// Returns the value of `opt`, if it is set.
    pub fn get(&self, opt: Opt) -> Option<u64> {
        Some(self.values[opt.place()]).filter(|value| *value != option::UNSET)
    }

    /// Whether the switch `opt` is on.
    pub fn is_on(&self, opt: Opt) -> bool {
        self.get(opt).is_some()
    }

    /// Returns all options that are set and that concern what is recorded or how it is printed, by
    /// name, for [`adopt`](Self::adopt).
    pub fn saved(&self) -> BTreeMap<String, u64> {
        let set = option::NAMES
            .iter()
            .filter_map(|(opt, name)| Some((*name, self.get(*opt)?)));
        let droptags = self.compile.droptags.then_some((DROPTAGS, 1));
        let all = set.chain(self.consumer.saved()).chain(droptags);
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Takes over the options with which tracing was begun, except those that may change at any
    /// time and were set here.
    pub fn adopt(&mut self, saved: &BTreeMap<String, u64>) {
        let usual = Self::default();
        for (opt, name) in option::NAMES {
            let (own, usual) = (self.get(*opt), usual.get(*opt));
            if !rules(*opt).1 || own == usual {
                let value = saved.get(*name).copied();
                self.values[opt.place()] = value.unwrap_or(option::UNSET);
            }
        }
        self.consumer.adopt(saved);
        self.compile.droptags |= saved.contains_key(DROPTAGS);
    }

    /// Takes over the sizes for which the kernel got memory; `kernel` has its options. Returns
    /// messages, in DTrace's words, about those that are lower than requested.
    pub fn take_sizes(&mut self, kernel: &[(Opt, u64)]) -> Vec<String> {
        let mut lowered = Vec::new();
        for (opt, name) in SIZES {
            let Some((_, got)) = kernel.iter().find(|(known, _)| known == opt) else {
                continue;
            };
            let asked = self.get(*opt).unwrap_or(opt.usual());
            if *got < asked {
                lowered.push(format!("{name} size lowered to {}", size_text(*got)));
            }
            self.values[opt.place()] = *got;
        }
        lowered
    }

    /// Returns the options for the kernel: those that are set and that it is told.
    pub fn for_kernel(&self) -> Vec<(Opt, u64)> {
        let told = option::NAMES.iter().filter(|(opt, _)| opt.is_told());
        told.filter_map(|(opt, _)| Some((*opt, self.get(*opt)?)))
            .collect()
    }
}

/// Returns the names of all options except those of the compiler.
#[cfg(test)]
fn tracing_options() -> impl Iterator<Item = &'static str> {
    let contract = option::NAMES.iter().filter(|(opt, _)| opt.is_read());
    let consumers = consumer::names().chain([consumer::OFORMAT]);
    contract.map(|(_, name)| *name).chain(consumers)
}

/// Values such that nearly every option accepts one of them.
#[cfg(test)]
const VALUES: [&str; 18] = [
    "",
    "=3",
    "=64k",
    "=10hz",
    "=8",
    "=ring",
    "=auto",
    "=utf8",
    "=Stable/Stable/Common",
    "=main",
    "=dynamic",
    "=a=b",
    "=1.5",
    "=mutexes",
    "=fork",
    "=a",
    "=buildid",
    "=csv",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: Option<&str>) -> Result<Options, OptionError> {
        let mut options = Options::default();
        options.set(name, value, Setter::User).map(|()| options)
    }

    #[test]
    fn every_option_of_the_contract_has_a_syntax_that_accepts_something() {
        for (opt, name) in option::NAMES.iter().filter(|(opt, _)| opt.is_read()) {
            let value = match rules(*opt).0 {
                Syntax::Flag => None,
                Syntax::Number => Some("3"),
                Syntax::Size => Some("64k"),
                Syntax::Rate => Some("10hz"),
                Syntax::Word(words) => Some(words[0].0),
            };
            assert!(set(name, value).unwrap().is_on(*opt), "{name}");
        }
    }

    #[test]
    fn a_zone_is_refused_because_all_would_be_traced() {
        for value in [None, Some("0"), Some("3"), Some("global")] {
            let error = set("zone", value).unwrap_err();
            assert_eq!(error.to_string(), "Operation not supported");
            assert_eq!(error.reason(), Some("there are no zones on Linux"));
        }
    }

    #[test]
    fn flags_are_switched_off_again() {
        let mut options = set("quiet", None).unwrap();
        assert_eq!(options.get(Opt::Quiet), Some(1));
        options.set("quiet", Some("no"), Setter::Running).unwrap();
        assert!(!options.is_on(Opt::Quiet));
    }

    #[test]
    fn refusals_use_the_words_of_dtrace() {
        let message = |name, value, setter| {
            Options::default()
                .set(name, value, setter)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            message("Nixon", Some("1"), Setter::User),
            "Invalid option name"
        );
        assert_eq!(
            message("quiet", Some("um, no"), Setter::Running),
            "Invalid value for specified option"
        );
        assert_eq!(
            message("aggrate", Some("0.5hz"), Setter::Running),
            "Invalid value for specified option"
        );
        assert_eq!(
            message("bufsize", None, Setter::User),
            "Invalid value for specified option"
        );
        assert_eq!(
            message("strsize", Some("1"), Setter::User),
            "Invalid value for specified option"
        );
        assert_eq!(
            message("bufpolicy", Some("best"), Setter::User),
            "Invalid value for specified option"
        );
        assert_eq!(
            message("bufsize", Some("1m"), Setter::Running),
            "Operation illegal when tracing is active"
        );
        assert_eq!(
            message("ldpath", Some("/tmp"), Setter::Pragma),
            "Option cannot be used from within a D program"
        );
    }

    #[test]
    fn what_was_begun_with_stays_but_for_what_may_change() {
        let mut begun = set("bufpolicy", Some("ring")).unwrap();
        begun.set("aggrate", Some("10hz"), Setter::User).unwrap();
        begun.set("quiet", None, Setter::User).unwrap();
        let mut later = set("bufpolicy", Some("fill")).unwrap();
        later.set("grabanon", None, Setter::User).unwrap();
        later.set("aggrate", Some("1hz"), Setter::User).unwrap();
        later.adopt(&begun.saved());
        let got = [Opt::Bufpolicy, Opt::Grabanon, Opt::Aggrate, Opt::Quiet].map(|o| later.get(o));
        let aggrate = Some(1_000_000_000);
        let ring = Some(option::BUFPOLICY_RING);
        assert_eq!(got, [ring, None, aggrate, Some(1)]);
    }

    #[test]
    fn what_is_shown_is_saved_too() {
        let mut begun = set("aggpercpu", None).unwrap();
        for (name, value) in [
            ("noresolve", None),
            ("quietresize", None),
            ("droptags", None),
            ("printsize", Some("99")),
            ("encoding", Some("utf8")),
            ("inlines", None),
        ] {
            begun.set(name, value, Setter::User).unwrap();
        }
        let saved = begun.saved();
        let mut later = Options::default();
        later.adopt(&saved);
        assert_eq!(later.consumer, begun.consumer);
        assert!(later.compile.droptags);
        // Options that were set here are kept, and a file of an older version has none of these.
        let mut own = set("printsize", Some("7")).unwrap();
        own.set("encoding", Some("ascii"), Setter::User).unwrap();
        own.adopt(&saved);
        assert_eq!(own.consumer.printsize, 7);
        assert_eq!(own.consumer.encoding, Some(Encoding::Ascii));
        let before = own.consumer.clone();
        own.adopt(&BTreeMap::new());
        assert_eq!(own.consumer, before);
    }

    #[test]
    fn sizes_that_were_got_take_the_place_of_those_asked_for() {
        let mut options = set("bufsize", Some("1g")).unwrap();
        options.set("specsize", Some("1m"), Setter::User).unwrap();
        let got = [
            (Opt::Bufsize, 64 << 20),
            (Opt::Dynvarsize, 512 << 10),
            (Opt::Specsize, 1 << 20),
            (Opt::Strsize, 16),
        ];
        assert_eq!(
            options.take_sizes(&got),
            [
                "buffer size lowered to 64m",
                "dynamic variable size lowered to 512k"
            ]
        );
        let sizes = [Opt::Bufsize, Opt::Aggsize, Opt::Strsize].map(|opt| options.get(opt));
        assert_eq!(sizes, [Some(64 << 20), Some(4 << 20), Some(256)]);
        assert!(options.take_sizes(&got).is_empty());
    }

    #[test]
    fn the_kernel_is_told_only_what_is_set_and_concerns_it() {
        let mut options = set("bufpolicy", Some("ring")).unwrap();
        options.set("quiet", None, Setter::User).unwrap();
        let told = options.for_kernel();
        assert!(told.contains(&(Opt::Bufpolicy, option::BUFPOLICY_RING)));
        assert!(told.contains(&(Opt::Bufsize, Opt::Bufsize.usual())));
        assert!(!told
            .iter()
            .any(|(opt, _)| matches!(opt, Opt::Quiet | Opt::Nspec)));
    }
}
