// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! USDT probes in processes that start later, and in libraries that are loaded later.
//!
//! USDT probes that descriptions name in running processes were made when the descriptions were
//! compiled. From then on the kernel makes a process wait when it maps a file to execute it that we
//! have not marked as known ([`hold::MAP`]). We look into the file. If it has none of the described
//! probes, it is marked as known, and no process waits for it again. If it has some, the probes are
//! made before the process continues. Unless a description names one process alone, the children of
//! such a process wait as well when they are forked, and get the same probes. A process that
//! registers probes at run time waits too.

use super::follow;
use super::KernelWorld;
use dtrace_files::text::plain;
use dtrace_objects::pattern::{fits, ProbePattern};
use dtrace_objects::pid::Object;
use dtrace_objects::processes::ProcessSource;
use dtrace_objects::usdt::{self, Note};
use dtrace_uapi::hold::{self, Hold, Known};
use std::collections::HashSet;
use std::io;
use std::time::Duration;

/// Number of additional processes after which ended ones are looked for.
const SWEEP: usize = 1024;

/// The descriptions of USDT probes, and what was done for them.
#[derive(Default)]
pub struct Own {
    patterns: Vec<ProbePattern>,
    /// The processes in which probes were made.
    traced: HashSet<u32>,
    /// Those of them that had ended at the last sweep. They are kept until the next one, because
    /// their children may still wait for us.
    over: HashSet<u32>,
    /// The number of traced processes at which the next sweep is due.
    sweep_at: usize,
    /// Longest time for which processes wait for us. 0: they do not wait.
    time: Duration,
    /// Do not report when a limit is reached that the user has set.
    quiet: bool,
    /// A file that could not be read was reported.
    is_missing_told: bool,
}

impl Own {
    /// Adds the descriptions of a program that is enabled.
    pub fn add(&mut self, patterns: &[ProbePattern]) {
        for pattern in patterns {
            if !self.patterns.contains(pattern) {
                self.patterns.push(pattern.clone());
            }
        }
    }

    /// Does not report when a limit is reached that the user has set.
    pub fn be_quiet(&mut self) {
        self.quiet = true;
    }

