// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The command line of dtrace(8).
//!
//! Options and arguments may be mixed. The order of options matters: programs are enabled in the
//! order in which they are given, and a later `-x` overrides an earlier one. Words that are not
//! options are the arguments of the programs: `$1`, `$2` …

use dtrace::types::DataModel;
use lexopt::prelude::*;
use std::ffi::OsString;

/// How a program is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// `-P provider[predicate and action]`
    Provider,
    /// `-m [provider:]module…`
    Module,
    /// `-f [[provider:]module:]function…`
    Function,
    /// `-n [[[provider:]module:]function:]name…`
    Name,
    /// `-i id…`
    Id,
    /// `-s file`
    Script,
}

/// A program on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramArg {
    /// The option that gave it.
    pub given: Given,
    /// Its text, or the name of its file.
    pub text: String,
}

/// How a watched process is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessArg {
    /// `-c`: a command to run.
    Command(String),
    /// `-p`: its process ID.
    Pid(String),
    /// `-W`: the name of a process that is yet to start.
    Name(String),
}

/// What the command does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Trace.
    #[default]
    Exec,
    /// List probes.
    List,
    /// Write a C header of the providers.
    Header,
    /// Write an object that contains the programs.
    Object,
    /// Save an enabling for the next boot, or clear it.
    Anonymous,
    /// Print the version.
    Version,
}

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args {
    /// What to do.
    pub mode: Mode,
    /// The programs, in order.
    pub programs: Vec<ProgramArg>,
    /// Options, in order: the letter that set it, the name, and the value.
    pub options: Vec<(char, String, Option<String>)>,
    /// The data model (sizes of types) that programs are compiled for.
    pub model: DataModel,
    /// The arguments of the programs: `$1`, `$2` …
    pub arguments: Vec<String>,
    /// Processes to watch, in order.
    pub processes: Vec<ProcessArg>,
    /// The file that output is appended to.
    pub output: Option<String>,
    /// Stop after the compilation.
    pub compile_only: bool,
    /// Show the compiled programs.
    pub disassemble: bool,
    /// Print more details.
    pub verbose: bool,
    /// How many times `-V` was given.
    pub versions: u32,
}

impl Args {
    fn set_mode(&mut self, mode: Mode) -> Result<(), ArgError> {
        if ![Mode::Exec, mode].contains(&self.mode) {
            let message = "only one of the [-AGhlV] options can be specified at a time";
            return Err(ArgError(message.into()));
        }
        self.mode = mode;
        Ok(())
    }
}

/// Why a command line is invalid: the message for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgError(pub String);

/// The usage message.
pub const USAGE: &str = "\
Usage: dtrace [-32|-64] [-aACeFGHlqSvVwZ] [-b bufsz] [-c cmd] [-D name[=def]] [-I path] [-L path]
\t[-o output] [-O format] [-p pid] [-s script] [-U name] [-W name] [-x opt[=val]]
\t[-X a|c|s|t]

\t[-P provider [[predicate] action]]
\t[-m [provider:]module [[predicate] action]]
\t[-f [[provider:]module:]func [[predicate] action]]
\t[-n [[[provider:]module:]func:]name [[predicate] action]]
\t[-i probe-id [[predicate] action]] [args ...]

\tpredicate -> '/' D-expression '/'
\t   action -> '{' D-statements '}'

\t-a  claim anonymous tracing state
\t-A  save enabling for anonymous tracing at boot, or clear it
\t-b  set trace buffer size
\t-c  run specified command and exit upon its completion
\t-C  run cpp(1) preprocessor on script files
\t-D  define symbol when invoking preprocessor
\t-e  exit after compiling request but prior to enabling probes
\t-f  enable or list probes matching the specified function name
\t-F  coalesce trace output by function
\t-G  generate an ELF file containing embedded dtrace program
\t-h  generate a C header for the providers that the program defines
\t-H  print included files when invoking preprocessor
\t-i  enable or list probes matching the specified probe id
\t-I  add include directory to preprocessor search path
\t-l  list probes matching specified criteria
\t-L  add library directory to library search path
\t-m  enable or list probes matching the specified module name
\t-n  enable or list probes matching the specified probe name
\t-o  set output file
\t-O  set format of output: text, json, json,quote64 or csv
\t-p  watch specified process-ID, exit upon its completion
\t-P  enable or list probes matching the specified provider name
\t-q  set quiet mode (only output explicitly traced data)
\t-s  enable or list probes according to the specified D script
\t-S  print D compiler intermediate code
\t-U  undefine symbol when invoking preprocessor
\t-v  set verbose mode (report argument types and stability attributes)
\t-V  report DTrace API version
\t-w  permit destructive actions
\t-W  wait for a process of this name, watch it, and exit upon its completion
\t-x  enable or modify compiler and tracing options
\t-X  specify ISO C conformance settings for preprocessor
\t-Z  permit probe descriptions that match zero probes
";

