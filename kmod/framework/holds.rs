// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Processes that wait for a consumer ([`uapi::hold`](dtrace_uapi::hold), INV-25).
//!
//! A consumer may have to see a process before it goes on, to make probes in it: before it executes
//! what its dynamic linker has just loaded, or before it begins as a copy of another process. The
//! consumer is no debugger. No process is stopped by `ptrace()`, so debuggers can be used at the
//! same time. The breakpoint or tracepoint only queues a [`Pause`]. The process waits when it holds
//! nothing of the kernel any more, and notifies the consumer then.
//!
//! The list of waiting processes has a spin lock, because any process may take it: a mutex could be
//! kept by a holder that does not run. A process takes itself off the list. When the consumer goes,
//! the list is closed: all processes go on at once, and processes that come later do not wait. The
//! hooks are removed after that.
//!
//! A caller of `poll()` or `select()` stays on the queue of the [`Bell`] until it is woken, so the
//! bell lives as long as the file. Requests are in [`holder`](super::holder).

use super::files::{Files, Then};
use crate::sys::audience::{Audience, Crowd};
use crate::sys::births::{self, Births, Child, Telling};
use crate::sys::mappings::{FileId, Mappings, Maps};
use crate::sys::pause::{Pause, Pid, Waits};
use crate::sys::process::Process;
use crate::sys::rights::Rights;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering};
use dtrace_uapi::hold::{self, NAME_SIZE, WAIT_MS};
use kernel::alloc::{KVVec, KVec};
use kernel::new_poll_condvar;
use kernel::prelude::*;
use kernel::sync::poll::PollCondVar;
use kernel::sync::{new_spinlock, Arc, SpinLock};

/// The queue on which the consumer waits for processes.
#[pin_data]
pub(super) struct Bell {
    #[pin]
    pub(super) queue: PollCondVar,
}

impl Bell {
    /// Makes a bell that nothing waits for.
    pub(super) fn new() -> Result<Arc<Self>> {
        let bell = pin_init!(Self {
            queue <- new_poll_condvar!("dtrace::Bell"),
        });
        Arc::pin_init(bell, GFP_KERNEL)
    }

    /// Wakes all waiters.
    pub(super) fn ring(&self) {
        self.queue.notify_all();
    }
}

/// What the consumer shares with the processes.
#[pin_data]
pub struct Holds {
    #[pin]
    list: SpinLock<List>,
    /// Also locked in tracepoints, so no holder sleeps.
    #[pin]
    pub(super) asked: SpinLock<Asked>,
    #[pin]
    pub(super) files: Files,
    /// Which processes the consumer may trace; `None` for all.
    pub(super) rights: Option<Arc<Rights>>,
    bell: Arc<Bell>,
    /// Number of processes that went on before the consumer let them, or that could not wait.
    late: AtomicU32,
}

/// Initial capacity of the list.
const LIST_MIN: usize = 8;

/// The waiting processes.
struct List {
    waiting: KVVec<Entry>,
    last: u64,
    closed: bool,
}

impl List {
    /// Whether there is room for one more entry. If the list is full and `room` is larger, moves
    /// the entries to `room` and exchanges both.
    fn has_room(&mut self, room: &mut KVVec<Entry>) -> bool {
        if self.waiting.len() < self.waiting.capacity() {
            return true;
        }
        if room.capacity() <= self.waiting.len() {
            return false;
        }
        for entry in self.waiting.drain_all() {
            // Cannot fail: `room` is larger than the list.
            let _ = room.push_within_capacity(entry);
        }
        core::mem::swap(&mut self.waiting, room);
        true
    }
}

struct Entry {
    id: u64,
    told: bool,
    process: Pid,
    pause: Arc<Pause<Held>>,
}

/// The events at which processes wait: forks of `parents`, and programs executed under `names`.
pub(super) struct Asked {
    pub(super) parents: KVec<Process>,
    pub(super) names: KVec<[u8; NAME_SIZE]>,
}

/// Why a process waits, and for which consumer.
struct Held {
    holds: Arc<Holds>,
    kind: u32,
    parent: Option<Pid>,
    /// The file that it has mapped.
    file: Option<FileId>,
}

