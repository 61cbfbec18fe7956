// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `/tmp/perf-PID.map`: one line for each piece of code, with its start and its size, both
//! hexadecimal, and its name (the kernel's `tools/perf/Documentation/jit-interface.txt`).

use super::{Pieces, READ_MAX};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Bytes read by one call.
const CHUNK: usize = 1 << 16;
/// Maximum length of a line, in bytes.
const LINE_MAX: usize = 1 << 14;

/// Maximum number of bytes read in a turn, so that other work does not wait long.
const TURN: u64 = 1 << 24;

/// A map, and how far it has been read.
#[derive(Debug)]
pub struct PerfMap {
    file: File,
    /// Number of bytes read as complete lines.
    done: u64,
    /// Number of bytes that may still be read in total.
    left: u64,
}

/// Returns the path of the map, relative to the root directory, of a process with this process ID
/// in its own namespace.
pub fn path(number: &str) -> String {
    format!("tmp/perf-{number}.map")
}

impl PerfMap {
    pub fn new(file: File) -> Self {
        let (done, left) = (0, READ_MAX);
        Self { file, done, left }
    }

    /// Reads new lines. After an error the map must not be read again.
    pub fn read(&mut self, pieces: &mut Pieces) -> io::Result<()> {
        let size = self.file.metadata()?.len();
        if size < self.done {
            // The program has started the file anew.
            pieces.clear();
            self.done = 0;
        }
        let turn = self.done.saturating_add(TURN);
        let mut chunk = vec![0; CHUNK.min(size.saturating_sub(self.done) as usize)];
        while self.done < size.min(turn) {
            let size = self.file.read_at(&mut chunk, self.done)?;
            let read = &chunk[..size];
            self.left = (self.left.checked_sub(size as u64)).ok_or(io::ErrorKind::FileTooLarge)?;
            let Some(end) = read.iter().rposition(|byte| *byte == b'\n') else {
                // A file without line ends in this many bytes is not text.
                return match size >= LINE_MAX {
                    true => Err(io::ErrorKind::InvalidData.into()),
                    false => Ok(()),
                };
            };
            for line in read[..end].split(|byte| *byte == b'\n') {
                if let Some((start, size, name)) = parse(line) {
                    pieces.put(start, size, name);
                }
            }
            self.done += end as u64 + 1;
        }
        Ok(())
    }
}

fn parse(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let word = std::str::from_utf8(words.next()?).ok()?;
        u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = words.next()?.trim_ascii();
    (!name.is_empty()).then_some((start, size, name))
}

#[cfg(test)]
mod tests {
    use super::super::{Compiled, Written};
    use super::*;
    use std::io::Write as _;

    fn map(text: &[u8]) -> (File, Compiled) {
        let mut written = tempfile();
        written.write_all(text).expect("written");
        let map = PerfMap::new(written.try_clone().expect("the same file"));
        let map = Written {
            file: Some(map),
            ..Written::default()
        };
        let compiled = Compiled {
            map,
            ..Compiled::default()
        };
        (written, compiled)
    }

    fn tempfile() -> File {
        let file = nix::sys::memfd::memfd_create(c"map", nix::sys::memfd::MFdFlags::MFD_CLOEXEC);
        File::from(file.expect("a file"))
    }

    #[test]
    fn lines_are_read_as_they_come() {
        let (mut file, mut compiled) =
            map(b"7f0010 20 py::main:/a b.py\n0x8000 0x10 LazyCompile:~f\n9000 10 hal");
        assert!(compiled.refresh());
        assert!(!compiled.refresh());
        let name = |compiled: &Compiled, address| compiled.name(address).map(|(name, _)| name);
        assert_eq!(
            compiled.name(0x7f_002f),
            Some(("py::main:/a b.py".to_owned(), 0x1f))
        );
        assert_eq!(name(&compiled, 0x7f_0030), None);
        assert_eq!(name(&compiled, 0x8000).as_deref(), Some("LazyCompile:~f"));
        assert_eq!(name(&compiled, 0x9000), None);
        file.write_all(b"f\n8000 8 g\n").expect("written");
        assert!(compiled.refresh());
        assert_eq!(name(&compiled, 0x9000).as_deref(), Some("half"));
        assert_eq!(name(&compiled, 0x8000).as_deref(), Some("g"));
        assert_eq!(name(&compiled, 0x8008), None);
        file.set_len(0).expect("empty");
        assert!(compiled.refresh());
        assert_eq!(name(&compiled, 0x9000), None);
    }

    #[test]
    fn what_is_no_line_names_nothing() {
        let text = b"\n\n1000\n1000 10\n1000 10 \nx 10 a\n-1 10 a\nffffffffffffffffff 1 a\n1000 ffffffffffffffff a\n\xff\xff \xff \xff\n";
        let (_, mut compiled) = map(text);
        assert!(!compiled.refresh());
        let (_, mut compiled) = map(&vec![b'a'; 2 * CHUNK]);
        assert!(!compiled.refresh());
        assert!(compiled.map.file.is_none());
    }
}
