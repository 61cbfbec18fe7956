// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Probes at a source line: `FILE.c@120` in place of a function.
//!
//! The function part of such a probe is the file's base name and the line; its name is the address
//! where instructions of the line begin. The description may have as many leading directories as
//! are needed to distinguish the file from others.

use super::{wanted, Code, Error, Kind, Object, Place, Search, Wanted};
use crate::pattern::is_open;
use crate::processes::ProcessSource;
use dtrace_files::dwarf::Lines;
use dtrace_files::nearest::nearest;
use dtrace_uapi::glob;
use std::rc::Rc;

/// A line of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'p> {
    file: &'p str,
    line: u64,
}

impl<'p> Line<'p> {
    /// Parses the function part of a description as a source line. No function has a name with an
    /// `@`.
    pub(super) fn of(func: &'p str) -> Option<Self> {
        let (file, line) = func.rsplit_once('@')?;
        let is_line = !file.is_empty() && line.bytes().all(|c| c.is_ascii_digit());
        let line = line.parse().ok().filter(|_| is_line)?;
        Some(Self { file, line })
    }

    /// Returns the function part of its probes.
    fn name(self) -> Rc<str> {
        let file = self.file.rsplit('/').next().unwrap_or(self.file);
        format!("{file}@{}", self.line).into()
    }
}

impl<S: ProcessSource + ?Sized> Search<'_, S> {
    /// Searches for a line in the objects that the module names.
    pub(super) fn line(&mut self, line: Line<'_>, objects: Vec<Object>) -> Result<(), Error> {
        let is_one = !is_open(&self.pattern.module);
        for object in objects {
            let module = object.name.clone();
            let told = self.source.debug(&object);
            let lines = match told {
                Ok(debug) => debug.lines(line.file, line.line),
                Err(_) if !is_one => continue,
                Err(why) => {
                    return Err(Error::Line {
                        module,
                        why: why.to_string(),
                        near: None,
                    })
                }
            };
            if lines.addresses.is_empty() {
                if is_one {
                    return Err(missing(line, module, &lines));
                }
                continue;
            }
            let code = self.read(&object)?;
            self.line_of(line, &Rc::new(object), &code, &lines)?;
        }
        Ok(())
    }

    fn line_of(
        &mut self,
        line: Line<'_>,
        object: &Rc<Object>,
        code: &Code,
        lines: &Lines,
    ) -> Result<(), Error> {
        let name = &self.pattern.name;
        let wanted = wanted(name)?;
        let before = self.places.len() + self.left_out;
        for &address in &lines.addresses {
            let kind = Kind::Offset(address);
            let is_wanted = match wanted {
                Wanted::One(one) => one == kind,
                Wanted::Glob(part) => {
                    part.is_empty() || glob::matches(part.as_bytes(), kind.to_string().as_bytes())
                }
            };
            let Some(offset) = code.file_offset(address).filter(|_| is_wanted) else {
                continue;
            };
            // Do not trust the compiler's address unless an instruction begins there.
            if let Some(func) = code.function_at(address) {
                let within = address - func.address;
                if !code.instructions(func).any(|offset| offset == within) {
                    continue;
                }
            }
            let place = Place {
                object: object.clone(),
                func: line.name(),
                offset,
                kind,
                function: 0..0,
                sites: vec![offset],
            };
            self.add(place, code.site(address))?;
        }
        match wanted {
            Wanted::One(_) if before == self.places.len() + self.left_out => {
                Err(Error::Name(name.clone()))
            }
            _ => Ok(()),
        }
    }
}

/// Makes the error for a line that does not exist.
fn missing(line: Line<'_>, module: String, lines: &Lines) -> Error {
    let Line { file, line } = line;
    if !lines.has_file {
        let near = nearest(file, lines.files.iter().map(String::as_str));
        return Error::Line {
            module,
            why: format!("no source file is called '{file}'"),
            near: near.map(str::to_owned),
        };
    }
    let near = lines.nearest;
    let near = near.map(|near| format!("; the nearest line that has one is {near}"));
    let near = near.unwrap_or_default();
    Error::Line {
        module,
        why: format!("no instruction is of line {line} of {file}{near}"),
        near: None,
    }
}
