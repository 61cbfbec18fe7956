// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! The names of frames, as they are printed.
//!
//! The kernel returns each of them once. They come from a process's memory: characters that could
//! confuse a terminal are replaced.

use super::lines::Format;
use super::runtime::Runtime;
use super::sources::Sources;
use dtrace_files::names::printable;
use dtrace_uapi::interp::{NameHead, Word, NAMELESS};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::fs::File;
use std::io;
use std::rc::Rc;
use zerocopy::FromBytes;

/// A source of the names with a given number.
pub trait Source {
    /// Returns the bytes: a head and the names.
    fn names(&self, number: u32) -> Option<Vec<u8>>;
}

/// The names of frames that were looked up.
#[derive(Default)]
pub struct Frames {
    source: RefCell<Option<Box<dyn Source>>>,
    known: RefCell<HashMap<u32, Rc<Names>>>,
    sources: Sources,
}

impl Debug for Frames {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} names", self.known.borrow().len())
    }
}

/// The names of a frame.
#[derive(Debug, Default)]
struct Names {
    function: String,
    file: String,
    table: Vec<u8>,
    /// The class that the function belongs to; used for Java.
    scope: String,
    first: u32,
    /// The format of the table.
    format: Option<Format>,
}

impl Frames {
    /// Sets the source of names.
    pub fn ask(&self, source: Option<Box<dyn Source>>) {
        *self.source.borrow_mut() = source;
    }

    /// Returns the text of a frame of a process: function, file and line. `open` opens a file of a
    /// process by its path there.
    pub fn text(
        &self,
        pid: u32,
        word: Word,
        open: impl Fn(u32, &str) -> io::Result<File>,
    ) -> String {
        if word.name == NAMELESS {
            return "? no room for more names".to_owned();
        }
        let Some(names) = self.names(word.name) else {
            return "?".to_owned();
        };
        let place = names
            .format
            .and_then(|format| format.place(&names.table, word.position));
        let line = match place {
            Some(place) => {
                let file = (pid, &*names.file);
                self.sources.line(file, names.first, place, open)
            }
            None => names.line(word.position),
        };
        names.text(word.position, line)
    }

    fn names(&self, number: u32) -> Option<Rc<Names>> {
        if let Some(known) = self.known.borrow().get(&number) {
            return Some(Rc::clone(known));
        }
        let bytes = self.source.borrow().as_ref()?.names(number)?;
        let names = Rc::new(Names::read(&bytes)?);
        self.known.borrow_mut().insert(number, Rc::clone(&names));
        Some(names)
    }
}

impl Names {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = NameHead::read_from_prefix(bytes).ok()?;
        let [function, file, table, scope] = head.sizes.map(usize::from);
        let (function, rest) = rest.split_at_checked(function)?;
        let (file, rest) = rest.split_at_checked(file)?;
        let (table, rest) = rest.split_at_checked(table)?;
        Some(Self {
            function: shown(function),
            file: shown(file),
            table: table.to_vec(),
            scope: shown(rest.get(..scope)?),
            first: head.first,
            format: Runtime::numbered(head.walker).and_then(Runtime::lines),
        })
    }

    fn line(&self, position: u32) -> Option<u32> {
        match self.format {
            Some(format) => format.line(&self.table, self.first, position),
            None => Some(position),
        }
    }

    fn text(&self, position: u32, line: Option<u32>) -> String {
        let function = match self.format {
            Some(format) if format.is_anonymous(position) => "(anonymous)".to_owned(),
            _ if self.function.is_empty() => "?".to_owned(),
            Some(Format::Scope) if !self.table.is_empty() => {
                format!("{}::{}", shown(&self.table), self.function)
            }
            Some(Format::Java) if !self.scope.is_empty() => {
                format!("{}.{}", self.scope.replace('/', "."), self.function)
            }
            _ => self.function.clone(),
        };
        match line.filter(|line| *line != 0) {
            _ if self.file.is_empty() => function,
            Some(line) => format!("{function} {}:{line}", self.file),
            None => format!("{function} {}", self.file),
        }
    }
}

/// Returns a name without unprintable characters. Names are in UTF-8 or else in Latin-1.
fn shown(name: &[u8]) -> String {
    let text = match std::str::from_utf8(name) {
        Ok(name) => name.into(),
        // The name was cut off within a character.
        Err(error) if error.error_len().is_none() => {
            String::from_utf8_lossy(name.get(..error.valid_up_to()).unwrap_or_default())
        }
        Err(_) => name.iter().map(|byte| char::from(*byte)).collect(),
    };
    printable(&text).into_owned()
}