impl Holds {
    /// No process waits, and nothing is requested.
    pub(super) fn new(rights: Option<Arc<Rights>>, bell: Arc<Bell>) -> Result<Arc<Self>> {
        let list = List {
            waiting: KVVec::new(),
            last: 0,
            closed: false,
        };
        let asked = Asked {
            parents: KVec::new(),
            names: KVec::new(),
        };
        Arc::pin_init(
            pin_init!(Self {
                list <- new_spinlock!(list, "dtrace::Holds"),
                asked <- new_spinlock!(asked, "dtrace::Asked"),
                files <- Files::new(),
                rights,
                bell,
                late: AtomicU32::new(0),
            }),
            GFP_KERNEL,
        )
    }

    /// Whether a process waits of which the consumer has yet to be notified.
    pub fn is_waiting(&self) -> bool {
        self.files.has_told() || self.list.lock().waiting.iter().any(|entry| !entry.told)
    }

    /// Whether the consumer may be allowed to trace the current process. The exact answer needs a
    /// wait, and comes before the consumer is notified. Does not sleep.
    fn concerns_current(&self) -> bool {
        self.rights.as_ref().is_none_or(|rights| rights.is_likely())
    }

    /// The current process has registered probes. It waits as it does when it maps a file.
    pub(super) fn registered(self: &Arc<Self>) {
        if !self.concerns_current() {
            return;
        }
        match self.files.registered() {
            Then::Waits(ms) => {
                let ear = Ear(self.clone());
                ear.queued(Pause::current(ear.held(hold::MAP, None), ms));
            }
            Then::IsTold => self.bell.ring(),
            Then::IsLost => self.count_late(),
            Then::Nothing => {}
        }
    }

    fn count_late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the next process of which the consumer has yet to be notified; an ID of 0 if there
    /// is none.
    pub(super) fn next(&self) -> hold::Held {
        let mut found = hold::Held::default();
        let told = self.files.next();
        if let Some(pid) = told.as_ref().and_then(Pid::number) {
            found.id = hold::TOLD;
            found.kind = hold::MAP;
            found.pid = pid;
            found.late = self.late.load(Ordering::Relaxed);
            return found;
        }
        let mut list = self.list.lock();
        for entry in list.waiting.iter_mut().filter(|entry| !entry.told) {
            entry.told = true;
            let Some(pid) = entry.process.number() else {
                // The consumer's pid namespace does not contain the process, so the consumer can do
                // nothing with it.
                entry.pause.end();
                continue;
            };
            let parent = entry.pause.of.parent.as_ref().and_then(Pid::number);
            found.id = entry.id;
            found.kind = entry.pause.of.kind;
            found.pid = pid;
            found.parent = parent.unwrap_or(0);
            break;
        }
        found.late = self.late.load(Ordering::Relaxed);
        found
    }

    /// Lets a process go on. `ENOENT` if it does not wait.
    pub(super) fn resume(&self, id: u64) -> Result {
        let list = self.list.lock();
        let entry = list.waiting.iter().find(|entry| entry.id == id);
        entry.ok_or(ENOENT)?.pause.end();
        Ok(())
    }

    /// Lets all processes go on, and has none wait any more.
    pub(super) fn close(&self) {
        let mut list = self.list.lock();
        list.closed = true;
        let waiting = core::mem::replace(&mut list.waiting, KVVec::new());
        drop(list);
        waiting.iter().for_each(|entry| entry.pause.end());
    }

    /// Puts the current process on the list. Called by that process on its way to user mode; may
    /// sleep.
    fn begin(&self, pause: &Arc<Pause<Held>>) -> Result {
        let process = Pid::current().ok_or(ESRCH)?;
        let mut room = KVVec::new();
        let mut list = loop {
            let mut list = self.list.lock();
            let is_known = pause.of.file.is_some_and(|file| self.files.knows(file));
            if list.closed || is_known {
                pause.end();
                return Ok(());
            }
            if list.has_room(&mut room) {
                break list;
            }
            // Memory is allocated and freed without the spin lock.
            let wanted = list.waiting.len().saturating_mul(2).max(LIST_MIN);
            drop(list);
            room = KVVec::with_capacity(wanted, GFP_KERNEL)?;
        };
        list.last = list.last.saturating_add(1);
        let entry = Entry {
            id: list.last,
            told: false,
            process,
            pause: pause.clone(),
        };
        // Cannot fail: `has_room` has just said so.
        let _ = list.waiting.push_within_capacity(entry);
        drop(list);
        self.bell.ring();
        Ok(())
    }
}