/// Parses the words after the command's name.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Args, ArgError> {
    let mut args = Args::default();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(word) = parser.next().map_err(usage)? {
        match word {
            Short(letter) => option(&mut args, letter, &mut parser)?,
            Value(value) => args.arguments.push(text(value)?),
            Long(name) => return Err(ArgError(format!("invalid option -- '{name}'"))),
        }
    }
    Ok(args)
}

fn option(args: &mut Args, letter: char, parser: &mut lexopt::Parser) -> Result<(), ArgError> {
    let mut value = || text(parser.value().map_err(usage)?);
    let switch = |args: &mut Args, name: &str| args.options.push((letter, name.into(), None));
    match letter {
        'e' => args.compile_only = true,
        'l' => args.set_mode(Mode::List)?,
        'A' => args.set_mode(Mode::Anonymous)?,
        'S' => args.disassemble = true,
        'v' => args.verbose = true,
        'V' => {
            args.set_mode(Mode::Version)?;
            args.versions += 1;
        }
        'o' => args.output = Some(value()?),
        'c' => args.processes.push(ProcessArg::Command(value()?)),
        'p' => args.processes.push(ProcessArg::Pid(value()?)),
        'W' => args.processes.push(ProcessArg::Name(value()?)),
        'a' => switch(args, "grabanon"),
        'C' => switch(args, "cpp"),
        'F' => switch(args, "flowindent"),
        'H' => switch(args, "cpphdrs"),
        'q' => switch(args, "quiet"),
        'w' => switch(args, "destructive"),
        'Z' => switch(args, "zdefs"),
        'b' | 'D' | 'I' | 'L' | 'O' | 'U' => {
            let name = match letter {
                'b' => "bufsize",
                'D' => "define",
                'I' => "incdir",
                'L' => "libdir",
                'O' => "oformat",
                _ => "undef",
            };
            args.options.push((letter, name.into(), Some(value()?)));
        }
        'x' => {
            let value = value()?;
            let (name, value) = match value.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (&*value, None),
            };
            args.options.push((letter, name.to_owned(), value));
        }
        'X' => args.options.push((letter, "stdc".into(), Some(value()?))),
        '3' | '6' => args.model = data_model(letter, &value()?)?,
        'f' | 'i' | 'm' | 'n' | 'P' | 's' => {
            let given = match letter {
                'f' => Given::Function,
                'i' => Given::Id,
                'm' => Given::Module,
                'n' => Given::Name,
                'P' => Given::Provider,
                _ => Given::Script,
            };
            args.programs.push(ProgramArg {
                given,
                text: value()?,
            });
        }
        'G' => args.set_mode(Mode::Object)?,
        'h' => args.set_mode(Mode::Header)?,
        _ => return Err(ArgError(format!("invalid option -- '{letter}'"))),
    }
    Ok(())
}

/// Parses `-32` and `-64`, of which the option parser splits off the first digit.
fn data_model(letter: char, rest: &str) -> Result<DataModel, ArgError> {
    match (letter, rest) {
        ('6', "4") => Ok(DataModel::Lp64),
        ('3', "2") => Ok(DataModel::Ilp32),
        _ => Err(ArgError(format!("invalid option -- '{letter}'"))),
    }
}

fn text(value: OsString) -> Result<String, ArgError> {
    let complain = |value: OsString| ArgError(format!("argument is no valid text: {value:?}"));
    value.into_string().map_err(complain)
}

