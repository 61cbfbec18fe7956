// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Processes: the objects from which they run code ([`objects`]), when these change ([`tells_at`]),
//! and those that a consumer watches: `-c` creates one, `-p` grabs one, and `-W` seizes one that
//! begins.
//!
//! A created process must not run before tracing begins, but must already execute its own program.
//! So it requests to be traced before its `exec`, and the kernel stops it at the first instruction
//! of the new program. From there it runs on as far as the user wants, and [`Target::release`] lets
//! it go after tracing has begun. Nothing is missed, and no polling is needed: a process file
//! descriptor becomes readable when the process ends, whether it was created or grabbed, and never
//! refers to another process that reuses the process id.
//!
//! Invariant: a created process does not outlive its [`Target`]. A grabbed process is never stopped
//! or changed; a seized one is only stopped.

#![allow(unsafe_code)]

mod linker;
mod objects;
#[cfg(test)]
mod objects_tests;
mod start;
mod words;

pub use linker::tells_at;
pub use objects::{bare, code, objects};
pub use words::split;

use dtrace_compiler::options::EvalTime;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{pidfd_open, PidfdFlags};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With status 0, or, for a process that is not our child, in a way that only its parent knows.
    Exited,
    /// With this status, which is not 0.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

/// The end of a watched process. It is displayed in DTrace's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Process id.
    pub pid: u32,
    /// How it ended.
    pub ending: Ending,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pid = self.pid;
        match self.ending {
            Ending::Exited => write!(f, "pid {pid} has exited"),
            Ending::Status(status) => write!(f, "pid {pid} exited with status {status}"),
            Ending::Signal(number) => match Signal::try_from(number) {
                Ok(signal) => write!(f, "pid {pid} terminated by {signal}"),
                Err(_) => write!(f, "pid {pid} terminated by signal {number}"),
            },
        }
    }
}

/// A watched process.
#[derive(Debug)]
pub struct Target {
    pid: u32,
    descriptor: OwnedFd,
    child: Option<Child>,
    stopped: bool,
}

impl Target {
    /// Creates a process from a command line and stops it at `until`. It inherits our environment
    /// with these changes; a variable without a value is removed.
    pub fn create(
        command: &str,
        changes: &[(String, Option<String>)],
        until: EvalTime,
    ) -> io::Result<Self> {
        let words = split(command).ok_or_else(|| invalid("unbalanced quotes in the command"))?;
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| invalid("empty command"))?;
        let mut command = Command::new(program);
        command.args(arguments);
        for (name, value) in changes {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        // SAFETY: between fork and exec the closure makes one system call and allocates nothing.
        unsafe { command.pre_exec(|| ptrace::traceme().map_err(Into::into)) };
        let child = command.spawn()?;
        let pid = child.id();
        let mut target = Self {
            pid,
            descriptor: open(pid)?,
            child: Some(child),
            stopped: true,
        };
        target.await_exec()?;
        target.run(until)?;
        Ok(target)
    }

    /// Watches the process `pid` without stopping it.
    pub fn grab(pid: u32) -> io::Result<Self> {
        Ok(Self {
            pid,
            descriptor: open(pid)?,
            child: None,
            stopped: false,
        })
    }

    /// Stops a process that the kernel holds before the first instruction of its program. `go_on`
    /// ends the hold. A process that another process already traces is only watched.
    pub fn seize(pid: u32, go_on: impl FnOnce()) -> io::Result<Self> {
        let target = Self::grab(pid);
        let number = nix_pid(pid);
        let is_ours = target.is_ok() && ptrace::seize(number, ptrace::Options::empty()).is_ok();
        let stopping = if is_ours {
            ptrace::interrupt(number)
        } else {
            Ok(())
        };
        // End the hold in any case, even if the process could not be seized.
        go_on();
        let mut target = target?;
        stopping?;
        if is_ours {
            match waitpid(number, None)? {
                WaitStatus::PtraceEvent(..) | WaitStatus::Stopped(..) => {}
                // It was killed meanwhile.
                WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return Err(Errno::SRCH.into()),
                other => return Err(io::Error::other(format!("it did not stop: {other:?}"))),
            }
            target.stopped = true;
        }
        Ok(target)
    }

    /// Lets the process run until `until` if it is stopped at its exec.
    pub fn run(&self, until: EvalTime) -> io::Result<()> {
        if self.stopped {
            start::run(self.nix_pid(), until)?;
        }
        Ok(())
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets a created or seized process run. Has no effect on other processes, or if called again.
    pub fn release(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.stopped) {
            ptrace::detach(self.nix_pid(), None)?;
        }
        Ok(())
    }

