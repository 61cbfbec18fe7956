// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! Programs' own probes (USDT) in processes that begin later, and in libraries that come later.
//!
//! The probes that descriptions name in running processes were made when these were compiled. From then on the kernel has a process
//! wait that maps a file which we do not know ([`hold::MAP`]). We look into the file. One that has none of the probes that are
//! described is known from then on, and nobody waits for it again. In a process that has one with such probes they are made before it
//! goes on, and so they are in the children that it makes as copies of itself. A process that registers probes when it runs waits as well.

use super::follow;
use super::{plain, KernelWorld};
use crate::pid::{fits, Object};
use crate::usdt::{self, Note};
use crate::world::{ProbePattern, ProcessSource};
use dtrace_uapi::hold::{self, Hold, Known};
use std::collections::HashSet;
use std::io;
use std::time::Duration;

/// Processes that have ended are looked for when there are so many more.
const SWEEP: usize = 1024;

/// The descriptions, and what has been done for them.
#[derive(Default)]
pub struct Own {
    patterns: Vec<ProbePattern>,
    /// The processes in which probes were made.
    traced: HashSet<u32>,
    /// Those of them that had ended at the last sweep: their children may wait for us yet.
    over: HashSet<u32>,
    /// With so many the next sweep is due.
    sweep_at: usize,
    /// How long processes wait for us.
    time: Duration,
    /// Nothing is told of what the user has himself limited.
    quiet: bool,
    /// It was told that something cannot be looked into.
    is_missing_told: bool,
}

impl Own {
    /// Learns what a program describes that is enabled.
    pub fn add(&mut self, patterns: &[ProbePattern]) {
        self.patterns.extend(patterns.iter().cloned());
    }

    /// Tells nothing of what the user has himself limited.
    pub fn be_quiet(&mut self) {
        self.quiet = true;
    }

    /// Whether there is nothing to look out for.
    pub fn is_idle(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The processes that there are and that the descriptions may mean.
    pub fn running(&self) -> HashSet<u32> {
        let patterns = self.patterns.iter();
        patterns
            .flat_map(|pattern| usdt::processes(&pattern.provider).0)
            .collect()
    }

    /// Looks out from now on. Processes wait for `time` at most. Those that [run](Self::running) by now are to be looked at: they may have begun since the
    /// descriptions were compiled. What could not be done is added to `failed`.
    pub fn begin(&mut self, world: &KernelWorld<'_>, time: Duration, failed: &mut Vec<String>) {
        self.time = time;
        let mut asked = HashSet::new();
        for pattern in &self.patterns {
            // All, unless it is one.
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

    /// Whether a process that did not wait had probes of which something may have been missed: nobody knows that of one which has ended.
    pub fn may_have_missed(&self, world: &KernelWorld<'_>, pid: u32) -> bool {
        !self.time.is_zero() && (self.traces(pid) || world.objects(pid).is_err())
    }

    /// Forgets processes that have ended, from time to time.
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

    /// Makes the probes of a process that is new, or has new libraries. What could not be done is returned.
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
                // There may be another one by now.
                Ok(None) => {}
                // Whoever maps it next waits as this one did.
                Err(error) => failed.extend(self.missing(pid, &error)),
            }
        }
        let registered = world.registered(pid).unwrap_or_default();
        has_probes |= registered.iter().any(|one| self.names_any(&one.notes));
        if has_probes {
            // Of a library that has gone, and has come again elsewhere.
            let _ = world.device().review(pid);
            self.make(world, pid, &objects, &mut failed);
        }
        failed
    }

    /// What is told of a process that cannot be looked into for a while, once.
    fn missing(&mut self, pid: u32, error: &io::Error) -> Option<String> {
        let is_new = is_passing(error) && !std::mem::replace(&mut self.is_missing_told, true);
        let why = plain(error);
        is_new.then(|| format!("probes of process {pid} may be missing, and of others: {why}"))
    }

    /// Makes the probes that are described in a process that has these objects.
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
            // What is described of one process is not of its children. Those that it makes from here on wait. It is asked for each time: it may
            // have executed another program since it was last looked at, or be another process of that number.
            let unfollowed = match is_one || is_followed {
                true => None,
                false => follow_children(world, pid),
            };
            is_followed |= !is_one;
            let was_traced = !self.traced.insert(pid);
            if let Err(unmade) = world.make_own(pid, &points) {
                if !was_traced {
                    self.traced.remove(&pid);
                }
                let why = &unmade.why;
                // What is not ours to trace nobody has meant; and who has set a limit himself may want to hear nothing of it.
                let is_untold = unmade.is_denied || unmade.is_limit && self.quiet;
                if !is_untold && world.objects(pid).is_ok() {
                    failed.push(format!("failed to create probes of process {pid}: {why}"));
                }
                break;
            }
            failed.extend(unfollowed);
        }
    }

    /// Whether an object has probes of a provider that is described, of whichever process; `None`: it is none that can be read. An error: that
    /// cannot be told now.
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

/// Has nobody wait for an object's file any more. The kernel forgets all of them where they become too many, and does not say so: it is told each time.
fn know(world: &KernelWorld<'_>, pid: u32, object: &Object) {
    if let Some(code) = object.code.first() {
        // Of one that is not there any more it is asked again.
        let _ = world.device().known(&Known {
            address: code.range.start,
            pid: i32::try_from(pid).unwrap_or_default(),
            ..Known::default()
        });
    }
}

/// Whether a file may be read another time: not as long as there are too many open ones, or as memory is short.
fn is_passing(error: &io::Error) -> bool {
    use nix::libc::{EAGAIN, EINTR, EIO, EMFILE, ENFILE, ENOMEM};
    let errno = error.raw_os_error();
    errno.is_some_and(|errno| [EAGAIN, EINTR, EIO, EMFILE, ENFILE, ENOMEM].contains(&errno))
}

fn look_out(world: &KernelWorld<'_>, pid: u32, time: Duration) -> io::Result<()> {
    let wait = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    world.device().hold(&Hold {
        kind: hold::MAP,
        pid: i32::try_from(pid).map_err(io::Error::other)?,
        wait: wait.min(hold::WAIT_MS),
        ..Hold::default()
    })
}

/// Has the children of a process wait; what could not be done.
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
