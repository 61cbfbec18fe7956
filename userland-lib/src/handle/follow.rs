// SPDX-FileCopyrightText: The DTrace for Linux authors
// SPDX-License-Identifier: MIT OR Apache-2.0

//! Changes of traced processes while they are traced: libraries that come and go, and new children.
//!
//! A description of probes in a process is resolved when its program is compiled, for what the
//! process has mapped then. Where its dynamic linker announces changes, and where it forks a child
//! that is to be traced too, the process waits for us ([`uapi::hold`](dtrace_uapi::hold)). We
//! resolve the descriptions for what is new, make the probes, and let the process continue. The
//! compiled program does not change. The kernel enables its clauses at new probes by the
//! descriptions for which they were enabled. If the new probes have names that those descriptions
//! do not match, the kernel is told to replicate the clauses for the new names.
//!
//! A failure here never ends the tracing; it is reported as [`News::Failed`].

use super::own::Own;
use super::{probe_desc, KernelWorld, Names};
use dtrace_compiler::program::Program;
use dtrace_files::text::plain;
use dtrace_machine::proc::tells_at;
use dtrace_objects::pattern::ProbePattern;
use dtrace_objects::pid::{self, Described, Object, Place};
use dtrace_objects::processes::{ProcessSource, Unmade};
use dtrace_uapi::hold::{self, Held, Hold};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Longest time for which processes are served in one go.
const MOMENT: Duration = Duration::from_millis(100);
/// Number of additional descriptions after which ended children are looked for.
const SWEEP: usize = 64;
/// How long an ended child is remembered: its own child may run for the first time after that, and
/// is traced as its parent was.
const OVER: Duration = Duration::from_secs(2);

/// Most rounds of looking for new processes when tracing begins.
const ROUNDS_MAX: usize = 16;

/// What the handle must know or report.
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
    /// Pairs of descriptions: the clauses of the first are enabled for the second as well.
    replicated: HashSet<(ProbePattern, ProbePattern)>,
    /// Children that had ended at the last sweep, and when that was first seen.
    over: HashMap<u32, Instant>,
    /// The number of descriptions at which the next sweep is due.
    sweep_at: usize,
    forks: bool,
    /// How many processes continued too early so far, as the kernel last said.
    late: u32,
    /// How many processes the kernel did not hold that may have missed probes, since the last
    /// report.
    unheld: u32,
    news: Vec<News>,
}

impl Follow {
    /// Adds the descriptions of a program that is enabled.
    pub fn add(&mut self, program: &Program) {
        self.described.extend(program.processes.iter().cloned());
        self.own.add(&program.own);
    }

    /// Does not report when a limit is reached that the user has set.
    pub fn be_quiet(&mut self) {
        self.own.be_quiet();
    }

    /// Whether there is nothing to follow.
    pub fn is_idle(&self) -> bool {
        self.described.is_empty() && self.own.is_idle()
    }

    /// Begins to follow the described processes, and their children if `forks`. Programs that start
    /// wait for `time` at most.
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
        // A child that was forked before its parent was looked at maps no new file, so it does not
        // wait. Look again until no process is new.
        for _ in 0..ROUNDS_MAX {
            let mut new = self.own.running();
            new.retain(|pid| seen.insert(*pid));
            if new.is_empty() {
                break;
            }
            for pid in new {
                self.look_own(world, pid);
                // There may be many processes to look at, and those that start wait only for a
                // short time.
                self.drain(world, names)?;
            }
        }
        Ok(())
    }

    /// Serves the processes that wait, and returns what happened.
    pub fn work(&mut self, world: &KernelWorld<'_>, names: &Names) -> io::Result<Vec<News>> {
        self.drain(world, names)?;
        Ok(std::mem::take(&mut self.news))
    }

    /// Serves the processes that wait, until the descriptor `until` is readable.
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

    /// Serves processes until none waits or [`MOMENT`] has passed. Without that limit other users
    /// could make processes wait all the time and keep us from other work.
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
            // Its mappings may be gone when its addresses are printed, so read them here.
            names.meet(pid);
        }
        match held.id {
            // This process did not wait.
            hold::TOLD => self.unheld += u32::from(self.own.may_have_missed(world, pid)),
            // An error is fine: the process may have continued by itself.
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
        // The end of a process is reported elsewhere.
        if error.kind() != io::ErrorKind::NotFound && error.raw_os_error() != Some(nix::libc::ESRCH)
        {
            let text = format!("{what} of process {pid}: {}", plain(error));
            self.news.push(News::Failed(text));
        }
    }

    /// Makes a process wait whenever its libraries change, and when it forks if children are
    /// followed. Then looks at what has changed since its descriptions were resolved.
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

    /// Makes the probes in objects that a process has mapped since the last look, and removes those
    /// in objects that it has unmapped.
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

    /// Makes the described probes in a new object.
    fn extend(&mut self, world: &KernelWorld<'_>, described: &Described, object: Object) {
        let Described { pid, written, .. } = described;
        let name = object.name.clone();
        let resolved = match pid::resolve_in(world, written, *pid, vec![object]) {
            Ok(resolved) => resolved,
            // The process may have ended meanwhile.
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

    /// Traces a child as its parent is traced.
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

    /// Forgets children that a sweep at least [`OVER`] ago found ended.
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

    /// Retracts what was replicated for children that have ended, and returns these children. They
    /// stay described.
    fn retract_ended(&mut self, world: &KernelWorld<'_>) -> HashSet<u32> {
        let children = self.described.iter().filter(|d| d.is_child);
        let over = children.map(|d| d.pid).filter(is_over).collect();
        self.retract(world, &over);
        over
    }

    /// Retracts what was replicated for these processes.
    fn retract(&mut self, world: &KernelWorld<'_>, pids: &HashSet<u32>) {
        self.replicated.retain(|(_, to)| {
            let pid = pid::process_of(&to.provider).ok().flatten();
            let is_theirs = pid.is_some_and(|pid| pids.contains(&pid));
            let Some(desc) = is_theirs.then(|| probe_desc(to)).flatten() else {
                return true;
            };
            // An older module has no such call and keeps the replication, so it stays noted here.
            let done = world.device().retract(&desc);
            !(done.is_ok() || done.is_err_and(|error| error.kind() == io::ErrorKind::NotFound))
        });
    }

    /// Forgets an earlier child of this number, which is another process's now.
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

/// Whether a process has ended: it is gone, or only waits for its parent to reap it.
pub(super) fn is_over(pid: &u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return true;
    };
    // The state follows the name, which may contain any character, even `) `.
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    // A process whose first thread alone has ended is a zombie too, but still runs.
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    matches!(state, Some('Z' | 'X')) && threads() <= 1
}

/// Makes a process wait where its dynamic linker announces changes, if it has one.
fn hold_libraries(world: &KernelWorld<'_>, pid: u32) -> io::Result<()> {
    let objects = world.objects(pid)?;
    let Some(address) = tells_at(world, pid, &objects)? else {
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
