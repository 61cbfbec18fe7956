// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Programs of this machine are stopped and walked: a walk that comes to the very first frame was right in each.

use super::table_in;
use crate::symbols::mappings_of;
use dtrace_unwind::{Ended, Frame, Memory, Place, Table, Walk, Word};
use nix::sys::ptrace;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::process::{Child, Command, Stdio};

/// Frames of a walk.
const FRAMES_MAX: usize = 512;

/// A program that is stopped.
struct Stopped {
    child: Child,
    memory: File,
    registers: nix::libc::user_regs_struct,
    tables: HashMap<String, Option<Vec<u8>>>,
}

impl Memory for Stopped {
    fn word(&self, address: u64, word: Word) -> Option<u64> {
        let mut bytes = [0; 8];
        let size = word.bytes() as usize;
        self.memory
            .read_exact_at(&mut bytes[..size], address)
            .ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    fn register(&self, n: u8) -> Option<u64> {
        let r = &self.registers;
        [
            r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11,
            r.r12, r.r13, r.r14, r.r15,
        ]
        .get(usize::from(n))
        .copied()
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Stopped {
    /// A shell command, stopped where it sleeps.
    fn new(command: &str) -> Self {
        let child = Command::new("/bin/sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pid = Pid::from_raw(child.id() as i32);
        // In a system call that reads from the pipe.
        let path = format!("/proc/{pid}/syscall");
        while !std::fs::read_to_string(&path).is_ok_and(|text| text.starts_with("0 0x0 ")) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        ptrace::attach(pid).unwrap();
        waitpid(pid, None).unwrap();
        Self {
            memory: File::open(format!("/proc/{pid}/mem")).unwrap(),
            registers: ptrace::getregs(pid).unwrap(),
            child,
            tables: HashMap::new(),
        }
    }

    /// The names of the files that the frames are in, innermost first, and how the walk ends.
    fn walk(&mut self) -> (Vec<String>, Ended) {
        let maps = mappings_of(self.child.id()).unwrap();
        let mut frame = Frame {
            ip: self.registers.rip,
            sp: self.registers.rsp,
            fp: Some(self.registers.rbp),
            is_exact: true,
            is_innermost: true,
        };
        let mut names = Vec::new();
        for _ in 0..FRAMES_MAX {
            let at = frame.at();
            let mapping = maps.iter().find(|mapping| mapping.contains(at));
            let place = mapping.map_or(Place::NoText, |mapping| {
                names.push(mapping.object().to_owned());
                let bytes = self.tables.entry(mapping.path.clone()).or_insert_with(|| {
                    let data = std::fs::read(&mapping.path).ok()?;
                    table_in(&data)
                });
                bytes.as_ref().map_or(Place::Nothing, |bytes| {
                    let table = Table::check(bytes).unwrap();
                    Place::Rule(table.rule(at - mapping.start + mapping.offset))
                })
            });
            match Walk::new(self, Word::Eight).step(&frame, place) {
                Ok(next) => frame = next,
                Err(ended) => return (names, ended),
            }
        }
        panic!("no end: {names:?}");
    }
}

#[test]
fn programs_are_walked_to_their_beginning() {
    for (command, least) in [
        ("exec cat", 4),
        ("read line", 6),
        (
            "exec perl -e 'sub f { return $_[0] ? f($_[0] - 1) : <STDIN> } f(20)'",
            8,
        ),
    ] {
        let (names, ended) = Stopped::new(command).walk();
        assert_eq!(ended, Ended::Outermost, "{command}: {names:?}");
        assert!(names.len() >= least, "{command}: {names:?}");
        let [first, .., last] = &names[..] else {
            panic!("{names:?}");
        };
        assert!(first.starts_with("libc"), "{command}: {names:?}");
        assert!(!last.starts_with("lib"), "{command}: {names:?}");
    }
}

/// The largest library that every machine has.
#[test]
fn the_table_of_libc_is_small() {
    let maps = mappings_of(std::process::id()).unwrap();
    let libc = maps
        .iter()
        .find(|mapping| mapping.object().starts_with("libc.so"));
    let data = std::fs::read(&libc.unwrap().path).unwrap();
    let bytes = table_in(&data).unwrap();
    let table = Table::check(&bytes).unwrap();
    assert!(table.rows() > 10_000);
    assert!(bytes.len() <= 150 << 10);
}
