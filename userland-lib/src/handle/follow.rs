// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: GPL-2.0-only

//! What traced processes come to be while they are traced: libraries come and go, and children are made.
//!
//! A description of probes in a process is resolved when its program is compiled, for what the process has then. Where its dynamic linker
//! tells of changes, and where it makes a child that is to be traced too, the process waits for us
//! ([`uapi::hold`](dtrace_uapi::hold)): the descriptions are resolved for what is new, the probes made, and the process goes on. What was
//! compiled stays what it is. The kernel enables its clauses for new probes by the descriptions that they were enabled for; where new
//! probes have other names than those say the kernel is told to take the clauses for these, too.
//!
//! Nothing here ends the tracing: what could not be done is told.

use super::own::Own;
use super::{plain, probe_desc, KernelWorld, Names};
use crate::pid::{self, Described, Object, Place};
use crate::program::Program;
use crate::world::{ProbePattern, ProcessSource, Unmade};
use dtrace_uapi::hold::{self, Held, Hold};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// For how long processes are served at a time.
const MOMENT: Duration = Duration::from_millis(100);
/// Children that have ended are looked for when there are so many descriptions more.
const SWEEP: usize = 64;
/// An ended child is remembered for so long: its own child may run for the first time after it has ended, and is traced as it was.
const OVER: Duration = Duration::from_secs(2);

/// How often it is looked for processes that are new when tracing begins.
const ROUNDS_MAX: usize = 16;

/// What there is to be told.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// Something could not be done.
    Failed(String),
    /// A process has a child, which is traced.
    Child(u32),
}

/// The processes that a consumer follows.
#[derive(Default)]
pub struct Follow {
    described: Vec<Described>,
    own: Own,
    /// The descriptions whose clauses are enabled for others, too.
    replicated: HashSet<(ProbePattern, ProbePattern)>,
    /// Children that had ended at the last sweep, and since when.
    over: HashMap<u32, Instant>,
    /// With so many descriptions the next sweep is due.
    sweep_at: usize,
    forks: bool,
    /// How many processes went on before they were to, as the kernel says.
    late: u32,
    /// How many the kernel did not hold.
    unheld: u32,
    news: Vec<News>,
}

impl Follow {
    /// Learns what a program that is enabled describes.
    pub fn add(&mut self, program: &Program) {
        self.described.extend(program.processes.iter().cloned());
        self.own.add(&program.own);
    }

    /// Tells nothing of what the user has himself limited.
    pub fn be_quiet(&mut self) {
        self.own.be_quiet();
    }

    /// Whether there is nothing to follow.
    pub fn is_idle(&self) -> bool {
        self.described.is_empty() && self.own.is_idle()
    }

    /// Begins to follow; children too, if `forks`. Programs that begin wait for `time` at most.
    pub fn begin(
        &mut self,
        world: &KernelWorld<'_>,
        names: &Names,
        forks: bool,
        time: Duration,
    ) -> io::Result<()> {
        self.forks = forks;
        let mut pids: Vec<u32> = self
            .described
            .iter()
            .map(|described| described.pid)
            .collect();
        pids.sort_unstable();
        pids.dedup();
        pids.into_iter().for_each(|pid| self.watch(world, pid));
        if self.own.is_idle() {
            return Ok(());
        }
        let mut failed = Vec::new();
        self.own.begin(world, time, &mut failed);
        self.news.extend(failed.into_iter().map(News::Failed));
        let mut seen = HashSet::new();
        // A child that was made before its parent's turn maps nothing, and waits for nobody.
        for _ in 0..ROUNDS_MAX {
            let mut new = self.own.running();
            new.retain(|pid| seen.insert(*pid));
            if new.is_empty() {
                break;
            }
            for pid in new {
                self.look_own(world, pid);
                // There may be many, and who begins does not wait for long.
                self.drain(world, names)?;
            }
        }
        Ok(())
    }

    /// Serves the processes that wait.
    pub fn work(&mut self, world: &KernelWorld<'_>, names: &Names) -> io::Result<Vec<News>> {
        self.drain(world, names)?;
        Ok(std::mem::take(&mut self.news))
    }