impl Waits for Held {
    fn begins(pause: &Arc<Pause<Self>>) {
        let holds = &pause.of.holds;
        if holds.begin(pause).is_err() {
            holds.count_late();
            pause.end();
        }
    }

    fn ends(pause: &Arc<Pause<Self>>, late: bool) {
        let holds = &pause.of.holds;
        if late {
            holds.count_late();
            holds.files.waited_in_vain();
        }
        let mut list = holds.list.lock();
        let waiting = &mut list.waiting;
        let at = waiting.iter().position(|e| Arc::ptr_eq(&e.pause, pause));
        let gone = at.and_then(|at| waiting.remove(at).ok());
        drop(list);
        drop(gone);
    }
}

/// A consumer as the hooks know it.
#[derive(Clone)]
pub struct Ear(pub(super) Arc<Holds>);

impl Ear {
    /// Whether both are the same consumer's.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The current process has reached an [instruction](super::posts). Called in the exception,
    /// maybe with interrupts off; does not sleep.
    pub fn reached(&self) {
        self.queued(Pause::current(self.held(hold::INSTRUCTION, None), WAIT_MS));
    }

    /// Processes will not wait at an instruction any more.
    pub fn lost(&self) {
        self.0.count_late();
    }

    fn held(&self, kind: u32, parent: Option<Pid>) -> Held {
        Held {
            holds: self.0.clone(),
            kind,
            parent,
            file: None,
        }
    }

    fn queued(&self, queued: Result) {
        if queued.is_err() {
            self.0.count_late();
        }
    }
}

impl Births for Ear {
    fn forked(&self, child: &Child<'_>) {
        if !self.0.concerns_current() {
            return;
        }
        let asked = self.0.asked.lock();
        let is_asked = asked.parents.iter().any(Process::is_current);
        drop(asked);
        if is_asked {
            let held = self.held(hold::FORK, Pid::current());
            self.queued(Pause::child(child, held, WAIT_MS));
        }
    }

    fn executed(&self) {
        if !self.0.concerns_current() {
            return;
        }
        let is_called =
            |name: &[u8; NAME_SIZE]| CStr::from_bytes_until_nul(name).is_ok_and(births::is_called);
        let asked = self.0.asked.lock();
        let is_asked = asked.names.iter().any(is_called);
        drop(asked);
        // Its tracer may stop the process before it comes to wait, and for as long as it likes.
        if is_asked && !births::is_ptraced() {
            self.queued(Pause::current(self.held(hold::EXEC, None), WAIT_MS));
        }
    }
}

impl Maps for Ear {
    fn mapped(&self, file: FileId) {
        if !self.0.concerns_current() {
            return;
        }
        match self.0.files.mapped(file) {
            Then::Nothing => {}
            Then::Waits(ms) => {
                let mut held = self.held(hold::MAP, None);
                held.file = Some(file);
                self.queued(Pause::current(held, ms));
            }
            Then::IsTold => self.0.bell.ring(),
            Then::IsLost => self.0.count_late(),
        }
    }
}

/// Notifies [`Ear`]s of processes that begin.
pub(super) type Told = Telling<Arc<Crowd<Ear>>>;

/// All consumers that have processes wait when they begin or map files.
pub struct Lookout {
    pub(super) births: Arc<Audience<Told>>,
    pub(super) mappings: Arc<Audience<Mappings<Ear>>>,
}

impl Lookout {
    /// Makes a lookout without consumers.
    pub fn new() -> Result<Self> {
        Ok(Self {
            births: Audience::new()?,
            mappings: Audience::new()?,
        })
    }
}
