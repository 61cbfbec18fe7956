// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Options that programs set themselves with `#pragma D option`.
//!
//! Many of these options determine how the program is read, which libraries are loaded before it,
//! or how the process is created whose id the program uses. So these lines are read before the
//! program is processed in any other way, wherever they are in it, and they are read only here.
//! Their settings come after those of the command line and override them.

use super::{OptionError, Options, Setter};
use crate::diag::{Diagnostic, Result};
use crate::source::Source;
use crate::syntax::{self, ast::Pragma, macros::Macros};

impl Options {
    /// Applies the option lines of a program. If one of them is refused, none has an effect.
    /// Malformed lines are left for the parser to refuse.
    pub fn read(&mut self, source: &Source, macros: &Macros) -> Result<()> {
        let mut options = self.clone();
        for line in lines(&source.text, macros, self.compile.defaultargs)? {
            options.set_by(&line)?;
        }
        *self = options;
        Ok(())
    }

    fn set_by(&mut self, line: &Pragma) -> Result<()> {
        let (name, value) = parts(line);
        let set = self.set(name, value, Setter::Pragma);
        set.map_err(|error| refused(name, value, error, line))
    }
}

/// Returns the lines that set options. All lines are read leniently first, because the line that
/// permits missing arguments may follow a line that lacks one.
fn lines(text: &str, macros: &Macros, default_args: bool) -> Result<Vec<Pragma>> {
    let read = |default_args| {
        let macros = Macros {
            default_args,
            ..macros.clone()
        };
        let mut pragmas = syntax::pragmas(text, &macros)?;
        pragmas.retain(|pragma| pragma.name == "option");
        Ok(pragmas)
    };
    let lenient = read(true)?;
    match default_args || lenient.iter().any(|line| parts(line).0 == "defaultargs") {
        true => Ok(lenient),
        false => read(false),
    }
}

/// Splits a line into the option's name and value.
fn parts(line: &Pragma) -> (&str, Option<&str>) {
    let option = line.words.first().map_or("", String::as_str);
    match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    }
}