    /// Serves the processes that wait until a descriptor is readable.
    pub fn work_until(
        &mut self,
        world: &KernelWorld<'_>,
        names: &Names,
        until: BorrowedFd<'_>,
    ) -> io::Result<Vec<News>> {
        let mut ready = vec![PollFd::from_borrowed_fd(until, PollFlags::IN)];
        let device = world.device().descriptor();
        ready.extend(device.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        loop {
            match poll(&mut ready, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            self.drain(world, names)?;
            if !ready[0].revents().is_empty() {
                return Ok(std::mem::take(&mut self.news));
            }
        }
    }

    /// Serves processes until none waits, or for a moment: others can have some wait all the time, and there is more to do.
    fn drain(&mut self, world: &KernelWorld<'_>, names: &Names) -> io::Result<()> {
        let begin = Instant::now();
        loop {
            let held = world.device().held()?;
            if held.id != 0 {
                self.serve(world, names, &held);
            }
            if held.id == 0 || begin.elapsed() >= MOMENT {
                self.tell_late(held.late);
                if self.described.len() >= self.sweep_at {
                    self.sweep(world);
                }
                return Ok(());
            }
        }
    }

    fn serve(&mut self, world: &KernelWorld<'_>, names: &Names, held: &Held) {
        let pid = held.pid.unsigned_abs();
        match held.kind {
            hold::FORK => self.adopt(world, held.parent.unsigned_abs(), pid),
            hold::MAP => self.look_own(world, pid),
            _ => self.look(world, pid),
        }
        if held.kind != hold::MAP || self.own.traces(pid) {
            // What its addresses mean may not be known any more when they are printed.
            names.meet(pid);
        }
        match held.id {
            hold::TOLD => self.unheld += u32::from(self.own.may_have_missed(world, pid)),
            // It may have gone on by itself.
            id => drop(world.device().resume(id)),
        }
    }

    fn tell_late(&mut self, late: u32) {
        let new = late.saturating_sub(self.late) + std::mem::take(&mut self.unheld);
        self.late = late;
        if new > 0 {
            let plural = if new == 1 { "" } else { "s" };
            let text =
                format!("processes went on {new} time{plural} before their probes were made");
            self.news.push(News::Failed(text));
        }
    }

    fn look_own(&mut self, world: &KernelWorld<'_>, pid: u32) {
        let failed = self.own.look(world, pid);
        self.news.extend(failed.into_iter().map(News::Failed));
    }

    fn failed(&mut self, pid: u32, what: &str, error: &io::Error) {
        // What has ended is told as that.
        if error.kind() != io::ErrorKind::NotFound && error.raw_os_error() != Some(nix::libc::ESRCH)
        {
            let text = format!("{what} of process {pid}: {}", plain(error));
            self.news.push(News::Failed(text));
        }
    }

    /// Has a process wait where it changes, and looks at what has changed until then.
    fn watch(&mut self, world: &KernelWorld<'_>, pid: u32) {
        let mut described = self.described.iter().filter(|d| d.pid == pid);
        if described.any(|described| described.written.may_name_more()) {
            if let Err(error) = hold_libraries(world, pid) {
                self.failed(pid, "failed to watch the libraries", &error);
            }
        }
        if self.forks {
            if let Err(error) = hold(world, hold::FORK, pid, 0) {
                self.failed(pid, "failed to watch the children", &error);
            }
        }
        self.look(world, pid);
    }

    /// Makes the probes in what a process has mapped since, and removes those of what it has no more.
    fn look(&mut self, world: &KernelWorld<'_>, pid: u32) {
        let Ok(objects) = world.objects(pid) else {
            return;
        };
        let is_gone = |described: &Described| {
            let mut seen = described.objects.iter();
            described.pid == pid && seen.any(|object| !objects.contains(object))
        };
        if self.described.iter().any(is_gone) {
            if let Err(error) = world.device().review(pid) {
                self.failed(pid, "failed to remove probes", &error);
            }
        }
        for at in 0..self.described.len() {
            let described = &mut self.described[at];
            if described.pid != pid {
                continue;
            }
            let seen = std::mem::replace(&mut described.objects, objects.clone());
            let described = described.clone();
            for object in pid::named_anew(&described.written, &objects, &seen) {
                self.extend(world, &described, object);
            }
        }
    }

    /// Makes the probes that are described in an object that is new.
    fn extend(&mut self, world: &KernelWorld<'_>, described: &Described, object: Object) {
        let Described { pid, written, .. } = described;
        let name = object.name.clone();
        let resolved = match pid::resolve_in(world, written, *pid, vec![object]) {
            Ok(resolved) => resolved,
            // It may have ended meanwhile.
            Err(_) if world.objects(*pid).is_err() => return,
            Err(error) => return self.news.push(News::Failed(error.to_string())),
        };
        let places: &[Place] = &resolved.places;
        if places.is_empty() {
            return;
        }
        if let Err(Unmade { why, .. }) = world.make(*pid, places) {
            if world.objects(*pid).is_ok() {
                let text = format!("failed to create probes of {written} in {name}: {why}");
                self.news.push(News::Failed(text));
            }
            return;
        }
        if !pid::all_named(&described.enabled, *pid, places) {
            let mut names = resolved.pattern;
            names.module = name;
            self.replicate(world, &described.origin, names);
        }
    }

    /// Has the child of a process traced as that is.
    fn adopt(&mut self, world: &KernelWorld<'_>, parent: u32, child: u32) {
        if self.own.traces(parent) {
            self.look_own(world, child);
        }
        self.forget(world, child);
        let provider = pid::provider_of(child);
        let copies = self.described.iter().filter(|d| d.pid == parent);
        let copies: Vec<Described> = copies
            .map(|described| Described {
                pid: child,
                written: described.written.of_provider(provider.clone()),
                objects: Vec::new(),
                enabled: described.origin.clone(),
                origin: described.origin.clone(),
                is_child: true,
            })
            .collect();
        for mut copy in copies {
            if !copy.enabled.is_of(&provider) {
                let names = copy.enabled.of_provider(provider.clone());
                self.replicate(world, &copy.origin, names.clone());
                copy.enabled = names;
            }
            self.described.push(copy);
        }
        if self
            .described
            .iter()
            .any(|described| described.pid == child)
        {
            self.watch(world, child);
            self.news.push(News::Child(child));
        }
    }

    /// Forgets children that have ended. Nobody waits.
    fn sweep(&mut self, world: &KernelWorld<'_>) {
        let now = Instant::now();
        let before = std::mem::take(&mut self.over);
        let over = self.retract_ended(world).into_iter();
        let since = |pid: u32| (pid, before.get(&pid).copied().unwrap_or(now));
        self.over = over.map(since).collect();
        let is_long = |since: &Instant| now.duration_since(*since) >= OVER;
        self.described
            .retain(|d| !(d.is_child && self.over.get(&d.pid).is_some_and(is_long)));
        self.over.retain(|_, since| !is_long(since));
        self.sweep_at = self.described.len() + SWEEP;
    }

    /// Has the kernel forget what was replicated for children that have ended; which children those are. They stay described.
    fn retract_ended(&mut self, world: &KernelWorld<'_>) -> HashSet<u32> {
        let children = self.described.iter().filter(|d| d.is_child);
        let over = children.map(|d| d.pid).filter(is_over).collect();
        self.retract(world, &over);
        over
    }

    /// Has the kernel forget what was replicated for processes.
    fn retract(&mut self, world: &KernelWorld<'_>, pids: &HashSet<u32>) {
        self.replicated.retain(|(_, to)| {
            let pid = pid::process_of(&to.provider).ok().flatten();
            let is_theirs = pid.is_some_and(|pid| pids.contains(&pid));
            let Some(desc) = is_theirs.then(|| probe_desc(to)).flatten() else {
                return true;
            };
            // An older kernel keeps it.
            let done = world.device().retract(&desc);
            !(done.is_ok() || done.is_err_and(|error| error.kind() == io::ErrorKind::NotFound))
        });
    }

    /// Forgets a child, whose number is another process' now.
    fn forget(&mut self, world: &KernelWorld<'_>, pid: u32) {
        if self.described.iter().any(|d| d.pid == pid && d.is_child) {
            self.described.retain(|d| d.pid != pid || !d.is_child);
            self.over.remove(&pid);
            self.retract(world, &HashSet::from([pid]));
        }
    }

    fn replicate(&mut self, world: &KernelWorld<'_>, from: &ProbePattern, to: ProbePattern) {
        let (Some(old), Some(new)) = (probe_desc(from), probe_desc(&to)) else {
            return;
        };
        let pair = (from.clone(), to);
        if self.replicated.contains(&pair) {
            return;
        }
        let mut done = world.device().replicate(&old, &new);
        if matches!(&done, Err(error) if error.raw_os_error() == Some(nix::libc::ENOSPC)) {
            self.retract_ended(world);
            done = world.device().replicate(&old, &new);
        }
        match done {
            Ok(()) => drop(self.replicated.insert(pair)),
            Err(error) => {
                let text = format!("failed to enable {}: {}", pair.1, plain(&error));
                self.news.push(News::Failed(text));
            }
        }
    }
}

/// Whether a process has ended, and only waits for its parent to ask how.
pub(super) fn is_over(pid: &u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    // The name before may have any character.
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    // Its first thread alone may have ended.
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    matches!(state, Some('Z' | 'X')) && threads() <= 1
}

fn hold_libraries(world: &KernelWorld<'_>, pid: u32) -> io::Result<()> {
    let objects = world.objects(pid)?;
    let Some(address) = pid::tells_at(world, pid, &objects)? else {
        return Ok(());
    };
    hold(world, hold::INSTRUCTION, pid, address)
}

fn hold(world: &KernelWorld<'_>, kind: u32, pid: u32, address: u64) -> io::Result<()> {
    world.device().hold(&Hold {
        kind,
        pid: i32::try_from(pid).map_err(io::Error::other)?,
        address,
        ..Hold::default()
    })
}
