// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `jit-PID.dump`: records of compiled code, in a file that the program maps as code so that it can
//! be found (the kernel's `tools/perf/Documentation/jitdump-specification.txt`, version 1).

use super::{Pieces, NAME_MAX, READ_MAX};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// The magic number, "JiTD", in the writer's byte order. Files of the other byte order are refused.
const MAGIC: u32 = 0x4a69_5444;
/// The only version.
const VERSION: u32 = 1;
/// Minimum size of the file header, in bytes.
const HEADER: u64 = 40;
/// Size of a record's header, in bytes: its kind, its size, its time.
const HEAD: u64 = 16;
/// Record of new code: process, thread, address twice, size, index, name, code. The offsets are
/// relative to the end of the record's header.
const LOAD: u32 = 0;
const LOAD_ADDRESS: usize = 16;
const LOAD_SIZE: usize = 24;
const LOAD_NAME: usize = 40;
/// Record of moved code: process, thread, address, old address, new address, size, index.
const MOVE: u32 = 1;
const MOVE_FROM: usize = 16;
const MOVE_TO: usize = 24;
const MOVE_SIZE: usize = 32;
const MOVE_END: usize = 48;

/// Maximum number of records read in a turn, so that other work does not wait long.
const TURN: usize = 1 << 16;

/// Whether a file may be a dump, judging by its name.
pub fn is_name(name: &str) -> bool {
    let number = name
        .strip_prefix("jit-")
        .and_then(|name| name.strip_suffix(".dump"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// A dump, and how far it has been read.
#[derive(Debug)]
pub struct Jitdump {
    file: File,
    /// Offset of the next record.
    next: u64,
}

impl Jitdump {
    /// Creates the reader of a file. Fails if its header is not that of a dump.
    pub fn new(file: File) -> io::Result<Self> {
        let mut header = [0; HEADER as usize];
        file.read_exact_at(&mut header, 0)?;
        let (magic, version, size) = (word(&header, 0), word(&header, 4), word(&header, 8));
        let next = u64::from(size.unwrap_or(0));
        match (magic, version) == (Some(MAGIC), Some(VERSION)) && next >= HEADER {
            true => Ok(Self { file, next }),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Reads new records. After an error the dump must not be read again.
    pub fn read(&mut self, pieces: &mut Pieces) -> io::Result<()> {
        let end = self.file.metadata()?.len().min(READ_MAX);
        let mut record = [0; LOAD_NAME + NAME_MAX];
        for _ in 0..TURN {
            if self.next.saturating_add(HEAD) > end {
                break;
            }
            let mut head = [0; HEAD as usize];
            self.file.read_exact_at(&mut head, self.next)?;
            let kind = word(&head, 0);
            let size = u64::from(word(&head, 4).unwrap_or(0));
            let Some(body) = size.checked_sub(HEAD) else {
                // Without a valid size the next record cannot be found.
                return Err(io::ErrorKind::InvalidData.into());
            };
            if self.next.saturating_add(size) > end {
                return Ok(());
            }
            let body = &mut record[..body.min((LOAD_NAME + NAME_MAX) as u64) as usize];
            self.file.read_exact_at(body, self.next + HEAD)?;
            match kind {
                Some(LOAD) => load(pieces, body),
                Some(MOVE) => moved(pieces, body),
                _ => None,
            };
            self.next += size;
        }
        Ok(())
    }
}

fn load(pieces: &mut Pieces, record: &[u8]) -> Option<()> {
    let name = record.get(LOAD_NAME..)?;
    let end = name
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(name.len());
    pieces.put(
        long(record, LOAD_ADDRESS)?,
        long(record, LOAD_SIZE)?,
        &name[..end],
    );
    Some(())
}

fn moved(pieces: &mut Pieces, record: &[u8]) -> Option<()> {
    let record = record.get(..MOVE_END)?;
    let (from, to) = (long(record, MOVE_FROM)?, long(record, MOVE_TO)?);
    pieces.move_to(from, to, long(record, MOVE_SIZE)?);
    Some(())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::super::{Compiled, Written};
    use super::*;
    use nix::sys::memfd::{memfd_create, MFdFlags};
    use std::io::Write as _;

    fn header(version: u32, size: u32) -> Vec<u8> {
        let words = [MAGIC, version, size, 62, 0, 1234];
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        bytes.resize(size.max(HEADER as u32) as usize, 0);
        bytes
    }

    fn record(kind: u32, longs: &[u64], rest: &[u8]) -> Vec<u8> {
        let size = HEAD as usize + longs.len() * 8 + rest.len();
        let head = [kind, size as u32, 0, 0]
            .into_iter()
            .flat_map(u32::to_ne_bytes);
        let body = longs.iter().flat_map(|long| long.to_ne_bytes());
        head.chain(body).chain(rest.iter().copied()).collect()
    }

    fn file(bytes: &[u8]) -> File {
        let file = memfd_create(c"dump", MFdFlags::MFD_CLOEXEC).expect("a file");
        let mut file = File::from(file);
        file.write_all(bytes).expect("written");
        file
    }

    fn dump(bytes: &[u8]) -> (File, Compiled) {
        let written = file(bytes);
        let dump = Jitdump::new(written.try_clone().expect("the same file"));
        let dump = Some(dump.expect("a dump"));
        (
            written,
            Compiled {
                dump: Written {
                    file: dump,
                    ..Written::default()
                },
                ..Compiled::default()
            },
        )
    }

    #[test]
    fn records_are_read_as_they_come() {
        let first = record(LOAD, &[0, 0x1000, 0x1000, 3, 1], b"first\0\x90\x90\xc3");
        let other = record(2, &[0x1000, 0], b"");
        let second = record(LOAD, &[0, 0x2000, 0x2000, 0x10, 2], b"second(int)\0");
        let moved = record(MOVE, &[0, 0x3000, 0x2000, 0x3000, 0x10, 2], b"");
        let mut bytes = [header(VERSION, 48), first, other].concat();
        bytes.extend(&second[..20]);
        let (mut file, mut compiled) = dump(&bytes);
        assert!(compiled.refresh());
        assert_eq!(compiled.name(0x1002), Some(("first".to_owned(), 2)));
        assert_eq!((compiled.name(0x1003), compiled.name(0x2000)), (None, None));
        file.write_all(&second[20..]).expect("written");
        assert!(compiled.refresh());
        assert_eq!(compiled.name(0x200f), Some(("second(int)".to_owned(), 15)));
        file.write_all(&moved).expect("written");
        assert!(compiled.refresh());
        assert!(!compiled.refresh());
        assert_eq!(compiled.name(0x2000), None);
        assert_eq!(compiled.name(0x3000), Some(("second(int)".to_owned(), 0)));
    }

    #[test]
    fn what_is_damaged_ends_the_list() {
        let good = record(LOAD, &[0, 0x1000, 0x1000, 3, 1], b"good\0");
        let short = record(LOAD, &[0, 0x1000], b"");
        let (_, mut compiled) = dump(&[header(VERSION, 40), short, good.clone()].concat());
        assert!(compiled.refresh());
        assert_eq!(compiled.name(0x1000), Some(("good".to_owned(), 0)));
        for size in [0, 15] {
            let mut bad = record(LOAD, &[], b"");
            bad[4] = size;
            let (_, mut compiled) = dump(&[header(VERSION, 40), bad, good.clone()].concat());
            assert!(!compiled.refresh());
        }
        for bytes in [header(2, 40), header(VERSION, 39), b"text".to_vec()] {
            assert!(Jitdump::new(file(&bytes)).is_err());
        }
        let mut foreign = header(VERSION, 40);
        foreign[..4].reverse();
        assert!(Jitdump::new(file(&foreign)).is_err());
    }

    #[test]
    fn a_dump_is_known_by_its_name() {
        assert!(is_name("jit-1234.dump"));
        for name in ["jit-.dump", "jit-1x.dump", "jit-1.dumps", "xjit-1.dump"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