    /// Whether there are no descriptions to look out for.
    pub fn is_idle(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The running processes that the descriptions may mean.
    pub fn running(&self) -> HashSet<u32> {
        let patterns = self.patterns.iter();
        patterns
            .flat_map(|pattern| usdt::processes(&pattern.provider).0)
            .collect()
    }

    /// Starts to look out. Processes wait for `time` at most.
    ///
    /// The caller must then look at the processes that are [running](Self::running), because they
    /// may have started after the descriptions were compiled. Failures are appended to `failed`.
    pub fn begin(&mut self, world: &KernelWorld<'_>, time: Duration, failed: &mut Vec<String>) {
        self.time = time;
        let mut asked = HashSet::new();
        for pattern in &self.patterns {
            // 0 means all processes.
            let which = usdt::only(&pattern.provider).unwrap_or(0);
            if !asked.insert(which) {
                continue;
            }
            match look_out(world, which, time) {
                Err(error) if !is_over(&error) => {
                    let text = format!(
                        "programs that begin later are not traced: {}",
                        plain(&error)
                    );
                    failed.push(text);
                }
                _ => {}
            }
        }
    }

    /// Whether probes were made in a process.
    pub fn traces(&self, pid: u32) -> bool {
        self.traced.contains(&pid)
    }

    /// Whether firings may have been missed in a process that did not wait. If it has ended, this
    /// cannot be known and counts as yes. Never if processes are not to wait at all.
    pub fn may_have_missed(&self, world: &KernelWorld<'_>, pid: u32) -> bool {
        !self.time.is_zero() && (self.traces(pid) || world.objects(pid).is_err())
    }

    /// Forgets processes that have ended, once in a while.
    fn sweep(&mut self) {
        if self.traced.len() < self.sweep_at {
            return;
        }
        let mut over = self.traced.clone();
        over.retain(follow::is_over);
        self.traced
            .retain(|pid| !(over.contains(pid) && self.over.contains(pid)));
        self.over = over;
        self.sweep_at = self.traced.len() + SWEEP;
    }

    /// Makes the described probes in a process that is new or has new files. Returns what failed.
    pub fn look(&mut self, world: &KernelWorld<'_>, pid: u32) -> Vec<String> {
        self.sweep();
        let mut failed = Vec::new();
        let objects = match world.objects(pid) {
            Ok(objects) => objects,
            Err(error) => {
                failed.extend(self.missing(pid, &error));
                return failed;
            }
        };
        let mut has_probes = false;
        for object in &objects {
            match self.is_of_use(world, object) {
                Ok(Some(true)) => has_probes = true,
                Ok(Some(false)) => know(world, pid, object),
                // Not marked as known: what was opened may not be the file that the process has
                // mapped.
                Ok(None) => {}
                // Not marked as known, so that the next process that maps it waits as well.
                Err(error) => failed.extend(self.missing(pid, &error)),
            }
        }
        let registered = world.registered(pid).unwrap_or_default();
        has_probes |= registered.iter().any(|one| self.names_any(&one.notes));
        if has_probes {
            // A library may have been unmapped and mapped again elsewhere: remove its old probes.
            let _ = world.device().review(pid);
            self.make(world, pid, &objects, &mut failed);
        }
        failed
    }

    /// The message for a process whose files cannot be read at present, for the first such process
    /// only.
    fn missing(&mut self, pid: u32, error: &io::Error) -> Option<String> {
        let is_new = is_passing(error) && !std::mem::replace(&mut self.is_missing_told, true);
        let why = plain(error);
        is_new.then(|| format!("probes of process {pid} may be missing, and of others: {why}"))
    }

    /// Makes the described probes in a process that has these objects.
    fn make(
        &mut self,
        world: &KernelWorld<'_>,
        pid: u32,
        objects: &[Object],
        failed: &mut Vec<String>,
    ) {
        let mut is_followed = false;
        for pattern in &self.patterns {
            let points = match usdt::resolve_in(world, pattern, pid, objects) {
                points if points.is_empty() => continue,
                points => points,
            };
            let is_one = usdt::only(&pattern.provider).is_some();
            // A description of one process does not mean its children. Otherwise, children that it
            // forks from here on wait. Request this every time: since the last look the process may
            // have executed another program, or its number may mean another process.
            let unfollowed = match is_one || is_followed {
                true => None,
                false => follow_children(world, pid),
            };
            is_followed |= !is_one;
            let was_traced = !self.traced.insert(pid);
            let made = world.make_own(pid, &points);
            if let Err(unmade) = &made {
                if !was_traced {
                    self.traced.remove(&pid);
                }
                // A process that we may not trace was not meant.
                if unmade.is_denied {
                    return;
                }
                let why = &unmade.why;
                let text = format!("failed to create probes of process {pid}: {why}");
                // With `quiet`, the user does not want to be reminded of his own limit.
                let is_untold = unmade.is_limit && self.quiet || failed.contains(&text);
                if !is_untold && world.objects(pid).is_ok() {
                    failed.push(text);
                }
            }
            failed.extend(unfollowed);
            // Other descriptions would reach the limit as well.
            if made.is_err_and(|unmade| unmade.is_limit) {
                return;
            }
        }
    }

    /// Whether an object has probes of a described provider, in whatever process. `None` if it
    /// cannot be read. An error is temporary.
    fn is_of_use(&self, world: &KernelWorld<'_>, object: &Object) -> io::Result<Option<bool>> {
        match world.notes(object) {
            Ok(notes) => Ok(Some(self.names_any(&notes))),
            Err(error) if is_passing(&error) => Err(error),
            Err(_) => Ok(None),
        }
    }

    fn names_any(&self, notes: &[Note]) -> bool {
        let mut patterns = self.patterns.iter();
        patterns.any(|pattern| {
            let named = |provider: &str| usdt::may_be_of(&pattern.provider, provider);
            notes
                .iter()
                .any(|note| named(&note.provider) && fits(&pattern.name, &note.name))
        })
    }
}

/// Marks an object's file as known, so that no process waits for it again. The kernel forgets all
/// known files without notice when they become too many, so mark the file each time.
fn know(world: &KernelWorld<'_>, pid: u32, object: &Object) {
    if let Some(code) = object.code.first() {
        // If the mapping is gone this fails, and a process that maps the file later waits again.
        let _ = world.device().known(&Known {
            address: code.range.start,
            pid: i32::try_from(pid).unwrap_or_default(),
            ..Known::default()
        });
    }
}

/// Whether an error is temporary: too many open files, too little memory, an interruption or an I/O
/// error.
fn is_passing(error: &io::Error) -> bool {
    use nix::libc::{EAGAIN, EINTR, EIO, EMFILE, ENFILE, ENOMEM};
    let errno = error.raw_os_error();
    errno.is_some_and(|errno| [EAGAIN, EINTR, EIO, EMFILE, ENFILE, ENOMEM].contains(&errno))
}

/// Makes the process `pid` (0: any process) wait for `time` when it maps a file that is not known.
fn look_out(world: &KernelWorld<'_>, pid: u32, time: Duration) -> io::Result<()> {
    let wait = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    world.device().hold(&Hold {
        kind: hold::MAP,
        pid: i32::try_from(pid).map_err(io::Error::other)?,
        wait: wait.min(hold::WAIT_MS),
        ..Hold::default()
    })
}

/// Makes the children of a process wait. Returns the message of a failure.
fn follow_children(world: &KernelWorld<'_>, pid: u32) -> Option<String> {
    let held = world.device().hold(&Hold {
        kind: hold::FORK,
        pid: i32::try_from(pid).unwrap_or_default(),
        ..Hold::default()
    });
    let error = held.err().filter(|error| !is_over(error))?;
    let why = plain(&error);
    Some(format!("children of process {pid} are not traced: {why}"))
}

fn is_over(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::ESRCH)
}