    /// Returns how the process ended, if it has.
    pub fn ended(&mut self) -> io::Result<Option<Ended>> {
        if self.stopped {
            return Ok(None);
        }
        let ending = match &mut self.child {
            Some(child) => child
                .try_wait()?
                .map(|status| match (status.code(), status.signal()) {
                    (Some(0), _) => Ending::Exited,
                    (Some(code), _) => Ending::Status(code),
                    (None, Some(signal)) => Ending::Signal(signal),
                    (None, None) => Ending::Exited,
                }),
            None => {
                let mut ready = [PollFd::new(&self.descriptor, PollFlags::IN)];
                let now = Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                };
                // An interrupted `poll` says nothing about the process.
                let ready = match poll(&mut ready, Some(&now)) {
                    Err(Errno::INTR) => 0,
                    ready => ready?,
                };
                (ready > 0).then_some(Ending::Exited)
            }
        };
        Ok(ending.map(|ending| Ended {
            pid: self.pid,
            ending,
        }))
    }

    fn nix_pid(&self) -> Pid {
        nix_pid(self.pid)
    }

    /// Waits for the stop at exec. From then on the kernel kills the process if we end while
    /// tracing it.
    fn await_exec(&mut self) -> io::Result<()> {
        match waitpid(self.nix_pid(), Some(WaitPidFlag::WUNTRACED))? {
            WaitStatus::Stopped(pid, Signal::SIGTRAP) => {
                ptrace::setoptions(pid, ptrace::Options::PTRACE_O_EXITKILL)?;
                Ok(())
            }
            other => Err(io::Error::other(format!(
                "the process did not stop at exec: {other:?}"
            ))),
        }
    }
}

impl AsFd for Target {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // An error means that it has already ended, which is the intended result.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Converts a process id. That of a created or opened process always fits.
fn nix_pid(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap_or(i32::MAX))
}

/// Opens a process file descriptor of `pid`.
fn open(pid: u32) -> io::Result<OwnedFd> {
    let raw = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let pid = raw.ok_or_else(|| invalid("not a process id"))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(target: &mut Target) -> Ended {
        let mut ready = [PollFd::new(&target.descriptor, PollFlags::IN)];
        let limit = Timespec {
            tv_sec: 20,
            tv_nsec: 0,
        };
        assert!(
            poll(&mut ready, Some(&limit)).unwrap() > 0,
            "the process did not end"
        );
        target.ended().unwrap().unwrap()
    }

    #[test]
    fn a_created_process_runs_only_when_released() {
        let file = std::env::temp_dir().join(format!("dtrace-proc-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let mut target =
            Target::create(&format!("touch '{}'", file.display()), &[], EvalTime::Exec).unwrap();
        assert_eq!(target.ended().unwrap(), None);
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", target.pid())).unwrap();
        assert_eq!(
            comm, "touch\n",
            "it has its own program while it is stopped"
        );
        assert!(!file.exists());
        target.release().unwrap();
        let ended = wait(&mut target);
        assert_eq!(
            ended.to_string(),
            format!("pid {} has exited", target.pid())
        );
        assert!(file.exists());
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn the_environment_is_changed_in_order() {
        let change = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
        let changes = [
            change("X", Some("7")),
            change("Y", Some("1")),
            change("Y", None),
        ];
        let mut target = Target::create("sh -c 'exit $X$Y'", &changes, EvalTime::Main).unwrap();
        target.release().unwrap();
        assert_eq!(wait(&mut target).ending, Ending::Status(7));
    }

    #[test]
    fn endings_are_told_apart() {
        let mut target = Target::create("sh -c 'exit 3'", &[], EvalTime::Exec).unwrap();
        target.release().unwrap();
        assert_eq!(wait(&mut target).ending, Ending::Status(3));
        let mut target = Target::create("sh -c 'kill -KILL $$'", &[], EvalTime::Exec).unwrap();
        target.release().unwrap();
        let ended = wait(&mut target);
        assert_eq!(
            ended.to_string(),
            format!("pid {} terminated by SIGKILL", target.pid())
        );
    }

    #[test]
    fn a_grabbed_process_is_watched_and_left_alone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let mut target = Target::grab(child.id()).unwrap();
        target.release().unwrap();
        assert_eq!(target.ended().unwrap(), None);
        drop(target);
        assert_eq!(child.try_wait().unwrap(), None);
        let mut target = Target::grab(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(wait(&mut target).ending, Ending::Exited);
    }

    #[test]
    fn what_cannot_be_started_or_found_is_an_error() {
        assert_eq!(
            Target::create("/nonexistent/x", &[], EvalTime::Exec)
                .unwrap_err()
                .kind(),
            io::ErrorKind::NotFound
        );
        assert!(Target::create("  ", &[], EvalTime::Exec).is_err());
        assert!(Target::create("sh -c 'x", &[], EvalTime::Exec).is_err());
        assert!(Target::grab(0).is_err());
        assert!(Target::grab(u32::MAX).is_err());
    }

    #[test]
    fn a_created_process_does_not_outlive_its_target() {
        let target = Target::create("sleep 60", &[], EvalTime::Exec).unwrap();
        let path = format!("/proc/{}", target.pid());
        drop(target);
        assert!(!std::path::Path::new(&path).exists());
    }
}
