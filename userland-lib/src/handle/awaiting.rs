// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! `-W`: waiting for a process of a name to begin.
//!
//! The kernel holds every process that executes a program and is called so then, before the program's first instruction
//! ([`EXEC`](hold::EXEC)), so none is missed however short it lives. It is held for a second at most; within that the process is taken over
//! by `ptrace()`, and stays stopped until tracing begins, as one that was created for it. One that somebody traces already runs on.

use super::{Error, Handle};
use crate::proc::Target;
use dtrace_uapi::hold::{self, Hold, NAME_SIZE};
use rustix::event::{poll, PollFd, PollFlags};
use std::fs;
use std::io;

impl Handle<'_> {
    /// Waits until a process has become a program of this name, and takes it.
    pub fn await_process(&self, name: &str) -> Result<Target, Error> {
        let device = self.device();
        let mut hold = Hold {
            kind: hold::EXEC,
            ..Hold::default()
        };
        // The kernel knows as much of a name as has room.
        let known = &name.as_bytes()[..name.len().min(NAME_SIZE - 1)];
        hold.name[..known.len()].copy_from_slice(known);
        device.hold(&hold).map_err(|error| self.refused(error))?;
        let until = self.options.compile.evaltime;
        loop {
            let held = device.held()?;
            if held.id == 0 {
                let descriptor = device.descriptor();
                let mut ready = descriptor.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
                match poll(ready.as_mut_slice(), None) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => continue,
                    Err(errno) => return Err(Error::Device(errno.into())),
                }
            }
            let pid = held.pid.unsigned_abs();
            let mut resumed = Ok(());
            let mut go_on = || resumed = device.resume(held.id);
            if held.kind != hold::EXEC || !is_called(pid, name) {
                go_on();
                continue;
            }
            let target = Target::seize(pid, until, go_on)?;
            // It is ours: whether it had gone on by itself does not matter.
            drop(resumed);
            return Ok(target);
        }
    }
}

/// Whether a process is called so where the kernel knows only how the name begins.
fn is_called(pid: u32, name: &str) -> bool {
    if name.len() < NAME_SIZE {
        return true;
    }
    let process = format!("/proc/{pid}");
    let program = fs::read_link(format!("{process}/exe"));
    let words: io::Result<Vec<u8>> = fs::read(format!("{process}/cmdline"));
    let is_it = |path: &[u8]| path.rsplit(|c| *c == b'/').next() == Some(name.as_bytes());
    // A script is the second or third word of what its interpreter was called with.
    let mut words = words
        .iter()
        .flat_map(|words| words.split(|c| *c == 0).take(3));
    program.is_ok_and(|path| is_it(path.as_os_str().as_encoded_bytes())) || words.any(is_it)
}
