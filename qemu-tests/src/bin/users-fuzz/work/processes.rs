// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Calls about processes: which of them wait, what they have registered, what files they execute,
//! and what they leave behind.

use super::Worker;
use dtrace::device::{DevDtrace, Device};
use dtrace_uapi::hold::{self, Hold, Known};
use std::fs::File;
use std::io;
use std::time::UNIX_EPOCH;

/// Sizes of invalid tables, in bytes.
const GARBAGE: [usize; 4] = [0, 1, 64, 64 << 10];

impl Worker {
    /// Makes one of the calls.
    pub(super) fn ask_about_processes(&mut self, file: usize) {
        let pid = self.random.choose(&[self.prey.pid(), self.prey.pid(), 1]);
        match self.random.below(10) {
            0 | 1 => self.hold(file, pid),
            2 | 3 => self.serve(file),
            4 => self.call(file, "review", |device, _| device.review(pid)),
            5 => self.call(file, "number", |device, _| device.number(pid)),
            6 => self.know(file, pid),
            7 => self.call(file, "registered", |device, _| device.registered(pid, 0)),
            8 => self.give_table(file),
            _ => self.read_remains(file, pid),
        }
    }

    fn hold(&mut self, file: usize, pid: u32) {
        let kinds = [
            hold::INSTRUCTION,
            hold::FORK,
            hold::EXEC,
            hold::MAP,
            hold::MAP + 1,
        ];
        let mut request = Hold {
            kind: self.random.choose(&kinds),
            pid: i32::try_from(pid).unwrap_or(0),
            address: self.prey.address(&mut self.random),
            wait: self.random.choose(&[0, 1, 50]),
            ..Hold::default()
        };
        if request.kind == hold::EXEC || self.random.one_in(8) {
            request.pid = 0;
        }
        let name = b"users-fuzz";
        request.name[..name.len()].copy_from_slice(name);
        self.call(file, "hold", |device, _| device.hold(&request));
        if self.random.one_in(2) {
            // Replaces the process, so that one begins to execute a program.
            self.prey.change(&mut self.tally);
        }
    }

    /// Resumes some of the waiting processes; the others continue by themselves.
    fn serve(&mut self, file: usize) {
        for _ in 0..8 {
            let mut held = 0;
            self.call(file, "held", |device, _| {
                device.held().inspect(|one| held = one.id)
            });
            if held == 0 {
                break;
            }
            let id = match self.random.one_in(4) {
                true => held.wrapping_add(1),
                false => held,
            };
            self.call(file, "resume", |device, _| device.resume(id));
        }
    }

    fn know(&mut self, file: usize, pid: u32) {
        let known = Known {
            address: self.prey.address(&mut self.random),
            pid: i32::try_from(pid).unwrap_or(0),
            reserved: 0,
        };
        self.call(file, "known", |device, _| device.known(&known));
    }

    /// Asks for a file without a table, and passes a table for it, or something else.
    fn give_table(&mut self, file: usize) {
        let mut wanted = None;
        self.call(file, "wanted", |device, _| {
            device.wanted().map(|one| wanted = one)
        });
        let wanted = match wanted {
            Some(wanted) => wanted,
            // No stack has led into this file.
            None => match File::open("/proc/self/exe") {
                Ok(itself) => itself,
                Err(_) => return,
            },
        };
        let table = match self.random.one_in(2) {
            true => dtrace::unwind::table_of(&wanted, None).unwrap_or_default(),
            false => vec![0x5a; self.random.choose(&GARBAGE)],
        };
        let changed = changed(&wanted).unwrap_or(0);
        self.call(file, "table", |device, _| {
            device.give_table(&wanted, changed, &table)
        });
    }

    /// Reads what is left of a process, and the names of a frame, which rarely exists.
    fn read_remains(&mut self, file: usize, pid: u32) {
        let number = self.random.below(64) as u32;
        self.call(file, "remains", |device: &DevDtrace, _| {
            let Some(remains) = device.remains()? else {
                return Err(io::ErrorKind::Unsupported.into());
            };
            let mut after = 0;
            for _ in 0..100 {
                match remains.next(pid, after)? {
                    Some(one) => after = one.number,
                    None => break,
                }
            }
            Ok(())
        });
        self.call(file, "frame", |device, _| {
            let frames = device.frames();
            frames
                .and_then(|frames| frames.names(number))
                .ok_or_else(|| io::ErrorKind::NotFound.into())
        });
    }
}

/// When a file was last changed, in nanoseconds.
fn changed(file: &File) -> Option<u64> {
    let time = file.metadata().ok()?.modified().ok()?;
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}
