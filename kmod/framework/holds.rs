// SPDX-License-Identifier: GPL-2.0-only
// SPDX-FileCopyrightText: The DTrace for Linux authors

//! Processes that wait for a consumer ([`uapi::hold`](dtrace_uapi::hold)).
//!
//! What a process is about to do, execute what its dynamic linker has just loaded, or begin as a copy of another one, a consumer may
//! have to see first, to make probes there. It is no debugger: nobody is stopped by `ptrace()`, so that debuggers can be there as well.
//! The breakpoint or tracepoint only queues a [`Pause`]; the process comes to wait when it holds nothing of the kernel's, and tells the
//! consumer then.
//!
//! Who waits is listed under a spin lock, for everybody's processes take it: nobody keeps it by not being run. A process leaves the list by
//! itself. When the consumer goes the list is closed: all go on at once, and who comes later does not wait. What would still
//! call in is taken away after that.
//!
//! Who waits by `poll()` or `select()` to hear of them keeps to the [`Bell`] for as long as that takes, so it stays as long as the file. What is asked
//! for, and by whom, is in [`holder`](super::holder).

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

/// Where the consumer waits to hear of processes.
#[pin_data]
pub(super) struct Bell {
    #[pin]
    pub(super) queue: PollCondVar,
}

impl Bell {
    /// One that nobody waits at.
    pub(super) fn new() -> Result<Arc<Self>> {
        let bell = pin_init!(Self {
            queue <- new_poll_condvar!("dtrace::Bell"),
        });
        Arc::pin_init(bell, GFP_KERNEL)
    }

    /// Has all who wait look.
    pub(super) fn ring(&self) {
        self.queue.notify_all();
    }
}

/// What is shared with the processes.
#[pin_data]
pub struct Holds {
    #[pin]
    list: SpinLock<List>,
    /// Read where nobody may sleep.
    #[pin]
    pub(super) asked: SpinLock<Asked>,
    #[pin]
    pub(super) files: Files,
    /// Whose processes; `None`: everybody's.
    pub(super) rights: Option<Arc<Rights>>,
    bell: Arc<Bell>,
    /// How many went on too early.
    late: AtomicU32,
}

/// Room that is made for those who wait, to begin with.
const LIST_MIN: usize = 8;

/// Who waits.
struct List {
    waiting: KVVec<Entry>,
    last: u64,
    closed: bool,
}

impl List {
    /// Whether there is room for one more, if need be in `room`, which is exchanged for what is used then.
    fn has_room(&mut self, room: &mut KVVec<Entry>) -> bool {
        if self.waiting.len() < self.waiting.capacity() {
            return true;
        }
        if room.capacity() <= self.waiting.len() {
            return false;
        }
        for entry in self.waiting.drain_all() {
            // There is room.
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

/// Whose beginnings are asked for.
pub(super) struct Asked {
    pub(super) parents: KVec<Process>,
    pub(super) names: KVec<[u8; NAME_SIZE]>,
}

/// Why a process waits, and for whom.
struct Held {
    holds: Arc<Holds>,
    kind: u32,
    parent: Option<Pid>,
    /// What it has mapped.
    file: Option<FileId>,
}

impl Holds {
    /// Nobody waits, and nobody is asked for.
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

    /// Whether somebody waits that the consumer has not been told of.
    pub fn is_waiting(&self) -> bool {
        self.files.has_told() || self.list.lock().waiting.iter().any(|entry| !entry.told)
    }

    /// Whether the current process may be one to wait. Whether it is one is asked before the consumer is told.
    fn concerns_current(&self) -> bool {
        self.rights.as_ref().is_none_or(|rights| rights.is_likely())
    }

    /// The current process has registered probes, and waits as it does when it maps a file.
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

    /// The next one that the consumer has not been told of.
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
                // Nothing can be done in what cannot be seen.
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

    /// Lets one go.
    pub(super) fn resume(&self, id: u64) -> Result {
        let list = self.list.lock();
        let entry = list.waiting.iter().find(|entry| entry.id == id);
        entry.ok_or(ENOENT)?.pause.end();
        Ok(())
    }

    /// Lets everybody go, and nobody wait any more.
    pub(super) fn close(&self) {
        let mut list = self.list.lock();
        list.closed = true;
        let waiting = core::mem::replace(&mut list.waiting, KVVec::new());
        drop(list);
        waiting.iter().for_each(|entry| entry.pause.end());
    }

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
            // What was used before is freed here as well.
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
        // There is room.
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

/// Who hears of what happens in processes.
#[derive(Clone)]
pub struct Ear(pub(super) Arc<Holds>);

impl Ear {
    /// Whether both are the same consumer's.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The current process has come to an [instruction](super::posts). Interrupts may be off.
    pub fn reached(&self) {
        self.queued(Pause::current(self.held(hold::INSTRUCTION, None), WAIT_MS));
    }

    /// Processes will not wait there any more.
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
        // Who stops it may do so for ever before it comes to wait.
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

/// What tells of processes that begin.
pub(super) type Told = Telling<Arc<Crowd<Ear>>>;

/// All consumers that have processes wait when they begin, and when they map files.
pub struct Lookout {
    pub(super) births: Arc<Audience<Told>>,
    pub(super) mappings: Arc<Audience<Mappings<Ear>>>,
}

impl Lookout {
    /// None.
    pub fn new() -> Result<Self> {
        Ok(Self {
            births: Audience::new()?,
            mappings: Audience::new()?,
        })
    }
}
