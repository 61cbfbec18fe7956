// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Test support: programs that are stopped so that their stacks can be walked.

use super::table_in;
use crate::symbols::{all_mappings_of, Backing};
use dtrace_unwind::{Ended, Frame, Memory, Place, Table, Walk, Word};
use nix::sys::ptrace;
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Maximum number of frames of a walk.
pub const FRAMES_MAX: usize = 512;

/// A running program that a test can stop and continue.
pub struct Stopped {
    child: Child,
    memory: File,
    registers: Option<nix::libc::user_regs_struct>,
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
        let r = self.registers.as_ref()?;
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
    /// Starts a shell command.
    pub fn new(command: &str) -> Self {
        let child = Command::new("/bin/sh")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            memory: File::open(format!("/proc/{}/mem", child.id())).unwrap(),
            registers: None,
            child,
            tables: HashMap::new(),
        }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Waits until the program is in a `read` system call on its standard input.
    pub fn wait_for_input(&mut self) {
        let path = format!("/proc/{}/syscall", self.pid());
        while !std::fs::read_to_string(&path).is_ok_and(|text| text.starts_with("0 0x0 ")) {
            std::thread::sleep(Duration::from_millis(10));
        }
        // The process may have executed another program since, which replaces its memory.
        self.memory = File::open(format!("/proc/{}/mem", self.pid())).unwrap();
    }

    /// Stops the program, reads its registers, and detaches from it so that other tracers can
    /// attach.
    pub fn stop(&mut self) {
        let pid = self.pid();
        kill(pid, Signal::SIGSTOP).unwrap();
        waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
        ptrace::seize(pid, ptrace::Options::empty()).unwrap();
        ptrace::interrupt(pid).unwrap();
        waitpid(pid, None).unwrap();
        self.registers = Some(ptrace::getregs(pid).unwrap());
        ptrace::detach(pid, Signal::SIGSTOP).unwrap();
        self.memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    }

    /// Continues the program.
    pub fn go_on(&self) {
        kill(self.pid(), Signal::SIGCONT).unwrap();
    }

    /// Walks the stack. Returns the frames, innermost first, with the names of their files, and the
    /// reason for which the walk ended.
    pub fn walk(&mut self) -> (Vec<(u64, String)>, Ended) {
        let maps = all_mappings_of(self.child.id()).unwrap();
        let registers = self.registers.unwrap();
        let mut frame = Frame {
            ip: registers.rip,
            sp: registers.rsp,
            fp: Some(registers.rbp),
            is_exact: true,
            is_innermost: true,
            is_guess: false,
        };
        let mut frames = Vec::new();
        for _ in 0..FRAMES_MAX {
            let at = frame.at();
            let mapping = maps
                .iter()
                .find(|mapping| mapping.contains(at) && mapping.is_code);
            let name = mapping.map_or("?", |mapping| mapping.object());
            frames.push((frame.ip, name.to_owned()));
            let place = mapping.map_or(Place::NoText, |mapping| {
                let bytes = self.tables.entry(mapping.path.clone()).or_insert_with(|| {
                    let data = match mapping.backing {
                        Backing::File { .. } => std::fs::read(&mapping.path).ok()?,
                        Backing::Vdso => {
                            let mut data = vec![0; (mapping.end - mapping.start) as usize];
                            self.memory.read_exact_at(&mut data, mapping.start).ok()?;
                            data
                        }
                        Backing::Memory => return None,
                    };
                    let table = table_in(&data);
                    assert!(table
                        .as_ref()
                        .is_none_or(|table| Table::check(table).is_ok()));
                    table
                });
                bytes.as_ref().map_or(Place::Nothing, |bytes| {
                    let table = Table::new(bytes).unwrap();
                    Place::Rule(table.rule(at - mapping.start + mapping.offset))
                })
            });
            match Walk::new(self, Word::Eight).step(&frame, place) {
                Ok(next) => frame = next,
                Err(ended) => return (frames, ended),
            }
        }
        (frames, Ended::Lost)
    }
}
