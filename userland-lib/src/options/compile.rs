// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Options that only the compiler reads.
//!
//! Those that would let a script reach into the machine that compiles it (paths, the preprocessor) may come from
//! the user only, never from a pragma.

use super::{parse_flag, parse_number, OptionError, Setter};
use std::path::PathBuf;

/// What the compiler is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// Put the tag of an error before its message.
    pub errtags: bool,
    /// A program without clauses is fine.
    pub empty: bool,
    /// Missing macro arguments are 0 or empty.
    pub defaultargs: bool,
    /// All macro arguments need not be used.
    pub argref: bool,
    /// A probe description may match nothing.
    pub zdefs: bool,
    /// A bare word names a provider, not a probe.
    pub pspec: bool,
    /// Run the C preprocessor first.
    pub cpp: bool,
    /// The preprocessor.
    pub cpppath: Option<PathBuf>,
    /// Its further arguments, in order.
    pub cppargs: Vec<String>,
    /// Print the compiled program.
    pub disasm: bool,
    /// Folders of D libraries, searched before the system's own.
    pub libdirs: Vec<PathBuf>,
    /// The system's folder of D libraries.
    pub syslibdir: Option<PathBuf>,
    /// Read no D libraries.
    pub nolibs: bool,
    /// The least stability that a program may rely on, as written.
    pub amin: Option<String>,
    /// The version of D that the program is written for.
    pub version: Option<String>,
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
            // Nothing of the compiler's may change now, but a wrong name or value is the better complaint.
            return self
                .clone()
                .set(name, value, Setter::User)
                .and(Err(OptionError::Active));
        }
        let pragma = setter == Setter::Pragma;
        let from_user_only = matches!(
            name,
            "libdir"
                | "syslibdir"
                | "nolibs"
                | "cpp"
                | "cpppath"
                | "cppargs"
                | "define"
                | "undef"
                | "incdir"
                | "stdc"
        );
        if pragma && from_user_only {
            return Err(OptionError::Context);
        }
        let text = || {
            value
                .filter(|value| !value.is_empty())
                .ok_or(OptionError::Value)
        };
        match name {
            "amin" => self.amin = Some(text()?.to_owned()),
            "version" => self.version = Some(text()?.to_owned()),
            "libdir" => self.libdirs.push(text()?.into()),
            "syslibdir" => self.syslibdir = Some(text()?.into()),
            "cpppath" => self.cpppath = Some(text()?.into()),
            "cppargs" => self
                .cppargs
                .extend(text()?.split_whitespace().map(str::to_owned)),
            "define" => self.cppargs.push(format!("-D{}", text()?)),
            "undef" => self.cppargs.push(format!("-U{}", text()?)),
            "incdir" => self.cppargs.push(format!("-I{}", text()?)),
            "stdc" => self.cppargs.push(match text()? {
                "a" | "c" | "t" => "-std=c99".to_owned(),
                "s" => "-traditional-cpp".to_owned(),
                _ => return Err(OptionError::Value),
            }),
            "cpphdrs" => self.cppargs.push("-H".to_owned()),
            "disasm" => {
                self.disasm = value
                    .map_or(Some(1), parse_number)
                    .ok_or(OptionError::Value)?
                    != 0
            }
            _ => {
                let flag = self.flag(name).ok_or(OptionError::Name)?;
                *flag = parse_flag(value).ok_or(OptionError::Value)?;
            }
        }
        Ok(())
    }

    fn flag(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "errtags" => &mut self.errtags,
            "empty" => &mut self.empty,
            "defaultargs" => &mut self.defaultargs,
            "argref" => &mut self.argref,
            "zdefs" => &mut self.zdefs,
            "pspec" => &mut self.pspec,
            "cpp" => &mut self.cpp,
            "nolibs" => &mut self.nolibs,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Err(OptionError::Context)
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
}
