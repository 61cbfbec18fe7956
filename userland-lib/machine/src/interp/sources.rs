// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Lines of source files.
//!
//! Some runtimes know a position only by its distance from the start of the source. In this case
//! the source file is read as the process sees it. It is used only if it has the length of the
//! source that was compiled, because a program may have translated the file, or the file may have
//! been changed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::rc::Rc;

/// Maximum number of files whose lines are cached; when it is reached all are dropped.
const FILES_MAX: usize = 256;
/// Maximum size of a file that is read, in bytes.
const SIZE_MAX: u64 = 1 << 24;
/// Maximum number of cached lines of all files.
const LINES_MAX: usize = 1 << 22;
/// Prefix of a script name that is a URL.
const URL: &str = "file://";

/// The starts of a file's lines.
#[derive(Debug, PartialEq, Eq)]
struct Lines {
    /// The file's length in UTF-16 code units.
    length: u32,
    /// Where each line but the first begins, in such units.
    starts: Vec<u32>,
}

/// A process ID, and the path of a file in that process.
type Name = (u32, String);

/// The lines of the files that were read; `None` for a file that could not be read.
#[derive(Debug, Default)]
pub struct Sources {
    known: RefCell<HashMap<Name, Option<Rc<Lines>>>>,
}

impl Sources {
    /// Returns the line of the UTF-16 code unit `at` in a process's file, if the file has `length`
    /// code units. `open` opens a file by its path in the process.
    pub fn line(
        &self,
        (pid, name): (u32, &str),
        length: u32,
        at: u32,
        open: impl Fn(u32, &str) -> io::Result<File>,
    ) -> Option<u32> {
        let key = (pid, path(name)?);
        let mut known = self.known.borrow_mut();
        if !known.contains_key(&key) {
            let file = open(pid, &key.1);
            let lines = file.and_then(Lines::read).ok().map(Rc::new);
            let new = lines.as_ref().map_or(0, |lines| lines.starts.len());
            let all = known.values().flatten();
            let all: usize = all.map(|lines| lines.starts.len()).sum();
            if known.len() >= FILES_MAX || all.saturating_add(new) > LINES_MAX {
                known.clear();
            }
            known.insert(key.clone(), lines.filter(|_| new <= LINES_MAX));
        }
        let lines = known.get(&key)?.as_ref();
        let lines = lines.filter(|lines| lines.length == length)?;
        let before = lines.starts.partition_point(|start| *start <= at);
        u32::try_from(before + 1).ok()
    }
}

/// Returns the path of a script's name, if the name is a path or a `file:` URL. In a URL, bytes
/// other than letters, digits and a few signs are written as `%` and two hexadecimal digits.
fn path(name: &str) -> Option<String> {
    let Some(rest) = name.strip_prefix(URL) else {
        return name.starts_with('/').then(|| name.to_owned());
    };
    let mut bytes = Vec::new();
    let mut left = rest.as_bytes();
    while let [first, tail @ ..] = left {
        let digits = tail.get(..2).filter(|_| *first == b'%');
        // `from_str_radix` accepts a sign, which is invalid here.
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        left = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|path| path.starts_with('/') && !path.contains('\0'))
}

impl Lines {
    fn read(file: File) -> io::Result<Self> {
        if file.metadata()?.len() > SIZE_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = Vec::new();
        file.take(SIZE_MAX).read_to_end(&mut bytes)?;
        Ok(Self::of(&String::from_utf8_lossy(&bytes)))
    }

    fn of(text: &str) -> Self {
        // A byte order mark is not part of the source.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut length = 0;
        let mut starts = Vec::new();
        for c in text.chars() {
            length += c.len_utf16() as u32;
            if c == '\n' {
                starts.push(length);
            }
        }
        Self { length, starts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn names_are_paths_or_urls_of_them() {
        let paths = [
            "/a%20b",
            "file:///a%20b/%C3%A9.mjs",
            "file:///100%",
            "file:///%zz%2",
            "file:///%+5",
        ];
        let expected = ["/a%20b", "/a b/\u{e9}.mjs", "/100%", "/%zz%2", "/%+5"];
        assert_eq!(paths.map(path), expected.map(|path| Some(path.to_owned())));
        for name in [
            "node:fs",
            "[eval]",
            "a/b",
            "file://a/b",
            "file:///%ff",
            "file:///%00",
        ] {
            assert_eq!(path(name), None, "{name}");
        }
    }

    #[test]
    fn lines_are_of_the_source_that_was_compiled() {
        let path = std::env::temp_dir().join(format!("dtrace-source-{}.js", std::process::id()));
        let text = "\u{feff}// \u{1f600}\nlet x;\n\nx();";
        let mut file = File::create(&path).expect("a file");
        file.write_all(text.as_bytes()).expect("written");
        let sources = Sources::default();
        let opened = RefCell::new(0);
        let line = |pid, name: &str, length, at| {
            sources.line((pid, name), length, at, |_, path| {
                *opened.borrow_mut() += 1;
                File::open(path)
            })
        };
        let name = path.to_str().expect("a name");
        let lines = [0, 5, 6, 12, 13, 14, 17].map(|at| line(1, name, 18, at));
        assert_eq!(lines, [1, 1, 2, 2, 3, 4, 4].map(Some));
        assert_eq!(line(1, &format!("file://{name}"), 18, 6), Some(2));
        // Another source, another process, and a name that is no path.
        assert_eq!(line(1, name, 17, 6), None);
        assert_eq!(*opened.borrow(), 1);
        assert_eq!(line(2, name, 18, 6), Some(2));
        assert_eq!(line(2, "/nonesuch.js", 18, 6), None);
        assert_eq!(*opened.borrow(), 3);
        assert_eq!(line(2, "node:internal/timers", 18, 6), None);
        assert_eq!(*opened.borrow(), 3);
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(line(2, name, 18, 14), Some(4));
        for n in 0..FILES_MAX {
            line(3, &format!("/nonesuch-{n}"), 1, 0);
        }
        assert_eq!(line(2, name, 18, 14), None);
    }
}