fn refused(name: &str, value: Option<&str>, error: OptionError, line: &Pragma) -> Box<Diagnostic> {
    let message = match value {
        Some(value) => format!("failed to set option '{name}' to '{value}': {error}"),
        None => format!("failed to set option '{name}': {error}"),
    };
    let refused = Diagnostic::new("D_PRAGMA_OPTSET", line.span, message);
    match error.reason() {
        Some(reason) => refused.note(reason),
        None => refused,
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile::{Rule, OPTIONS};
    use super::super::{tracing_options, Opt, Syntax, VALUES};
    use super::*;
    use dtrace_uapi::option;

    fn read(line: &str) -> Result<Options> {
        let mut options = Options::default();
        let macros = Macros {
            args: ["x", "defaultargs"].map(str::to_owned).into(),
            ..Macros::default()
        };
        options.read(&Source::file("x.d", line), &macros)?;
        Ok(options)
    }

    /// Options that act before a program is read: those of the preprocessor, and those that other
    /// DTraces use by then.
    const BEFORE: [&str; 15] = [
        "cpp",
        "cppargs",
        "cpphdrs",
        "cpppath",
        "ctfpath",
        "define",
        "dofstashpath",
        "incdir",
        "ldpath",
        "lockmem",
        "modpath",
        "objcopypath",
        "procfspath",
        "stdc",
        "undef",
    ];

    #[test]
    fn each_option_is_set_by_a_program_as_by_the_command_line_or_acts_before() {
        let mut refused = Vec::new();
        for name in tracing_options().chain(OPTIONS.iter().map(|row| row.0)) {
            let by_user = |value: &str| {
                let mut options = Options::default();
                let value = value.strip_prefix('=');
                options.set(name, value, Setter::User).map(|()| options)
            };
            let mut taken = VALUES
                .iter()
                .filter_map(|value| Some((value, by_user(value).ok()?)));
            // `linktype` and `late` need values that are not in the list or would be refused.
            let (value, expected) = match (name, taken.next()) {
                ("linktype", _) => (&"=dof", by_user("=dof").unwrap()),
                ("late", _) => (&"=static", by_user("=static").unwrap()),
                (_, Some(taken)) => taken,
                (name, None) => panic!("no value for {name}"),
            };
            let line = format!("#pragma D option {name}{value}\n");
            match read(&line) {
                Ok(options) => {
                    assert_eq!(format!("{options:?}"), format!("{expected:?}"), "{line}")
                }
                Err(error) => {
                    assert!(
                        error.message.contains("Option cannot be used from within"),
                        "{error}"
                    );
                    refused.push(name);
                }
            }
            let changes = format!("{expected:?}") != format!("{:?}", Options::default());
            let idle = OPTIONS
                .iter()
                .any(|row| row.0 == name && matches!(row.1, Rule::Idle(_)));
            let usual = [
                "evaltime",
                "iregs",
                "kdefs",
                "late",
                "lazyload",
                "udefs",
                "ustackinterp",
            ]
            .contains(&name);
            assert!(changes || idle || usual, "{line} sets nothing");
        }
        refused.sort_unstable();
        assert_eq!(refused, BEFORE);
    }

    #[test]
    fn why_the_preprocessors_are_refused() {
        let error = read("\n#pragma D option define=A\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "[D_PRAGMA_OPTSET] failed to set option 'define' to 'A': Option cannot be used from \
             within a D program: the preprocessor has run before it is read"
        );
        let error = read("#pragma D option ldpath=/bin/ld\n").unwrap_err();
        assert_eq!(
            error.notes,
            ["other DTraces use it before they read any program"]
        );
    }

    #[test]
    fn the_last_setting_wins_and_programs_come_after_the_command_line() {
        let mut options = Options::default();
        options.set("strsize", Some("8"), Setter::User).unwrap();
        options.set("quiet", None, Setter::User).unwrap();
        options.set("zdefs", None, Setter::User).unwrap();
        let text = "#pragma D option strsize=64\n#pragma D option strsize=32\n\
                    BEGIN { }\n#pragma D option quiet=no\n#pragma D option zdefs=off\n";
        options
            .read(&Source::file("x.d", text), &Macros::default())
            .unwrap();
        assert_eq!(options.get(Opt::Strsize), Some(32));
        assert!(!options.is_on(Opt::Quiet) && !options.compile.zdefs);
    }

    #[test]
    fn a_program_that_is_refused_sets_nothing() {
        let mut options = Options::default();
        let text = "#pragma D option quiet\n#pragma D option nonsense\n";
        options
            .read(&Source::file("x.d", text), &Macros::default())
            .unwrap_err();
        assert!(!options.is_on(Opt::Quiet));
    }

    #[test]
    fn an_argument_that_is_missing_is_told_unless_a_later_line_permits_it() {
        let line = "#pragma D option nspec=$7\n";
        assert_eq!(read(line).unwrap_err().tag, "D_MACRO_UNDEF");
        let options = read(&format!("{line}#pragma D option defaultargs\n")).unwrap();
        assert_eq!(options.get(Opt::Nspec), Some(0));
        // Macro arguments in the rest of the program are not checked here.
        assert!(read("BEGIN { trace($7); trace($nosuch); }\n").is_ok());
    }

    #[test]
    fn options_are_found_however_they_are_written() {
        let permitted = |text: &str| read(text).is_ok_and(|options| options.compile.defaultargs);
        let option = "#pragma D option defaultargs";
        for text in [
            option,
            &format!("/* a\n * b */\n{option}\n"),
            "/* a */ /* b */\n# pragma D option defaultargs=yes\n",
            &format!("// a /*\n{option}\n"),
            &format!("BEGIN {{ trace($5); }}\n  {option}\n"),
            &format!("BEGIN {{ trace(\"a /* b\"); }}\n{option}\n"),
            &format!("foo:::x'y\n{{ }}\n{option}\n"),
            "#pragma D \\\noption /* a */ \"defaultargs\"\n",
            "#pragma D option $1\n",
        ] {
            assert!(permitted(text), "{text}");
        }
        for text in [
            &format!("/*\n{option}\n*/\n"),
            &format!("BEGIN {{ }} /* a */ /*\n{option}\n*/\n"),
            &format!("BEGIN {{ }} {option}\n"),
            "BEGIN { trace(\"#pragma D option defaultargs\"); }",
            "#pragma D option defaultargs=no\n",
            "#pragma D option defaultargs more\n",
        ] {
            assert!(!permitted(text), "{text}");
        }
    }

    /// The words of every option with a list of words are among the values that are tried.
    #[test]
    fn values_of_each_syntax_are_tried() {
        for (opt, name) in option::NAMES {
            if let Syntax::Word(words) = super::super::rules(*opt).0 {
                let known = |value: &&str| words.iter().any(|(word, _)| value.ends_with(word));
                assert!(VALUES.iter().any(known), "{name}");
            }
        }
    }
}
