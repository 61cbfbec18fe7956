// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! `-W`: waits for processes of given names to start, in any order.
//!
//! The kernel holds every process that executes a program and has one of these names then, before
//! the program's first instruction ([`EXEC`](hold::EXEC)), so that even a short-lived process is
//! caught. It is held for a second at most. Within this time we take it over by `ptrace()`, and it
//! stays stopped until tracing begins, like a process that was created for tracing. The kernel does
//! not hold a process that is traced by `ptrace()` already. If another tracer attaches before we
//! do, the process is only watched and runs on.

use super::{Error, Handle};
use dtrace_consumer::device::missing;
use dtrace_machine::proc::Target;
use dtrace_uapi::hold::{self, Hold, NAME_SIZE};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use std::fs;
use std::io;

impl Handle<'_> {
    /// Makes processes wait for us that become a program of this name, from now on.
    fn expect_process(&self, name: &str) -> Result<(), Error> {
        let mut hold = Hold {
            kind: hold::EXEC,
            ..Hold::default()
        };
        let known = known(name);
        hold.name[..known.len()].copy_from_slice(known);
        let held = self.device().hold(&hold);
        held.map_err(|error| self.refused(error))
    }

    /// Waits until a process of each name has started. Returns these processes in the order of the
    /// names, each stopped where `evaltime` says.
    pub fn await_processes(&self, names: &[&str]) -> Result<Vec<Target>, Error> {
        if self.module < 1 && names.iter().any(|name| name != &names[0]) {
            // A module of interface 0 keeps only the last name that it was given.
            let what = "more than one name of processes to wait for";
            return Err(Error::Device(missing(what, Some(self.module))));
        }
        for name in names {
            self.expect_process(name)?;
        }
        let device = self.device();
        let mut targets: Vec<Option<Target>> = names.iter().map(|_| None).collect();
        while targets.iter().any(Option::is_none) {
            let held = device.held()?;
            if held.id == 0 {
                let descriptor = device.descriptor();
                let mut ready = descriptor.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
                match poll(ready.as_mut_slice(), None) {
                    Ok(_) | Err(Errno::INTR) => continue,
                    Err(errno) => return Err(Error::Device(errno.into())),
                }
            }
            let pid = held.pid.unsigned_abs();
            let mut awaited = names.iter().zip(&mut targets);
            let awaited = awaited
                .find(|(name, target)| target.is_none() && is_called(pid, name))
                .filter(|_| held.kind == hold::EXEC);
            // An error is fine: the process may have continued by itself.
            let go_on = || drop(device.resume(held.id));
            match awaited.map(|(_, target)| (target, Target::seize(pid, go_on))) {
                Some((target, Ok(seized))) => *target = Some(seized),
                // The process was killed; wait for another one.
                Some((_, Err(error)))
                    if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {}
                Some((_, Err(error))) => return Err(error.into()),
                None => go_on(),
            }
        }
        let targets: Vec<Target> = targets.into_iter().flatten().collect();
        for target in &targets {
            target.run(self.options.compile.evaltime)?;
        }
        Ok(targets)
    }
}

/// The part of a program's name that the kernel keeps.
fn known(name: &str) -> &[u8] {
    &name.as_bytes()[..name.len().min(NAME_SIZE - 1)]
}

/// Whether a process has this name.
fn is_called(pid: u32, name: &str) -> bool {
    let process = format!("/proc/{pid}");
    let comm = fs::read(format!("{process}/comm")).unwrap_or_default();
    if comm.strip_suffix(b"\n") != Some(known(name)) {
        return false;
    }
    if name.len() < NAME_SIZE {
        return true;
    }
    // The kernel has cut the name, so compare the program's file and arguments as well.
    let program = fs::read_link(format!("{process}/exe"));
    let words: io::Result<Vec<u8>> = fs::read(format!("{process}/cmdline"));
    let is_it = |path: &[u8]| path.rsplit(|c| *c == b'/').next() == Some(name.as_bytes());
    // A script is the second or third word of its interpreter's command line.
    let mut words = words
        .iter()
        .flat_map(|words| words.split(|c| *c == 0).take(3));
    program.is_ok_and(|path| is_it(path.as_os_str().as_encoded_bytes())) || words.any(is_it)
}