fn usage(error: lexopt::Error) -> ArgError {
    ArgError(match error {
        lexopt::Error::MissingValue {
            option: Some(option),
        } => {
            format!(
                "option requires an argument -- '{}'",
                option.trim_start_matches('-')
            )
        }
        error => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Args, ArgError> {
        parse(words.iter().map(OsString::from))
    }

    #[test]
    fn options_keep_their_order_and_arguments_may_stand_between() {
        let args = parsed(&[
            "-qn",
            "BEGIN",
            "one",
            "-xstrsize=16",
            "-s",
            "a.d",
            "-x",
            "quiet",
            "two",
        ])
        .unwrap();
        let programs: Vec<_> = args.programs.iter().map(|p| (p.given, &*p.text)).collect();
        assert_eq!(programs, [(Given::Name, "BEGIN"), (Given::Script, "a.d")]);
        assert_eq!(args.arguments, ["one", "two"]);
        let options: Vec<_> = args
            .options
            .iter()
            .map(|(_, name, value)| (&**name, value.as_deref()))
            .collect();
        assert_eq!(
            options,
            [("quiet", None), ("strsize", Some("16")), ("quiet", None)]
        );
    }

    #[test]
    fn after_two_dashes_all_are_arguments() {
        let args = parsed(&["-n", "BEGIN", "--", "-q", "-1"]).unwrap();
        assert_eq!(args.arguments, ["-q", "-1"]);
        assert!(args.options.is_empty());
    }

    #[test]
    fn there_is_one_mode_at_a_time() {
        let mode = |words: &[&str]| parsed(words).map(|args| args.mode);
        assert_eq!(mode(&["-A", "-n", "BEGIN"]), Ok(Mode::Anonymous));
        assert_eq!(mode(&["-VV"]), Ok(Mode::Version));
        let message = "only one of the [-AGhlV] options can be specified at a time";
        for words in [["-A", "-l"], ["-l", "-V"], ["-V", "-A"]] {
            assert_eq!(mode(&words), Err(ArgError(message.into())));
        }
        let args = parsed(&["-O", "json", "-lxoformat=csv"]).unwrap();
        let options = args.options.iter();
        let options: Vec<_> = options
            .map(|(letter, name, value)| (*letter, &**name, value.as_deref()))
            .collect();
        let expected = [
            ('O', "oformat", Some("json")),
            ('x', "oformat", Some("csv")),
        ];
        assert_eq!(options, expected);
        let args = parsed(&["-ae"]).unwrap();
        assert_eq!(args.options, [('a', "grabanon".to_owned(), None)]);
        assert!(args.compile_only && args.mode == Mode::Exec);
    }

    #[test]
    fn what_is_no_command_line_is_refused() {
        for words in [
            &["-y"][..],
            &["--list"],
            &["-n"],
            &["-b"],
            &["-q", "-R"],
            &["-9"],
            &["-31"],
        ] {
            assert!(matches!(parsed(words), Err(ArgError(_))), "{words:?}");
        }
        assert_eq!(
            parsed(&["-n"]),
            Err(ArgError("option requires an argument -- 'n'".into()))
        );
        assert_eq!(parsed(&["-64"]), Ok(Args::default()));
        assert_eq!(parsed(&["-32"]).unwrap().model, DataModel::Ilp32);
        assert_eq!(parsed(&["-32", "-64"]), Ok(Args::default()));
    }

    #[test]
    fn the_manual_tells_of_every_option() {
        let page = include_str!("../../docs/man/dtrace.8.md");
        let (_, rest) = page.split_once("\n## OPTIONS\n").unwrap();
        let rows = rest.lines().take_while(|line| !line.starts_with('#'));
        let told = rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next());
        let told: Vec<_> = told
            .filter(|option| !["-32", "-64"].contains(option))
            .collect();
        let used = USAGE.lines().filter_map(|line| line.strip_prefix('\t'));
        let mut used: Vec<_> = used
            .filter(|line| line.starts_with('-') && line.get(2..4) == Some("  "))
            .map(|line| &line[..2])
            .collect();
        assert!(used.len() > 20);
        used.sort_by_key(|option| option.to_lowercase());
        let mut sorted = told.clone();
        sorted.sort_by_key(|option| option.to_lowercase());
        assert_eq!(sorted, used);
    }
}
